"""The configuration of a browser's driver: read and checked, every field by its name."""

from __future__ import annotations

import ipaddress
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec

from trifecta.contract.browser import VIEWPORT, BrowserConfig
from trifecta.contract.codec import convert
from trifecta.design.ip import IPV4, IPV6
from trifecta.design.model import PROTOCOLS
from trifecta.implementations.browser import Job, Watch

Problem = str | None
_MOST_VISITS = 10_000
_AGENT = re.compile(r"[!-~]( ?[!-~]){0,300}")


def _text(value: Any) -> Problem:
    return None if isinstance(value, str) and value else "is not text"


def _optional_text(value: Any) -> Problem:
    return None if value is None else _text(value)


def _flag(value: Any) -> Problem:
    return None if isinstance(value, bool) else "is neither true nor false"


def _one_of(*names: str) -> Callable[[Any], Problem]:
    def check(value: Any) -> Problem:
        return None if isinstance(value, str) and value in names else f"is none of {', '.join(names)}"

    return check


def _integer_check(low: int, high: int) -> Callable[[Any], Problem]:
    def check(value: Any) -> Problem:
        is_valid = isinstance(value, int) and not isinstance(value, bool) and low <= value <= high
        return None if is_valid else f"is not a whole number from {low} to {high}"

    return check


def _hosts(value: Any) -> Problem:
    good = isinstance(value, list) and value and all(isinstance(each, str) and _is_host(each) for each in value)
    return None if good else "is not a list of host names"


def _third_parties(value: Any) -> Problem:
    return None if value == [] else _hosts(value)


def _addresses(value: Any) -> Problem:
    good = isinstance(value, dict) and all(_is_host(host) and _is_address(value[host]) for host in value)
    return None if good else "is not an object of host names and their addresses"


def _version_of_ip(value: Any) -> Problem:
    return None if value is None else _one_of(IPV4, IPV6)(value)


def _is_address(value: Any) -> bool:
    try:
        return isinstance(value, str) and "%" not in value and bool(ipaddress.ip_address(value))
    except ValueError:
        return False


def _is_host(name: str) -> bool:
    """Host names go into flags and patterns of browsers: nothing but letters, digits, dots and hyphens."""
    return 0 < len(name) <= 253 and name.isascii() and all(each.isalnum() or each in ".-_" for each in name)


def _viewport(value: Any) -> Problem:
    good = (
        isinstance(value, list) and len(value) == 2 and all(_integer_check(100, 10_000)(each) is None for each in value)
    )
    return None if good else "is not a pair of width and height in CSS pixels"


def _url(value: Any) -> Problem:
    if not isinstance(value, str):
        return "is not text"
    try:
        parts = urlsplit(value)
        good = parts.scheme == "https" and bool(parts.hostname) and (parts.port is None or parts.port > 0)
    except ValueError:
        good = False
    return None if good else "is not an https URL"


def _player_url(value: Any) -> Problem:
    """As any, or of the host itself: from there a video is played without a network."""
    if isinstance(value, str) and re.match(r"http://127\.0\.0\.1:\d{1,5}/", value):
        return None
    return _url(value)


def _elsewhere(value: Any) -> Problem:
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) != {"least_gap_ns", "agent"}:
        return "needs least_gap_ns and agent, and nothing else"
    agent = value["agent"]
    if not isinstance(agent, str) or not _AGENT.fullmatch(agent):
        return "has an agent that is no line of letters"
    return _integer_check(0, _DAY_NS)(value["least_gap_ns"])


def _floor(value: Any) -> Problem:
    good = value is None or (isinstance(value, list) and all(_is_share(each) for each in value))
    return None if good else "has a floor that is not a list of shares from 0 to 1"


