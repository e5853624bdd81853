"""How Chromium is started: the protocol forced, nothing asked of anybody but the page's hosts, the lab's authority."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from trifecta.implementations.browser import BrowserFailed, Job
from trifecta.implementations.browsers import authorities
from trifecta.implementations.server import Unsupported

_FEATURES_OFF = (
    "AutofillServerCommunication", "CertificateTransparencyComponentUpdater", "DialMediaRouteProvider",
    "HttpsUpgrades", "InterestFeedContentSuggestions", "MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints",
    "SafeBrowsingHashPrefixRealTimeLookups", "Translate",
    # A frame of another site in a process of its own would load unseen: its requests are told to others.
    "IsolateOrigins", "site-per-process",
)  # fmt: skip
# Nothing of its own on the network, and nothing that depends on the day: field trials change how it loads pages.
_QUIET = (
    "--disable-field-trial-config", "--disable-background-networking", "--disable-breakpad",
    "--disable-client-side-phishing-detection", "--disable-component-extensions-with-background-pages",
    "--disable-component-update", "--disable-default-apps", "--disable-domain-reliability", "--disable-extensions",
    "--disable-sync", "--disable-search-engine-choice-screen", "--metrics-recording-only", "--no-default-browser-check",
    "--no-first-run", "--no-pings", "--no-service-autorun", "--password-store=basic", "--use-mock-keychain",
    "--disable-site-isolation-trials",
    "--disable-features=" + ",".join(_FEATURES_OFF),
)  # fmt: skip
# It is not seen by anybody: a window in the background must not be treated as one.
_HEADLESS = (
    "--headless=new", "--hide-scrollbars", "--mute-audio", "--disable-background-timer-throttling",
    "--disable-backgrounding-occluded-windows", "--disable-renderer-backgrounding", "--disable-hang-monitor",
    "--force-color-profile=srgb", "--force-device-scale-factor=1", "--autoplay-policy=no-user-gesture-required",
    "--enable-unsafe-swiftshader",
)  # fmt: skip
_UNUSED_PORT = 1  # a server's alternative service counts for an origin that is named for QUIC, on whatever port
_CERTUTIL_TIMEOUT_S = 30


def flags(job: Job, *, net_log: Path | None) -> list[str]:
    """All of Chromium's command line but the profile."""
    named = (f"MAP {host} {_literal(address)}" for host, address in job.addresses.items())
    unresolved = (f"EXCLUDE {host}" for host in job.hosts if host not in job.addresses)
    rules = ", ".join((*named, "MAP * ~NOTFOUND", *unresolved))
    chosen = [
        *_QUIET,
        *_HEADLESS,
        *protocol_flags(job),
        f"--host-resolver-rules={rules}",
        f"--window-size={job.viewport[0]},{job.viewport[1]}",
        "--remote-debugging-pipe",
    ]
    if os.geteuid() == 0:
        chosen.append("--no-sandbox")  # its sandbox does not work for root, which the lab is in its namespace
    if job.elsewhere is not None:
        chosen.append("--no-proxy-server")  # one of the user's would be another path, and another address
    if net_log is not None:
        chosen += [f"--log-net-log={net_log}", "--net-log-capture-mode=Default"]
    if job.keylog_file is not None:
        chosen.append(f"--ssl-key-log-file={job.keylog_file}")
    return chosen


def _literal(address: str) -> str:
    """An address where a port could follow it."""
    return f"[{address}]" if ":" in address else address


def protocol_flags(job: Job) -> list[str]:
    """What leaves the protocol asked for, from the first request, for every host of the page's own.

    With third parties HTTP/2 stays on: over HTTP/1.1 it is the page's server that does not offer it.
    A server without HTTP/3 fails a visit: an origin that is named for QUIC is not asked over TCP. For Alt-Svc the first
    connection is TCP; under a private authority Chromium follows it for hosts that are named for QUIC only.
    """
    if job.protocol == "h1":
        return [*([] if job.third_parties else ["--disable-http2"]), "--disable-quic"]
    if job.protocol == "h2":
        return ["--disable-quic"]
    port = job.port if job.discovery == "forced" else _UNUSED_PORT
    return ["--enable-quic", "--origin-to-force-quic-on=" + ",".join(f"{host}:{port}" for host in job.own_hosts)]


def net_log_file(job: Job) -> Path | None:
    """Where Chromium logs its network stack: only where it is asked for, or needed to see what was resumed."""
    if job.netlog_file is None and job.view == "repeat":
        return job.state / "netlog.json"
    return job.netlog_file


def home(job: Job) -> dict[str, str]:
    """The environment: a home with a certificate store of its own that trusts the lab's authority and nobody else.

    That the roots which Chromium brings are trusted as well does no harm: nobody here has their keys. Of a page of
    servers elsewhere they are what is trusted, and the authorities that were given besides.
    """
    folder = job.state / "home"
    store, temporary = folder / ".pki" / "nssdb", job.state / "tmp"
    store.mkdir(parents=True)
    temporary.mkdir()
    _certutil(["-d", f"sql:{store}", "-N", "--empty-password"])
    for name, file in authorities.files_of(job):
        _certutil(["-d", f"sql:{store}", "-A", "-n", name, "-t", "C,,", "-i", str(file)])
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("XDG_", "CHROM", "GOOGLE_"))}
    return inherited | {"HOME": str(folder), "TMPDIR": str(temporary), "LC_ALL": "C.UTF-8"}


def _certutil(arguments: Sequence[str]) -> None:
    try:
        done = subprocess.run(
            ["certutil", *arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=_CERTUTIL_TIMEOUT_S,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        raise Unsupported("certutil is not installed; run: sudo apt-get install -y libnss3-tools") from None
    except subprocess.TimeoutExpired:
        raise BrowserFailed("browser:hung", f"certutil did not end within {_CERTUTIL_TIMEOUT_S} s") from None
    if done.returncode != 0:
        words = " ".join(done.stderr.split())
        raise BrowserFailed("browser:crashed", f"certutil does not take the authority's certificate: {words}")
