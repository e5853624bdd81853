"""``any`` in a study: names in its place, before anything else is read."""

import pytest

from trifecta.design.errors import UserError
from trifecta.design.resolve import Surroundings
from trifecta.design.study import requests, study
from trifecta.design.study_file import parse_study

FOUND = {"server": ["origin", "caddy"], "client": ["load", "curl"]}
AROUND = Surroundings(servers=["origin", "caddy", "nginx"], clients=["load", "curl"], found=FOUND.__getitem__)
TEXT = "study: s\nworkload: {requests: 5}\nfactors:\n  path: [clean]\n"


def read(line, overrides=(), around=AROUND):
    return parse_study(f"{TEXT}  {line}\n" if line else TEXT, "s.yaml", overrides, around)


@pytest.mark.parametrize(
    ("line", "servers"),
    [
        ("server: any", ("origin", "caddy")),
        ("server: [any]", ("origin", "caddy")),
        ("server: [caddy, any]", ("caddy", "origin")),
        ("server: [any, nginx]", ("origin", "caddy", "nginx")),
        ("server: [any, caddy]", ("origin", "caddy")),
    ],
)
def test_names_take_its_place(line, servers):
    assert read(line).factors["server"] == servers


def test_the_canonical_text_has_the_names():
    whole = read("server: any")
    assert "any" not in whole.source.split("factors:")[1].split("paths:")[0]
    assert parse_study(whole.source, "again").factors == whole.factors


def test_any_client():
    assert read("client: any").factors["client"] == ("load", "curl")


def test_any_by_option():
    assert read("", ["server=any"]).factors["server"] == ("origin", "caddy")


def test_nothing_is_looked_for_when_nothing_asks():
    def fail(factor):
        raise AssertionError(factor)

    assert read("server: caddy", around=Surroundings(found=fail)).factors["server"] == ("caddy",)


@pytest.mark.parametrize(
    ("line", "overrides", "message"),
    [
        ("server: [any, any]", [], r"^s.yaml:5: factors.server\[1\]: 'any' is listed twice; list it once$"),
        ("server: [any, nope]", [], r"^s.yaml:5: factors.server\[2\]: no server 'nope'"),
        ("", ["server=any,any"], r"^option --set server=any,any: factors.server\[1\]: 'any' is listed twice"),
        ("path2: any", [], "unknown field"),
    ],
)
def test_errors_name_the_place(line, overrides, message):
    with pytest.raises(UserError, match=message):
        read(line, overrides)


def test_without_a_machine_to_look_at_it_is_refused():
    with pytest.raises(UserError, match=r"factors\.server: 'any' needs to look at the machine"):
        study("s", workload=requests(requests=5), factors={"server": "any"})