def _is_share(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1


def _watch(value: Any) -> Problem:
    if value is None:
        return None
    if not isinstance(value, dict) or set(value) - {"floor"} != {"player_url", "watch_ns", "live"}:
        return "needs player_url, watch_ns and live, and may have floor"
    problems = (
        _player_url(value["player_url"]),
        _integer_check(1, _DAY_NS)(value["watch_ns"]),
        _flag(value["live"]),
        _floor(value.get("floor")),
    )
    return next((problem for problem in problems if problem), None)


_DAY_NS = 86_400_000_000_000
_FIELDS: dict[str, Callable[[Any], Problem]] = {
    "trial": _text,
    "protocol": _one_of(*PROTOCOLS),
    "kind": _one_of("page", "video"),
    "url": _url,
    "hosts": _hosts,
    "third_parties": _third_parties,
    "addresses": _addresses,
    "ip": _version_of_ip,
    "port": _integer_check(1, 65_535),
    "ca_file": _optional_text,
    "discovery": _one_of("forced", "alt-svc"),
    "view": _one_of("cold", "warm", "repeat"),
    "visits": _integer_check(1, _MOST_VISITS),
    "warmup_visits": _integer_check(0, _MOST_VISITS),
    "seed": _integer_check(-(1 << 63), (1 << 63) - 1),
    "visit_timeout_ns": _integer_check(1, _DAY_NS),
    "total_timeout_ns": _integer_check(1, _DAY_NS),
    "settle_ns": _integer_check(0, _DAY_NS),
    "filmstrip": _flag,
    "viewport": _viewport,
    "video": _watch,
    "elsewhere": _elsewhere,
    "work_dir": _text,
    "keylog_file": _optional_text,
    "netlog_file": _optional_text,
    "samples_file": _text,
    "visits_file": _text,
    "fetches_file": _text,
    "playback_file": _optional_text,
    "frames_dir": _optional_text,
    "har_dir": _optional_text,
    "qlog_dir": _optional_text,
}
_DEFAULTS: Mapping[str, object] = {
    "addresses": {},
    "third_parties": [],
    "viewport": list(VIEWPORT),
} | {
    field.name: field.default
    for field in msgspec.structs.fields(BrowserConfig)
    if not field.required and field.name not in ("addresses", "third_parties", "viewport")
}


def read(line: bytes | str) -> BrowserConfig:
    """The configuration, whole; ValueError names the field that is missing, unknown or wrong."""
    try:
        document = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"configuration: is not JSON ({error})") from None
    if not isinstance(document, dict):
        raise ValueError("configuration: is not an object")
    for name in document:
        if name not in _FIELDS:
            raise ValueError(f"{name}: is not a field of a browser's driver; leave it out")
    config = {**_DEFAULTS, **document}
    for name, check in _FIELDS.items():
        if name not in config:
            raise ValueError(f"{name}: is missing")
        problem = check(config[name])
        if problem:
            raise ValueError(f"{name}: {config[name]!r:.100} {problem}")
    if (config["kind"] == "video") != (config["video"] is not None):
        raise ValueError("video: belongs to kind 'video', and to no other")
    if config["discovery"] == "alt-svc" and config["protocol"] != "h3":
        raise ValueError("discovery: 'alt-svc' finds HTTP/3; ask for protocol h3")
    others = set(config["hosts"]) - {urlsplit(config["url"]).hostname}
    if strange := sorted(set(config["third_parties"]) - others):
        raise ValueError(f"third_parties: {', '.join(strange)}: none of the hosts beside that of the url")
    if config["elsewhere"] is not None:
        _refuse_elsewhere(config)
    return convert(BrowserConfig, config)


def _refuse_elsewhere(config: Mapping[str, Any]) -> None:
    if config["kind"] != "page" or config["view"] != "cold":
        raise ValueError("elsewhere: belongs to cold visits of a page")
    if lacking := [host for host in config["hosts"] if host not in config["addresses"]]:
        raise ValueError(f"elsewhere: {', '.join(lacking)}: without an address, and nobody is asked for one")


def job_of(config: BrowserConfig) -> Job:
    """The job that a whole configuration asks for."""
    video = config.video

    def path(name: str | None) -> Path | None:
        return Path(name).absolute() if name else None

    same = (
        "trial", "protocol", "kind", "url", "port", "discovery", "view", "visits", "warmup_visits", "seed",
        "visit_timeout_ns", "total_timeout_ns", "settle_ns", "filmstrip",
    )  # fmt: skip
    return Job(
        **{name: getattr(config, name) for name in same},
        hosts=config.hosts,
        third_parties=config.third_parties,
        addresses=config.addresses,
        ip=config.ip,
        ca_file=path(config.ca_file),
        viewport=config.viewport,
        watch=Watch(video.player_url, video.watch_ns, video.live, video.floor) if video else None,
        state=Path(config.work_dir).absolute() / "browser",
        keylog_file=path(config.keylog_file),
        netlog_file=path(config.netlog_file),
        frames_dir=path(config.frames_dir),
        har_dir=path(config.har_dir),
        qlog_dir=path(config.qlog_dir),
        elsewhere=config.elsewhere,
    )
