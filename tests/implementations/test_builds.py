"""Builds, releases and adapters as data: which program is run, how it is identified, what it is refused for."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from trifecta import studies
from trifecta.cli import main
from trifecta.design.builds import ServerBuild, ServerProgram
from trifecta.design.errors import UserError
from trifecta.design.model import PageWorkload, RequestsWorkload, Study
from trifecta.design.quantity import QuantityError
from trifecta.design.study_file import parse_study
from trifecta.implementations import builds, installation
from trifecta.implementations.registry import SERVERS
from trifecta.implementations.running import RunningServer, ServerFailed
from trifecta.implementations.server import ServerOptions, Site, Unsupported, host_name, label
from trifecta.implementations.servers import from_data
from trifecta.implementations.servers.from_data import FromData
from trifecta.implementations.survey import Finder, Implementation, survey
from trifecta.lab.certificates import Certificates
from trifecta.lab.engine import find_engine
from trifecta.lab.host import LocalHost
from trifecta.lab.place import LocalPlace
from trifecta.workloads.facts import check_same_builds
from trifecta.workloads.requests.supported import requests_supported
from trifecta.workloads.session import Adapters

TOLD = ("--port", "{port}", "--cert", "{cert}", "--key", "{key}")


def script(path: Path, text: str) -> Path:
    """A program that is a shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


@pytest.fixture
def site(tmp_path: Path) -> Site:
    state = tmp_path / "state of it"
    state.mkdir()
    pki = Certificates(*(tmp_path / f"{name} $(x).pem" for name in ("authority", "chain", "key")))
    return Site(tmp_path / "site {port}", pki, "127.0.0.1", 9443, state)


def with_servers(**servers: ServerBuild | ServerProgram) -> Study:
    race = studies.load("race")
    return replace(race, servers=servers, factors={**race.factors, "server": tuple(servers)})


def own(level: str, one: ServerBuild | ServerProgram):
    return builds.with_own(SERVERS, with_servers(**{level: one}))[level]


# --- builds


@pytest.mark.parametrize("place", ["", "sbin", "bin", "objs"])
def test_the_program_of_a_build_is_found_in_its_folder(tmp_path: Path, place: str) -> None:
    program = script(tmp_path / place / "nginx", "echo nginx/1.31.9 built --with-http_v3_module")
    adapter = own("nginx@./a", ServerBuild("nginx", str(tmp_path)))
    assert (adapter.name, adapter.find(), adapter.build) == ("nginx@./a", "1.31.9", program)
    assert adapter.identity() == hashlib.sha256(program.read_bytes()).hexdigest()
    assert adapter.program_files() == (program,)
    assert SERVERS["nginx"].build is None, "the one in the table stays as it is"


def test_another_commit_of_the_engine_is_a_build_of_the_origin(tmp_path: Path, site: Site) -> None:
    told = json.dumps(json.loads(subprocess.run([find_engine(), "--version"], capture_output=True, check=True).stdout))
    program = script(tmp_path / "engine" / "target" / "release" / "trifecta-engine", f"echo '{told}'")
    adapter = own("origin@./after", ServerBuild("origin", str(tmp_path)))
    assert adapter.find() == SERVERS["origin"].find()
    command = adapter.command(site, ServerOptions())
    assert command.arguments[:2] == (program, "origin")
    assert command.reads == (program,), "a container holds the build, not the engine that runs it"
    assert adapter.identity() == hashlib.sha256(program.read_bytes()).hexdigest()


def test_an_engine_of_another_version_is_no_build_of_the_origin(tmp_path: Path) -> None:
    script(tmp_path / "trifecta-engine", """echo '{"engine": "0.0.1"}'""")
    with pytest.raises(Unsupported, match=r"is of version 0\.0\.1, and this is"):
        own("origin@./old", ServerBuild("origin", str(tmp_path))).find()


def test_the_program_itself_is_run_with_the_configuration_of_its_adapter(tmp_path: Path, site: Site) -> None:
    program = script(tmp_path / "my-caddy", "echo v2.99.1 h1:x")
    adapter = own("caddy@./my-caddy", ServerBuild("caddy", str(program)))
    assert adapter.find() == "2.99.1"
    assert adapter.command(site, ServerOptions()).arguments[0] == program
    proxy = own(
        "haproxy@./h", ServerBuild("haproxy", str(script(tmp_path / "h", "echo HAProxy version 3.4.0 +QUIC x")))
    )
    assert proxy.find() == "3.4.0"


