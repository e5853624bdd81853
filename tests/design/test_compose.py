"""Services of compose files as servers: what is read of one, what changes nothing, and the one line for all else."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trifecta.design import compose
from trifecta.design.arms import server_words
from trifecta.design.builds import ImageBuild, ServerProgram, ServerService, alike, in_containers, not_heeded
from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.design.levels import Surroundings
from trifecta.design.quantity import QuantityError
from trifecta.design.resolve import resolve
from trifecta.design.study_file import parse_study

LEVEL = "compose:./compose.yaml#web"
TOLD = "--port {port} --cert {cert} --key {key}"
WHOLE = """\
name: mine
x-more: {anything: goes}
services:
  db: {image: postgres}
  web:
    image: registry.example/web:1.2
    build:
      context: ./image/
      dockerfile: docker/./Dockerfile
      args: {LEVEL: 3, EMPTY: "", PRICE: $$5}
      target: last
    entrypoint: [/bin/web, "two words"]
    command: serve --port {port} --cert {cert} --key {key} --price $$5 'it is' --cc {congestion_control}
    environment:
      ROOT: "{root}"
      EMPTY: ""
    volumes:
      - ./conf/web.conf:/etc/web.conf:ro
      - {type: bind, source: ./data/../data, target: /data/, read_only: true}
      - .:/here:ro
    working_dir: /srv
    network_mode: host
    ports: ["443:8443/udp"]
    restart: always
    user: www
    container_name:
    x-other: [1]
    x-trifecta:
      archive: ./base.tar
      protocols: [HTTP/2, HTTP/3]
      methods: [GET, POST]
      ready: {says: "ready $1", within: 1 min}
      congestion_control: {cubic: cubic}
      tcp_nodelay: true
      files: {web.conf: "root {root} ${other}"}
