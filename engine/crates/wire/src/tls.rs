//! TLS over TCP without I/O of its own: rustls' unbuffered API behind one driver for clients and servers, the builders
//! of both configurations (also for QUIC), and the error classes of a failed handshake.

mod config;
mod error;
mod keylog;
mod record_sizes;
mod records;
mod stream;
mod verifier;

pub use config::{
    ClientOptions, ConfigError, ServerOptions, TlsVersion, client_config, key_exchange_names, server_config,
};
pub use error::{TlsError, classify};
pub use keylog::KeyLogWriter;
pub use record_sizes::{RecordSizes, fragment_octets};
pub use stream::{ReceiveBuffer, TlsStream};

use rustls::{CipherSuite, CommonState, HandshakeKind, ProtocolVersion};

/// The certificates of a handshake, as the server sent them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CertificateChain {
    /// How many, the server's own included.
    pub certificates: u64,
    /// Octets of all of them in DER.
    pub octets: u64,
}

impl CertificateChain {
    /// What the peer showed in this handshake; none in a resumed one, which has no certificates (RFC 8446 section 2.2).
    #[must_use]
    pub fn shown_to(state: &CommonState) -> Option<Self> {
        if state.handshake_kind() == Some(HandshakeKind::Resumed) {
            return None;
        }
        let chain = state.peer_certificates()?;
        let octets = chain.iter().map(|certificate| certificate.len() as u64).sum();
        Some(Self { certificates: chain.len() as u64, octets })
    }
}

/// The IANA name of a cipher suite, as in `TLS_AES_128_GCM_SHA256`.
#[must_use]
pub fn cipher_name(suite: CipherSuite) -> &'static str {
    match suite {
        CipherSuite::TLS13_AES_128_GCM_SHA256 => "TLS_AES_128_GCM_SHA256",
        CipherSuite::TLS13_AES_256_GCM_SHA384 => "TLS_AES_256_GCM_SHA384",
        CipherSuite::TLS13_CHACHA20_POLY1305_SHA256 => "TLS_CHACHA20_POLY1305_SHA256",
        other => other.as_str().unwrap_or("unknown"),
    }
}

/// `1.2` or `1.3`.
#[must_use]
pub fn version_name(version: ProtocolVersion) -> &'static str {
    match version {
        ProtocolVersion::TLSv1_2 => "1.2",
        ProtocolVersion::TLSv1_3 => "1.3",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests;
