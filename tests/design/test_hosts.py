"""``hosts`` in a study: places, the path between them, and what cannot be there."""

from __future__ import annotations

import pytest

from trifecta import studies
from trifecta.cli import options
from trifecta.design.errors import UserError
from trifecta.design.machine import Machine, parse_machine
from trifecta.design.quantity import QuantityError
from trifecta.design.study_file import parse_study

BETWEEN = ["hosts.client=ssh://a", "hosts.server=ssh://me@b:2222"]
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
        ("hosts: {client: ssh://a, server: ssh://b}\nfactors: {path: [clean]}", "path 'clean' is not defined"),
        ("hosts: {client: ssh://a, server: ssh://b}\ncapture: true", "capture: packets are captured by the link"),
    ],
)
def test_what_is_wrong_is_named_with_its_remedy(text: str, said: str) -> None:
    with pytest.raises(UserError) as error:
        parse_study(f"study: mine\nworkload: {{requests: 60}}\n{text}\n", "mine.yaml")
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_services_do_not_run_on_hosts() -> None:
    with pytest.raises(UserError, match="the workload 'chain' does not run on hosts"):
        studies.load("chain", BETWEEN)


def test_a_server_elsewhere_is_not_asked_from_hosts() -> None:
    work = "{kind: far, requests: 4, url: 'https://www.example.org/'}"
    with pytest.raises(UserError) as error:
        parse_study(f"study: mine\nworkload: {work}\nhosts: {{client: ssh://a, server: ssh://b}}\n", "mine.yaml")
    said = "hosts: the workload 'far' does not run on hosts, only 'requests' does; leave the hosts out, and give the"
    assert f"{said} places it is asked from as levels of the factor 'vantage'" in str(error.value)
    assert "\n" not in str(error.value)


def test_what_an_option_asks_of_another_path_is_not_lost() -> None:
    with pytest.raises(UserError, match=r"paths\.rough\.loss.*no cell has the path 'rough'"):
        studies.load("race", [*BETWEEN, "paths.rough.loss=5 %"])
    with pytest.raises(UserError, match="path 'far' is not defined"):
        studies.load("race", [*BETWEEN, "path=far"])


def test_the_option_names_role_and_place() -> None:
    changes = options.as_overrides((), None, None, None, (), hosts=("client=ssh://a", "server=here"))
    assert changes == ["hosts.client=ssh://a", "hosts.server=here"]
    for wrong in ("ssh://a", "middle=ssh://a", "client="):
        with pytest.raises(UserError, match="write client=ssh://HOST or server=ssh://HOST"):
            options.as_overrides((), None, None, None, (), hosts=(wrong,))
    with pytest.raises(UserError, match="both set it"):
        options.as_overrides((), None, None, None, (), hosts=("client=ssh://a", "client=ssh://b"))
