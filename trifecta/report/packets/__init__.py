"""What the report shows of captured packets: pictures of protocols side by side, and their numbers."""

from trifecta.report.packets.pictures import write_figures
from trifecta.report.packets.section import SECTION, write_run_figures

__all__ = ["SECTION", "write_figures", "write_run_figures"]