@pytest.mark.parametrize(
    ("server", "text", "said"),
    [
        ("nginx", "echo nginx/1.31.9", "is built without HTTP/3; build it again, or name another"),
        ("nginx", "exit 3", "does not run"),
        ("haproxy", "echo HAProxy version 2.8.1", "is older than 3.0 or built without QUIC; build it again"),
        ("caddy", "exit 1", "does not run"),
    ],
)
def test_a_build_that_is_not_fit_is_told_without_another_remedy(
    tmp_path: Path, server: str, text: str, said: str
) -> None:
    program = script(tmp_path / server, text)
    with pytest.raises(Unsupported) as error:
        own(f"{server}@x", ServerBuild(server, str(program))).find()
    assert said in str(error.value)
    assert "build it again, or name another" in str(error.value)
    assert "trifecta get" not in str(error.value)


@pytest.mark.parametrize(
    ("build", "said"),
    [
        (ServerBuild("hypercorn", "/"), "hypercorn cannot be pointed to another build; name a program as cmd:"),
        (ServerBuild("caddy-2022", "/"), "caddy-2022 cannot be pointed to another build"),
        (ServerBuild("nginx", version="1.29.1"), "nothing brings version 1.29.1 of nginx; name a build"),
        (ServerBuild("caddy-2022", version="2.6.2"), "nothing brings version 2.6.2 of caddy-2022"),
        (ServerBuild("caddy", version="1.0.5"), "nothing brings version 1.0.5 of caddy"),
        (ServerBuild("nginx", "/proc/self/fd"), "/proc/self/fd holds no program nginx, nor do its sbin, bin, objs,"),
        (ServerBuild("nginx", "/proc/version"), "/proc/version is no program that can be run; build it"),
        (ServerBuild("nginx", "/not/there"), "/not/there is no program that can be run"),
    ],
)  # fmt: skip
def test_what_is_no_build_is_left_out_with_its_reason(build: ServerBuild, said: str) -> None:
    with pytest.raises(Unsupported) as error:
        own("x@y", build).find()
    assert said in str(error.value)


def test_a_server_without_an_adapter_is_refused() -> None:
    study = with_servers(**{"apache@/x": ServerBuild("apache", "/x")})
    with pytest.raises(UserError, match="unknown server 'apache@/x'"):
        requests_supported(study, builds.with_own(SERVERS, study), {})


def test_the_servers_of_a_study_are_those_of_the_table_and_its_own() -> None:
    study = with_servers(mine=ServerProgram(("/bin/true", *TOLD)))
    known = Adapters().for_study(study).servers
    assert [*known] == [*SERVERS, "mine"]
    assert (len(known), "mine" in known, "origin" in known, "other" in known) == (len(SERVERS) + 1, True, True, False)
    assert known["origin"] is SERVERS["origin"]
    assert Adapters().for_study(studies.load("race")).servers is SERVERS


def test_what_is_found_of_a_build_is_its_version_and_digest_not_its_path(tmp_path: Path) -> None:
    first = script(tmp_path / "a" / "caddy", "echo v2.99.1")
    second = script(tmp_path / "b" / "caddy", "echo v2.99.1")
    study = with_servers(**{f"caddy@{one}": ServerBuild("caddy", str(one)) for one in (first, second)})
    found = requests_supported(study, builds.with_own(SERVERS, study), {}).servers
    assert {one["version"] for one in found.values()} == {"2.99.1"}
    assert {one["sha256"] for one in found.values()} == {hashlib.sha256(first.read_bytes()).hexdigest()}


def test_a_run_is_not_gone_on_with_by_another_program() -> None:
    study = with_servers(**{"caddy@/a": ServerBuild("caddy", "/a")})
    before = {"servers": {"caddy@/a": {"version": "2", "sha256": "a" * 64}}}
    check_same_builds(before, study, {"caddy@/a": {"version": "2", "sha256": "a" * 64}})
    check_same_builds({}, study, {"caddy@/a": {"version": "2", "sha256": "b" * 64}})
    with pytest.raises(
        UserError, match=r"server caddy@/a is another program .* \(sha256 aaaaaaaaaaaa, now bbbbbbbbbbbb"
    ):
        check_same_builds(before, study, {"caddy@/a": {"version": "2", "sha256": "b" * 64}})


