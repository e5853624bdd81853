"""What the report shows of captured packets: pictures of protocols side by side, and their numbers."""

from trifecta.report.packets.derive import Packets, derive
from trifecta.report.packets.files import dissect_run, write_run_figures
from trifecta.report.packets.pictures import write_figures
from trifecta.report.packets.section import SECTION

__all__ = ["SECTION", "Packets", "derive", "dissect_run", "write_figures", "write_run_figures"]
