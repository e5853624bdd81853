"""The table of causes: one function each, and one line here, or an entry point of the group ``trifecta.causes``."""

from __future__ import annotations

from trifecta.design.errors import UserError
from trifecta.design.why import connection_setup, programs, receiving, sending
from trifecta.design.why.cause import Cause, CellEvidence, Suspect
from trifecta.entries import Registry

_OWN = {
    one.id: one
    for one in (
        sending.pacing,
        sending.idle_window,
        sending.initial_window,
        sending.congestion_control,
        sending.slow_start_exit,
        sending.window_validation,
        sending.quinn_settings,
        sending.packet_threshold,
        sending.nagle,
        sending.tls_records,
        sending.segmentation_offload,
        receiving.ack_delay,
        receiving.ack_frequency,
        receiving.stream_window,
        receiving.connection_window,
        receiving.merged_frames,
        receiving.header_compression,
        receiving.udp_buffers,
        connection_setup.handshake,
        connection_setup.certificate,
        connection_setup.mtu,
        connection_setup.tls_version,
        connection_setup.key_exchange,
        programs.client_cpu,
        programs.server_cpu,
        programs.server_program,
        programs.client_program,
    )
}


def _adopt(name: str, cause: Cause, _package: str) -> Cause:
    """A cause of another package: documented as our own are, and named as its entry point."""
    if cause.id != name:
        raise ValueError(f"calls itself {cause.id!r}; its id and the entry point's name must be the same")
    _ = cause.documentation
    return cause


CAUSES = Registry("cause", _OWN, Cause, _adopt, error=UserError)


def suspects(evidence: CellEvidence) -> list[tuple[Cause, Suspect]]:
    """The causes that a cell may have, the most suspected first."""
    suspected = [(one, suspect) for one in CAUSES.values() if (suspect := one.find(evidence)) is not None]
    return sorted(suspected, key=lambda pair: -pair[1].suspicion)