@pytest.mark.parametrize("level", ["origin", "quic-go", "my_server.1+2"])
def test_plain_names_are_parts_of_host_names_as_they_are(level: str) -> None:
    assert (label(level), host_name(level)) == (level, f"{level}.lab")


def test_other_levels_get_names_that_files_and_certificates_can_have() -> None:
    levels = ["nginx@./a", "nginx@/a", "nginx@./A", "nginx@" + "/very/long" * 50, "@", "nginx@\udcff"]
    names = [label(level) for level in levels]
    assert len({*names}) == len(levels)
    for name in names:
        assert len(name) <= 63
        assert name.replace("-", "").isalnum()
        assert name.isascii()
        assert name[0] != "-"
    assert names[0].startswith("nginx-a-")


# --- where programs and files are looked for


def test_programs_are_looked_for_beside_who_names_them_then_here_then_on_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, beside, near = (tmp_path / name for name in ("here", "study", "near"))
    for folder in (here, beside, near):
        script(folder / "both", "")
    for folder in (here, near):
        script(folder / folder.name, "")
    monkeypatch.chdir(here)
    assert studies.find_program(beside, "./both") == str(beside / "both")
    assert studies.find_program(None, "./both") == str(here / "both")
    assert studies.find_program(beside, "./both", near=str(near / "server.yaml")) == str(near / "both")
    assert studies.find_program(beside, "./here", near=str(near / "server.yaml")) == str(here / "here")
    assert studies.find_program(None, "../here/both") == str(here / "both")
    assert studies.find_program(None, "sh").endswith("/sh")
    with pytest.raises(QuantityError, match=r"'\./nowhere' is not there; build it, or correct the path"):
        studies.find_program(beside, "./nowhere")
    with pytest.raises(
        QuantityError, match=r"no program 'nowhere' on PATH; install it, or write its path, such as \./nowh"
    ):
        studies.find_program(beside, "nowhere")
    with pytest.raises(QuantityError, match=r"the file 'x\.yaml' is not there; correct the path"):
        studies.read_server(beside, "x.yaml")


def test_a_study_file_has_its_server_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script(tmp_path / "my-server", "")
    (tmp_path / "server.yaml").write_text(f"command: ./my-server {' '.join(TOLD)}\n")
    study = "study: s\nworkload: {requests: 20}\nfactors: {server: [mine]}\nservers: {mine: ./server.yaml}\n"
    (tmp_path / "s.yaml").write_text(study)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    made = studies.load("../s.yaml", servers=studies.known_servers())
    assert made.servers["mine"] == ServerProgram((str(tmp_path / "my-server"), *TOLD))
    assert parse_study(made.source, "run/study.yaml") == made


# --- adapters as data


def test_a_command_line_is_filled_in_word_by_word_and_no_shell_reads_it(tmp_path: Path, site: Site) -> None:
    given = ServerProgram(
        ("/bin/echo", *TOLD, "--root={root}", "{address};rm", "$HOME `x`", "{tls_version}", "{congestion_control}",
         "{streams}"),
        congestion_control={"cubic": "CUBIC", "bbr": "bbr2"},
        environment={"STATE": "{state}/x"},
        files={"a.conf": "root {root}; { {other} } {port}\n"},
    )  # fmt: skip
    adapter = FromData("mine", given)
    command = adapter.command(site, ServerOptions(congestion_control="bbr", tls_version="1.2", max_streams=7))
    pki = site.certificates
    assert command.arguments == (
        "/bin/echo", "--port", "9443", "--cert", str(pki.chain), "--key", str(pki.key), f"--root={site.folder}",
        "127.0.0.1;rm", "$HOME `x`", "1.2", "bbr2", "7",
    )  # fmt: skip
    assert command.environment == {"STATE": f"{site.state}/x"}
    assert (site.state / "a.conf").read_text() == f"root {site.folder}; {{ {{other}} }} 9443\n"


