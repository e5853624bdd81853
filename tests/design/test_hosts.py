"""``hosts`` in a study: places, the path between them, and what cannot be there."""

from __future__ import annotations

import pytest

from trifecta import studies
from trifecta.cli import options
from trifecta.design import plan
from trifecta.design.errors import UserError
from trifecta.design.machine import Machine, parse_machine
from trifecta.design.model import ServicesWorkload
from trifecta.design.quantity import QuantityError
from trifecta.design.sba import FUNCTIONS
from trifecta.design.study_file import parse_study

BETWEEN = ["hosts.client=ssh://a", "hosts.server=ssh://me@b:2222"]
MIDDLE = "hosts: {client: ssh://a, server: ssh://b, middle: {at: ssh://c, devices: [eth1, eth2]}}"
FILE = """
study: mine
workload: {requests: 60}
hosts: {client: here, server: {at: "ssh://b", address: 192.0.2.7}}
"""


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("ssh://a", ("a", None, None)),
        ("ssh://me@lab-3.example.org:2222", ("lab-3.example.org", "me", 2222)),
        ("ssh://me@[2001:db8::1]:22/", ("2001:db8::1", "me", 22)),
        ("ssh://192.0.2.1", ("192.0.2.1", None, None)),
    ],
)
def test_a_place_is_read(text: str, parts: tuple[str, str | None, int | None]) -> None:
    machine = parse_machine(text)
    assert (machine.host, machine.user, machine.port) == parts
    assert not machine.is_here


@pytest.mark.parametrize(
    "text",
    ["a", "http://a", "ssh://", "ssh://-oProxyCommand=x", "ssh://a:0", "ssh://a:70000", "ssh://a/b", "ssh://a b", ""],
)
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(QuantityError, match=r"write ssh://HOST|give 1 to 65535"):
        parse_machine(text)


def test_a_password_is_refused_and_not_repeated() -> None:
    with pytest.raises(QuantityError, match="a password has no place") as said:
        parse_machine("ssh://me:secret@a")
    assert "secret" not in str(said.value)


def test_a_study_of_its_own_names_hosts() -> None:
    study = parse_study(FILE, "mine.yaml")
    assert study.hosts == {"client": Machine("here"), "server": Machine("ssh://b", "192.0.2.7")}
    assert list(study.paths) == ["direct"]
    assert study.paths["direct"].as_is
    assert study.factors["path"] == ("direct",)
    assert parse_study(study.source, "again") == study


def test_options_give_a_study_hosts_and_take_its_paths() -> None:
    study = studies.load("race", BETWEEN)
    assert study.hosts["server"] == Machine("ssh://me@b:2222")
    assert study.factors["path"] == ("direct",)
    assert parse_study(study.source, "again") == study
    assert "hosts" not in studies.load("race").source  # the identity of studies from before there were hosts stays


