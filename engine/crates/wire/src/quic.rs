//! QUIC (RFC 9000, 9001, 9002) by `quinn-proto`, which does no I/O: the configuration that client and server share, what
//! a handshake has agreed on, the error classes of a failed connection, and qlog.

mod client_tls;
mod clock;
mod error;
mod qlog;
mod transport;

pub use client_tls::{ClientTls, Handshake};
pub use clock::InstantClock;
pub use error::classify;
pub use qlog::qlog_stream;
pub use transport::{
    CONGESTION_CONTROLS, INITIAL_WINDOW_PACKETS, TransportOptions, client_endpoint_config, server_config,
    server_endpoint_config, transport_config,
};

pub use quinn_proto;

#[cfg(test)]
mod tests;
