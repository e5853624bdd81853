"""Options that narrow a study are overrides like any other, in an order that lets the explicit ones win."""

import pytest

from trifecta import studies
from trifecta.cli.option_parsing import own_refs
from trifecta.cli.options import as_overrides
from trifecta.design.errors import UserError
from trifecta.design.gate import GatePlan, read_refs


def test_blocks_are_exact_and_need_no_budget():
    study = studies.load("race", as_overrides((), 3, None, None, ()))
    assert (study.min_blocks, study.max_blocks, study.budget_ns) == (3, 3, None)


def test_a_budget_beside_blocks_holds():
    study = studies.load("race", as_overrides((), 3, "10 min", None, ()))
    assert (study.max_blocks, study.budget_ns) == (3, 600_000_000_000)


def test_seed_servers_and_sets():
    study = studies.load("race", as_overrides(("path=far",), None, None, "5", ("caddy",)))
    assert (study.seed, study.factors["server"], study.factors["path"]) == (5, ("caddy",), ("far",))


@pytest.mark.parametrize("servers", [("caddy,origin",), ("caddy", "origin"), (" caddy , origin,",)])
def test_several_servers_by_commas_or_again(servers):
    study = studies.load("race", as_overrides((), None, None, None, servers), studies.known_servers())
    assert study.factors["server"] == ("caddy", "origin")


def test_any_server_and_client_are_those_found():
    found = {"server": ["origin", "caddy"], "client": ["load", "curl"]}
    changes = as_overrides((), None, "1 h", None, ("any",), clients=("any",))
    study = studies.load("race", changes, found_levels=found.__getitem__)
    assert (study.factors["server"], study.factors["client"]) == (("origin", "caddy"), ("load", "curl"))


def test_clients_are_checked_by_name():
    changes = as_overrides((), None, None, None, (), clients=("crul",))
    with pytest.raises(UserError, match="no client 'crul'; did you mean 'curl'"):
        studies.load("race", changes, studies.known_servers(), clients=["load", "curl"])


def test_nothing_asked_changes_nothing():
    assert studies.load("race", as_overrides((), None, None, None, ())) == studies.load("race")


@pytest.mark.parametrize(
    ("sets", "options", "said"),
    [
        (["blocks.at_most=4"], {"blocks": 3}, "options --blocks 3 and --set blocks.at_most=4: both set blocks"),
        (["blocks.at_least=9"], {"blocks": 2}, "options --blocks 2 and --set blocks.at_least=9: both set blocks"),
        (["budget=1 min"], {"budget": "2 min"}, "options --budget 2 min and --set budget=1 min: both set budget"),
        (["seed=4"], {"seed": "5"}, "options --seed 5 and --set seed=4: both set seed"),
        (["factors.server=caddy"], {"servers": ("origin",)}, "options --server origin and --set factors.server=caddy"),
        (["client=curl"], {"clients": ("load",)}, "options --client load and --set client=curl: both set client"),
        (["capture=false"], {"capture": True}, "options --capture and --set capture=false: both set capture"),
        (["path=clean", "factors.path=far"], {}, "options --set path=clean and --set factors.path=far: both set"),
        (["paths.far.loss=1 %", "paths.far={}"], {}, "options --set paths.far.loss=1 % and --set paths.far={}: both"),
    ],
)
def test_what_is_asked_twice_is_refused(sets, options, said):
    asked = {"blocks": None, "budget": None, "seed": None, "servers": (), **options}
    with pytest.raises(UserError) as error:
        as_overrides(tuple(sets), **asked)
    assert str(error.value).startswith(said)
    assert str(error.value).endswith("; leave one out")


def test_a_detail_after_the_whole_undoes_nothing():
    study = studies.load("race", as_overrides(("paths.far={rtt: 9 ms}", "paths.far.loss=1 %"), None, None, None, ()))
    assert (study.paths["far"].rtt_ns, study.paths["far"].loss) == (9_000_000, 0.01)