def test_the_path_between_them_can_have_a_length_of_its_own() -> None:
    study = parse_study(FILE + "paths: {direct: {trial: {requests: 7}}}\n", "mine.yaml")
    length = study.paths["direct"].length("reused")
    assert length is not None and length.requests == 7
    assert parse_study(study.source, "again") == study


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("hosts: {client: ssh://a}", "hosts: name no server; add 'server: ssh://HOST'"),
        ("hosts: {client: here, server: here}", "hosts: are both here"),
        ("hosts: {client: ssh://a, server: b}", "hosts.server: 'b' is not a host"),
        ("hosts: {client: ssh://a, sever: ssh://b}", "hosts.sever: unknown field; did you mean 'server'"),
        (
            "hosts: {client: ssh://a, server: {at: ssh://b, address: b}}",
            "hosts.server.address: 'b' is not an IP address",
        ),
        ("hosts: {client: ssh://a, server: {address: 192.0.2.1}}", "hosts.server.at: is missing"),
        ("hosts: {client: ssh://a, server: ssh://b}\npaths: {far: {rtt: 60 ms}}", "paths.far: hosts have the network"),
        ("hosts: {client: ssh://a, server: ssh://b}\npaths: {direct: {rtt: 60 ms}}", "paths.direct.rtt: unknown field"),
        (MIDDLE.replace("{at: ssh://c, devices: [eth1, eth2]}", "ssh://c"), "hosts.middle: has no devices; write"),
        (MIDDLE.replace("eth1, eth2", "eth1"), "hosts.middle.devices: name two: the device towards the client"),
        (MIDDLE.replace("eth1, eth2", "eth1, eth1"), "hosts.middle.devices: name two"),
        (MIDDLE.replace("eth2", "a b"), "hosts.middle.devices[1]: 'a b' is not the name of a network device"),
        (MIDDLE.replace("ssh://c", "ssh://b"), "hosts.middle.at: is the host of the server, whose own packets"),
        (MIDDLE.replace("at: ssh://c, ", ""), "hosts.middle.at: is missing"),
        (MIDDLE.replace("devices", "device"), "hosts.middle.device: unknown field; did you mean 'devices'"),
        (MIDDLE + "\ncapture: true", "capture: packets are captured by the link of a lab"),
        ("hosts: {client: ssh://a, server: ssh://b}\nfactors: {path: [clean]}", "path 'clean' is not defined"),
        ("hosts: {client: ssh://a, server: ssh://b}\ncapture: true", "capture: packets are captured by the link"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(text: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        parse_study(f"study: mine\nworkload: {{requests: 60}}\n{text}\n", "mine.yaml")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_a_host_in_the_middle_makes_paths() -> None:
    paths = "paths: {far: {rtt: 60 ms}}\nfactors: {path: [far, clean]}"
    text = f"study: mine\nworkload: {{requests: 60}}\n{MIDDLE}\n{paths}\n"
    study = parse_study(text, "mine.yaml")
    assert study.hosts["middle"] == Machine("ssh://c", devices=("eth1", "eth2"))
    assert study.factors["path"] == ("far", "clean")
    assert study.paths["far"].rtt_ns == 60_000_000
    assert not any(path.as_is for path in study.paths.values())
    assert parse_study(study.source, "again") == study


def test_options_that_name_a_host_in_the_middle_leave_a_study_its_paths() -> None:
    middle = ["hosts.middle.at=ssh://c", "hosts.middle.devices=[eth1,eth2]"]
    study = studies.load("race", [*BETWEEN, *middle])
    assert study.hosts["middle"] == Machine("ssh://c", devices=("eth1", "eth2"))
    assert study.factors["path"] == studies.load("race").factors["path"]
    assert parse_study(study.source, "again") == study


CHAIN = """
study: mine
workload: {kind: chain, depth: 3, requests: 20}
hosts: {client: here, B: "ssh://b", C: {at: "ssh://c", address: 192.0.2.7}}
"""


def test_services_have_places_by_their_names() -> None:
    study = parse_study(CHAIN, "mine.yaml")
    assert study.hosts == {"client": Machine("here"), "B": Machine("ssh://b"), "C": Machine("ssh://c", "192.0.2.7")}
    assert study.factors["path"] == ("direct",)
    assert parse_study(study.source, "again") == study


def test_services_of_every_depth_have_a_place() -> None:
    text = CHAIN.replace("depth: 3, ", "") + "factors: {depth: [2, 3]}\n"
    assert [cell.levels["depth"] for cell in plan.cells(parse_study(text, "mine.yaml"))] == [2, 3]
    with pytest.raises(UserError, match=r"hosts: name no D; add 'D: ssh://HOST', or 'D: here' for this machine"):
        parse_study(text.replace("[2, 3]", "[2, 4]"), "mine.yaml")


def test_options_place_the_services_of_a_bundled_study_and_take_its_number_of_hosts() -> None:
    chain = studies.load("chain", ["depth=3", "hosts.client=here", "hosts.B=ssh://b", "hosts.C=ssh://b"])
    assert isinstance(chain.workload, ServicesWorkload)
    assert (chain.workload.hosts, list(chain.hosts), list(chain.paths)) == (1, ["client", "B", "C"], ["direct"])
    assert parse_study(chain.source, "again") == chain
    fan_in = studies.load("fan-in", ["hosts.client=ssh://a", "hosts.B=ssh://b"])
    assert list(fan_in.hosts) == ["client", "B"]
    core = studies.load("sba-registration", [f"hosts.{role}=ssh://{role}" for role in ("client", *FUNCTIONS)])
    assert list(core.hosts) == ["client", *FUNCTIONS]


@pytest.mark.parametrize(
    ("work", "hosts", "said"),
    [
        ("", "{B: ssh://b, C: ssh://c}", "hosts: name no client; add 'client: ssh://HOST'"),
        ("", "{client: here, B: ssh://b}", "hosts: name no C; add 'C: ssh://HOST'"),
        ("", "{client: here, B: ssh://b, C: ssh://c, D: ssh://d}", "hosts.D: no cell has a service D; remove it"),
        ("", "{client: here, B: here, C: here}", "hosts: are all here, where a lab has a network of its own"),
        ("", "{client: here, server: ssh://b}", "hosts.server: unknown field"),
        ("", "{client: here, A: ssh://a}", "hosts.A: unknown field"),
        (", hosts: 2", "{client: here, B: ssh://b, C: ssh://c}", "workload.hosts: is a number of hosts in a lab"),
        (", impaired: B-C", "{client: here, B: ssh://b, C: ssh://c}", "workload.impaired: is made by a lab"),
    ],
)
def test_what_is_wrong_with_the_places_of_services_is_named(work: str, hosts: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        parse_study(f"study: m\nworkload: {{kind: chain, depth: 3, requests: 20{work}}}\nhosts: {hosts}\n", "m.yaml")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_the_number_of_hosts_is_no_factor_beside_their_names() -> None:
    with pytest.raises(UserError, match=r"factors\.hosts: is a number of hosts in a lab"):
        parse_study(CHAIN + "factors: {hosts: [1, 2]}\n", "mine.yaml")
    with pytest.raises(UserError, match=r"hosts: is a number of hosts in a lab"):
        studies.load("chain", ["hosts=2", "depth=2", "hosts.client=here", "hosts.B=ssh://b"])


def test_a_server_elsewhere_is_not_asked_from_hosts() -> None:
    work = "{kind: far, requests: 4, url: 'https://www.example.org/'}"
    with pytest.raises(UserError) as error:
        parse_study(f"study: mine\nworkload: {work}\nhosts: {{client: ssh://a, server: ssh://b}}\n", "mine.yaml")
    said = (
        "hosts: the workload 'far' does not run on hosts, only requests and services do; leave the hosts out, and give"
    )
    assert f"{said} the places it is asked from as levels of the factor 'vantage'" in str(error.value)
    assert "\n" not in str(error.value)


def test_what_an_option_asks_of_another_path_is_not_lost() -> None:
    with pytest.raises(UserError, match=r"paths\.rough\.loss.*no cell has the path 'rough'"):
        studies.load("race", [*BETWEEN, "paths.rough.loss=5 %"])
    with pytest.raises(UserError, match="path 'far' is not defined"):
        studies.load("race", [*BETWEEN, "path=far"])


def test_the_option_names_role_and_place() -> None:
    placed = options.as_overrides((), None, None, None, (), hosts=("client=here", "B=ssh://b"))
    assert placed == ["hosts.client=here", "hosts.B=ssh://b"]
    changes = options.as_overrides((), None, None, None, (), hosts=("client=ssh://a", "server=here"))
    assert changes == ["hosts.client=ssh://a", "hosts.server=here"]
    for wrong in ("ssh://a", "middle=ssh://a", "b=ssh://a", "client="):
        with pytest.raises(UserError, match="write client=ssh://HOST or server=ssh://HOST"):
            options.as_overrides((), None, None, None, (), hosts=(wrong,))
    with pytest.raises(UserError, match="both set it"):
        options.as_overrides((), None, None, None, (), hosts=("client=ssh://a", "client=ssh://b"))
