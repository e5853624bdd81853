"""Threats are switched in a study's document, or refused in one line."""

import pytest

from trifecta import studies
from trifecta.analysis.checks import RUN_CHECKS, TRIAL_CHECKS
from trifecta.conclude.explain.switched import Switchboard
from trifecta.design import plan
from trifecta.design.campaign import parse_campaign
from trifecta.design.errors import UserError
from trifecta.design.metrics import METRICS, OF_SERVICES
from trifecta.design.study_file import parse_study
from trifecta.threats import THREATS, switches

JITTERY = """
study: mine
workload: {requests: 10}
paths:
  a: {delay: 20 ms, jitter: {sigma: 5 ms}}
  b: {delay: 20 ms, jitter: {forward: {sigma: 5 ms, reorder: false}, backward: {sigma: 1 ms}}}
"""
REORDER = "jitter-reordering"


def jitters(study):
    paths = study.paths.values()
    steps = [step for path in paths for step in (*path.forward, *path.backward) if step["kind"] == "jitter"]
    return [step["reorder"] for step in steps]


def read(on=(), off=(), text=JITTERY, overrides=()):
    return parse_study(text, "mine.yaml", overrides, change=switches(on, off))


def test_a_switch_changes_every_path_in_both_directions():
    assert jitters(read(on=[REORDER])) == [True] * 4
    assert jitters(read(off=[REORDER])) == [False] * 4
    assert jitters(read()) == [False] * 4


def test_what_a_switch_would_undo_of_another_option_is_refused():
    with pytest.raises(UserError) as error:
        read(on=[REORDER], overrides=["paths.a.jitter.reorder=false"])
    said = "changes paths.a.jitter.reorder, and so does --set paths.a.jitter.reorder=false; leave one out"
    assert str(error.value) == f"option --with jitter-reordering: {said}"
    with pytest.raises(UserError) as error:
        read(on=["delayed-ack"], overrides=["tcp_nodelay=true"])
    said = "--set tcp_nodelay=true sets workload.tcp_nodelay too; leave one out"
    assert str(error.value) == f"option --with delayed-ack: {said}"


def test_a_switch_finds_what_an_option_adds():
    added = read(on=[REORDER], overrides=["paths.a.jitter={distribution: normal, sigma: 2 ms}"])
    assert all(jitters(added))


def test_a_switch_that_cannot_apply_is_refused_in_one_line():
    with pytest.raises(
        UserError, match=r"^option --with jitter-reordering: no path of this study has jitter; add it, "
    ):
        read(on=[REORDER], text="study: mine\nworkload: {requests: 10}\n")


@pytest.mark.parametrize(
    ("on", "off", "said"),
    [
        (["jitter-reorderin"], [], "option --with: no threat 'jitter-reorderin'; did you mean 'jitter-reordering'?"),
        ([], ["nothing"], "option --without: no threat 'nothing'; "),
        ([REORDER], [REORDER], "'jitter-reordering' is in both"),
    ],
)
def test_names_are_checked(on, off, said):
    with pytest.raises(UserError) as error:
        switches(on, off)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


CHAIN = "study: mine\nworkload: {kind: chain, requests: 10}\nfactors: {server: [go-services]}\n"


PAYLOADS = "study: mine\nworkload: {kind: fan-in, requests: 10}\n"
APART = "128 B/1 kB/10 kB"


def test_a_payload_for_each_protocol_is_switched_in_the_workload_or_its_factor():
    sizes = (128, 1_000, 10_000)
    assert read(on=["payload-by-protocol"], text=PAYLOADS).workload.response_bytes == sizes
    assert read(on=["payload-by-protocol"], text=PAYLOADS.replace("fan-in", "chain")).workload.request_bytes == sizes
    assert read(on=["payload-by-protocol"], text=PAYLOADS, overrides=["clients=2"]).workload.response_bytes == sizes
    several = PAYLOADS + "factors: {response: [1 kB, 2 kB]}\n"
    assert read(on=["payload-by-protocol"], text=several).factors["response"] == (APART,)
    apart = several.replace("2 kB", APART)
    assert read(off=["payload-by-protocol"], text=apart).factors["response"] == ("1 kB", "128 B")
    own = PAYLOADS.replace("10}", f"10, response: {APART}}}")
    assert read(off=["payload-by-protocol"], text=own).workload.response_bytes == 128


