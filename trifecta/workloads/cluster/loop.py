"""The head's loop: blocks are chosen, given to nodes, and kept as they come, until enough is known.

Its cost is bounded: after every look it waits a multiple of what the look took, and then takes together what came.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from trifecta.analysis.planner import Decision, Stop
from trifecta.design.errors import CannotError
from trifecta.lab.engine import Stopped
from trifecta.workloads.cluster.dispatch import Dispatch, Joined, LeftOut, Lost, Nodes, Order, Ran, Told

POLL_S = 1.0
ALONE_S = 60.0  # so long without any node
REST = 1  # times what a look took: the head is at most half a core


class Head(Protocol):
    """What the head does with what happens; it is never called at the same time twice."""

    def choose(self, dispatch: Dispatch) -> Decision | Stop:
        """The next block, or that it is enough, from what is kept and what runs."""

    def keep(self, done: Sequence[Ran]) -> Mapping[str, str]:
        """Blocks to commit, in this order; the nodes that do not count from now on, with the reason."""

    def told(self, event: Joined | Lost | LeftOut | Told, order: Order | None) -> None:
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
    left_out: dict[str, str] = {}
    while True:
        if stop():
            raise Stopped
        events = nodes.poll(POLL_S, rest_s)
        began_s = used_s()
        ready: list[Ran] = []
        for event in events:
            if isinstance(event, Ran):
                ready += dispatch.ran(event)
                continue
            order = None
            if isinstance(event, Joined):
                dispatch.joined(event.node)
                left_out.pop(event.node, None)
            elif isinstance(event, Lost | LeftOut):
                order = dispatch.lost(event.node)
            if isinstance(event, LeftOut):
                left_out[event.node] = event.reason
            head.told(event, order)
        for node, reason in head.keep(ready).items() if ready else ():
            if node in dispatch.busy or node in dispatch.idle:
                nodes.dismiss(node)
                left_out[node] = reason
                head.told(LeftOut(node, reason), dispatch.lost(node))
        ending = _give(dispatch, nodes, head)
        if ending is not None and dispatch.over:
            return ending
        if dispatch.idle or dispatch.busy or nodes.waiting():
            alone_s = now_s()
        elif now_s() - alone_s > ALONE_S:
            raise CannotError(_alone(left_out))
        rest_s = REST * (used_s() - began_s)


def _give(dispatch: Dispatch, nodes: Nodes, head: Head) -> Stop | None:
    """Give every idle node a block; why there is none for it."""
    while dispatch.idle or dispatch.over:
        if dispatch.again:
            order = dispatch.again.pop(0)
        else:
            choice = head.choose(dispatch)
            if isinstance(choice, Stop):
                return choice
            if not dispatch.idle:
                return None
            order = dispatch.order(choice.cell.key, choice.block, choice.reason)
        nodes.offer(dispatch.begin(order), order)
    return None


def _alone(left_out: dict[str, str]) -> str:
    why = "; ".join(f"{node}: {reason}" for node, reason in sorted(left_out.items()))
    said = f"no node of the cluster can run a block ({why or 'none is there'})"
    return f"{said}; what is finished is kept, and `trifecta resume` goes on, with --cluster or without"