def test_a_budget_of_set_beside_blocks_holds():
    study = studies.load("race", as_overrides(("budget=9 min",), 3, None, None, ()))
    assert (study.max_blocks, study.budget_ns) == (3, 540_000_000_000)


TOLD = "--port {port} --cert {cert} --key {key}"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """Where the user is, with programs and an adapter's file."""
    monkeypatch.chdir(tmp_path)
    for name in ("my-server", "other"):
        (tmp_path / name).write_text("")
    (tmp_path / "build-a").mkdir()
    (tmp_path / "server.yaml").write_text(f"command: ./my-server {TOLD}\n")
    (tmp_path / "compose.yaml").write_text(f"services:\n  web:\n    build: .\n    command: web {TOLD}\n")
    return tmp_path


def named(*servers, sets=(), **options):
    changes = as_overrides(tuple(sets), None, None, None, servers, **options)
    return studies.load("race", changes, studies.known_servers())


@pytest.mark.parametrize(
    ("servers", "levels"),
    [
        ((f"cmd:./my-server {TOLD} --list a,b",), ("my-server",)),
        ((f"origin,cmd:./my-server {TOLD}",), ("origin", "my-server")),
        ((f"fast=cmd:./my-server {TOLD} -x=1", "caddy"), ("fast", "caddy")),
        (("mine=./server.yaml",), ("mine",)),
        (("origin, m=./server.yaml", "nginx@./build-a,caddy@2.1"), ("origin", "m", "nginx@./build-a", "caddy@2.1")),
        (("./server.yaml",), ("server",)),
        (("a=nginx@./build-a,b=caddy@2.10.0",), ("a", "b")),
        (("origin,mine", "mine=./server.yaml"), ("origin", "mine")),
        (("any-thing=./server.yaml", "any-thing=./server.yaml"), ("any-thing",)),
        (("compose:./compose.yaml#web",), ("web",)),
        (("origin, m=compose:compose.yaml#web,caddy",), ("origin", "m", "caddy")),
    ],
)  # fmt: skip
def test_servers_of_the_users_own(servers, levels, here):
    study = named(*servers)
    assert study.factors["server"] == levels
    assert {*study.servers} == {*levels} - {*studies.known_servers()}


def test_commands_keep_what_was_written(here):
    study = named(f'cmd:./my-server {TOLD} "a \\" b" \'c: d, #e\' é')
    assert study.servers["my-server"].command[-3:] == ('a " b', "c: d, #e", "é")
    assert study.servers["my-server"].command[0] == str(here / "my-server")


def test_a_server_of_the_users_own_is_compared(here):
    study = named("mine=./server.yaml", compare="server=origin,mine", sets=("protocol=h3",))
    assert (study.compare, study.factors["server"]) == ("server", ("origin", "mine"))
    study = named("mine=./server.yaml", compare="server", sets=("protocol=h3", "server=mine,nginx@./build-a"))
    assert study.factors["server"] == ("mine", "nginx@./build-a")


