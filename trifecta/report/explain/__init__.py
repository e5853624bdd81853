"""Why a verdict is what it is: the chain of evidence, in a terminal, in the report, and for programs."""

from trifecta.report.explain.chain import Chain, Explained, explain
from trifecta.report.explain.section import CellPart, derive, section
from trifecta.report.explain.shown import as_data, print_chains

__all__ = ["CellPart", "Chain", "Explained", "as_data", "derive", "explain", "print_chains", "section"]
