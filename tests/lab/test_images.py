"""Programs of images of their own, built from nothing and loaded of an archive, in a Docker Engine of the lab."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lab import engine_image
from tests.lab.test_containers import inside, needs_docker

pytestmark = pytest.mark.lab


@needs_docker
def test_a_program_of_an_image_of_its_own_is_root_and_reads_what_is_mounted(tmp_path: Path) -> None:
    more = 'ENTRYPOINT ["/trifecta-engine", "load"]\nCMD ["nothing"]\nENV OWN=1\nUSER 65534\nVOLUME /data\n'
    engine_image.write(tmp_path / "image", more + 'HEALTHCHECK --interval=1s CMD ["/trifecta-engine"]\n')
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "web.conf").write_text("told")
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "Dockerfile").write_text("FROM scratch\nCOPY nothing /\n")
    found = inside(
        """
        from trifecta.lab.container_spec import ContainerSpec, ImageSource
        from trifecta.lab.containers import ContainerPlace
        from trifecta.lab.containers.images import image_digest
        source = ImageSource(context=folder / "image")
        saved = ImageSource("trifecta/built:lab", folder / "image.tar")

        def seen(docker, contained, words):
            place = ContainerPlace(docker, contained=contained)
            place.put(folder / "conf")
            program = place.run(words, folder / "log", cpus=frozenset({1}), environment={"A": "b"})
            about = Path(f"/proc/{program.pid}")
            while not (about / "cmdline").read_bytes().startswith(b"/trifecta-engine"):
                time.sleep(0.001)  # it is still runc's
            status = (about / "status").read_text()
            mounts = [line.split() for line in (about / "mounts").read_text().splitlines()]
            variables = (about / "environ").read_text().split("\\0")
            health = docker.client.inspect_container(program._id)["State"].get("Health")
            print(json.dumps({
                "words": (about / "cmdline").read_text().split("\\0")[:-1],
                "user": status.split("Uid:")[1].split()[0],
                "cpus": status.split("Cpus_allowed_list:")[1].split()[0],
                "folder": os.readlink(about / "cwd"),
                "conf": [path.read_text() for path in (about / "root/etc/conf").glob("*")],
                "there": (about / "root" / str(folder)[1:] / "conf/web.conf").exists(),
                "mounted": [mount[3].split(",")[0] for mount in mounts if mount[1] == "/etc/conf"],
                "variables": sorted({"A=b", "OWN=1"} & {*variables}),
                "network": os.readlink(about / "ns/net") == os.readlink(f"/proc/{docker._process.pid}/ns/net"),
                "health": health}))
            program.close()
            return place

        with host_graph(["host1"], []) as lab, names(lab):
            with DockerEngine(lab, "host1", network, find_engine(), folder / "docker1") as docker:
                mounts = ((folder / "conf", "/etc/conf"),)
                place = seen(docker, ContainerSpec(source, mounts=mounts, working_dir="/srv"), ["-"])
                with (folder / "image.tar").open("wb") as file:
                    for part in docker.client.get_image("trifecta/built:lab"):
                        file.write(part)
                print(json.dumps(docker.image(source) == f"sha256:{image_digest(saved)}"))
                print(json.dumps([docker.client.volumes()["Volumes"] or [], docker.client.containers(all=True)]))
                ended = place.run(["absent.json"], folder / "ended")
                while ended.running():
                    time.sleep(0.001)
                print(json.dumps(["absent.json" in (folder / "ended").read_text(), ended.exit_code]))
                ended.close()
                try:
                    docker.image(ImageSource(context=folder / "bad"))
                except CannotError as error:
                    print(json.dumps(str(error)))
            with DockerEngine(lab, "host1", network, find_engine(), folder / "docker2") as docker:
                seen(docker, ContainerSpec(saved, starts=True), ["/trifecta-engine", "load", "-"])
                try:
                    docker.image(ImageSource("web:2", folder / "image.tar"))
                except CannotError as error:
                    print(json.dumps(str(error)))
        """,
        str(tmp_path),
        "host",
    )
    as_it_is = {
        "words": ["/trifecta-engine", "load", "-"], "user": "0", "cpus": "1", "there": True,
        "variables": ["A=b", "OWN=1"], "network": True, "health": None,
    }  # fmt: skip
    assert found[0] == {**as_it_is, "folder": "/srv", "conf": ["told"], "mounted": ["ro"]}
    assert found[1] is True, "an archive says before it is loaded what the image will be"
    assert found[2] == [[], []], "a container takes its volumes along"
    said, code = found[3]  # type: ignore[misc]
    assert said, "what it said is there when its end is"
    assert code in (2, 3)
    assert str(found[4]).startswith(
        f"Docker Engine of host1: the image of {tmp_path}/bad cannot be obtained (COPY failed"
    )
    assert found[5] == {**as_it_is, "folder": "/", "conf": [], "mounted": []}
    assert "the image of " in str(found[6])
    assert "web:2" in str(found[6])
    assert not any("\n" in str(found[number]) for number in (4, 6))