@pytest.mark.parametrize(
    ("servers", "options", "said"),
    [
        (("m=./server.yaml", f"m=cmd:./other {TOLD}"), {}, "option --server m=cmd:./other --port {port} --cert {cert}"),
        ((f"cmd:./other {TOLD}", f"cmd:./other -x {TOLD}"), {}, "another one is called 'other' too; write NAME=cmd:"),
        (("cmd:./x 'y",), {}, "option --server cmd:./x 'y: is not a command line (No closing quotation); close"),
        (("cmd:",), {}, "option --server cmd:: names no program; write cmd:./my-server --port {port} ..."),
        (("caddy=./server.yaml",), {}, "servers.caddy: is the name of a server that Trifecta has; choose another"),
        (("m=./gone.yaml",), {}, "servers.m: the file './gone.yaml' is not there; correct the path"),
        (("nginx@./gone",), {}, "factors.server[0]: './gone' is not there; build it, or correct the path"),
        (("compose:./compose.yaml#wbe",), {}, "services: no service 'wbe'; did you mean 'web'?"),
        (("compose:./compose.yaml",), {}, "servers.service: 'compose:./compose.yaml' is not compose:FILE#SERVICE"),
        (("compose:gone.yaml#web",), {}, "servers.web: the file 'gone.yaml' is not there; correct the path"),
        (("compose:a.yaml#web,compose:b.yaml#web",), {}, "another one is called 'web' too; write NAME=compose:b.yaml"),
        (("origin,m=./server.yaml",), {"compare": "server=origin,m"}, "both set server; leave one out"),
        (("m=./server.yaml",), {"compare": "server=origin,caddy"}, "servers.m: no cell has the server 'm'; add it to"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_server_of_the_users_own(servers, options, said, here):
    with pytest.raises(UserError) as error:
        named(*servers, **options)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def gated(baseline, candidate, sets=()):
    """The gate of two servers, as `trifecta gate` reads it."""
    refs = own_refs(read_refs(baseline, candidate))
    refs.refuse_twice(sets)
    known = studies.known_servers()
    return GatePlan(studies.load("race", ["protocol=h3", "path=clean", *sets], known, change=refs.change), ())


@pytest.mark.parametrize(
    ("baseline", "candidate", "levels"),
    [
        ("origin", "mine=./server.yaml", ("origin", "mine")),
        ("server=./server.yaml", "caddy", ("server", "caddy")),
        (f"cmd:./my-server {TOLD} --list a,b", f"server=new=cmd:./other {TOLD} -x=1", ("my-server", "new")),
        ("nginx@./build-a", "b=caddy@2.10.0", ("nginx@./build-a", "b")),
        ("mine=./server.yaml", "mine", ("mine",)),
        ("compose:./compose.yaml#web", "new=compose:./compose.yaml#web", ("web", "new")),
    ],
)
def test_a_gate_takes_servers_of_the_users_own(baseline, candidate, levels, here):
    gate = gated(baseline, candidate)
    assert gate.study.factors["server"] == levels
    assert {*gate.study.servers} == {*levels} - {*studies.known_servers()}
    assert (gate.baseline, gate.candidate) == (levels[0], levels[1] if len(levels) > 1 else f"{levels[0]}#aa")


def test_a_server_that_an_option_defines_is_the_candidate_of_a_gate(here):
    gate = gated("origin", "mine", ["servers.mine=./server.yaml"])
    assert (gate.study.factors["server"], [*gate.study.servers]) == (("origin", "mine"), ["mine"])


@pytest.mark.parametrize(
    ("baseline", "candidate", "sets", "said"),
    [
        ("./server.yaml", f"server=cmd:./other {TOLD}", (), ""),  # a name of its own
        ("m=./server.yaml", f"m=cmd:./other {TOLD}", (), "option --candidate m=cmd:./other --port {port}"),
        ("origin", "m=./gone.yaml", (), "servers.m: the file './gone.yaml' is not there; correct the path"),
        ("origin,caddy", "nginx", (), "option --baseline origin,caddy: names 2 servers; give one"),
        ("origin", "cmd:./x 'y", (), "option --candidate cmd:./x 'y: is not a command line"),
        ("origin", "m=./server.yaml", ("servers.m=nginx@./build-a",), "sets servers.m too; leave one out"),
        ("origin", "caddy", ("servers.m=./server.yaml",), "servers.m: no cell has the server 'm'; add it to"),
        ("origin", "m=./server.yaml", ("server=caddy",), "both set server; leave one out"),
    ],
)
def test_what_is_wrong_with_a_server_of_a_gates_own(baseline, candidate, sets, said, here):
    if not said:
        assert gated(baseline, candidate, sets).candidate == "other"
        return
    with pytest.raises(UserError) as error:
        gated(baseline, candidate, sets)
    assert said in str(error.value)
    assert "\n" not in str(error.value)
