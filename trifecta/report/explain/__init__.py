"""Why a verdict is what it is: the chain of evidence, in a terminal, in the report, and for programs."""

from trifecta.report.explain.brief import print_brief
from trifecta.report.explain.output import as_data, print_chains
from trifecta.report.explain.section import SECTION

__all__ = ["SECTION", "as_data", "print_brief", "print_chains"]
