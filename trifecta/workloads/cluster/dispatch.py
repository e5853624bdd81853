"""Which node runs which block, and which blocks may be kept: knows nothing of clusters, files, or clocks.

A block that is lost is ordered again, under the same trial names, before any other is planned. What came of blocks is
given out in the order of each cell's blocks: a result waits until those before it are there. So what verdicts are made
of is at every look what one machine would have had after as many blocks, and how fast nodes are decides nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

Content = Mapping[str, bytes]
"""What a block left: files by their names in a run's folder."""


@dataclass(frozen=True)
class Order:
    """Run this block of this cell; its trials are numbered from ``first_trial``."""

    cell: str
    block: int
    first_trial: int
    reason: str


@dataclass(frozen=True)
class Joined:
    """A node stands, and can be given a block."""

    node: str


@dataclass(frozen=True)
class BlockFinished:
    """A node has run its block, and is free again."""

    node: str
    order: Order
    content: Content
    stored: Mapping[str, str] = field(default_factory=dict)
    """What the node has put into the run's object store itself: SHA-256 by name."""


@dataclass(frozen=True)
class NodeLost:
    """A node is gone, and what it was running with it. It may join again."""

    node: str
    reason: str


@dataclass(frozen=True)
class LeftOut:
    """A node is not used, now or any more, and why."""

    node: str
    reason: str


@dataclass(frozen=True)
class Notice:
    """Something that a user should know at once."""

    node: str
    text: str


Event = Joined | BlockFinished | NodeLost | LeftOut | Notice


class Nodes(Protocol):
    """The nodes of a cluster as the head sees them."""

    def poll(self, timeout_s: float, gather_s: float = 0.0) -> Sequence[Event]:
        """What happened since the last call; waits for it, for so long at most, and then ``gather_s`` for more.

        CannotError when the cluster is gone.
        """

    def offer(self, node: str, order: Order) -> None:
        """Have a node run a block, now or after the one that it runs.

        A node that cannot be reached is `NodeLost` at a later `poll`.
        """

    def dismiss(self, node: str) -> None:
        """Use a node no more, and end what it runs. Nothing is said of it at a later `poll`."""

    def waiting(self) -> int:
        """How many nodes have begun to come up and are not there yet."""


@dataclass
class Dispatch:
    """The state of a run on many nodes."""

    trials_a_block: int
    next_trial: int
    """The number of the first trial of the next new block."""
    whole: dict[str, int]
    """By cell how many of its blocks are kept, from the first on."""
    busy: dict[str, Order] = field(default_factory=dict)
    """What each node is running."""
    ahead: dict[str, Order] = field(default_factory=dict)
    """What a busy node runs next: it need not wait for the head between two blocks."""
    idle: dict[str, None] = field(default_factory=dict)
    """The nodes that run nothing, the one that has waited longest first."""
    lost_blocks: list[Order] = field(default_factory=list)
    """What was lost, and is to be run before anything new."""
    held: dict[str, dict[int, BlockFinished]] = field(default_factory=dict)
    """By cell and block what waits for a block before it."""

    def joined(self, node: str) -> None:
        """A node can be given a block."""
        if node in self.busy:
            raise ValueError(f"node {node} joined while it runs a block")
        self.idle[node] = None

    def order(self, cell: str, block: int, reason: str) -> Order:
        """A new block, under names of its own."""
        next_order = Order(cell, block, self.next_trial, reason)
        self.next_trial += self.trials_a_block
        return next_order

    def begin(self, order: Order) -> str:
        """The node that runs this block from now on: the one that has waited longest. KeyError when none is idle."""
        node = next(iter(self.idle), None)
        if node is None:
            raise KeyError("no node is idle")
        del self.idle[node]
        self.busy[node] = order
        return node

    def begin_ahead(self, node: str, order: Order) -> None:
        """A busy node runs this block next. ValueError for one that is not busy, or has one waiting."""
        if node not in self.busy or node in self.ahead:
            raise ValueError(f"node {node} cannot be given a block ahead")
        self.ahead[node] = order

    def ran(self, done: BlockFinished) -> list[BlockFinished]:
        """A node has run its block: what can be kept now, in order.

        Nothing for a block that the node is not running, as one that was given up for lost and speaks again.
        """
        if self.busy.get(done.node) != done.order:
            return []
        del self.busy[done.node]
        if done.node in self.ahead:
            self.busy[done.node] = self.ahead.pop(done.node)
        else:
            self.idle[done.node] = None
        cell, waiting = done.order.cell, self.held.setdefault(done.order.cell, {})
        waiting[done.order.block] = done
        ready = []
        while (block := self.whole.get(cell, 0)) in waiting:
            ready.append(waiting.pop(block))
            self.whole[cell] = block + 1
        if not waiting:
            del self.held[cell]
        return ready

    def lost(self, node: str) -> Order | None:
        """A node is gone; the block that is lost with it, which is ordered again, as is one that it was to run next."""
        self.idle.pop(node, None)
        order = self.busy.pop(node, None)
        waiting = self.ahead.pop(node, None)
        if order is not None:
            self.lost_blocks += [order] if waiting is None else [order, waiting]
            self.lost_blocks.sort(key=lambda one: one.first_trial)  # what others wait for comes first
        return order

    def running(self) -> Mapping[str, set[int]]:
        """By cell the blocks that have begun and are not kept yet."""
        blocks_by_cell: dict[str, set[int]] = {}
        held = (one.order for blocks in self.held.values() for one in blocks.values())
        for order in (*self.busy.values(), *self.ahead.values(), *self.lost_blocks, *held):
            blocks_by_cell.setdefault(order.cell, set()).add(order.block)
        return blocks_by_cell

    @property
    def over(self) -> bool:
        """Whether nothing runs, and nothing is to be run again."""
        return not self.busy and not self.lost_blocks


def whole_blocks(cells: Iterable[str], rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    """How many blocks each cell has, where ``rows`` are of whole blocks without a gap: cell and block of each trial.

    ValueError where a block between others is missing.
    """
    blocks_by_cell: dict[str, set[int]] = {cell: set() for cell in cells}
    for cell, block in rows:
        blocks_by_cell.setdefault(cell, set()).add(block)
    for cell, blocks in blocks_by_cell.items():
        if blocks != set(range(len(blocks))):
            raise ValueError(f"a block of {cell} is missing")
    return {cell: len(blocks) for cell, blocks in blocks_by_cell.items()}
