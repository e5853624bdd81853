"""For all tests: no property is timed, for a busy machine takes its time (hypothesis gives an example 200 ms)."""

import pytest
from hypothesis import settings

settings.register_profile("untimed", settings(), deadline=None)
settings.load_profile("untimed")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The Makefile finds the files of tests that create networks by their text, so the mark must stand in it."""
    for path in sorted({item.path for item in items if item.get_closest_marker("lab")}):
        if "mark.lab" not in path.read_text(encoding="utf-8"):
            raise pytest.UsageError(
                f"{path}: has tests with the mark lab but does not say mark.lab; `make test` misses it"
            )
