"""Paths: fields to impairments, in the order of the documentation, each direction its own."""

import pytest

from trifecta import studies
from trifecta.design.errors import UserError
from trifecta.design.study import path
from trifecta.design.study_file import parse_study


def kinds(documents):
    return [document["kind"] for document in documents]


def test_every_impairment_in_the_documented_order_whatever_the_order_in_the_file():
    spec = path(
        "all",
        reorder={"probability": "1 %", "gap": "2 ms"},
        jitter={"distribution": "normal", "sigma": "2 ms"},
        rate="10 Mbit/s",
        rtt="40 ms",
        duplicate="0.1 %",
        corrupt="0.1 %",
        gilbert_elliott={"good_to_bad": "1 %", "bad_to_good": "30 %", "loss_bad": "50 %"},
        loss="1 %",
        loss_schedule=[7, 3],
    ).spec()
    order = ["loss_schedule", "loss", "gilbert_elliott", "corrupt", "duplicate", "rate", "delay", "jitter", "reorder"]
    assert kinds(spec.forward) == order
    assert kinds(spec.backward) == order
    assert spec.forward[0] == {"kind": "loss_schedule", "drop": [3, 7]}
    assert spec.forward[2] == {
        "kind": "gilbert_elliott",
        "good_to_bad": 0.01,
        "bad_to_good": 0.3,
        "loss_good": 0.0,
        "loss_bad": 0.5,
    }
    assert spec.forward[6] == {"kind": "delay", "delay_ns": 20_000_000}
    assert spec.forward[7] == {"kind": "jitter", "distribution": "normal", "reorder": False, "sigma_ns": 2_000_000}
    assert spec.forward[8] == {"kind": "reorder", "probability": 0.01, "gap_ns": 2_000_000}


def test_directions_of_their_own():
    spec = path(
        "adsl",
        delay={"forward": "10 ms", "backward": "15 ms"},
        rate={"forward": "1 Mbit/s", "backward": "16 Mbit/s"},
        queue={"forward": "20 packets", "backward": "2 bdp"},
        loss={"backward": "0.5 %"},
    ).spec()
    assert kinds(spec.forward) == ["rate", "delay"]
    assert kinds(spec.backward) == ["loss", "rate", "delay"]
    assert spec.forward[0] == {"kind": "rate", "bits_per_s": 1_000_000, "queue_packets": 20, "discipline": "droptail"}
    assert spec.backward[1]["queue_bytes"] == 100_000  # 16 Mbit/s x 25 ms x 2
    assert (spec.rtt_ns, spec.rate_bits_per_s, spec.loss) == (25_000_000, 1_000_000, 0.005)


def test_odd_round_trip_times_lose_no_nanosecond():
    spec = path("odd", rtt="5 ns").spec()
    assert [spec.forward[0]["delay_ns"], spec.backward[0]["delay_ns"]] == [2, 3]


def test_a_bandwidth_delay_product_holds_at_least_a_packet_and_is_the_default():
    assert path("slow", rtt="1 ms", rate="1 Mbit/s").spec().queue_bytes == 1514
    assert path("far", rtt="80 ms", rate="100 Mbit/s").spec().queue_bytes == 1_000_000
    assert path("here", rate="100 Mbit/s").spec().forward[0]["queue_packets"] == 1000


