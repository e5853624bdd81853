"""A page archive of a folder, a HAR file or a URL: which of them, and what is to be said of what came out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from trifecta.design.errors import UserError
from trifecta.pages import rules
from trifecta.pages.archive import Scalar
from trifecta.pages.folder import name_from, read_folder
from trifecta.pages.har import read_har
from trifecta.pages.har_file import stem
from trifecta.recording.job import Recorded, RecordingJob, cookie_notes, renames, today
from trifecta.recording.live import record_url


def record_page(wanted: RecordingJob, say: Callable[[str], None]) -> Recorded:
    """Record, write and summarise; UserError for bad input, CannotError when this machine cannot."""
    is_url = wanted.source.lower().startswith(("http://", "https://"))
    _check_options(wanted, is_url)
    if wanted.out.exists() and (not wanted.out.is_dir() or any(wanted.out.iterdir())):
        raise UserError(f"{wanted.out} already exists; choose another folder with --out")
    if is_url:
        return record_url(wanted, say)
    path = Path(wanted.source).expanduser()
    if path.is_dir():
        name = wanted.name or name_from(path.resolve().name)
        page, start, title = read_folder(path, name, wanted.origin)
        return Recorded(page.write(wanted.out, start, title, {"kind": "folder", "when": today()}))
    if not path.is_file():
        raise UserError(f"{wanted.source}: no such file or folder; give a URL (https://...), a HAR file or a folder")
    har = read_har(
        path,
        wanted.name or name_from(stem(path)),
        start=wanted.start,
        keep_cookies=wanted.keep_cookies,
        origins=renames(wanted),
    )
    facts: dict[str, Scalar | list[str]] = {**har.facts, "when": today()}
    notes = cookie_notes(har.cookies, wanted.keep_cookies)
    if har.facts["coded_again"]:
        notes.append(f"a HAR holds content decoded: {har.facts['coded_again']} responses were coded again (gzip, br)")
    if har.fields_dropped:
        notes.append(f"{har.fields_dropped} fields have no name that can be (RFC 9110, 5.1): they were left out")
    if har.facts["coding_dropped"]:
        notes.append(f"{har.facts['coding_dropped']} responses are replayed without their content coding (as zstd)")
    return Recorded(har.page.write(wanted.out, har.start, har.title, facts), notes)


def _check_options(wanted: RecordingJob, is_url: bool) -> None:
    """Options that would mean nothing are refused, not passed over."""
    if wanted.name is not None and not rules.NAME.fullmatch(wanted.name):
        raise UserError(f"option --name: {wanted.name!r} must be of lower case letters, digits and . _ -, at most 64")
    is_folder = not is_url and Path(wanted.source).expanduser().is_dir()
    belongs = {
        "start": (wanted.start, not is_url and not is_folder, "a HAR file"),
        "origin": (wanted.origin, is_folder, "a folder"),
        "rename": (wanted.rename, not is_folder, "a URL or a HAR file"), "resolve": (wanted.resolve, is_url, "a URL"),
        "ca": (wanted.ca, is_url, "a URL"), "once": (wanted.once, is_url, "a URL"),
        "keep-cookies": (wanted.keep_cookies, not is_folder, "a URL or a HAR file"),
    }  # fmt: skip
    for option, (value, fits, what) in belongs.items():
        if value and not fits:
            raise UserError(f"option --{option}: is for {what}; leave it out")
