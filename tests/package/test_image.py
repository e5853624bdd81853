"""The OCI image, made without a registry of images: its base out of Debian's packages, and a race in it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import uuid

import pytest

import trifecta
from tests.package.test_wheel import ROOT

PATH = f"{os.environ['PATH']}:/usr/sbin:/sbin"
MISSING = [name for name in ("dockerd", "docker", "debootstrap") if shutil.which(name, path=PATH) is None]
pytestmark = [
    pytest.mark.long,
    pytest.mark.lab,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(os.geteuid() != 0, reason="makes a base out of Debian's packages, as root"),
    pytest.mark.skipif(bool(MISSING), reason=f"{', '.join(MISSING)}: missing; run: scripts/setup.sh long"),
]


def test_it_is_built_from_scratch_and_tells_who_wins() -> None:
    name = f"trifecta-test-{uuid.uuid4().hex[:8]}"
    done = subprocess.run(
        ["scripts/image.sh", name],
        cwd=ROOT, capture_output=True, text=True, check=False, env={**os.environ, "PATH": PATH, "BASE": "scratch"},
    )  # fmt: skip
    # What somebody's own Docker Engine was given; one that was started for this is gone with its images.
    subprocess.run(["docker", "image", "rm", "--force", name], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^image: [0-9]{8,10} octets$", done.stderr, re.MULTILINE)
    assert f"\ntrifecta, version {trifecta.__version__}\n" in done.stdout
    (work,) = re.findall(r"^WORKDIR (/\S+)$", (ROOT / "Containerfile").read_text(), re.MULTILINE)
    assert done.stdout.endswith(f"Report: {work}/run/report.html\n")
    assert "HTTP/3" in done.stdout
