//! QUIC (RFC 9000, 9001, 9002) by `quinn-proto`, which does no I/O: the configuration that client and server share, what
//! a handshake has agreed on, the error classes of a failed connection, and qlog.

mod adaptations;
mod clock;
pub mod ecn;
mod error;
mod idle_restart;
mod padding;
mod qlog;
pub mod send_order;
mod streams;
mod tls;
mod transport;
mod unpaced;
mod window_validation;

pub use adaptations::Adaptations;
pub use clock::InstantClock;
pub use error::classify;
pub use qlog::qlog_stream;
pub use streams::{StreamMap, read_uni_stream};
pub use tls::{ClientTls, Handshake, ServerTls};
pub use transport::{
    CONGESTION_CONTROLS, INITIAL_WINDOW_PACKETS, TransportOptions, client_endpoint_config, server_config,
    server_endpoint_config, transport_config,
};

pub use quinn_proto;

#[cfg(test)]
mod tests;
