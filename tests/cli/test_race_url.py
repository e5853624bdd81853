"""`trifecta race URL`: consent, what is refused, and a whole run against an origin on loopback."""

import json
import subprocess
import sys

import pytest

from tests.workloads.test_stat import certificates, origin
from trifecta.cli.main import run
from trifecta.design.errors import CannotError
from trifecta.store.views import connect

__all__ = ["certificates"]  # a fixture

URL = "https://localhost:8443/"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (
            [URL],
            "requests to https://localhost:8443/ leave this machine, and there is no terminal to ask at; add --yes",
        ),
        ([URL, "--yes", "--server", "caddy"], "option --server: belongs to servers of a study"),
        ([URL, "--yes", "--capture"], "option --capture: belongs to servers of a study"),
        ([URL, "--yes", "--with", "stock-quinn"], "option --with: belongs to servers of a study"),
        ([URL, "--yes", "--host", "client=here"], "option --host: belongs to servers of a study"),
        (["http://localhost/", "--yes"], "is not a URL that can be measured"),
        (["caddy", "--yes"], "'caddy' is no URL; give https://HOST/PATH, or run a study by `trifecta run caddy`"),
        (["https://a.example/x,y", "--yes"], "has a comma"),
        ([URL, URL, "--yes"], "one URL is given twice"),
        ([URL, "--address", "here", "--yes"], "'here' is not an address"),
        ([URL, "--yes", "--ca", __file__, "--set", "pace=3/s"], "pace: 3/s is more than 2/s, the most at"),
        (["--i-own-this"], "option --i-own-this: belongs to a URL, and none is given"),
        (["--address", "IPv4"], "option --address: belongs to a URL"),
        (["--page"], "option --page: belongs to a URL, and none is given"),
        ([URL, "--yes", "--browser", "firefox"], "option --browser: belongs to --page, which is not given"),
        ([URL, "--yes", "--page", "--browser", "netscape"], "unknown client 'netscape'"),
        (["https://192.0.2.1/", "--yes", "--page"], "a page is visited by its host's name"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_sent(arguments, why, capsys, monkeypatch):
    monkeypatch.setattr("trifecta.workloads.far.choose.look", lambda *_: pytest.fail("something was sent"))
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    assert run(["race", *arguments]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert said.count("\n") == 1


@pytest.mark.parametrize(("asked", "limit_s"), [(None, 5), ("1 s", 1), ("20 s", 5)])
def test_a_look_waits_for_a_connection_no_longer_than_the_run_does(asked, limit_s, monkeypatch):
    def looked(wanted, **_):
        assert wanted.workload.connect_timeout_ns == limit_s * 10**9
        raise CannotError("seen")

    monkeypatch.setattr("trifecta.cli.far._look", looked)
    assert run(["race", URL, "--yes", *(["--set", f"connect_timeout={asked}"] if asked else [])]) == 3


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "trifecta.cli.main", *arguments],
        capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=200,
    )  # fmt: skip


@pytest.fixture(scope="module")
def raced(certificates, tmp_path_factory):
    """A race over loopback, and what the command said."""
    folder = tmp_path_factory.mktemp("race") / "run"
    with origin(certificates) as port:
        url = f"https://localhost:{port}/bytes/2000?x=1"
        ours = (
            "--ca",
            str(certificates.authority),
            "--i-own-this",
            "--yes",
            "--address",
            "IPv4",
            "--set",
            "pace=100/s",
        )
        done = command("race", url, *ours, "--blocks", "2", "--out", str(folder), "--json")
        again = command("resume", str(folder), "--blocks", "1", "--yes", "--quiet")
    return folder, url, done, again


@pytest.mark.lab
def test_a_race_looks_says_what_is_coming_and_measures(raced):
    folder, _, done, again = raced
    assert done.returncode in (0, 1), done.stderr
    assert done.stderr.startswith("A look first: at most 8 requests to each address, 20 a second on average.")
    assert "HTTP/3 200 with 2.00 kB" in done.stderr
    assert "This sends" in done.stderr
    said = json.loads(done.stdout)
    assert said["elsewhere"]["said"][0].startswith(
        "Nothing is emulated: this is the path from this machine to localhost:"
    )
    assert [look["when"] for look in said["elsewhere"]["looks"]] == ["before", "after"]
    assert len(said["cells"]) == 2
    assert again.returncode in (0, 1), again.stderr
    with connect(folder) as connection:
        blocks = connection.execute("SELECT cell, count(DISTINCT block) FROM trials GROUP BY cell").fetchall()
        assert [number for _, number in blocks] == [3, 3]
        where = "SELECT DISTINCT json_extract_string(server_json, 'address') FROM trials"
        assert connection.execute(where).fetchall() == [("127.0.0.1",)]
        asked = connection.execute(
            "SELECT t.connection, count(*) FILTER (WHERE NOT s.warmup), count(*) FILTER (WHERE s.warmup)"
            " FROM samples AS s JOIN trials AS t USING (trial) GROUP BY t.trial, t.connection"
        ).fetchall()
        assert {(mode, measured, before) for mode, measured, before in asked} == {("new", 4, 0), ("reused", 4, 1)}
        wrong = connection.execute("SELECT \"check\", evidence FROM checks WHERE status = 'fail'").fetchall()
        assert [row for row in wrong if row[0] not in ("blocks", "machine", "headroom", "gaps")] == []


@pytest.mark.lab
def test_its_report_says_what_one_side_cannot_know(raced):
    folder, url, _, _ = raced
    text = (folder / "report.html").read_text().replace("\u00a0", " ")
    for part in ("Nothing is emulated", "One side cannot know", "The path, as it was seen from here", "not observable"):
        assert part in text
    assert "as emulated" not in text
    assert url.partition("?")[0] in text


@pytest.mark.lab
def test_a_run_that_leaves_the_machine_is_not_gone_on_with_unasked(raced):
    folder, _, _, _ = raced
    done = command("resume", str(folder), "--blocks", "1")
    assert done.returncode == 2
    assert "add --yes" in done.stderr