"""
MINE = ServerService(
    folder="/there",
    program=ServerProgram(
        command=(
            "/bin/web", "two words", "serve", *TOLD.split(), "--price", "$5", "it is", "--cc", "{congestion_control}"
        ),
        version=(),
        protocols=("h2", "h3"),
        methods=("GET", "POST"),
        ready_says="ready $1",
        ready_within_ns=60_000_000_000,
        congestion_control={"cubic": "cubic"},
        tcp_nodelay=True,
        environment={"ROOT": "{root}", "EMPTY": ""},
        files={"web.conf": "root {root} ${other}"},
    ),
    archive="./base.tar",
    build=ImageBuild("./image", "docker/Dockerfile", {"LEVEL": "3", "EMPTY": "", "PRICE": "$5"}, "last"),
    entrypoint=("/bin/web", "two words"),
    volumes=(("./conf/web.conf", "/etc/web.conf"), ("./data", "/data"), (".", "/here")),
    working_dir="/srv",
    ignored=("ports", "restart", "user"),
)  # fmt: skip


def around(text: str) -> Surroundings:
    def read(name: str) -> tuple[str, str]:
        if "gone" in name:
            raise QuantityError(f"the file {name!r} is not there; correct the path")
        return text, f"/there/{name.removeprefix('./')}"

    return Surroundings(servers=("origin", "caddy"), read_server=read)


def study_of(levels: str, servers: str = "{}", more: str = "") -> str:
    return f"study: s\nworkload: {{requests: 20}}\nfactors: {{server: {levels}}}\nservers: {servers}\n{more}"


def read(text: str, levels: str = f"[{LEVEL}]", servers: str = "{}", *overrides: str):
    return parse_study(study_of(levels, servers), "s.yaml", overrides, around(text))


def service(fields: str, **known: str) -> str:
    """A compose file of one service that is told what it needs, with more fields of it."""
    lines = [f"    {line}" for line in fields.splitlines()]
    if "command:" not in fields:
        lines.append(f"    command: web {TOLD}")
    if "build:" not in fields and "image:" not in fields:
        lines.append("    build: .")
    said = ", ".join(f"{name}: {value}" for name, value in known.items())
    return "services:\n  web:\n" + "\n".join([*lines, f"    x-trifecta: {{{said}}}"]) + "\n"


def refused(text: str, level: str = LEVEL) -> str:
    with pytest.raises(UserError) as error:
        read(text, f"['{level}']")
    said = str(error.value)
    assert "\n" not in said
    return said


def test_a_service_is_read_whole():
    made = read(WHOLE)
    assert made.factors["server"] == (LEVEL,)
    assert made.servers == {LEVEL: MINE}


def test_a_service_may_have_a_name_of_the_studys_own_and_be_compared():
    made = read(WHOLE, "[origin, mine]", f"{{mine: '{LEVEL}'}}", "compare=server", "protocol=h3")
    assert (made.compare, made.servers) == ("server", {"mine": MINE})
    assert read(WHOLE, "[origin]", "{}", f'servers.mine="{LEVEL}"').servers == {"mine": MINE}


def test_the_canonical_study_holds_the_service_and_needs_no_file():
    made = read(WHOLE)
    again = parse_study(made.source, "again.yaml")  # without a file system
    assert again == made
    assert again.source == made.source
    assert "x-other" not in made.source


def test_what_is_left_out_is_the_images_own():
    made = read(service("environment: [A=1, 'B={port} {cert} {key}', C=]\ncommand:")).servers[LEVEL]
    assert made.program.command == made.entrypoint == ()
    assert made.program.environment == {"A": "1", "B": "{port} {cert} {key}", "C": ""}
    assert made.build == ImageBuild(".")
    assert (made.image, made.archive, made.volumes, made.working_dir, made.ignored) == ("", "", (), "", ())
    assert made.program.protocols == ("h1", "h2", "h3")
    named = read(service("image: web", archive="x/../images/web.tar")).servers[LEVEL]
    assert (named.image, named.archive, named.build) == ("web", "./images/web.tar", None)


@pytest.mark.parametrize("name", compose.IGNORED)
def test_what_changes_nothing_is_named_and_no_other_server(name):
    plain, more = read(service("")).servers[LEVEL], read(service(f"{name}: [a]"))
    assert more.servers[LEVEL].ignored == (name,)
    assert not_heeded(more.servers) == [f"server {LEVEL}: what its compose file says of {name} changes nothing here"]
    assert not_heeded({LEVEL: plain, "origin@/x": plain}) == []
    assert parse_study(more.source, "again.yaml").servers == more.servers


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ("networks: [front]", "/there/compose.yaml:3: services.web.networks: the container has the network"),
        ("networks:", "services.web.networks: the container has the network"),
        ("network_mode: bridge", "services.web.network_mode: 'bridge': the container has the network of the server's"),
        ("depends_on: [db]", "services.web.depends_on: nothing runs beside the server; remove it"),
        ("links: [db]", "services.web.links: nothing runs beside the server; remove it"),
        ("deploy: {replicas: 2}", "services.web.deploy: it is one container, and what it may use the study says"),
        ("privileged: true", "services.web.privileged: a container has what Docker gives it; remove it"),
        ("env_file: .env", "services.web.env_file: is not read; write its variables under environment"),
        ("extends: {service: db}", "services.web.extends: is not followed; write the service out"),
        ("secrets: [key]", "services.web.secrets: are not made; put the files beside this one, under volumes"),
        ("configs: [conf]", "services.web.configs: are not made; put the files beside this one, under volumes"),
        ("cap_add: [ALL]", "services.web.cap_add: is not done here; remove it (choose from image, build, entrypoint"),
        ("comand: x", "services.web.comand: is not done here; remove it (did you mean 'command'?)"),
        ("image: nginx:1", "services.web.image: 'nginx:1' is not here, and there is no registry in the lab; write it"),
        ("image: ''\nbuild:", "services.web.image: is missing; give one, or build: a folder with a Dockerfile"),
        ("build: ../up", "services.web.build: '../up' does not lie below the folder of its file; put it there, as in"),
        ("build: a/../../up", "services.web.build: 'a/../../up' does not lie below"),
        ("build: /up", "services.web.build: '/up' does not lie below"),
        ("build: https://x.example/y.git", "services.web.build: 'https://x.example/y.git' does not lie below"),
        ("build: {context: .., cache_from: [a]}", "services.web.build.cache_from: unknown field; choose from context"),
        ("build: {dockerfile: ../Dockerfile}", "services.web.build.dockerfile: '../Dockerfile' does not lie below"),
        ("build: {args: [HOME]}", "services.web.build.args[0]: HOME would have this machine's value; write one, such"),
        ("environment: [HOME]", "services.web.environment[0]: HOME would have this machine's value; write one"),
        ("environment: {HOME: }", "services.web.environment.HOME: HOME would have this machine's value; write one"),
        ("environment: {a b: c}", "services.web.environment.a b: 'a b' is not a variable: letters, digits and '_'"),
        ("environment: {A: {port}}", "services.web.environment.A: is a mapping, not a single value; write one value"),
        ('environment: {A: "{ports}"}', "services.web.environment.A: {ports} is not a placeholder; did you mean"),
        ("environment: {A: $HOME}", "services.web.environment.A: '$HOME' has a variable, and none is filled in; write"),
        ("environment: {A: $$$B}", "services.web.environment.A: '$$$B' has a variable, and none is filled in; write"),
        ("command: web --port {port}", "services.web.command: says nowhere {cert}, {key}; put it where the server"),
        ("command: []", "services.web.command: has no word; give one, or remove it, and the image's own counts"),
        ("command: ''", "services.web.command: has no word; give one, or remove it, and the image's own counts"),
        ("command: web '", "services.web.command: \"web '\" is not a command line (No closing quotation)"),
        ("command: [web, ~]", 'services.web.command[1]: is empty; write "" for an empty text, or remove it'),
        ('command: [web, "a\\0"]', "services.web.command[1]: has an octet of value 0, which nothing can be given"),
        ("entrypoint: [{a: b}]", "services.web.entrypoint[0]: is a mapping, not a single value"),
        ("volumes: [data:/data:ro]", "services.web.volumes[0]: 'data:/data:ro' is no file or folder beside this file"),
        ("volumes: [/data]", "services.web.volumes[0]: '/data' could be written to; write ./conf:/etc/conf:ro, and ha"),
        ("volumes: ['./data:/data']", "services.web.volumes[0]: './data:/data' could be written to; write ./conf:/etc"),
        ("volumes: ['./data:/data:rw']", "services.web.volumes[0]: './data:/data:rw' could be written to"),
        ("volumes: ['../data:/data:ro']", "services.web.volumes[0]: '../data' does not lie below the folder of its"),
        ("volumes: ['~/data:/data:ro']", "services.web.volumes[0]: '~/data' does not lie below the folder of its file"),
        ("volumes: ['/etc:/data:ro']", "services.web.volumes[0]: '/etc' does not lie below the folder of its file"),
        ("volumes: ['./data:data:ro']", "services.web.volumes[0]: 'data' is no path in the container; give"),
        ("volumes: ['./data:/../:ro']", "services.web.volumes[0]: '/../' is no path in the container"),
        ("volumes: [{source: ./a, target: /a}]", "services.web.volumes[0].type: only files and folders are mounted"),
        ("volumes: [{type: bind, source: ./a}]", "services.web.volumes[0].target: is missing; give it, or write for"),
        (
            "volumes: [{type: bind, source: ./a, target: /a}]",
            "services.web.volumes[0].read_only: it could be written to; write true, and have the server write to {stat",
        ),
        (
            "volumes: [{type: bind, source: './a:b', target: /a, read_only: true}]",
            "services.web.volumes[0].source: './a:b' has a colon, which ends a path in a compose file; rename it",
        ),
        ("volumes: [{type: bind, bind: {}}]", "services.web.volumes[0].bind: unknown field; choose from type, source"),
        ("working_dir: srv", "services.web.working_dir: 'srv' is no path in the container; give one in full, such as"),
        ("ports: &p [1]", "services.web.ports: anchors and aliases are not used here; write the value out"),
        ("image: !!python/object:os.system x", "is not used here; remove it"),
    ],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_by_name(fields, said):
    assert said in refused(service(fields))


@pytest.mark.parametrize(
    ("known", "said"),
    [
        ({"archive": "../x.tar"}, "services.web.x-trifecta.archive: '../x.tar' does not lie below the folder"),
        ({"command": "x"}, "services.web.x-trifecta.command: unknown field; choose from archive, protocols"),
        ({"protocols": "[HTTP/4]"}, "services.web.x-trifecta.protocols[0]: 'HTTP/4' is not a protocol"),
        ({"ready": "{within: 2}"}, "services.web.x-trifecta.ready.within: '2' has no unit"),
        ({"congestion_control": "{cubic: c}"}, "services.web.x-trifecta.congestion_control: lists names"),
    ],
)
def test_what_is_wrong_with_what_is_known_is_told_as_of_an_adapter(known, said):
    assert said in refused(service("", **known))


@pytest.mark.parametrize(
    ("text", "level", "said"),
    [
        (WHOLE, "compose:./compose.yaml", "'compose:./compose.yaml' is not compose:FILE#SERVICE; write for example"),
        (WHOLE, "compose:./compose.yaml#", "'compose:./compose.yaml#' is not compose:FILE#SERVICE"),
        (WHOLE, "compose:./folder#web", "'compose:./folder#web' is not compose:FILE#SERVICE"),
        (WHOLE, "compose:gone.yml#web", "factors.server[0]: the file 'gone.yml' is not there; correct the path"),
        (WHOLE, "compose:c.yml#wbe", "/there/c.yml:3: services: no service 'wbe'; did you mean 'web'?"),
        (WHOLE, "compose:c.yml#db", "/there/c.yml:4: services.db.image: 'postgres' is not here"),
        ("version: 3\n", "compose:c.yml#web", "/there/c.yml:1: services: has none; list the server's there"),
        ("services: {web: }\n", "compose:c.yml#web", "services.web.image: is missing; give one, or build: a folder"),
        ("services: {web: [a]}\n", "compose:c.yml#web", "services.web: ['a'] is not a mapping; write {name: value}"),
        ("", "compose:c.yml#web", "/there/c.yml:1: the file is empty; begin with 'services:'"),
        ("a: [\n", "compose:c.yml#web", ": not YAML: "),
    ],
)
def test_a_file_or_service_that_is_not_there_is_told(text, level, said):
    assert said in refused(text, level)


@pytest.mark.parametrize(
    ("defined", "said"),
    [
        ("{service: {build: .}}", "servers.m.folder: is missing; give that of the compose file in full, or write comp"),
        ("{folder: here, service: {build: .}}", "servers.m.folder: 'here' is not a folder's path in full"),
        ("{folder: /x, service: {build: .}, command: x}", "servers.m.command: unknown field; choose from folder"),
        ("{folder: /x, service: {build: ..}}", "servers.m.service.build: '..' does not lie below the folder"),
        ("{folder: /x, service: {build: .}, ignored: [image]}", "servers.m.ignored[0]: 'image' is none of ports,"),
    ],
)
def test_a_definition_of_a_study_is_read_as_strictly(defined, said):
    with pytest.raises(UserError) as error:
        read(WHOLE, "[m]", f"{{m: {defined}}}")
    assert said in str(error.value)


def test_without_a_file_system_no_compose_file_is_read():
    with pytest.raises(UserError, match=r"the file '\./compose\.yaml' cannot be read here; write its fields"):
        parse_study(study_of(f"[{LEVEL}]"), "s.yaml")


def test_services_of_one_image_and_words_are_told_apart_by_nothing():
    other = read(service("")).servers[LEVEL]
    found = {name: {"version": "1", "sha256": "1" * 64} for name in ("a", "b", "origin")}
    (said,) = alike({"a": MINE, "b": other}, found)
    assert said.startswith("server a and server b are one program (sha256 111111111111)")
    assert alike({"a": MINE, "b": other}, found | {"b": {"version": "1", "sha256": "2" * 64}}) == []


def test_only_services_are_in_containers():
    assert in_containers({"m": ServerProgram(("/bin/true",)), "w": MINE})
    assert not in_containers({"m": ServerProgram(("/bin/true",))})


def test_a_long_path_is_shortened():
    assert server_words(LEVEL) == LEVEL
    long = "compose:/opt/somebody/with/a/long/way/down/compose.yaml#web"
    assert server_words(long) == "compose:…/long/way/down/compose.yaml#web"


PARTS = [*"{}'\"\\ ./@=,#:\n\té$-[]&*!", "port}", "{cert}", "{key}", "web", "ro", "image: ", "build: .", "command: "]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PARTS), max_size=30).map("".join))
def test_whatever_a_file_says_it_is_a_server_or_one_line(text):
    inner = text.replace("\n", "\n    ")
    for file, level in ((text, LEVEL), (service(inner), LEVEL), (WHOLE, f"compose:{text}")):
        document = Document(tree={"study": "s", "workload": {"requests": "20"}, "factors": {"server": ["m"]}}, name="s")
        document.tree["servers"] = {"m": level}
        try:
            made = resolve(document, around(file))
        except UserError as error:
            assert "\n" not in str(error)
            continue
        assert parse_study(made.source, "again.yaml") == made
