"""The text of a study file to a study."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from trifecta.design.document import Document
from trifecta.design.errors import UserError
from trifecta.design.model import Study
from trifecta.design.overrides import apply_overrides, unused
from trifecta.design.resolve import Surroundings, resolve
from trifecta.design.yaml_text import parse_document


def parse_study(
    text: str,
    file: str,
    overrides: Sequence[str] = (),
    surroundings: Surroundings | None = None,
    change: Callable[[Document], None] | None = None,
) -> Study:
    """The study in ``text``; ``file`` is how messages call it, ``overrides`` are ``KEY=VALUE`` of ``--set``.
    ``change`` is made after them.

    Raises UserError with one line ``file:line: field: what; remedy`` for the first fault.
    """
    document = parse_document(text, file)
    apply_overrides(document, overrides)
    if change is not None:
        change(document)
    study = resolve(document, surroundings)
    for message in unused(document).values():
        raise UserError(message)
    return study
