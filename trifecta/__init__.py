"""Trifecta: does HTTP/3 beat HTTP/2 and HTTP/1.1 for this traffic, on this path, with these programs?"""


def __getattr__(name: str) -> str:
    """``__version__``: that of the installed package, which has it from ``engine/Cargo.toml``."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import metadata

    return metadata.version(__name__)
