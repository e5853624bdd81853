"""Files at the other end: configurations name them there, and an archive that comes back is not trusted."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest

from trifecta.contract.load import ClosedLoop, LoadConfig
from trifecta.contract.origin import OriginConfig, RelayConfig
from trifecta.contract.probe import MeasureConfig
from trifecta.lab import staged_files


def load(**changes: object) -> LoadConfig:
    return LoadConfig(
        trial="t00001", protocol="h3", port=1, server_name="a", connection_mode="new", loop=ClosedLoop(), method="GET",
        path="/bytes/1", **{"ca_file": "/run/pki/ca.pem", "samples_file": "/run/samples/.tmp-t1", **changes},
    )  # fmt: skip


def test_a_configuration_names_the_files_of_the_other_end() -> None:
    given = {Path("/run/pki/ca.pem"): False, Path("/run/samples"): True}
    told = staged_files.relocated(load(), "/tmp/trifecta-x/files", given)
    assert told.ca_file == "/tmp/trifecta-x/files/run/pki/ca.pem"
    assert told.samples_file == "/tmp/trifecta-x/files/run/samples/.tmp-t1"
    assert told.path == "/bytes/1"
    server = OriginConfig(address="192.0.2.1", port=1, certificate_file="/run/pki/ca.pem", key_file="/run/pki/ca.pem")
    assert staged_files.relocated(server, "/f", given).key_file == "/f/run/pki/ca.pem"
    probe = MeasureConfig(address="192.0.2.1", port=1)
    assert staged_files.relocated(probe, "/f", given) == probe


@pytest.mark.parametrize("changes", [{"samples_file": "/elsewhere/x"}, {"keylog_file": "/run/keys"}])
def test_a_file_that_was_not_put_there_is_a_fault(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="was not put"):
        staged_files.relocated(load(**changes), "/f", {Path("/run/pki/ca.pem"): False, Path("/run/samples"): True})


def test_files_and_folders_go_there_and_come_back(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "samples"
    folder.mkdir(parents=True)
    (folder / "one").write_bytes(b"1" * 5000)
    (folder / "deep").mkdir()
    (folder / "deep" / "two").write_bytes(b"2")
    packed = staged_files.pack(folder)
    for path in (folder / "one", folder / "deep" / "two"):
        path.unlink()
    staged_files.unpack(packed, folder)
    assert (folder / "one").read_bytes() == b"1" * 5000
    assert (folder / "deep" / "two").read_bytes() == b"2"
    alone = staged_files.pack(folder / "one")
    (folder / "one").unlink()
    staged_files.unpack(alone, folder / "one")
    assert (folder / "one").read_bytes() == b"1" * 5000


def archive(name: str, kind: bytes = tarfile.REGTYPE, link: str = "") -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w") as tar:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, link
        tar.addfile(member, io.BytesIO(b""))
    return made.getvalue()


@pytest.mark.parametrize("name", ["../x", "./{root}/../../x", "/etc/passwd", "./elsewhere", "./{root}x"])
def test_an_archive_with_another_name_is_refused(tmp_path: Path, name: str) -> None:
    root = staged_files.below(tmp_path / "samples").removeprefix("./")
    with pytest.raises(ValueError, match="not what was asked for"):
        staged_files.unpack(archive(name.format(root=root)), tmp_path / "samples")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_an_archive_with_a_link_or_a_device_is_refused(tmp_path: Path, kind: bytes) -> None:
    packed = archive(staged_files.below(tmp_path / "samples"), kind, "/etc/passwd")
    with pytest.raises(ValueError, match="neither a file nor a folder"):
        staged_files.unpack(packed, tmp_path / "samples")
    assert list(tmp_path.iterdir()) == []


def test_a_service_finds_whom_it_trusts_at_the_other_end() -> None:
    relay = RelayConfig(service="B", routes={}, ca_file="/run/pki/ca.pem")
    own, key = "/run/pki/server.pem", "/run/pki/server.key"
    asked = OriginConfig(address="192.0.2.1", port=1, certificate_file=own, key_file=key, relay=relay)
    told = staged_files.relocated(asked, "/f", {Path("/run/pki"): False})
    assert told.relay is not None
    assert (told.relay.ca_file, told.relay.service) == ("/f/run/pki/ca.pem", "B")
    with pytest.raises(ValueError, match=r"ca\.pem was not put"):
        staged_files.relocated(asked, "/f", {Path(own): False, Path(key): False})
