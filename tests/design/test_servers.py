"""Servers that a study brings itself: builds, command lines, adapters as data; and the one line for what is wrong."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trifecta.design import naming
from trifecta.design.arms import server_words
from trifecta.design.builds import PLACEHOLDERS, ServerBuild, ServerProgram, alike, fill
from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.design.levels import Surroundings
from trifecta.design.quantity import QuantityError
from trifecta.design.resolve import resolve
from trifecta.design.study import requests, study
from trifecta.design.study_file import parse_study

TOLD = "--port {port} --cert {cert} --key {key}"
MINE = f"""\
command: ./my-server {TOLD} --root "{{root}}" --cc {{congestion_control}}
version: -v
protocols: [HTTP/3, HTTP/2]
methods: [GET, POST]
ready: {{says: "ready, all of it", within: 2 min}}
congestion_control: {{cubic: cubic, bbr: bbr2}}
tcp_nodelay: true
zero_rtt: true
tls_library: My TLS 3
environment: {{LOG: "{{state}}/x"}}
files: {{my.conf: "root {{root}} {{ {{other}} }}"}}
"""


def find(text: str, near: str = "") -> str:
    if "missing" in text:
        raise QuantityError(f"{text!r} is not there; build it, or correct the path")
    return f"/{'beside' if near else 'here'}/{text.removeprefix('./').strip('/')}"


FILES = {"./server.yaml": MINE, "empty.yml": "# nothing\n", "list.yaml": "[a]\n"}


def read_server(name: str) -> tuple[str, str]:
    return FILES[name], f"/there/{name.removeprefix('./')}"


AROUND = Surroundings(servers=("origin", "nginx", "caddy"), find_program=find, read_server=read_server)


def text_of(servers: str, levels: str, more: str = "") -> str:
    return f"study: s\nworkload: {{requests: 20}}\nfactors: {{server: {levels}}}\nservers: {servers}\n{more}"


def read(servers: str, levels: str, *overrides: str, more: str = ""):
    return parse_study(text_of(servers, levels, more), "s.yaml", overrides, AROUND)


def refused(servers: str, levels: str, *overrides: str, more: str = "") -> str:
    with pytest.raises(UserError) as error:
        read(servers, levels, *overrides, more=more)
    said = str(error.value)
    assert "\n" not in said
    return said


def test_builds_are_levels_by_the_name_that_was_written():
    made = read("{}", "[nginx@./a, 'nginx@./b/objs', caddy@2.10.0, origin]")
    assert made.factors["server"] == ("nginx@./a", "nginx@./b/objs", "caddy@2.10.0", "origin")
    assert made.servers == {
        "nginx@./a": ServerBuild("nginx", program="/here/a"),
        "nginx@./b/objs": ServerBuild("nginx", program="/here/b/objs"),
        "caddy@2.10.0": ServerBuild("caddy", version="2.10.0"),
    }


def test_a_name_of_its_own_stands_for_a_build_a_command_or_a_file():
    made = read(
        f"{{old: nginx@./a, line: 'cmd:./srv {TOLD}', mine: ./server.yaml, idle: nginx@./c}}", "[old, line, mine]"
    )
    assert list(made.servers) == ["old", "line", "mine"], "what no level uses is no part of the study"
    assert made.servers["old"] == ServerBuild("nginx", program="/here/a")
    words = ("--port", "{port}", "--cert", "{cert}", "--key", "{key}")
    assert made.servers["line"] == ServerProgram(("/here/srv", *words))
    assert made.servers["mine"] == ServerProgram(
        command=("/beside/my-server", *words, "--root", "{root}", "--cc", "{congestion_control}"),
        version=("-v",),
        protocols=("h2", "h3"),
        methods=("GET", "POST"),
        ready_says="ready, all of it",
        ready_within_ns=120_000_000_000,
        congestion_control={"cubic": "cubic", "bbr": "bbr2"},
        tcp_nodelay=True,
        zero_rtt=True,
        tls_library="My TLS 3",
        environment={"LOG": "{state}/x"},
        files={"my.conf": "root {root} { {other} }"},
    )


def test_the_canonical_study_holds_all_of_it_and_needs_no_file():
    """A run is gone on with from anywhere, and whatever became of server.yaml."""
    made = read(f"{{line: 'cmd:./srv {TOLD} \"two words\" {{congestion_control}}', mine: ./server.yaml}}",
                "[mine, line, nginx@./a, caddy@2.10.0]")  # fmt: skip
    assert made.servers["line"].congestion_control == {"cubic": "cubic", "bbr": "bbr", "reno": "reno"}
    again = parse_study(made.source, "again.yaml")
    assert again == made
    assert again.source == made.source


def test_the_same_in_python():
    fields = {"command": ["/bin/srv", *TOLD.split()], "zero_rtt": True, "congestion_control": "reno"}
    made = study("s", workload=requests(requests=20), factors={"server": ["mine"]}, servers={"mine": fields})
    assert made.servers == {
        "mine": ServerProgram(("/bin/srv", *TOLD.split()), zero_rtt=True, congestion_control="reno")
    }


def test_words_that_begin_here_are_made_full_and_no_others():
    made = read(f"{{m: 'cmd:./srv {TOLD} ./conf ../up --x=./y /abs a/b'}}", "[m]")
    assert made.servers["m"].command[-5:] == ("/here/conf", "/here/../up", "--x=./y", "/abs", "a/b")


def test_options_define_servers_and_narrow_to_them_unless_they_are_levels_already():
    one = 'servers.mine="./server.yaml"'
    assert read("{}", "[origin, caddy]", one).factors["server"] == ("mine",)
    assert read("{}", "[origin, mine]", one).factors["server"] == ("origin", "mine")
    assert read("{}", "[origin]", one, "server=origin,mine").factors["server"] == ("origin", "mine")
    both = read("{}", "[origin]", one, "compare=server", "server=origin,mine", "protocol=h3")
    assert (both.compare, both.baseline.level) == ("server", "origin")
    dotted = f'servers.srv-1.2="cmd:./srv {TOLD}"'
    assert read("{}", "[origin]", dotted).factors["server"] == ("srv-1.2",)
    assert "servers.mine: no cell has the server 'mine'; add it" in refused("{}", "[origin]", one, "server=origin")


@pytest.mark.parametrize(
    ("servers", "levels", "said"),
    [
        ("{}", "[mine]", "s.yaml:3: factors.server[0]: no server 'mine'; choose from origin, nginx"),
        ("{}", "[apache@./a]", "factors.server[0]: no server 'apache' that could have another build; "),
        ("{}", "[nginx@]", "factors.server[0]: 'nginx@' is not SERVER@BUILD; write for example nginx@./build"),
        ("{}", "[nginx@./missing]", "factors.server[0]: './missing' is not there; build it, or correct the path"),
        ("{}", "[nginx@./a, nginx@./a]", "level 'nginx@./a' is listed twice"),
        ("{}", "['nginx@./a=b']", "is not a level's name; use no ',' '='"),
        ("{}", "['cmd:./srv']", "'cmd:./srv' has no name that results could have; name it under servers"),
        ("{}", "[./server.yaml]", "'./server.yaml' has no name that results could have; name it under servers"),
        ("{origin: nginx@./a}", "[origin]", "s.yaml:4: servers.origin: is the name of a server that Trifecta has"),
        ("{a b: nginx@./a}", "[origin]", "servers.a b: 'a b' is not a name; use letters, digits"),
        ("{a..b: nginx@./a}", "[origin]", "servers.a..b: 'a..b' is not a name"),
        ("{m: }", "[m]", "servers.m: is empty; give cmd: and a command line, a file that ends in .yaml, SERVER@BUILD"),
        ("{m: srv}", "[m]", "servers.m: 'srv' is no server; give cmd: and a command line"),
        ("{m: [a]}", "[m]", "servers.m: is a list, not a single value"),
        ("[m]", "[m]", "servers: ['m'] is not a mapping"),
        ("{m: 'cmd:'}", "[m]", "servers.m: there is no program in it; write for example './my-server --port {port}"),
        ("{m: 'cmd:./srv \"x'}", "[m]", "is not a command line (No closing quotation); close the quotation mark"),
        ("{m: 'cmd:./srv --port {port}'}", "[m]", "servers.m: says nowhere {cert}, {key}; put it where the server"),
        (f"{{m: 'cmd:./srv {TOLD} {{ports}}'}}", "[m]", "servers.m: {ports} is not a placeholder; did you mean"),
        (f"{{m: 'cmd:./missing {TOLD}'}}", "[m]", "servers.m: './missing' is not there"),
        (f"{{m: 'cmd:./srv {TOLD} ./missing'}}", "[m]", "servers.m: './missing' is not there"),
        ("{m: empty.yml}", "[m]", "/there/empty.yml:1: the file is empty; begin with 'command: ./my-server ...'"),
        ("{m: list.yaml}", "[m]", "/there/list.yaml:1: the file is not a mapping; begin with 'command: ./my-server"),
        ("{m: {adapter: nginx}}", "[m]", "servers.m.adapter: needs a program or a version beside it; give one"),
        ("{m: {adapter: ngin, version: '1.2'}}", "[m]", "servers.m.adapter: no server 'ngin' that could have another"),
        (
            "{m: {adapter: nginx, version: 1.2/../x}}",
            "[m]",
            "servers.m.version: '1.2/../x' is not a version; write for",
        ),
        ("{m: {adapter: nginx, program: a, x: 1}}", "[m]", "servers.m.x: unknown field; choose from adapter"),
    ],
)
def test_what_is_wrong_with_a_server_is_told_in_one_line(servers, levels, said):
    assert said in refused(servers, levels)


def test_arms_that_would_have_one_column_are_refused():
    said = refused("{}", "[nginx@./a-b, nginx@./a/b]", "protocol=h3", more="compare: server")
    assert "compare: 'nginx@./a-b' and 'nginx@./a/b' would have one column in tables; write one of them" in said
    assert read("{}", "[nginx@./a-b, nginx@./a/b]").servers


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("command:", "comand:"), "/there/server.yaml:1: comand: unknown field; did you mean 'command'?"),
        ((MINE.splitlines()[0] + "\n", ""), "/there/server.yaml:1: command: is missing; give the line that starts"),
        (("{cert}", "cert.pem"), "server.yaml:1: command: says nowhere {cert}; put it where the server reads it"),
        (("[HTTP/3, HTTP/2]", "[HTTP/4]"), "server.yaml:3: protocols[0]: 'HTTP/4' is not a protocol"),
        (("[HTTP/3, HTTP/2]", "[]"), "server.yaml:3: protocols: lists nothing; list at least one"),
        (("[GET, POST]", "[GET, POTS]"), "server.yaml:4: methods[1]: 'POTS' is not a method; did you mean 'POST'?"),
        (("within: 2 min", "within: 2"), "server.yaml:5: ready.within: '2' has no unit"),
        (
            ("within: 2 min", "within: 1 h"),
            "server.yaml:5: ready.within: '1 h' is not a time to wait; give more than 0",
        ),
        (('says: "ready, all of it"', 'says: ""'), "server.yaml:5: ready.says: is empty; give a text"),
        (("bbr: bbr2", "bbq: bbr2"), "server.yaml:6: congestion_control.bbq: unknown field; did you mean 'bbr'?"),
        (("--cc {congestion_control}", ""), "congestion_control: lists names, and {congestion_control} stands nowhere"),
        (("{cubic: cubic, bbr: bbr2}", "cubic"), "congestion_control: says that QUIC always has it, and"),
        (("tcp_nodelay: true", "tcp_nodelay: maybe"), "server.yaml:7: tcp_nodelay: 'maybe' is neither true nor false"),
        (("LOG:", "LO G:"), "server.yaml:10: environment.LO G: is not the name of a variable"),
        (("{state}/x", "{stat}/x"), "environment.LOG: {stat} is not a placeholder; did you mean 'state'?"),
        (("my.conf:", "../my.conf:"), "server.yaml:11: files.../my.conf: is not the name of a file's name"),
        (("version: -v", "version: [a, ~]"), 'server.yaml:2: version[1]: is empty; write "" for an empty word'),
        (("tls_library: My TLS 3", "tls_library: !!python/object:os.system x"), "is not used here; remove it"),
    ],
)
def test_what_is_wrong_with_an_adapter_names_its_file_and_field(change, said):
    assert change[0] in MINE
    text = MINE.replace(*change)
    around = Surroundings(servers=("origin",), find_program=find, read_server=lambda _: (text, "/there/server.yaml"))
    with pytest.raises(UserError) as error:
        parse_study(text_of("{mine: ./server.yaml}", "[mine]"), "s.yaml", (), around)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


def test_without_a_file_system_only_full_names_are_taken():
    with pytest.raises(UserError, match=r"'\./a' cannot be looked for here; give the path of the program in full"):
        parse_study(text_of("{}", "[nginx@./a]"), "s.yaml")
    with pytest.raises(UserError, match=r"the file '\./server\.yaml' cannot be read here; write its fields"):
        parse_study(text_of("{m: ./server.yaml}", "[m]"), "s.yaml")
    assert parse_study(text_of("{}", "[nginx@/a]"), "s.yaml").servers["nginx@/a"] == ServerBuild("nginx", "/a")


def test_services_have_no_builds():
    text = "study: s\nworkload: {kind: chain, depth: 2, requests: 20}\nfactors: {server: [nginx@/a]}\n"
    with pytest.raises(UserError, match="servers of the workload chain are services"):
        parse_study(text, "s.yaml", (), AROUND)


def test_placeholders_are_filled_in_once_and_what_stands_for_nothing_stays():
    values = dict.fromkeys(PLACEHOLDERS, "{port}") | {"port": "8443"}
    assert fill("{port}{root} {x} {Port} {{port}} { port }", values) == "8443{port} {x} {Port} {8443} { port }"


def test_two_levels_of_one_program_are_told():
    build = {level: ServerBuild("nginx", f"/{level}") for level in ("nginx@./a", "nginx@./b")}
    lines = {name: ServerProgram(("/bin/srv", name)) for name in ("one", "two")}
    digests = {"nginx": "1" * 64, "nginx@./a": "1" * 64, "nginx@./b": "2" * 64, "caddy": "1" * 64, "origin": ""}
    found = {name: {"version": "1", "sha256": digest} for name, digest in digests.items()}
    found |= {name: {"version": "1", "sha256": "3" * 64} for name in lines} | {"haproxy": {"version": "3"}}
    (said,) = alike(build | lines, found)
    assert said.startswith("server nginx and server nginx@./a are one program (sha256 111111111111): what differs")


def test_a_long_path_is_shortened_unless_two_would_be_called_alike():
    long = "nginx@/opt/somebody/past/nginx-1.29/objs/nginx"
    assert server_words("nginx@./build-a") == "nginx@./build-a"
    assert server_words(long) == "nginx@…/past/nginx-1.29/objs/nginx"
    assert server_words("x" * 60) == "x" * 60
    ends = [f"nginx@/opt/somebody/{one}/a/very/long/way/down/to/objs/nginx" for one in ("a", "b")]
    with naming.arms_of("server", [*ends, long]):
        assert [naming.name(one) for one in (*ends, f"{long}#aa")] == [
            *ends,
            "nginx@…/past/nginx-1.29/objs/nginx again",
        ]


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from([*"{}'\"\\ ./@=,#:\n\té", "port}", "{cert}", "{key}", "./a"]), max_size=40).map("".join)
)
def test_whatever_a_command_line_is_it_is_a_server_or_one_line(text):
    for line in (f"cmd:./srv {TOLD} {text}", f"cmd:{text}", f"nginx@{text}", f"{text}.yaml"):
        document = Document(tree={"study": "s", "workload": {"requests": "20"}, "factors": {"server": ["m"]}}, name="s")
        document.tree["servers"] = {"m": line}
        around = Surroundings(find_program=find, read_server=lambda _, line=line: (line, "/there/server.yaml"))
        try:
            made = resolve(document, around)
        except UserError as error:
            assert "\n" not in str(error)
            continue
        assert parse_study(made.source, "again.yaml") == made


WORDS = st.text(st.characters(blacklist_categories=("Cs", "Cc")), max_size=12)


@settings(max_examples=40, deadline=None)
@given(st.lists(WORDS, max_size=6), st.dictionaries(st.from_regex(r"[A-Z_]{1,8}", fullmatch=True), WORDS, max_size=3))
def test_any_words_read_back_as_they_are(words, environment):
    fields = {"command": ["/bin/srv", *TOLD.split(), *words], "environment": environment}
    try:
        made = study("s", workload=requests(requests=20), factors={"server": ["m"]}, servers={"m": fields})
    except UserError as error:
        assert any(word.startswith(("./", "../")) or "{" in word for word in (*words, *environment.values())), error
        return
    again = parse_study(made.source, "again.yaml")
    assert again == made
    assert again.servers["m"].command[7:] == tuple(words)
