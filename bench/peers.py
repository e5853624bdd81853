"""Where the peers of the benchmarks come from, and how they are run.

``python -m bench.peers`` (root, Debian) unpacks Debian sid into ``.cache/peers-root``, installs its nginx with HTTP/3
there, builds h2load with HTTP/3 from Debian's nghttp2 source package, and builds oha from crates.io. Programs of
that root run with its own dynamic loader, so nothing of it touches the system.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

CACHE = Path(__file__).resolve().parent.parent / ".cache"
ROOT = CACHE / "peers-root"
OHA = CACHE / "oha" / "bin" / "oha"

BUILD = r"""set -eu
export DEBIAN_FRONTEND=noninteractive
sed -n 's/^deb /deb-src /p' /etc/apt/sources.list > /etc/apt/sources.list.d/source.list
echo 'Acquire::Check-Valid-Until "false";' > /etc/apt/apt.conf.d/99valid
apt-get update -q
apt-get install -y -q --no-install-recommends nginx-light g++ make pkg-config autoconf automake libtool dpkg-dev \
  libev-dev libc-ares-dev zlib1g-dev libssl-dev libngtcp2-dev libnghttp3-dev libngtcp2-crypto-ossl-dev ca-certificates
cd /opt
apt-get source -q --download-only nghttp2 || true # the signature files are not always mirrored; the tarball decides
rm -rf src && mkdir src && tar xzf nghttp2_*.orig.tar.gz -C src --strip-components=1
cd src && { [ -x configure ] || autoreconf -i; }
./configure --enable-app --enable-http3 --disable-hpack-tools --disable-examples --disable-shared \
  --without-libxml2 --without-jansson --without-systemd --without-jemalloc CFLAGS=-O2 CXXFLAGS=-O2
make -j2 -C lib && make -j2 -C third-party && make -j2 -C src h2load && cp src/h2load /usr/local/bin/
"""


def in_root(program: str) -> list[str]:
    """Return the command that runs ``program`` (a path inside the root) with the root's own loader and libraries."""
    libraries = f"{ROOT}/usr/lib/x86_64-linux-gnu:{ROOT}/lib/x86_64-linux-gnu"
    return [str(ROOT / "lib64" / "ld-linux-x86-64.so.2"), "--library-path", libraries, str(ROOT / program)]


def h2load() -> list[str] | None:
    """Return the command of h2load with HTTP/3, or None when it was not built."""
    return in_root("usr/local/bin/h2load") if (ROOT / "usr/local/bin/h2load").exists() else None


def nginx() -> list[str] | None:
    """Return the command of an nginx with HTTP/3, or None."""
    return in_root("usr/sbin/nginx") if (ROOT / "usr/sbin/nginx").exists() else None


def oha() -> list[str] | None:
    """Return the command of oha, or None when it was not built."""
    return [str(OHA)] if OHA.exists() else None


def wrk() -> list[str] | None:
    """Return the command of wrk (Debian), or None."""
    found = shutil.which("wrk")
    return [found] if found else None


def versions() -> dict[str, str]:
    """Return name -> version line of every peer found."""
    probes = {
        "nginx": (nginx(), "-v"),
        "h2load": (h2load(), "--version"),
        "oha": (oha(), "--version"),
        "wrk": (wrk(), "-v"),
    }
    found = {}
    for name, (command, flag) in probes.items():
        if command:
            done = subprocess.run([*command, flag], capture_output=True, text=True, check=False)
            found[name] = (done.stdout + done.stderr).strip().splitlines()[0]
    return found


def _root_packages() -> None:
    wanted = [
        name
        for name, program in {"debootstrap": "debootstrap", "wrk": "wrk", "iperf3": "iperf3"}.items()
        if not shutil.which(program)
    ]
    if wanted:
        subprocess.run(["apt-get", "install", "-y", "-q", *wanted], check=True)


def main() -> int:
    """Install every peer; print what is there."""
    if os.geteuid() != 0:
        print("bench.peers: needs root (debootstrap, apt); run: sudo .venv/bin/python -m bench.peers")
        return 3
    _root_packages()
    if not (ROOT / "usr/local/bin/h2load").exists():
        CACHE.mkdir(exist_ok=True)
        if not (ROOT / "usr").exists():
            subprocess.run(["debootstrap", "--variant=minbase", "sid", str(ROOT)], check=True)
        (ROOT / "opt/build.sh").write_text(BUILD)
        shutil.copy("/etc/resolv.conf", ROOT / "etc/resolv.conf")
        subprocess.run(["unshare", "--mount", "--fork", "chroot", str(ROOT), "bash", "/opt/build.sh"], check=True)
    if not OHA.exists():
        subprocess.run(
            ["cargo", "install", "oha", "--locked", "--features", "http3", "--root", str(OHA.parent.parent)], check=True
        )
    for name, version in versions().items():
        print(f"{name}: {re.sub(r'^.*/(?=nginx)', '', version)}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
