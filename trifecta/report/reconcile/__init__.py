"""The reconciliation report: contradicting claims of four studies, pair by pair, and where each of them holds."""

from trifecta.report.reconcile.page import PAGE, print_reconciled, write
from trifecta.report.reconcile.tables import as_data, as_json

__all__ = ["PAGE", "as_data", "as_json", "print_reconciled", "write"]
