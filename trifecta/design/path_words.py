"""What a path was asked to be, in words: ``80 ms round trip, 100 Mbit/s, a queue of 1 MB, 2 % loss each way``.

Quantities stand as they were asked for, not rounded as measured ones are; where the directions differ both are told.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from trifecta.contract.impairments import ImpairmentDocument
from trifecta.contract.path import PathDocument
from trifecta.design.impairment_kind import Subject
from trifecta.design.impairments import KINDS, PATH_FIELDS

NOTHING = "no impairment"
AS_IS = "the network between the hosts, as it is"


def in_words(spec: PathDocument) -> str:
    """What the path of this description does to packets."""
    if spec.get("as_is"):
        return AS_IS
    there, back = (_by_kind(spec.get("forward") or ()), _by_kind(spec.get("backward") or ()))
    parts = [
        phrase
        for name in sorted(there.keys() | back.keys(), key=_place)
        for phrase in KINDS[name].phrases(there.get(name), back.get(name))
    ]
    if spec.get("frames") == "wire":
        parts.append("frames of a wire's size")
    if spec.get("emulator") == "netem":
        parts.append("by the kernel's netem")
    return ", ".join(filter(None, parts)) or NOTHING


def _by_kind(documents: Sequence[ImpairmentDocument]) -> dict[str, ImpairmentDocument]:
    """The document of each kind in one direction: the last one's."""
    return {document["kind"]: document for document in documents}


def _place(name: str) -> tuple[int, int]:
    """Where a kind is told: by what it is about, then as a study file has it."""
    return get_args(Subject).index(KINDS[name].about), PATH_FIELDS.index(name)
