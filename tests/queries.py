"""What a run's tables say, asked in this process: ``trifecta sql`` as a program takes a second to start."""

from pathlib import Path
from typing import Any

from trifecta.store.views import connect


def rows(folder: Path, query: str) -> list[dict[str, Any]]:
    """The rows of an answer, each by the names of its columns."""
    with connect(folder) as views:
        answer = views.execute(query)
        names = [column[0] for column in answer.description or ()]
        return [dict(zip(names, row, strict=True)) for row in answer.fetchall()]
