"""The connections of a capture that run over TCP: TLS records, HTTP/2 frames, HTTP/1.1 messages."""

from __future__ import annotations

import numpy as np

from trifecta.trace import cleartext, http1, http2, tls, tshark, values
from trifecta.trace.headers import FIN, RST, SYN
from trifecta.trace.missing_packets import UNKNOWN, tcp_octets
from trifecta.trace.rows import Facts, Part, Trace
from trifecta.trace.segments import Stream, assemble
from trifecta.trace.tshark_input import TcpFeed

_FIELDS = ("frame.number", *tls.FIELDS, *http2.FIELDS, *http1.FIELDS, tshark.INFO)
# What is fed has neither holes nor octets twice, so that there is nothing to analyse.
_OPTIONS = ("-o", "tcp.analyze_sequence_numbers:FALSE")


class _Connection:
    def __init__(self) -> None:
        self.session = tls.Session()
        self.http2 = (http2.Direction(), http2.Direction())
        self.http1 = (http1.Direction(), http1.Direction())
        self.content: tuple[list[int], list[int]] = ([], [])
        self.lengths: tuple[list[int], list[int]] = ([], [])
        self.padding: tuple[list[int], list[int]] = ([], [])

    def learn(self, direction: int, row: dict[str, str], packet: int, packet_end: int) -> None:
        """Take what tshark says of one packet."""
        self.session.learn(direction, row)
        self.content[direction].extend(values.numbers(row["tls.record.content_type"]))
        self.lengths[direction].extend(values.numbers(row["tls.record.length"]))
        self.padding[direction].extend(values.numbers(row["tls.record.padding_length"]))
        self.http2[direction].learn(row, packet_end)
        self.http1[direction].learn(direction, row, packet, packet_end)


def dissect_tcp(trace: Trace, connections: list[int], keys: bytes) -> Part:
    """Frames, messages and facts of these connections."""
    headers, flows = trace.headers, trace.flows
    part = Part()
    streams: dict[tuple[int, int], Stream] = {}
    lacks: dict[int, list[tuple[int, bool]]] = {}
    finished: set[tuple[int, int]] = set()
    rows = np.flatnonzero(np.isin(flows.connection, connections) & flows.view)
    key = flows.connection[rows] * 2 + flows.direction[rows]
    order = rows[np.argsort(key, kind="stable")]
    bounds = np.searchsorted(
        np.sort(key), np.asarray([2 * one + direction for one in connections for direction in (0, 1, 2)])
    )
    for place, connection in enumerate(connections):
        from_start = bool(flows.begins[connection])
        both = [order[bounds[3 * place + direction] : bounds[3 * place + direction + 1]] for direction in (0, 1)]
        lacks[connection] = [
            tcp_octets(headers, trace.numbers, both[direction], both[1 - direction], begins=from_start)
            for direction in (0, 1)
        ]
        for direction, mine in enumerate(both):
            stream = streams[connection, direction] = assemble(headers, trace.numbers, mine, from_start=from_start)
            if stream.hole is None and (len(stream.end) or from_start):
                # A packet without octets tells how far its sender had come (RFC 9293, 3.4), a reset does not.
                data_rows = mine[headers.flags[mine] & (SYN | RST) == 0]
                reached = int(stream.end[-1]) if len(stream.end) else 1
                # Behind a FIN it is one more.
                come = trace.numbers.sequence[data_rows] - (headers.flags[data_rows] & FIN == 0)
                stream.hole = reached if bool((come > reached).any()) else None
            ends = mine[headers.flags[mine] & FIN > 0]
            last = trace.numbers.sequence[ends] + headers.payload[ends]
            if len(stream.end) and stream.hole is None and bool((last == stream.end[-1]).any()):
                finished.add((connection, direction))
    records = {key: tls.walk_records(trace.capture.data, stream) for key, stream in streams.items()}
    feed = TcpFeed(trace.capture, streams, {key: one.end for key, one in records.items()}, finished)
    state_by_number = {connection: _Connection() for connection in connections}
    if len(feed.key):
        for line in tshark.dissect(feed.packets(), _FIELDS, keys, _OPTIONS, empty=False):
            row = dict(zip(_FIELDS, line, strict=True))
            number = values.numbers(row["frame.number"])
            if not number or number[0] > len(feed.key):
                continue
            connection, direction = divmod(int(feed.key[number[0] - 1]), 2)
            place = int(feed.place[number[0] - 1])
            stream = streams[connection, direction]
            state_by_number[connection].learn(direction, row, number[0], int(stream.end[place]))
            if row["tls.record.length"] or row["http2.type"] or row["http.request.method"]:
                part.info[int(stream.row[place])] = row[tshark.INFO]
    for connection in connections:
        directions = (streams[connection, 0], streams[connection, 1])
        complete = (records[connection, 0], records[connection, 1])
        _finish(trace, connection, state_by_number[connection], both=directions, records=complete, part=part)
        _missing(connection, lacks[connection], part)
    return part


