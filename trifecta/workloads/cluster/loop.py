"""The head's loop: blocks are chosen, given to nodes, and kept as they come, until enough is known.

Its cost is bounded: after every look it waits a multiple of what the look took, and then takes together what came. A
node whose blocks are short is given one ahead, so that it does not wait for the head between two.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from trifecta.analysis.planner import Decision, Stop
from trifecta.design.errors import CannotError
from trifecta.lab.engine import Stopped
from trifecta.workloads.cluster.dispatch import (
    BlockFinished,
    Dispatch,
    Event,
    Joined,
    LeftOut,
    NodeLost,
    Nodes,
    Notice,
    Order,
)

POLL_S = 1.0
ALONE_S = 60.0  # so long without any node
AHEAD_BELOW_S = 20.0  # a block as short as this; the way to the head and back takes less than 1 s (bench/RESULTS.md)
REST = 1  # times what a look took: the head is at most half a core


@dataclass
class _Pace:
    """How long each node's last block took, and when its present one began; what is heard at once has one time."""

    now_s: float
    _began_s: dict[str, float] = field(default_factory=dict)
    _took_s: dict[str, float] = field(default_factory=dict)

    def began(self, node: str) -> None:
        self._began_s[node] = self.now_s

    def ended(self, node: str) -> None:
        began_s = self._began_s.pop(node, self.now_s)
        if began_s < self.now_s:  # else it is the second that is heard of in this look
            self._took_s[node] = self.now_s - began_s

    def left_ns(self, node: str) -> int | None:
        """How long its present block is likely to go on, where blocks are short there; None where they are not."""
        took_s = self._took_s.get(node)
        if took_s is None or took_s >= AHEAD_BELOW_S:
            return None
        return round(1e9 * max(0.0, took_s - (self.now_s - self._began_s[node])))


class Head(Protocol):
    """What the head does with what happens; it is never called at the same time twice."""

    def choose(self, dispatch: Dispatch, later_ns: int = 0) -> Decision | Stop:
        """The next block, or that it is enough, from what is kept and what runs; it begins in ``later_ns``."""

    def keep(self, done: Sequence[BlockFinished]) -> Mapping[str, str]:
        """Blocks to commit, in this order; the nodes that do not count from now on, with the reason."""

    def node_event(self, event: Joined | NodeLost | LeftOut | Notice, order: Order | None) -> None:
        """Something happened to a node, and with ``order`` a block was lost, which is run again."""


def carry_on(
    dispatch: Dispatch,
    nodes: Nodes,
    head: Head,
    stop: Callable[[], bool],
    *,
    now_s: Callable[[], float] = time.monotonic,
    used_s: Callable[[], float] = time.process_time,
) -> Stop:
    """Run blocks until the planner says that it is enough and none runs any more; how it ended.

    What has begun when it is enough is waited for: no block is dropped for what it says. Stopped when the user ends
    it, CannotError when no node is left.
    """
    rest_s, alone_s = 0.0, now_s()
    pace = _Pace(alone_s)
    left_out: dict[str, str] = {}
    while True:
        if stop():
            raise Stopped
        events = nodes.poll(POLL_S, rest_s)
        began_s, pace.now_s = used_s(), now_s()
        ready = _handle(events, dispatch, head, pace, left_out)
        for node, reason in head.keep(ready).items() if ready else ():
            if node in dispatch.busy or node in dispatch.idle:
                nodes.dismiss(node)
                left_out[node] = reason
                head.node_event(LeftOut(node, reason), dispatch.lost(node))
        pace.now_s = now_s()  # judging took its time
        ending = _give(dispatch, nodes, head, pace)
        if ending is None:
            _give_ahead(dispatch, nodes, head, pace)
        if ending is not None and dispatch.over:
            return ending
        if dispatch.idle or dispatch.busy or nodes.waiting():
            alone_s = now_s()
        elif now_s() - alone_s > ALONE_S:
            raise CannotError(_why_no_nodes(left_out))
        rest_s = REST * (used_s() - began_s)


def _handle(
    events: Sequence[Event], dispatch: Dispatch, head: Head, pace: _Pace, left_out: dict[str, str]
) -> list[BlockFinished]:
    """Take note of what happened; the blocks that can be kept now."""
    ready: list[BlockFinished] = []
    for event in events:
        if isinstance(event, BlockFinished):
            pace.ended(event.node)
            ready += dispatch.ran(event)
            if event.node in dispatch.busy:  # with what it had ahead
                pace.began(event.node)
            continue
        order = None
        if isinstance(event, Joined):
            dispatch.joined(event.node)
            left_out.pop(event.node, None)
        elif isinstance(event, NodeLost | LeftOut):
            order = dispatch.lost(event.node)
        if isinstance(event, LeftOut):
            left_out[event.node] = event.reason
        head.node_event(event, order)
    return ready


def _give(dispatch: Dispatch, nodes: Nodes, head: Head, pace: _Pace) -> Stop | None:
    """Give every idle node a block; why there is none for it."""
    while dispatch.idle:
        order = _next(dispatch, head)
        if isinstance(order, Stop):
            return order
        node = dispatch.begin(order)
        pace.began(node)
        nodes.offer(node, order)
    choice = head.choose(dispatch) if dispatch.over else None
    return choice if isinstance(choice, Stop) else None


def _give_ahead(dispatch: Dispatch, nodes: Nodes, head: Head, pace: _Pace) -> None:
    """Give every node whose blocks are short the one after the one that it runs, unless it is enough by then."""
    for node in [node for node in dispatch.busy if node not in dispatch.ahead]:
        later_ns = pace.left_ns(node)
        if later_ns is None:
            continue
        order = _next(dispatch, head, later_ns)
        if isinstance(order, Order):
            dispatch.begin_ahead(node, order)
            nodes.offer(node, order)
        elif order.kind != "budget":  # which may have room for a block of a node that is free sooner
            return


def _next(dispatch: Dispatch, head: Head, later_ns: int = 0) -> Order | Stop:
    """The block to be run next, what was lost before anything new; why there is none."""
    if dispatch.lost_blocks:
        return dispatch.lost_blocks.pop(0)
    choice = head.choose(dispatch, later_ns)
    return choice if isinstance(choice, Stop) else dispatch.order(choice.cell.key, choice.block, choice.reason)


def _why_no_nodes(left_out: dict[str, str]) -> str:
    why = "; ".join(f"{node}: {reason}" for node, reason in sorted(left_out.items()))
    sentence = f"no node of the cluster can run a block ({why or 'none is there'})"
    return f"{sentence}; what is finished is kept, and `trifecta resume` goes on, with --cluster or without"