@pytest.mark.parametrize(
    ("switch", "text", "said"),
    [
        ("off", PAYLOADS, "the response of this study has one size over all protocols"),
        ("on", PAYLOADS.replace("fan-in", "sba-registration"), "needs a workload whose payload can be chosen"),
        ("on", PAYLOADS + "compare: clients\nfactors: {clients: [1, 2]}\n", "compare: protocol"),
    ],
)
def test_a_payload_that_cannot_be_switched_is_refused_in_one_line(switch, text, said):
    with pytest.raises(UserError, match=said) as error:
        read(**{switch: ["payload-by-protocol"]}, text=text)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (CHAIN, "services of one host share it with the name server"),
        (CHAIN.replace("10}", "10, hosts: 2}").replace("go-services", "services"), "add --set server=go-services"),
        (CHAIN.replace("chain", "fan-in"), "needs services that call others"),
    ],
)
def test_names_over_the_path_need_hosts_and_a_program_that_asks(text, said):
    far = CHAIN.replace("10}", "10, hosts: 2, names: local}")
    assert read(on=["names-over-the-path"], text=far).workload.names == "path"
    assert read(off=["names-over-the-path"], text=far.replace("local", "path")).workload.names is None
    with pytest.raises(UserError, match=said) as error:
        read(on=["names-over-the-path"], text=text)
    assert "\n" not in str(error.value)


def test_in_a_campaign_a_switch_applies_where_it_can():
    text = studies.read_text(studies.find("bourbon2020"))
    change = switches(off=[REORDER], many=True)
    campaign = parse_campaign(text, "bourbon2020.yaml", "quick", change=change)
    change.refuse_unused()
    assert set(jitters(campaign.studies["distributed_delay-A"])) == {False}
    change = switches(off=[REORDER], many=True)
    parse_campaign(text, "bourbon2020.yaml", "quick", only=["single"], change=change)
    with pytest.raises(UserError, match="no path of this study has jitter"):
        change.refuse_unused()


@pytest.mark.parametrize("threat", THREATS.values(), ids=THREATS)
def test_what_a_threat_says_of_itself_holds(threat):
    assert threat.check is None or threat.check in (*TRIAL_CHECKS, *RUN_CHECKS), "its check is in the table"
    assert bool(threat.check) != bool(threat.undetected), "a check, or the reason why there is none"
    assert (threat.on is not None and threat.off is not None) or threat.no_switch
    assert bool(threat.experiment) != bool(threat.elsewhere), "an experiment, or where its effect is found"
    assert "\n" not in threat.title and len(threat.title) <= 80
    for effect in threat.effects:
        assert effect.metric in METRICS or effect.metric in OF_SERVICES


FAILED = (
    "protocol",
    "same_work",
    "headroom",
    "errors",
    "conntrack",
)  # checks whose failure leaves a trial out of verdicts


@pytest.mark.parametrize("threat", THREATS.values(), ids=THREATS)
def test_an_experiment_whose_check_leaves_trials_out_gives_every_cell_all_its_blocks(threat):
    for name in threat.experiments if threat.check in FAILED else ():
        assert not studies.experiment(name).give_up, name


EXPERIMENTS = {name: threat for name, threat in THREATS.items() if threat.experiment and not threat.procedure}


@pytest.mark.parametrize("threat", EXPERIMENTS.values(), ids=EXPERIMENTS)
@pytest.mark.parametrize("quick", [True, False])
def test_an_experiment_has_the_threat_off_and_on_side_by_side(threat, quick):
    assert threat.effects
    for effect in threat.effects:
        name = effect.experiment or threat.experiment
        study = studies.experiment(name, threat.quickly(name) if quick else ())
        cells = [{name: plan.level_text(level) for name, level in cell.levels.items()} for cell in plan.cells(study)]
        for level in (effect.off, effect.on):
            wanted = {effect.factor: level, **dict(effect.where)}
            assert any(wanted.items() <= cell.items() for cell in cells), (effect, cells)