def _missing(connection: int, lacks: list[tuple[int, bool]], part: Part) -> None:
    """Say what the other end acknowledged and nobody captured."""
    facts = part.facts[connection]
    (up, up_lacks), (down, down_lacks) = lacks
    if up or down:
        facts.missing |= {"packets", "octets"}
        which = f"{up + down} octets that were acknowledged are not in the capture ({up} up, {down} down)"
        part.connection_notes.append((connection, f"{which}: {UNKNOWN}"))
    elif up_lacks or down_lacks:
        facts.missing.add("packets")
        direction = "both ways" if up_lacks and down_lacks else "up" if up_lacks else "down"
        part.connection_notes.append(
            (connection, f"a SYN or FIN that was acknowledged ({direction}) is not in the capture: {UNKNOWN}")
        )


def _finish(
    trace: Trace,
    connection: int,
    state: _Connection,
    *,
    both: tuple[Stream, Stream],
    records: tuple[tls.Records, tls.Records],
    part: Part,
) -> None:
    session, notes = state.session, []
    facts = part.facts[connection] = Facts(
        None,
        session.version,
        session.cipher_text,
        session.alpn,
        session.resumed,
        session.zero_rtt,
        session.key_exchange,
        server_name=session.server_name,
        alpn_offered=session.offers,
    )
    if not trace.flows.syn_seen[connection]:
        facts.missing.add("start")
    for direction, stream in enumerate(both):
        if stream.hole is not None:
            facts.missing.add("octets")
            notes.append(
                f"octets from {stream.hole} on are missing {('up', 'down')[direction]}: what follows is not known"
            )
    plains = []
    for direction, stream in enumerate(both):
        plains.append(_records(trace, records[direction], connection, direction, state, stream=stream, part=part))
    if facts.secured:
        facts.decrypted = bool(state.http2[0].frames or state.http2[1].frames or state.http1[0].messages)
        inner = [one for direction in (0, 1) for one in state.content[direction]]
        if not facts.decrypted and not (session.version == "1.3" and 23 in inner):
            facts.missing.add("keys")
    if state.http2[0].frames or state.http2[1].frames:
        facts.protocol = "h2"
        notes += _http2(trace, connection, state, plains, both=both, part=part)
    elif state.http1[0].messages or state.http1[1].messages:
        facts.protocol = "h1"
        messages, problem = http1.place_messages(
            connection,
            state.http1,
            tuple(plains),
            both,
            part.frames,
            from_start=bool(trace.flows.begins[connection]),
        )
        part.messages += messages
        notes += problem
    elif session.alpn in ("h2", "http/1.1"):
        facts.protocol = {"h2": "h2", "http/1.1": "h1"}[session.alpn]
    part.connection_notes += [(connection, note) for note in notes]


def _http2(
    trace: Trace,
    connection: int,
    state: _Connection,
    plains: list[tls.Plaintext | None],
    *,
    both: tuple[Stream, Stream],
    part: Part,
) -> list[str]:
    """The frames and requests of HTTP/2; what is to be said of them."""
    notes = []
    for direction, stream in enumerate(both):
        wrong = http2.place_frames(
            connection, direction, state.http2[direction], plain=plains[direction], stream=stream, frames=part.frames
        )
        if wrong and state.http2[direction].frames:
            plains[direction] = None
            notes.append(f"{wrong} ({('up', 'down')[direction]}): times and TCP ranges of its frames are not known")
    messages = http2.gather(connection, state.http2, tuple(plains))
    if any(one.status == 101 for one in state.http1[1].messages) and len(both[0].start):
        until = cleartext.begins(trace.capture.data, both[0], 0)
        notes += cleartext.name_upgraded(messages, state.http1[0].messages, both[0], until)
    part.messages += messages
    if count := http2.pushed(state.http2):
        notes.append(f"{count} responses were pushed: their requests were promised, not sent")
    return notes


def _records(
    trace: Trace,
    records: tls.Records,
    connection: int,
    direction: int,
    state: _Connection,
    *,
    stream: Stream,
    part: Part,
) -> tls.Plaintext | None:
    """The rows of the TLS records of a direction, and where its plaintext is."""
    if not len(stream.start):
        return None
    if not len(records.start):
        is_http2 = bool(state.http2[direction].frames)
        base = cleartext.begins(trace.capture.data, stream, direction) if is_http2 else int(stream.start[0])
        if is_http2 or state.http1[direction].messages:
            return tls.Plaintext(stream.start, stream.end, stream.end - base, base)
        return None
    part.facts[connection].secured = True
    tls.see_inside(records, state.content[direction], state.lengths[direction], state.padding[direction])
    rows = stream.row[np.searchsorted(stream.end, records.end - 1, side="right")]
    columns = (rows, records.start, records.end, records.inner)
    for row, start, end, inner in zip(*(one.tolist() for one in columns), strict=True):
        part.frames.add(
            row,
            direction,
            connection=connection,
            layer="tls",
            type=tls.NAMES.get(inner, "encrypted"),
            offset=start - int(stream.start[0]),
            length=end - start - 5,
            wire_length=end - start,
            tcp_start=start,
            tcp_end=end,
        )
    return tls.plaintext(records, state.session)
