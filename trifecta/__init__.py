"""Trifecta: does HTTP/3 beat HTTP/2 and HTTP/1.1 for this traffic, on this path, with these programs?

>>> import trifecta
>>> run = trifecta.open("runs/race")  # doctest: +SKIP

What scripts and notebooks use: ``open``, ``run``, ``race`` and ``Run``, and the errors that they raise. Their types are
in ``__init__.pyi``. Each is imported when it is first asked for, so that ``import trifecta`` costs nothing.
"""

import importlib
from typing import Any

_ASKED = {
    "open": "trifecta.api.reading",
    "Run": "trifecta.api.reading",
    "run": "trifecta.api.measuring",
    "race": "trifecta.api.measuring",
    "TrifectaError": "trifecta.design.errors",
    "UserError": "trifecta.design.errors",
    "CannotError": "trifecta.design.errors",
}


def __getattr__(name: str) -> Any:
    """What Python programs ask for; ``__version__`` is that of the installed package, from ``engine/Cargo.toml``."""
    if name == "__version__":
        from importlib import metadata

        return metadata.version(__name__)
    if name in _ASKED:
        return getattr(importlib.import_module(_ASKED[name]), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_ASKED, "__version__"})
