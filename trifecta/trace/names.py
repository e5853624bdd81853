"""Names of captures that say how they were made: those of the study ding2022, `small-closed-http2`."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = re.compile(r"(?P<endpoint>hello|small|large)-(?P<connection>closed|sim)-http(?P<http>1(?:\.1)?|2|3)")
_CONNECTION = {"closed": "a new connection for every request", "sim": "one connection kept open and reused"}
_ENDPOINT = {"hello": "a short string", "small": "1 MB", "large": "10 MB"}


@dataclass(frozen=True, slots=True)
class StudyName:
    """What the name of a capture of the study says. It is a claim: the packets may say otherwise."""

    endpoint: str
    connection: str
    protocol: str  # h1, h2, h3

    @property
    def words(self) -> str:
        """In words."""
        return f"{_ENDPOINT[self.endpoint]}, {_CONNECTION[self.connection]}, HTTP/{self.protocol[1]}"


def study_name(capture: str) -> StudyName | None:
    """What the name says; None where it is none of the study."""
    match = _NAME.fullmatch(capture)
    if match is None:
        return None
    return StudyName(match["endpoint"], match["connection"], f"h{match['http'][0]}")