def test_what_it_declares_is_what_the_data_says_and_nothing_else() -> None:
    plain = FromData("mine", ServerProgram(("/bin/true", *TOLD)))
    assert plain.declared(ServerOptions()) == {"congestion_control": {"tcp": "cubic"}}, "checks say `unknown` of QUIC"
    said = ServerProgram(("/bin/true",), congestion_control="reno", tcp_nodelay=False, tls_library="T")
    assert FromData("mine", said).declared(ServerOptions(congestion_control="bbr")) == {
        "congestion_control": {"tcp": "bbr", "quic": "reno"}, "tcp_nodelay": False, "tls_library": "T",
    }  # fmt: skip
    told = FromData("mine", replace(said, congestion_control={"bbr": "b2"}))
    assert told.declared(ServerOptions(congestion_control="bbr"))["congestion_control"] == {"tcp": "bbr", "quic": "bbr"}
    assert (plain.says_ready, plain.ready_within_s) == (None, None)
    ready = FromData("mine", ServerProgram(("/bin/true",), ready_says="é", ready_within_ns=1_500_000_000))
    assert (ready.says_ready, ready.ready_within_s) == ("é".encode(), 1.5)


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (RequestsWorkload(method="POST"), "mine answers GET, HEAD; if it answers POST, list that in `methods`"),
        (RequestsWorkload(zero_rtt=True), "mine is not known to accept 0-RTT; leave out zero_rtt, or write zero_rtt"),
        (RequestsWorkload(congestion_control="cubic/reno"), "mine cannot be told reno for QUIC, but cubic; name it in"),
        (PageWorkload(), "mine cannot answer from a page archive"),
    ],
)
def test_what_the_data_does_not_say_is_not_asked_of_it(workload: RequestsWorkload, said: str) -> None:
    given = ServerProgram(("/bin/true", *TOLD), congestion_control={"cubic": "cubic"})
    with pytest.raises(Unsupported) as error:
        FromData("mine", given).check_workload(workload)
    assert said in str(error.value)
    able = replace(given, methods=("POST",), zero_rtt=True, congestion_control={"reno": "r"})
    if not workload.visiting:
        asked = replace(workload, method="POST", congestion_control="cubic/reno")
        FromData("mine", able).check_workload(asked)
    FromData("mine", replace(given, congestion_control="")).check_workload(RequestsWorkload(congestion_control="bbr"))


@pytest.mark.parametrize(
    ("text", "asked", "version"),
    [
        ('echo "My  Server 3.1"; echo more', None, "My Server 3.1"),
        ('echo "$2 $1"', ("-v", "two words"), "two words -v"),
        ("echo 4 >&2", None, "4"),
        ("exit 1", None, "sha256 "),
        ("true", None, "sha256 "),
        ("echo 3.1", (), "sha256 "),
    ],
)
def test_its_version_is_what_the_program_says_else_its_digest(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, text: str, asked: tuple[str, ...] | None, version: str
) -> None:
    monkeypatch.setattr(from_data.sandbox, "entered", lambda: True)
    program = script(tmp_path / "srv", text)
    digest = hashlib.sha256(program.read_bytes()).hexdigest()
    expected = f"sha256 {digest[:12]}" if version == "sha256 " else version
    assert FromData("mine", ServerProgram((str(program), *TOLD), version=asked)).find() == expected


def test_what_may_not_know_the_question_is_asked_in_the_lab_only(tmp_path: Path) -> None:
    program = script(tmp_path / "srv", f"touch {shlex.quote(str(tmp_path / 'served'))}; echo 1")
    assert FromData("mine", ServerProgram((str(program), *TOLD))).find().startswith("sha256 ")
    assert not (tmp_path / "served").exists()
    assert FromData("mine", ServerProgram((str(program), *TOLD), version=("-v",))).find() == "1"


def test_a_version_that_was_promised_is_asked_for(tmp_path: Path) -> None:
    program = script(tmp_path / "srv", "exit 1")
    with pytest.raises(Unsupported, match=r"mine does not tell its version \(.*\); correct `version`"):
        FromData("mine", ServerProgram((str(program), *TOLD), version=("-v",))).find()
    program.chmod(stat.S_IRUSR)
    if not os.access(program, os.X_OK):
        with pytest.raises(Unsupported, match=r"srv is no program that can be run; build it, or run chmod \+x"):
            FromData("mine", ServerProgram((str(program), *TOLD))).find()


