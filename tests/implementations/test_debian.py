"""The recipe for Debian packages against a small archive of its own, with the real apt: signed, forged, cut off."""

from __future__ import annotations

import hashlib
import http.server
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from trifecta.design.errors import CannotError
from trifecta.implementations.recipes import apt, debian
from trifecta.implementations.recipes.apt import Archive, system_archive
from trifecta.implementations.recipes.debian import DebianPackages
from trifecta.implementations.server import Unsupported

_TOOLS = ("apt-get", "dpkg-deb", "gpg", "gpgv")
_MISSING = [tool for tool in _TOOLS if shutil.which(tool) is None]
pytestmark = pytest.mark.skipif(bool(_MISSING), reason=f"not on this machine: {', '.join(_MISSING)}")
_RELEASE_FIELDS = "Origin: Debian\nLabel: Debian\nSuite: sid\nCodename: sid\nArchitectures: {}\nComponents: main\n"


class Signer:
    """A key of its own in a home of its own; the socket of its agent needs a short path."""

    def __init__(self, name: str) -> None:
        self.home = Path(tempfile.mkdtemp(prefix="gpg"))
        self.gpg = ["gpg", "--homedir", str(self.home), "--batch", "--quiet", "--pinentry-mode", "loopback"]
        subprocess.run([*self.gpg, "--passphrase", "", "--quick-gen-key", name, "ed25519"], check=True)
        self.keyring = self.home / "public.gpg"
        subprocess.run([*self.gpg, "--output", str(self.keyring), "--export"], check=True)
        self.keyring.chmod(0o644)

    def sign(self, release: Path) -> None:
        signed = release.with_name("InRelease")
        signed.unlink(missing_ok=True)
        subprocess.run([*self.gpg, "--output", str(signed), "--clearsign", str(release)], check=True)

    def close(self) -> None:
        subprocess.run(["gpgconf", "--homedir", str(self.home), "--kill", "all"], check=False)
        shutil.rmtree(self.home, ignore_errors=True)


@pytest.fixture(scope="module")
def signer() -> Iterator[Signer]:
    found = Signer("lab@example.org")
    yield found
    found.close()


@pytest.fixture(scope="module")
def stranger() -> Iterator[Signer]:
    found = Signer("stranger@example.org")
    yield found
    found.close()


def _architecture() -> str:
    return subprocess.run(
        ["dpkg", "--print-architecture"], capture_output=True, text=True, check=True
    ).stdout.strip()  # fmt: skip


