"""Trifecta's own server: the engine's ``origin``."""

from __future__ import annotations

from pathlib import Path

from trifecta.contract.codec import encode_pretty
from trifecta.contract.common import Declared
from trifecta.contract.origin import OriginConfig
from trifecta.design import quinn
from trifecta.design.errors import CannotError
from trifecta.implementations.server import Command, ServerAdapter, ServerOptions, Site, Unsupported
from trifecta.lab.engine import engine_versions, find_engine


class Origin(ServerAdapter):
    """The same handler behind HTTP/1.1, HTTP/2 and HTTP/3, written to cost little."""

    name = "origin"
    chooses_protocols = True
    stands_alone = True
    source = "part of Trifecta (engine/crates/origin)"
    program_name = "trifecta-engine"
    says_ready = b'{"ready":'  # after every socket is bound (docs/architecture.md, section 1)

    def program(self) -> Path:
        """The engine, or that of a build."""
        return self.build or find_engine()

    def find(self) -> str:
        """The engine's version; that of a build has to be this package's, whose configuration it is given."""
        if self.build is None:
            return engine_versions(find_engine()).engine
        try:
            return engine_versions(self.build).engine
        except CannotError as error:
            raise Unsupported(str(error)) from error

    def command(self, site: Site, options: ServerOptions) -> Command:
        """The engine with a configuration file (docs/architecture.md, section 1.2)."""
        config = site.state / "origin.json"
        config.write_text(encode_pretty(self.config(site, options)), encoding="utf-8")
        engine = self.program()
        return Command((engine, "origin", config), reads=(engine,))

    def config(self, site: Site, options: ServerOptions) -> OriginConfig:
        """What the engine is asked to serve; ``/bytes/N`` comes from memory, so no folder is needed."""
        return OriginConfig(
            address=site.address,
            port=site.port,
            certificate_file=str(site.certificates.chain),
            key_file=str(site.certificates.key),
            protocols=options.offered,
            congestion_control=options.congestion_control,
            tcp_nodelay=options.tcp_nodelay,
            tls_versions=(options.tls_version,),
            zero_rtt=options.zero_rtt,
            quic_adaptations=tuple(quinn.names(options.quinn)),
            tuning=options.tuning,
            max_concurrent_streams=options.max_streams,
            alt_svc=options.alt_svc,
            replay=_text(site.replay),
            live=_text(site.live),
            qlog_dir=_text(site.qlog),
        )

    def declared(self, options: ServerOptions) -> Declared:
        """What was asked of the engine."""
        return {
            "congestion_control": {"tcp": options.congestion_control, "quic": options.congestion_control},
            "tcp_nodelay": options.tcp_nodelay,
            "tls_library": "rustls",
            "quic_library": quinn.LIBRARY,
            "quic_adaptations": {name: quinn.ADAPTATIONS[name] for name in quinn.names(options.quinn)},
        }


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)
