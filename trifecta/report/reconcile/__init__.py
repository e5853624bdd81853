"""The reconciliation report: contradicting claims of four studies, pair by pair, and where each of them holds."""

from trifecta.report.reconcile.page import PAGE, print_reconciled, write
from trifecta.report.reconcile.read import Reconciled, read
from trifecta.report.reconcile.tables import as_data, as_json

__all__ = ["PAGE", "Reconciled", "as_data", "as_json", "print_reconciled", "read", "write"]