class Repository:
    """``hello-lab`` (a program with its own loader and libc, as an epoch and a setuid file) and what it depends on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pool = folder / "pool"
        self.pool.mkdir(parents=True)
        libraries = {}
        for line in subprocess.run(
            ["ldd", "/bin/echo"], capture_output=True, text=True, check=True
        ).stdout.splitlines():
            path = next((Path(word) for word in line.split() if word.startswith("/")), None)
            if path is not None:
                libraries[path.name] = path.resolve()
        triplet = next(Path("/usr/lib").glob("*-linux-gnu")).name
        library = {f"usr/lib/{triplet}/{name}": path.read_bytes() for name, path in libraries.items()}
        program = {"usr/bin/hello-lab": Path("/bin/echo").read_bytes(), "usr/bin/setuid-lab": b"x" * 5_000_000}
        self.packages = [
            self._package("lib-lab", "1.0-1", "", library),
            self._package("hello-lab", "1:2.0-1", "Depends: lib-lab (>= 1.0)\n", program),
        ]
        self.dist = folder / "dists" / "sid"
        self._index()

    def _package(self, name: str, version: str, extra: str, files: dict[str, bytes]) -> str:
        root = self.folder / "build" / name
        for path, content in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_bytes(content)
            (root / path).chmod(0o4755 if "setuid" in path else 0o755)
        control = (
            f"Package: {name}\nVersion: {version}\nArchitecture: {_architecture()}\nMaintainer: Lab <lab@example.org>\n"
            f"{extra}Description: for a test\n"
        )
        (root / "DEBIAN").mkdir()
        (root / "DEBIAN" / "control").write_text(control)
        # A script that must never run: it would be seen in the working folder.
        script = root / "DEBIAN" / "postinst"
        script.write_text("#!/bin/sh\ntouch /tmp/trifecta-maintainer-script-ran\n")
        script.chmod(0o755)
        file = self.pool / f"{name}.deb"
        subprocess.run(["dpkg-deb", "-Znone", "--root-owner-group", "-b", str(root), str(file)], check=True, stdout=-3)
        digest = hashlib.sha256(file.read_bytes()).hexdigest()
        return f"{control}Filename: pool/{name}.deb\nSize: {file.stat().st_size}\nSHA256: {digest}\n"

    def _index(self) -> None:
        path = self.dist / "main" / f"binary-{_architecture()}" / "Packages"
        path.parent.mkdir(parents=True)
        path.write_text("\n".join(self.packages))
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        self.release = self.dist / "Release"
        self.release.write_text(
            f"{_RELEASE_FIELDS.format(_architecture())}Date: Sat, 01 Nov 2025 10:00:00 UTC\n"
            f"SHA256:\n {digest} {path.stat().st_size} {path.relative_to(self.dist)}\n"
        )


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path / "archive")


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DebianPackages:
    monkeypatch.setenv("TRIFECTA_CACHE", str(tmp_path / "the cache"))
    settings = tmp_path / "apt.conf"
    settings.write_text('Acquire::Retries "0";\n')  # apt pauses before it tries again: seconds here
    monkeypatch.setenv("APT_CONFIG", str(settings))
    return DebianPackages("hello", ("hello-lab",))


def _use(monkeypatch: pytest.MonkeyPatch, uri: str, keys: Signer) -> None:
    monkeypatch.setattr(debian, "system_archive", lambda name: Archive(uri, str(keys.keyring)))


def test_packages_come_with_what_they_depend_on_and_run_with_their_own_loader(
    repository: Repository, recipe: DebianPackages, signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer.sign(repository.release)
    _use(monkeypatch, f"copy:{repository.folder}", signer)
    assert not recipe.installed()
    assert recipe.program("usr/bin/hello-lab") is None
    said: list[str] = []
    recipe.install(said.append)
    assert recipe.installed()
    assert any("2 packages, " in line for line in said)
    assert recipe.manifest() == {
        "suite": "sid",
        "date": "Sat, 01 Nov 2025 10:00:00 UTC",
        "packages": {"lib-lab": "1.0-1", "hello-lab": "1:2.0-1"},
    }
    command = recipe.program("usr/bin/hello-lab")
    assert command is not None
    assert all(str(recipe.folder()) in part for part in (command[0], command[3], command[4]))
    done = subprocess.run([*command, "it runs"], capture_output=True, text=True, check=True)
    assert done.stdout == "it runs\n"
    assert (recipe.folder() / "usr/bin/setuid-lab").stat().st_mode & 0o7777 == 0o755
    assert not Path("/tmp/trifecta-maintainer-script-ran").exists()
    assert recipe.program("usr/bin/other") is None
    assert recipe.build() == "Debian sid of Sat, 01 Nov 2025 10:00:00 UTC, hello-lab 1:2.0-1"
    left = [path.name for path in recipe.folder().parent.rglob("*.deb")]
    assert left == []


def test_another_list_of_packages_is_not_this_installation(
    repository: Repository, recipe: DebianPackages, signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer.sign(repository.release)
    _use(monkeypatch, f"copy:{repository.folder}", signer)
    recipe.install(lambda _: None)
    assert not DebianPackages("hello", ("hello-lab", "more")).installed()
    assert not DebianPackages("hello", ("hello-lab",), suite="trixie").installed()


def test_an_unsigned_archive_is_refused_whatever_the_system_allows(
    repository: Repository, recipe: DebianPackages, signer: Signer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    lax = tmp_path / "lax.conf"
    names = ("AllowInsecureRepositories", "AllowDowngradeToInsecureRepositories", "AllowWeakRepositories")
    lax.write_text("".join(f'Acquire::{name} "true";\n' for name in names) + 'APT::Get::AllowUnauthenticated "true";\n')
    monkeypatch.setenv("APT_CONFIG", str(lax))
    _use(monkeypatch, f"copy:{repository.folder}", signer)
    with pytest.raises(CannotError, match=r"not signed.*nothing unsigned is used"):
        recipe.install(lambda _: None)
    assert not recipe.installed()


def test_another_s_signature_is_refused_and_what_was_there_stays(
    repository: Repository,
    recipe: DebianPackages,
    signer: Signer,
    stranger: Signer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    signer.sign(repository.release)
    _use(monkeypatch, f"copy:{repository.folder}", signer)
    recipe.install(lambda _: None)
    stranger.sign(repository.release)
    with pytest.raises(CannotError, match="nothing unsigned is used"):
        recipe.install(lambda _: None)
    assert recipe.installed()
    assert recipe.program("usr/bin/hello-lab") is not None
    assert list(recipe.folder().parent.glob(".hello.partial*")) == []


def test_a_changed_package_is_refused(
    repository: Repository, recipe: DebianPackages, signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    signer.sign(repository.release)
    file = repository.pool / "hello-lab.deb"
    content = bytearray(file.read_bytes())
    content[-1000] ^= 1
    file.write_bytes(content)
    _use(monkeypatch, f"copy:{repository.folder}", signer)
    with pytest.raises(CannotError, match="Hash Sum mismatch"):
        recipe.install(lambda _: None)
    assert not recipe.installed()
    assert not recipe.folder().exists()


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Answers ranges, and closes early while ``cut`` says so."""

    cut: int | None = None
    ranges: list[str]

    def do_GET(self) -> None:
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        content = path.read_bytes()
        start = 0
        asked = self.headers.get("Range")
        if asked and path.suffix == ".deb":
            self.ranges.append(asked)
            start = int(asked.removeprefix("bytes=").split("-")[0])
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.send_header("Content-Length", str(len(content) - start))
        self.send_header("Last-Modified", self.date_time_string(int(path.stat().st_mtime)))
        self.end_headers()
        cut = self.cut if path.name == "hello-lab.deb" else None
        self.wfile.write(content[start : None if cut is None else max(start, cut)])
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Silent."""


@pytest.fixture
def web(repository: Repository) -> Iterator[tuple[str, type[_Handler]]]:
    class Handler(_Handler):
        ranges: list[str] = []  # noqa: RUF012

        def __init__(self, *args: object) -> None:
            super().__init__(*args, directory=str(repository.folder))  # type: ignore[arg-type]

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}/", Handler
    server.shutdown()
    server.server_close()
    thread.join()


def test_a_download_that_was_cut_off_goes_on_where_it_was(
    repository: Repository,
    recipe: DebianPackages,
    signer: Signer,
    web: tuple[str, type[_Handler]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    uri, handler = web
    signer.sign(repository.release)
    _use(monkeypatch, uri, signer)
    handler.cut = 3_000_000
    with pytest.raises(CannotError, match=r"trifecta get.*goes on where it was"):
        recipe.install(lambda _: None)
    assert not recipe.installed()
    handler.cut = None
    handler.ranges.clear()
    recipe.install(lambda _: None)
    assert recipe.installed()
    assert [int(asked.removeprefix("bytes=").split("-")[0]) > 0 for asked in handler.ranges] == [True]


def test_without_a_network_it_says_what_to_do(
    recipe: DebianPackages, signer: Signer, monkeypatch: pytest.MonkeyPatch
) -> None:
    _use(monkeypatch, "http://127.0.0.1:1/", signer)
    with pytest.raises(CannotError, match=r"apt-get cannot read the index: E: .*; check the network"):
        recipe.install(lambda _: None)


def test_without_apt_it_says_what_to_do(recipe: DebianPackages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apt.shutil, "which", lambda tool: None)
    with pytest.raises(CannotError, match=r"apt-get is not on this machine.*install hello with HTTP/3"):
        recipe.install(lambda _: None)


@pytest.mark.parametrize(
    ("lines", "uri"),
    [
        ("Debian-Security|http://a/debian-security/\nDebian|http://a/debian/\n", "http://a/debian/"),
        ("$(LABEL)|http://b/other/\n$(LABEL)|http://b/debian/\n", "http://b/debian/"),
        ("Ubuntu|http://c/ubuntu/\n", None),
    ],
)
def test_the_archive_is_the_one_of_the_system_s_sources(
    lines: str, uri: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apt, "run_tool", lambda *_: lines)
    if uri is None:
        with pytest.raises(CannotError, match="no source of Debian"):
            system_archive("hello")
    else:
        assert system_archive("hello").uri == uri


def test_the_root_comes_before_what_is_on_path(
    repository: Repository,
    recipe: DebianPackages,
    signer: Signer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    with pytest.raises(Unsupported, match="run: trifecta get hello"):
        recipe.locate("usr/bin/hello-lab")
    program = tmp_path / "bin" / "hello-lab"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\necho 'built with nothing'; exit ${CODE-0}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    found = recipe.locate("usr/bin/hello-lab")
    assert (found.arguments, found.environment, found.origin) == ((str(program),), {}, "on PATH")
    assert found.tells("-V", "built with (.*)") == "nothing"
    assert found.tells("-V", "version (.*)") == "unknown"
    monkeypatch.setenv("CODE", "3")
    with pytest.raises(Unsupported, match=r"does not run .*status 3.*trifecta get hello --force"):
        found.says("--other")
    signer.sign(repository.release)
    _use(monkeypatch, f"copy:{repository.folder}", signer)
    recipe.install(lambda _: None)
    rooted = recipe.locate("usr/bin/hello-lab")
    assert rooted.arguments[-1] == str(recipe.folder() / "usr/bin/hello-lab")
    assert rooted.environment["OPENSSL_CONF"] == "/dev/null"
    json.dumps(rooted.origin)
