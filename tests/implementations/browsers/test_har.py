"""The archive of a visit against the published schema of HAR 1.2, and its times against the visit's."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import referencing
from hypothesis import given
from hypothesis import strategies as st

from trifecta.implementations.browsers import har
from trifecta.implementations.browsers.records import VisitRecord
from trifecta.implementations.visit import Fetch, Visit

PUBLISHED = json.loads(Path(__file__).with_name("har-schema-2.0.0.json").read_text(encoding="utf-8"))["schemas"]


def validator() -> jsonschema.protocols.Validator:
    """``$ref`` names a file of the schema."""
    made = referencing.jsonschema.DRAFT6.create_resource
    registry = referencing.Registry().with_resources((name, made(said)) for name, said in PUBLISHED.items())
    checked = jsonschema.Draft6Validator
    return checked(PUBLISHED["har.json"], registry=registry, format_checker=checked.FORMAT_CHECKER)


def archive(*fetches: Fetch, **visit) -> dict:
    record = VisitRecord(0, False, Visit(1_000_000, "https://www.a.lab/", **visit), list(fetches))
    return har.document(record, browser="Chromium", version="156", title="a", wall_offset_ns=1_700_000_000_000_000_000)


WHOLE = Fetch(
    "https://www.a.lab/?q=1&r=%20", 2_000_000, kind="document", protocol="h2", status=200, status_text="OK",
    dns_start_ns=2_100_000, dns_end_ns=2_300_000, connect_start_ns=2_300_000, tcp_connected_ns=2_500_000,
    connect_end_ns=2_900_000, secured_ns=2_900_000, send_start_ns=3_000_000, request_sent_ns=3_100_000,
    first_byte_ns=4_100_000, done_ns=6_100_000, wire_bytes=1100, header_bytes=100, body_bytes=1000, decoded_bytes=3000,
    mime="text/html", response_headers=[("content-type", "text/html")], remote_address="[fd77::2]", connection=0,
)  # fmt: skip


def test_an_entry_says_what_was_measured():
    said = archive(WHOLE, load_ns=7_000_000)
    validator().validate(said)
    entry = said["log"]["entries"][0]
    assert entry["time"] == pytest.approx(4.1)
    assert entry["timings"] == pytest.approx(
        {"blocked": 0.2, "dns": 0.2, "connect": 0.6, "ssl": 0.4, "send": 0.1, "wait": 1.0, "receive": 2.0}
    )
    assert (entry["response"]["bodySize"], entry["response"]["content"]["compression"]) == (1000, 2000)
    assert entry["request"]["queryString"] == [{"name": "q", "value": "1"}, {"name": "r", "value": " "}]
    assert (entry["connection"], entry["serverIPAddress"], entry["_protocol"]) == ("0", "fd77::2", "h2")
    assert entry["startedDateTime"] == "2023-11-14T22:13:20.002000Z"
    assert said["log"]["pages"][0]["pageTimings"]["onLoad"] == 7


def test_one_that_failed_and_one_of_the_cache():
    failed = Fetch("https://www.a.lab/x", 3, error="reset")
    cached = Fetch("https://www.a.lab/y", 4, from_cache=True, status=200, done_ns=9, decoded_bytes=5)
    said = archive(failed, cached)
    validator().validate(said)
    assert said["log"]["entries"][0]["response"]["_error"] == "reset"
    assert said["log"]["entries"][1]["_fromCache"]


def test_the_schema_would_refuse():
    said = archive(WHOLE)
    del said["log"]["entries"][0]["response"]["content"]
    with pytest.raises(jsonschema.ValidationError):
        validator().validate(said)


TIMES = st.none() | st.integers(0, 10**12)


@given(
    st.builds(
        Fetch, url=st.text(), started_ns=st.integers(0, 10**12), dns_start_ns=TIMES, dns_end_ns=TIMES,
        connect_start_ns=TIMES, tcp_connected_ns=TIMES, connect_end_ns=TIMES, secured_ns=TIMES, send_start_ns=TIMES,
        request_sent_ns=TIMES, first_byte_ns=TIMES, done_ns=TIMES, status=st.none() | st.integers(0, 999),
        protocol=st.sampled_from([None, "h1", "h2", "h3"]), mime=st.none() | st.text(),
    )
)  # fmt: skip
def test_whatever_is_known_it_is_valid(fetch):
    validator().validate(archive(fetch))
