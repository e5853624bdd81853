"""The reconciliation report: contradicting claims of four studies, pair by pair, and where each of them holds."""

from trifecta.report.reconcile.page import PAGE, as_data, print_reconciled, write
from trifecta.report.reconcile.read import Reconciled, read

__all__ = ["PAGE", "Reconciled", "as_data", "print_reconciled", "read", "write"]
