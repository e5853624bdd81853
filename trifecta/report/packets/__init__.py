"""What the report shows of captured packets: pictures of protocols side by side, and their numbers."""

from trifecta.report.packets.pictures import write_figures

__all__ = ["write_figures"]
