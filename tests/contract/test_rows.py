"""The rows that are handed about are those of the files: columns, in order, and their types."""

from __future__ import annotations

from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest

from trifecta.contract import common, link, load, origin, probe, stored
from trifecta.contract.sample import SampleRow
from trifecta.contract.trial import TrialRow
from trifecta.design.tables import BOOL, DOUBLE, INTEGERS, TEXT, Schema
from trifecta.store import schema

KINDS = {TEXT: str, BOOL: bool, DOUBLE: float} | dict.fromkeys(INTEGERS, int)


@pytest.mark.parametrize(("row", "columns"), [(TrialRow, schema.TRIALS), (SampleRow, schema.SAMPLES)])
def test_a_row_is_that_of_its_file(row: Any, columns: Schema) -> None:
    typed = {
        name: next((part for part in get_args(hint) if part is not NoneType), hint)
        for name, hint in get_type_hints(row).items()
    }
    typed = {name: str if get_origin(kind) is Literal else kind for name, kind in typed.items()}
    assert list(typed.items()) == [(name, KINDS[kind]) for name, kind in columns.columns]


STORED = [
    (stored.Load, [load.LoadSummary]),
    (stored.Clients, [load.ClientsSummary]),
    (stored.Handshakes, [load.Handshakes]),
    (stored.SeenField, [load.SeenField]),
    (stored.Chain, [load.Chain]),
    (stored.Transport, [common.TcpSummary, common.QuicSummary]),
    (stored.Quantiles, [common.Quantiles]),
    (stored.OneLink, [link.LinkSummary]),
    (stored.Link, [link.LinkSummary, link.Links]),
    (stored.Direction, [link.DirectionSummary]),
    (stored.Tally, [link.ImpairmentSummary]),
    (stored.Capture, [link.CaptureFacts]),
    (stored.OneProbe, [probe.MeasureSummary]),
]


@pytest.mark.parametrize(("document", "lines"), STORED)
def test_a_document_of_a_trial_has_the_fields_of_its_line(document: Any, lines: list[Any]) -> None:
    assert set(get_type_hints(document)) == {field.name for line in lines for field in msgspec.structs.fields(line)}


def test_what_is_stored_of_a_service_is_part_of_what_its_origin_says() -> None:
    said = {field.name for field in msgspec.structs.fields(origin.OriginSummary)}
    assert set(get_type_hints(stored.ServiceSummary)) < said
