"""Services of compose files as adapters: what identifies one, what it is left out for, and what is run of it."""

from __future__ import annotations

import hashlib
import io
import json
import os
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from trifecta.design.builds import ImageBuild, ServerProgram, ServerService
from trifecta.design.model import PageWorkload, RequestsWorkload
from trifecta.implementations import builds
from trifecta.implementations.registry import SERVERS
from trifecta.implementations.running import RunningServer
from trifecta.implementations.server import ServerOptions, Site, Unsupported
from trifecta.implementations.servers.from_compose import FromCompose
from trifecta.lab.certificates import Certificates
from trifecta.lab.container_spec import ContainerSpec, ImageSource
from trifecta.lab.containers.state import DockerState
from trifecta.lab.host import LocalHost
from trifecta.lab.place import LocalPlace
from trifecta.studies import load

TOLD = ("--port", "{port}", "--cert", "{cert}", "--key", "{key}")


@pytest.fixture(autouse=True)
def docker(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine on which containers run, as far as anybody asks."""
    monkeypatch.setattr("trifecta.lab.containers.state.docker_state", lambda _: DockerState("20"))


def archive(path: Path, images: dict[str, bytes]) -> None:
    """What `docker save` writes of images, but for their layers; by name, the configuration of each."""
    configs = {f"{hashlib.sha256(config).hexdigest()}.json": config for config in images.values()}
    names = {config: [name for name, own in images.items() if own == config] for config in images.values()}
    manifest = [{"Config": name, "RepoTags": names[config], "Layers": []} for name, config in configs.items()]
    with tarfile.open(path, "w") as tar:
        for name, content in (*configs.items(), ("manifest.json", json.dumps(manifest).encode())):
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


@pytest.fixture
def here(tmp_path: Path) -> Path:
    """The folder of a compose file with all that its service names."""
    folder = tmp_path / "here"
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "web.conf").write_text("a")
    (folder / "image").mkdir()
    (folder / "image" / "Dockerfile").write_text("FROM scratch\nCOPY . /\n")
    (folder / "image" / ".dockerignore").write_text("# not sent\n\nscratch*\n")
    (folder / "image" / "web").write_text("program")
    archive(folder / "image.tar", {"web:1": b"one", "web:latest": b"two"})
    return folder


def loaded(here: Path, image: str = "web:1") -> ServerService:
    program = ServerProgram(("serve", *TOLD), version=())
    return ServerService(str(here), program, image, "./image.tar", volumes=(("./conf", "/etc/web"),))


def built(here: Path) -> ServerService:
    return replace(loaded(here), image="", archive="", build=ImageBuild("./image", arguments={"LEVEL": "3"}))


def identity(service: ServerService) -> str:
    """Of a new adapter, for what one has read it keeps."""
    found = FromCompose("mine", service).identity()
    assert len(found) == 64
    return found


def refusal(service: ServerService) -> str:
    with pytest.raises(Unsupported) as error:
        FromCompose("mine", service).find()
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(("image", "config"), [("web:1", b"one"), ("web", b"two"), ("web:latest", b"two")])
def test_an_image_of_an_archive_is_known_by_its_configuration(here: Path, image: str, config: bytes) -> None:
    digest = hashlib.sha256(config).hexdigest()
    assert FromCompose("mine", loaded(here, image)).find() == f"{image} sha256 {digest[:12]}"


def test_one_that_is_built_is_known_by_all_that_goes_into_it(here: Path) -> None:
    pytest.importorskip("docker")
    found = FromCompose("mine", built(here)).find()
    assert found.startswith("built of sha256 ")
    (here / "image" / "scratch.txt").write_text("not sent")
    os.utime(here / "image" / "web", (1, 1))
    assert FromCompose("mine", built(here)).find() == found
    for change in (
        lambda: (here / "image" / "web").write_text("another"),
        lambda: (here / "image" / "web").chmod(0o755),
        (here / "image" / "more").mkdir,
        lambda: (here / "image" / "link").symlink_to("web"),
        lambda: (here / "image" / "Dockerfile").write_text("FROM web:1\nCOPY . /\n"),
    ):
        change()
        now = FromCompose("mine", built(here)).find()
        assert now != found
        found = now
    based = replace(built(here), archive="./image.tar")
    seen = FromCompose("mine", based).find()
    assert seen != found
    archive(here / "image.tar", {"web:1": b"other"})
    assert FromCompose("mine", based).find() not in (seen, found)


def test_what_is_another_server_has_another_identity_and_nothing_else_has(here: Path, tmp_path: Path) -> None:
    first = loaded(here)
    seen = {identity(first)}
    assert identity(replace(first, ignored=("ports",))) in seen
    moved = tmp_path / "moved"
    here.rename(moved)
    first = replace(first, folder=str(moved))
    assert identity(first) in seen, "the same service in another folder is the same server"
    for other in (
        replace(first, image="web"),
        replace(first, entrypoint=("serve",)),
        replace(first, working_dir="/srv"),
        replace(first, volumes=(("./conf", "/etc/other"),)),
        replace(first, program=replace(first.program, command=("serve", "-v", *TOLD))),
        replace(first, program=replace(first.program, environment={"A": "1"})),
        replace(first, program=replace(first.program, files={"a": "b"})),
    ):
        assert identity(other) not in seen, other
        seen.add(identity(other))
    (moved / "conf" / "web.conf").write_text("b")
    assert identity(first) not in seen, "what is mounted is part of it"


def test_the_arguments_of_a_build_are_part_of_its_identity(here: Path) -> None:
    pytest.importorskip("docker")
    one = built(here)
    assert one.build is not None
    assert identity(one) == identity(built(here))
    others = [replace(one.build, arguments={"LEVEL": "4"}), replace(one.build, target="last")]
    assert len({identity(replace(one, build=build)) for build in (one.build, *others)}) == 3


def test_what_is_no_image_is_left_out_with_its_reason(here: Path) -> None:
    assert refusal(loaded(here, "web:2")).startswith(f"mine: {here}/image.tar has no image web:2, but web:1, web:lat")
    archive(here / "image.tar", {})
    assert "has no image web:1, but none with a name; correct the name" in refusal(loaded(here))
    for content in (b"", b"no archive", b"\0" * 10240):
        (here / "image.tar").write_bytes(content)
        assert "image.tar holds no images (" in refusal(loaded(here))
        assert refusal(loaded(here)).endswith("; write it with: docker save NAME -o FILE")


def test_a_folder_without_a_dockerfile_builds_nothing(here: Path) -> None:
    pytest.importorskip("docker")
    (here / "image" / "Dockerfile").unlink()
    assert "image has no Dockerfile, from which the image would be built; write it" in refusal(built(here))


def test_nothing_outside_of_the_folder_is_reached_by_a_link(here: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    for service, name in ((loaded(here), "conf"), (built(here), "image"), (loaded(here), "image.tar")):
        (here / name).rename(tmp_path / "aside")
        assert refusal(service) == f"mine: {here / name} is not there; make it, or correct the compose file"
        (here / name).symlink_to(tmp_path / "secret")
        said = f"mine: {here / name} leads out of the compose file's folder; put it there"
        assert refusal(service) == said
        (here / name).unlink()
        (tmp_path / "aside").rename(here / name)


def test_a_machine_without_containers_leaves_it_out(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    missing = DockerState(None, "dockerd is not installed", "sudo apt-get install -y docker.io")
    monkeypatch.setattr("trifecta.lab.containers.state.docker_state", lambda _: missing)
    said = "mine is in a container: dockerd is not installed; sudo apt-get install -y docker.io"
    assert refusal(loaded(here)) == said


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        (RequestsWorkload(server_cpu=0.1), "mine is in a container, which cannot be given a share; leave out"),
        (RequestsWorkload(method="POST"), "mine answers GET, HEAD; if it answers POST, list that in `methods`"),
        (PageWorkload(), "mine cannot answer from a page archive"),
    ],
)  # fmt: skip
def test_what_it_cannot_do_is_not_asked_of_it(here: Path, workload: RequestsWorkload, said: str) -> None:
    with pytest.raises(Unsupported, match=f"^{said}"):
        FromCompose("mine", loaded(here)).check_workload(workload)


def test_its_container_has_what_the_service_says(here: Path, tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    pki = Certificates(*(tmp_path / f"{name}.pem" for name in ("authority", "chain", "key")))
    site = Site(tmp_path / "site", pki, "10.77.0.2", 8443, state)
    service = built(here)
    program = replace(
        service.program, command=("/bin/web", "serve", *TOLD), environment={"S": "{state}"}, files={"a": "{port}"}
    )
    service = replace(service, program=program, entrypoint=("/bin/web",), working_dir="/srv")
    adapter = FromCompose("mine", service)
    command = adapter.command(site, ServerOptions())
    assert command.arguments == ("/bin/web", "serve", "--port", "8443", "--cert", str(pki.chain), "--key", str(pki.key))
    assert command.environment == {"S": str(state)}
    assert (state / "a").read_text() == "8443"
    assert adapter.contained == ContainerSpec(
        ImageSource(context=here / "image", arguments=(("LEVEL", "3"),)),
        starts=True,
        mounts=((here / "conf", "/etc/web"),),
        working_dir="/srv",
    )
    plain = FromCompose("mine", loaded(here)).contained
    assert plain.image == ImageSource("web:1", here / "image.tar", dockerfile="")
    assert not plain.starts, "the words are arguments of the image's own entry point"
    with pytest.raises(RuntimeError, match="mine is in a container, and is started nowhere else"):
        RunningServer(adapter, "1", site, ServerOptions(), LocalPlace(LocalHost()), log=tmp_path / "log", cpus=None)


def test_it_is_a_server_of_its_study(here: Path) -> None:
    race = load("race")
    study = replace(race, servers={"web": loaded(here)}, factors={**race.factors, "server": ("web",)})
    adapter = builds.with_own(SERVERS, study)["web"]
    assert isinstance(adapter, FromCompose)
    assert (adapter.name, adapter.contained is not None) == ("web", True)
    assert SERVERS["origin"].contained is None
