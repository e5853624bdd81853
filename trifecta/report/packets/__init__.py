"""What the report shows of captured packets: pictures of protocols side by side, and their numbers."""

from trifecta.report.packets.files import write_run_figures
from trifecta.report.packets.pictures import write_figures
from trifecta.report.packets.section import SECTION

__all__ = ["SECTION", "write_figures", "write_run_figures"]
