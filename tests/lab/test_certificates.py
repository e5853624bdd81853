"""The run's own authority: strict verifiers accept it, its key is nowhere, the server's key is private."""

from __future__ import annotations

import shutil
import ssl
import subprocess
from pathlib import Path

import pytest

from trifecta.lab.certificates import make_certificates


def test_keys_are_private_and_the_authority_key_is_not_kept(tmp_path: Path) -> None:
    made = make_certificates(tmp_path / "pki", ["origin.lab"], ["10.77.0.2"])
    assert made.key.stat().st_mode & 0o777 == 0o600
    assert sorted(path.name for path in (tmp_path / "pki").iterdir()) == ["ca.pem", "server.key", "server.pem"]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(made.chain, made.key)


@pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl")
@pytest.mark.parametrize(("name", "good"), [("origin.lab", True), ("caddy.lab", True), ("other.lab", False)])
def test_a_strict_verifier_agrees(tmp_path: Path, name: str, good: bool) -> None:
    made = make_certificates(tmp_path, ["origin.lab", "caddy.lab"], ["10.77.0.2", "fd77::2"])
    done = subprocess.run(
        ["openssl", "verify", "-CAfile", made.authority, "-x509_strict", "-purpose", "sslserver",
         "-verify_hostname", name, made.chain],
        capture_output=True, check=False,
    )  # fmt: skip
    assert (done.returncode == 0) is good


def test_making_them_again_replaces_them(tmp_path: Path) -> None:
    first = make_certificates(tmp_path, ["a.lab"], []).chain.read_bytes()
    assert make_certificates(tmp_path, ["a.lab"], []).chain.read_bytes() != first