def test_the_script_of_an_interpreter_is_part_of_what_it_is(tmp_path: Path) -> None:
    code = tmp_path / "server.py"
    seen = []
    for text in ("pass", "pass", "fail"):
        code.write_text(text)
        seen.append(FromData("mine", ServerProgram((sys.executable, str(code), "/not/there", *TOLD))).identity())
    assert seen[0] == seen[1] != seen[2]
    assert seen[0] != FromData("mine", ServerProgram((sys.executable, *TOLD))).identity()


def test_one_that_ends_or_is_not_ready_in_its_time_is_told_with_its_last_line(tmp_path: Path, site: Site) -> None:
    def start(text: str, within_ns: int | None) -> RunningServer:
        program = script(tmp_path / "srv", text)
        adapter = FromData("mine", ServerProgram((str(program), *TOLD), ready_within_ns=within_ns))
        server = RunningServer(
            adapter, "1", site, ServerOptions(), LocalPlace(LocalHost()), log=tmp_path / "log", cpus=None
        )
        server.start()
        return server

    ended = start('echo "cannot bind $2"; exit 3', None)
    ended._programs[-1].program.wait_end(20)
    with pytest.raises(ServerFailed, match="mine ended before it was ready: cannot bind 9443"):
        ended.wait_ready(lambda: "refused", lambda: False)
    slow = start("echo still loading; exec sleep 60", 200_000_000)
    try:
        with pytest.raises(ServerFailed, match=r"mine does not answer within 0\.2 s \(refused\): .*still loading"):
            slow.wait_ready(lambda: "refused", lambda: False)
    finally:
        slow.close()


# --- releases


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Go that writes down how it was called, and builds a Caddy that tells the version that is linked into it."""
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path / "cache"))
    called = tmp_path / "called"
    text = f"""echo "$@" > {shlex.quote(str(called))}
case "$*" in *2.99.9) echo "go: module: no matching versions" >&2; exit 1;; esac
all="$*"
stamp=${{all##*CustomVersion=}}
[ "$stamp" = "$all" ] && stamp=unknown
printf '#!/bin/sh\\necho %s h1:x\\n' "${{stamp%% *}}" > "$GOBIN/caddy"
chmod +x "$GOBIN/caddy" """
    script(tmp_path / "bin" / "go", text)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    return called


def test_a_version_is_built_beside_the_default_and_found_there(go: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert not builds.releases_here(SERVERS)
    with pytest.raises(Unsupported, match=r"caddy@2\.10\.0 is not in the cache .*; run: trifecta get caddy@2\.10\.0"):
        own("caddy@2.10.0", ServerBuild("caddy", version="2.10.0")).find()
    assert main.run(["get", "caddy@2.10.0"]) == 0
    assert "caddy@2.10.0: 2.10.0 from Go modules" in capsys.readouterr().out
    words = go.read_text().split()
    assert words[0] == "install"
    assert words[-1] == "github.com/caddyserver/caddy/v2/cmd/caddy@v2.10.0"
    adapter = own("caddy@2.10.0", ServerBuild("caddy", version="2.10.0"))
    assert adapter.find() == "2.10.0"
    assert adapter.identity() is not None
    go.unlink()
    assert installation.get("caddy@2.10.0", lambda _: None).status == "present"
    assert not go.exists()


def test_releases_are_listed_and_any_is_none_of_them(go: Path) -> None:
    installation.get("caddy@2.10.0", lambda _: None)
    assert builds.releases_here(SERVERS) == ["caddy@2.10.0"]
    (row,) = survey(["server"], ["caddy@2.10.0"])
    assert (row.found, row.version, row.get) == (True, "2.10.0", "trifecta get caddy@2.10.0")
    seen = [Implementation("server", name, True, "1", (), "", "trifecta") for name in ("origin", "caddy@2.10.0")]
    assert Finder(lambda _: seen)("server") == ["origin"]


def test_a_version_that_cannot_be_built_leaves_nothing(go: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["get", "caddy@2.99.9"]) == 3
    assert "caddy@2.99.9: go cannot build it: go: module: no matching versions" in capsys.readouterr().err
    assert not builds.releases_here(SERVERS)


@pytest.mark.parametrize("name", ["nginx@1.29.1", "caddy@./x", "caddy@", "apache@2.4.1", "caddy-2022@2.6.2"])
def test_what_no_recipe_brings_is_told(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main.run(["get", name]) == 2
    said = capsys.readouterr().err
    assert f"no recipe brings {name}; name a build of your own as a level of server instead" in said
