"""Pictures of wholes and their parts: a request's time, octets on the wire, what senders and octets waited for."""

from __future__ import annotations

from collections.abc import Sequence

from trifecta.conclude.packets.captured import Captured
from trifecta.conclude.packets.times import Times
from trifecta.design import numbers
from trifecta.report.figures import style
from trifecta.report.figures.blocking import BlockedRequest, blocking
from trifecta.report.figures.part_bars import HELD, OCTETS, TIME, Bar, legend, part_bars
from trifecta.report.figures.part_differences import part_differences
from trifecta.report.packets.differences import sentence
from trifecta.report.packets.picture import Picture

_PATH = (
    "A request's critical path, walked back from its last octet. propagation: the path's minimum delay, once each "
    "way. transmission: the link sent packets of the connection at its rate. congestion window: the sender "
    "had more to send and waited for acknowledgements, in slow start, congestion avoidance or with the smaller window "
    "after a loss; a send buffer that is smaller than the window looks the same. rest: sending one packet after "
    "another. Concurrent requests count in full, each: the mean of a page's requests is not its load time."
)


def where_time_went(shown: Sequence[Captured], times: Times | None) -> list[Picture]:
    """A bar a protocol with the parts of a request's time, over all blocks; of captures without a run, a bar each."""
    if times is None:
        bars = [Bar(one.label, one.summary.parts) for one in shown if one.summary.parts]
        return [_bars(bars, f"{_PATH} The mean over the requests of each capture.")] if bars else []
    bars = [Bar(style.name(arm), parts) for arm, parts in times.parts.items()]
    base = style.name(times.baseline)
    sentences = [sentence(one, style.name(arm), base) for arm, one in times.differences.items()]
    over = f"The mean over requests and over {times.blocks} captured blocks."
    if times.blocks < 2:
        over = "The mean over the requests of one captured block, which has no interval."
    pictures = [_bars(bars, " ".join([*sentences, _PATH, over]))]
    if times.differences and times.blocks > 1:
        caption = (
            f"How much longer a request took than over {base}, part by part; left of zero: less. Bars are intervals "
            "over blocks, each for its part alone; a filled mark: zero is outside. The marks of a protocol add up to "
            "that of all."
        )
        arms = [(style.name(arm), style.CSS_VARIABLES[style.arm_style(arm).colour], "") for arm in times.differences]
        pictures.append(
            Picture(
                "time-differences", f"The difference to {base}, part by part", caption,
                lambda: part_differences(times.differences, TIME, base),
                legend=arms,
            )
        )  # fmt: skip
    return pictures


def _bars(bars: Sequence[Bar], caption: str) -> Picture:
    return Picture(
        "attribution", "Where the time of a request went", caption,
        lambda: part_bars(bars, TIME, "time of a request", numbers.duration), legend=legend(bars, TIME),
    )  # fmt: skip


def octets_and_sender_waits(shown: Sequence[Captured]) -> list[Picture]:
    """Octets on the wire, and what responses waited for at their sender."""
    pictures = []
    octets = [Bar(one.label, one.octets) for one in shown]
    if any(bar.total for bar in octets):
        caption = "Every octet of both directions, where it was sent, in one part; the parts add up to the whole."
        pictures.append(
            Picture(
                "overhead", "What the wire carried", caption,
                lambda: part_bars(octets, OCTETS, "octets on the wire", numbers.size), legend=legend(octets, OCTETS),
            )
        )  # fmt: skip
    held = [Bar(one.label, one.stalled_ns) for one in shown if one.stalled_ns]
    if held:
        caption = (
            "The time in which responses were being sent, connections one after the other, by what the sender waited "
            "for. The windows of stream, connection and TCP are the receiver's (flow control) and read exactly; the "
            "congestion window is in no packet and is inferred from sends that follow an acknowledgement at once."
        )
        pictures.append(
            Picture(
                "stalls", "What responses waited for at their sender", caption,
                lambda: part_bars(held, HELD, "time in which responses were sent", numbers.duration),
                legend=legend(held, HELD),
            )
        )  # fmt: skip
    return pictures


def blocked_octets(shown: Sequence[Captured]) -> list[Picture]:
    """How long octets lay received and undeliverable, by request."""
    blocked = [(one.label, one.arm, _waited(one)) for one in shown]
    if not any(requests for _, _, requests in blocked):
        return []
    caption = (
        "How long octets of a response had arrived at the client but could not be delivered: because octets of "
        "other streams were missing, or octets of its own, side by side (both can be at once). What waited only for "
        "the rest of a TLS record, as most of TCP's octets do, is in the table."
    )
    marks = [("for other streams", "--part-crossed", ""), ("for octets of its own", "--phase-late", "tcp")]
    return [Picture("blocking", "Head-of-line blocking, by request", caption, lambda: blocking(blocked), legend=marks)]


def _waited(captured: Captured) -> list[BlockedRequest]:
    blocked = captured.summary.blocking
    waits_by_request = sorted(
        blocked, key=lambda wait: (wait.connection, wait.request if wait.request is not None else 0)
    )
    return [BlockedRequest(str(wait.request), wait.by_others_ns, wait.by_own_ns) for wait in waits_by_request]
