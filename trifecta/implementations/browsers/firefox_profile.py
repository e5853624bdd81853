"""A new profile for Firefox: preferences, the lab's authority in its certificate store, and an environment."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from trifecta.design.ip import IPV6
from trifecta.implementations.browsers import authorities
from trifecta.implementations.server import Unsupported

if TYPE_CHECKING:
    from trifecta.implementations.browser import Job

Value = bool | int | str

QUIET: dict[str, Value] = {
    # BiDi's own set for automation: no updates, telemetry, captive portal... (RecommendedPreferences.sys.mjs)
    "remote.prefs.recommended": True,
    "app.normandy.enabled": False,
    "app.update.auto": False,
    "browser.aboutwelcome.enabled": False,
    "browser.chrome.site_icons": False,  # an icon comes late, or not
    "browser.newtabpage.enabled": False,
    "browser.newtab.preload": False,
    "browser.safebrowsing.provider.mozilla.updateURL": "",
    "browser.search.serpEventTelemetryCategorization.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "browser.startup.page": 0,
    "browser.topsites.contile.enabled": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "extensions.systemAddon.update.enabled": False,
    "media.gmp-manager.updateEnabled": False,
    "media.gmp-provider.enabled": False,  # downloads OpenH264
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "security.OCSP.enabled": 0,
    "security.remote_settings.crlite_filters.enabled": False,
    "services.settings.server": "data:,#remote-settings-dummy/v1",
    "toolkit.telemetry.enabled": False,
    # Nothing is guessed ahead: each connection and look-up belongs to a request.
    "network.dns.disablePrefetch": True,
    "network.dns.disablePrefetchFromHTTPS": True,
    "network.http.speculative-parallel-limit": 0,
    "network.predictor.enabled": False,
    "network.prefetch-next": False,
    # Names come from the lab alone: no DNS over HTTPS, and no HTTPS records, which would bring another protocol.
    "network.trr.mode": 5,
    "network.dns.native_https_query": False,
    "network.dns.upgrade_with_https_rr": False,
    "network.dns.use_https_rr_as_altsvc": False,
    "network.proxy.type": 0,
    "dom.security.https_first": False,
    # A player may play, and a page tells its times as exactly as it knows them.
    "media.autoplay.default": 0,
    "media.autoplay.blocking_policy": 0,
    "privacy.reduceTimerPrecision": False,
}

FORCED: dict[str, Value] = {
    # HTTP/3 from the first request: with the mapping forced no TCP connection is raced. A QUIC handshake that nobody
    # answers still ends in one over TCP, half a minute later: ``firefox_scripts.WATCH`` refuses what comes of that.
    "network.http.http3.force-use-alt-svc-mapping-for-testing": True,
    "network.http.http3.fallback_to_h2_on_error": False,
    "network.http.http3.parallel_fallback_conn_limit": 0,
    "network.http.http3.backup_timer_delay": 0,
    "network.dns.httpssvc.http3_fast_fallback_timeout": 0,
}


def preferences(job: Job) -> dict[str, Value]:
    """What stands in user.js."""
    prefs: dict[str, Value] = {
        **QUIET,
        "network.dns.disableIPv6": job.ip != IPV6,
        "network.http.http2.enabled": job.protocol != "h1" or bool(job.third_parties),
        "network.http.http3.enable": job.protocol == "h3",
        # A private authority counts as a third party's root, and would switch HTTP/3 off.
        "network.http.http3.disable_when_third_party_roots_found": False,
        # Connections of several protocols or addresses are not raced: which of them won would be a matter of luck.
        "network.http.happy_eyeballs_enabled": False,
    }
    if any(":" in address for address in job.addresses.values()):
        prefs["network.dns.disableIPv6"] = False
    if job.elsewhere is not None:
        prefs["dom.serviceWorkers.enabled"] = False  # what they ask for is not seen, and would not be counted
    if job.protocol == "h3" and job.discovery == "forced":
        prefs |= FORCED
        prefs["network.http.http3.alt-svc-mapping-for-testing"] = ",".join(
            f"{host};h3=:{job.port}" for host in job.own_hosts
        )
    if job.protocol == "h3" and job.qlog_dir is not None:
        prefs["network.http.http3.enable_qlog"] = True
    return prefs


def keep_qlogs(job: Job) -> None:
    """Move what neqo has written, ``TMPDIR/qlog_PID/ORIGIN_ID.sqlog``, out of the folder that goes with the job."""
    if job.qlog_dir is not None:
        for file in sorted((job.state / "home").glob("qlog_*/*.sqlog")):
            shutil.move(file, job.qlog_dir / file.name)


def make_profile(job: Job) -> Path:
    """Make the profile in ``job.state``; Unsupported when certutil is missing."""
    profile = job.state / "profile"
    profile.mkdir(mode=0o700, parents=True)
    lines = [f"user_pref({json.dumps(name)}, {json.dumps(value)});\n" for name, value in preferences(job).items()]
    (profile / "user.js").write_text("".join(lines), encoding="utf-8")
    store = ["-d", f"sql:{profile}"]
    _certutil("-N", *store, "--empty-password")
    for name, file in authorities.files_of(job):
        _certutil("-A", *store, "-n", name, "-t", "C,,", "-i", str(file))
    return profile


def environment(job: Job) -> dict[str, str]:
    """The browser's environment: nothing of the user's desktop, and folders that go with the job."""
    inherited = {
        name: value for name, value in os.environ.items() if name in {"PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH"}
    }
    home = job.state / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    width, height = job.viewport
    variables = {
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_RUNTIME_DIR": str(home),
        "MOZ_HEADLESS": "1",
        "MOZ_HEADLESS_WIDTH": str(width),
        "MOZ_HEADLESS_HEIGHT": str(height + 100),  # with the window's own bars
        "MOZ_CRASHREPORTER_DISABLE": "1",
        "MOZ_DISABLE_AUTO_SAFE_MODE": "1",
        "MOZ_REMOTE_SETTINGS_DEVTOOLS": "1",  # otherwise services.settings.server is not followed
        "NO_AT_BRIDGE": "1",
    }
    if job.keylog_file is not None:
        variables["SSLKEYLOGFILE"] = str(job.keylog_file)
    return inherited | variables


def _certutil(*arguments: str) -> None:
    try:
        done = subprocess.run(["certutil", *arguments], capture_output=True, text=True, timeout=30, check=False)
    except FileNotFoundError:
        raise Unsupported(
            "certutil is missing, which gives Firefox the lab's authority: apt install libnss3-tools"
        ) from None
    if done.returncode != 0:
        raise Unsupported(f"certutil {arguments[0]}: {done.stderr.strip() or done.returncode}")
