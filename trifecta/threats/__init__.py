"""Threats to validity: each can be switched on and off, is detected by a check, and has its effect measured.

A new one is a file here, a line in ``table.py`` and, where traffic shows its effect, a study in ``studies/threats``.
"""

from __future__ import annotations

from trifecta.threats.switching import Switches, compared_factor, find, switches
from trifecta.threats.table import THREATS
from trifecta.threats.threat import Change, Effect, Threat

__all__ = ["THREATS", "Change", "Effect", "Switches", "Threat", "compared_factor", "find", "switches"]
