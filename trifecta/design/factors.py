"""The factors of a study: which there are, and how their levels are read.

A field of the workload that can be a factor has its levels listed under ``factors``; each gives cells of its own.
"""

from __future__ import annotations

from typing import Any

from trifecta.design.document import one_of, parse_text
from trifecta.design.far import FAR_FIELDS, FAR_PAGE_FIELDS, FAR_VANTAGE_FIELDS
from trifecta.design.fields import (
    BROWSER_FIELDS,
    PAGE_FIELDS,
    REQUESTS_FIELDS,
    SERVICES_FIELDS,
    VIDEO_FIELDS,
    Field,
    parse_protocol,
)
from trifecta.design.model import CLIENT_FACTOR, DEFAULT_CLIENT

__all__ = ["CLIENT_FACTOR", "DEFAULT_CLIENT", "Field", "parse_protocol"]

_FIELDS = (
    *REQUESTS_FIELDS,
    *SERVICES_FIELDS,
    *BROWSER_FIELDS,
    *PAGE_FIELDS,
    *VIDEO_FIELDS,
    *FAR_FIELDS,
    *FAR_VANTAGE_FIELDS,
    *FAR_PAGE_FIELDS,
)
WORKLOAD_FIELDS: dict[str, Field] = {field.name: field for field in _FIELDS}
LENGTH_FIELDS = ("requests", "duration", "warmup")  # how long a trial is; a path can have its own

CORE_FACTORS = ("protocol", "path", "connection", "server")  # every study has these
CONNECTION_LEVELS = ("new", "reused")
WORKLOAD_FACTORS = tuple(field.name for field in _FIELDS if field.factor)
KNOWN_FACTORS = (*CORE_FACTORS, CLIENT_FACTOR, *WORKLOAD_FACTORS)


def parse_level(factor: str, value: Any) -> Any:
    """A level of a factor in its canonical form, which is also how it is shown and stored."""
    if factor == "protocol":
        return parse_protocol(value)
    if factor == "connection":
        return one_of("a connection mode", *CONNECTION_LEVELS)(value)
    if factor in (*CORE_FACTORS, CLIENT_FACTOR):
        return parse_text(value)
    field = WORKLOAD_FIELDS[factor]
    return field.format(field.parse(value))
