"""Did the player keep up with the clock, and decode in time?

## Fails when
Over 2 % and 0.5 s of a watch neither played nor stalled; the machine itself drops 5 % of the frames; arms played
different media; the live packager ended.

## Warns when
The machine itself drops 1 %; 1 % more frames were dropped than that; a watch ended in a stall; a player jumped ahead.

## Why
Without a GPU frames are decoded in software: what the machine itself drops is not the network's fault.
"""

from __future__ import annotations

from collections.abc import Sequence

from trifecta.analysis.checks.evidence import Evidence, Finding, duration, worst
from trifecta.analysis.checks.visits import Visit, Visits
from trifecta.design.model import CheckResult, RequestsWorkload

SLIP_SHARE, SLIP_FLOOR_NS = 0.02, 500_000_000  # of the watch, whichever is more: samples come four times a second
FLOOR_WARN, FLOOR_FAIL = 0.01, 0.05  # share of frames that the machine drops on its own
DROPPED_WARN = 0.01  # share of frames beyond that floor


def check(evidence: Evidence) -> list[CheckResult]:
    """Fail when media time slips behind, when the machine drops frames by itself, or when arms play other media."""
    workload = evidence.workload
    if not workload.plays:
        return []  # nothing of this check was asked for
    visits = evidence.visits
    if visits is None or not visits.loaded:
        return worst(evidence, "playback", [Finding("unknown", "no watch succeeded")])
    findings = [
        *_slip(visits.loaded),
        *_frames(visits.loaded, (evidence.load or {}).get("floor_error")),
        *_stalls(visits.loaded),
        *_media(evidence, workload, visits),
    ]
    ended = (evidence.server or {}).get("live_ended")
    if ended:
        remedy = "look at the packager's log in the run"
        findings.append(Finding("fail", f"the packager of the live video ended: {ended}", None, None, remedy))
    return worst(evidence, "playback", findings)


def slip_ns(visit: Visit) -> int | None:
    """Wall time of a watch in which it neither started, nor stalled, nor played."""
    if visit.watched_ns is None or visit.played_ns is None:
        return None
    return visit.watched_ns - visit.played_ns - (visit.startup_ns or 0) - (visit.rebuffer_ns or 0)


def _slip(watches: Sequence[Visit]) -> list[Finding]:
    known = [(slip, visit.watched_ns or 0) for visit in watches if (slip := slip_ns(visit)) is not None]
    if not known:
        return [Finding("unknown", "the time played was not measured")]
    slip, watched = max(known, key=lambda pair: abs(pair[0]))
    limit = max(SLIP_FLOOR_NS, SLIP_SHARE * watched)
    text = f"of {duration(watched)} watched, {duration(abs(slip))} "
    if slip > limit:
        text += "neither played nor stalled: the player fell behind the clock"
        return [Finding("fail", text, float(slip), limit, "use a machine with more cores, or a smaller ladder")]
    if -slip > limit:
        text += "more was played than passed: the player jumped ahead or played faster"
        return [Finding("warn", text, float(-slip), limit, "read stalls of this watch with care")]
    return [Finding("pass", text + "is not accounted for", float(abs(slip)), limit)]


def _frames(watches: Sequence[Visit], floor_error: str | None) -> list[Finding]:
    counted = [visit for visit in watches if visit.frames_shown is not None and visit.frames_dropped is not None]
    frames = sum((visit.frames_shown or 0) + (visit.frames_dropped or 0) for visit in counted)
    if not frames:
        return [Finding("unknown", "frames were not counted")]
    dropped = sum(visit.frames_dropped or 0 for visit in counted) / frames
    floors = [visit.frames_dropped_floor for visit in counted if visit.frames_dropped_floor is not None]
    if len(floors) < len(counted):
        text = f"{100 * dropped:.2f} % of {frames} frames were dropped; what the machine itself drops was not measured"
        text += f": {floor_error}" if floor_error else ""
        return [Finding("unknown", text, dropped)]
    floor = sum(floors) / frames
    text = f"the machine itself drops {100 * floor:.2f} % of {frames} frames"
    remedy = "use a machine with more cores, or a ladder of lower resolutions"
    if floor >= FLOOR_FAIL:
        return [Finding("fail", text, floor, FLOOR_FAIL, remedy)]
    findings = []
    if floor >= FLOOR_WARN:
        findings.append(Finding("warn", text, floor, FLOOR_WARN, remedy))
    beyond = max(0.0, dropped - floor)
    text = f"{100 * dropped:.2f} % of {frames} frames were dropped, {100 * floor:.2f} % by the machine itself"
    if beyond >= DROPPED_WARN:
        # A network does not drop frames of what it delivered: decoding beside the reception took more than without.
        findings.append(Finding("warn", text, beyond, DROPPED_WARN, "compare the CPU time of the arms"))
    else:
        findings.append(Finding("pass", text, beyond, DROPPED_WARN))
    return findings


def _stalls(watches: Sequence[Visit]) -> list[Finding]:
    number = sum(visit.stalled_at_end for visit in watches)
    if not number:
        return []
    text = f"{number} of {len(watches)} watches ended in a stall, which counts only until the watch ended"
    return [Finding("warn", text, float(number), 0.0, "watch for longer, or use lower bitrates")]


def _media(evidence: Evidence, workload: RequestsWorkload, visits: Visits) -> list[Finding]:
    """The same ladder in every arm: where two arms fetched a segment of a rung, it has the same octets."""
    if not visits.segments:
        return [Finding("unknown", "the segments played were not recorded")]
    strange = {rung for rung, _ in visits.segments if not 0 <= rung < len(workload.ladder)}
    if strange:
        text = f"segments of rungs {sorted(strange)} were played, the ladder has {len(workload.ladder)}"
        return [
            Finding("fail", text, float(max(strange)), float(len(workload.ladder) - 1), "check the playlist served")
        ]
    if not workload.live:
        for sibling in evidence.siblings:
            if not evidence.asked_alike(sibling):
                continue
            other = sibling.visits.segments if sibling.visits else {}
            for key in sorted(visits.segments.keys() & other.keys()):
                if visits.segments[key] != other[key]:
                    text = f"segment {key[1]} of rung {key[0]} has {visits.segments[key]} B here, {other[key]} B in "
                    text += sibling.trial.arm
                    value, limit = float(visits.segments[key]), float(other[key])
                    return [Finding("fail", text, value, limit, "serve the same packaged video to every arm")]
    rungs = len({rung for rung, _ in visits.segments})
    text = f"{len(visits.segments)} segments of {rungs} of {len(workload.ladder)} rungs were played"
    return [Finding("pass", text, float(len(visits.segments)))]
