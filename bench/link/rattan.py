"""rattan (crates.io), a path emulator written as a chain of cells."""
from __future__ import annotations
from tests.engine.netns import ROOT
BINARY = ROOT / ".cache/rattan/bin/rattan"
def found() -> bool:
    return BINARY.exists()
def measure_all(delay_ms: int) -> dict[str, float]:
    raise NotImplementedError