def test_codel():
    spec = path("aqm", rate="1 Mbit/s", queue="100 packets", discipline="codel").spec()
    assert spec.forward[0] == {
        "kind": "rate",
        "bits_per_s": 1_000_000,
        "queue_packets": 100,
        "discipline": "codel",
        "target_ns": 5_000_000,
        "interval_ns": 100_000_000,
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"jitter": {"distribution": "cauchy"}}, "jitter.distribution: 'cauchy' is not a distribution"),
        ({"jitter": {"distribution": "uniform"}}, "jitter.range: is missing"),
        ({"jitter": {"sigma": "1 ms", "range": "2 ms"}}, "jitter.range: unknown field"),
        ({"jitter": {"distribution": "pareto", "scale": "1 ms", "shape": 1}}, "is not a Pareto shape"),
        ({"gilbert_elliott": {"good_to_bad": "1 %", "bad_to_good": "0 %"}}, "the bad state would never end"),
        ({"gilbert_elliott": {"good_to_bad": "1 %"}}, "gilbert_elliott.bad_to_good: is missing"),
        ({"loss_schedule": [1, 1]}, "names a packet twice"),
        ({"reorder": {"probability": "1 %", "gap": "1 ms"}}, "reorder: needs a delay"),
        ({"rate": "1 Mbit/s", "trace": {"opportunities": [1]}}, "a rate or a trace, not both"),
        ({"trace": {"opportunities": [3, 1]}}, "time 1 ms at position 1 goes back"),
        ({"trace": {"opportunities": [0]}}, "could not repeat"),
        ({"trace": {"opportunities": []}}, "the trace is empty"),
        ({"trace": {}}, "trace: give either the file of a trace or its opportunities"),
        ({"rate": "1 Mbit/s", "discipline": {"kind": "codel", "target": "1 s"}}, "target of codel lies between"),
        ({"rate": {"forward": "1 Mbit/s"}, "queue": {"backward": "5 packets"}}, "backward direction has no rate"),
        ({"loss": {"forward": "3 %", "loss": "1 %"}}, "loss.loss: unknown field"),
    ],
)
def test_impossible_paths(fields, message):
    with pytest.raises(UserError) as error:
        path("p", **fields).spec()
    assert message in str(error.value)


TRACED = "study: t\nworkload: {requests: 5}\npaths:\n  lte: {trace: {file: %s}}\n"


def test_a_trace_file_beside_the_study_is_read_and_kept_in_the_canonical_text(tmp_path):
    (tmp_path / "lte.trace").write_text("# two packets in 5 ms\n0\n3\n5\n")
    (tmp_path / "t.yaml").write_text(TRACED % "lte.trace")
    study = studies.load(str(tmp_path / "t.yaml"))
    assert study.paths["lte"].forward[0]["opportunities_ms"] == [0, 3, 5]
    assert parse_study(study.source, "again") == study


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../secret", "lies outside the study's folder"),
        ("/etc/passwd", "lies outside the study's folder"),
        ("link", "lies outside the study's folder"),
        ("gone", "cannot be read (No such file or directory)"),
        ("words", "words:2: 'two' is not a time in whole ms"),
        ("empty", "the trace is empty"),
    ],
)
def test_trace_files_that_are_refused(tmp_path, name, message):
    folder = tmp_path / "study"
    folder.mkdir()
    (tmp_path / "secret").write_text("1\n")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "words").write_text("1\ntwo\n")
    (folder / "empty").write_text("")
    (folder / "t.yaml").write_text(TRACED % name)
    with pytest.raises(UserError) as error:
        studies.load(str(folder / "t.yaml"))
    assert message in str(error.value)
    assert "t.yaml:4: paths.lte.trace.file" in str(error.value)


def test_a_length_for_one_connection_mode_leaves_the_other_as_the_workload_has_it():
    spec = path("p", rtt="5 ms", trial={"new": {"requests": 7, "warmup": "1 ms"}}).spec()
    assert (spec.length("new").requests, spec.length("new").warmup_ns) == (7, 1_000_000)
    assert spec.length("reused") is None


@pytest.mark.parametrize(
    ("trial", "message"),
    [
        ({"new": {"requests": 7}, "requests": 9}, "trial.requests: unknown field"),
        ({"new": {"requests": 0}}, "trial.new: a trial would never end"),
        ({"old": {"requests": 7}}, "trial.old: unknown field"),
        ({"reused": {"request": 7}}, "trial.reused.request: unknown field; did you mean 'requests'"),
    ],
)
def test_lengths_that_are_refused(trial, message):
    with pytest.raises(UserError) as error:
        path("p", trial=trial).spec()
    assert message in str(error.value)