SERVICES = "study: mine\nworkload: {{kind: chain, requests: 10, hosts: {hosts}}}\n"


NAMED = "study: mine\nworkload: {kind: chain, depth: 3, requests: 10}\nhosts: {client: here, B: ssh://b, C: ssh://c}\n"


def test_services_go_over_loopback_and_back():
    on = read(on=["loopback-offload"], text=SERVICES.format(hosts=4))
    assert (on.workload.hosts, on.paths["clean"].frames) == (1, "merged")
    off = read(off=["loopback-offload"], text=SERVICES.format(hosts=1))
    assert (off.workload.hosts, off.paths["clean"].frames) == (2, "wire")
    assert {path.frames for path in read(off=["loopback-offload"]).paths.values()} == {"wire"}
    with pytest.raises(UserError, match="the workload 'requests' has client and server on separate hosts"):
        read(on=["loopback-offload"])


@pytest.mark.parametrize("name", ["loopback-offload", "conntrack", "names-over-the-path"])
def test_hosts_with_names_are_as_they_are(name):
    """Neither position of the switch is the study's, and `explain` says that neither is."""
    for position in ("on", "off"):
        with pytest.raises(UserError, match=r"this study names its hosts, and .* can only be set in a lab; leave"):
            read(**{position: [name]}, text=NAMED)
    study = read(text=NAMED)
    (state,) = (one for one in Switchboard(study).states(plan.cells(study)[0], {}) if one.id == name)
    assert (state.state, state.why.startswith("the check")) == ("unknown", True)


def test_frames_are_of_a_wire_where_an_emulator_is_in_the_middle():
    text = "study: mine\nworkload: {requests: 10}\nhosts: {client: here, server: ssh://b}\n"
    with pytest.raises(UserError, match="the frames of its path can only be set in a lab; leave the hosts out"):
        read(off=["loopback-offload"], text=text)
    middle = text.replace("ssh://b}", "ssh://b, middle: {at: ssh://c, devices: [eth1, eth2]}}")
    assert {path.frames for path in read(off=["loopback-offload"], text=middle).paths.values()} == {"wire"}


def test_a_table_of_connections_needs_hosts():
    assert read(on=["conntrack"], text=SERVICES.format(hosts=2)).workload.conntrack == "100"
    assert read(off=["conntrack"], text=SERVICES.format(hosts=2)).workload.conntrack == "bypass"
    for text, said in ((SERVICES.format(hosts=1), "services of one host"), (JITTERY, "for services only")):
        with pytest.raises(UserError, match=said):
            read(on=["conntrack"], text=text)


@pytest.mark.parametrize(
    ("threat", "factor", "on", "off"),
    [
        ("round-trips", "connection", ("new",), ("reused",)),
        ("congestion-control", "congestion_control", "bbr/cubic", "cubic"),
        ("server-timeouts", "write_timeout_ns", 10**9, None),
    ],
)
def test_switches_set_what_they_say(threat, factor, on, off):
    for study, wanted in ((read(on=[threat]), on), (read(off=[threat]), off)):
        assert (study.factors.get(factor) or getattr(study.workload, factor)) == wanted


@pytest.mark.parametrize("option", ["on", "off"])
def test_servers_of_a_page_have_no_timeouts(option):
    with pytest.raises(UserError, match="server-timeouts: only servers of requests and Go services have timeouts"):
        read(**{option: ["server-timeouts"]}, text="study: mine\nworkload: {kind: page, page: light}\n")


def test_timeouts_take_the_place_of_a_factor():
    study = read(on=["server-timeouts"], text=JITTERY + "factors: {write_timeout: [none, 1 s]}\n")
    assert "write_timeout" not in study.factors
    assert (study.workload.write_timeout_ns, study.workload.read_timeout_ns) == (10**9, 5 * 10**9)
