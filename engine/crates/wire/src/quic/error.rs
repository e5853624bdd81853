//! Error classes of a failed QUIC connection, as they stand in a sample row.

use quinn_proto::ConnectionError;

use super::Handshake;
use crate::ErrorClass;
use crate::h3::Code;

/// The error class of a lost connection.
///
/// `handshake` is what the client's TLS session knows ([`super::ClientTls`]); it tells a bad certificate from other
/// failures, which the code on the wire does not.
pub fn classify(error: &ConnectionError, handshake: Option<&Handshake>) -> ErrorClass {
    match error {
        ConnectionError::VersionMismatch => ErrorClass::QuicVersion,
        ConnectionError::TimedOut => ErrorClass::QuicTimeout,
        ConnectionError::Reset => ErrorClass::Reset,
        ConnectionError::CidsExhausted => ErrorClass::Quic,
        ConnectionError::LocallyClosed => ErrorClass::Closed,
        ConnectionError::TransportError(ours) => {
            let tls = handshake.and_then(|handshake| handshake.error.as_ref());
            match (tls, alert(ours.code.into())) {
                (Some(tls), _) => tls.class,
                (None, Some(_)) => ErrorClass::Tls,
                (None, None) => ErrorClass::QuicTransport,
            }
        }
        ConnectionError::ConnectionClosed(theirs) => match theirs.error_code.into() {
            // APPLICATION_ERROR stands for a close by the application before the handshake was complete (RFC 9000 section
            // 10.2.3).
            0x0 | 0xc => ErrorClass::Closed,
            // CONNECTION_REFUSED, RFC 9000 section 20.1.
            0x2 => ErrorClass::ConnectRefused,
            code => match alert(code) {
                // protocol_version (RFC 8446 section 6.2), no_application_protocol (RFC 7301 section 3.2).
                Some(70) => ErrorClass::TlsVersion,
                Some(120) => ErrorClass::TlsAlpn,
                Some(_) => ErrorClass::TlsAlert,
                None => ErrorClass::QuicTransport,
            },
        },
        ConnectionError::ApplicationClosed(theirs) => {
            if theirs.error_code.into_inner() == Code::NoError.value() || theirs.error_code.into_inner() == 0 {
                ErrorClass::Closed
            } else {
                ErrorClass::Reset
            }
        }
    }
}

/// The TLS alert inside a CRYPTO_ERROR (RFC 9001 section 4.8).
fn alert(code: u64) -> Option<u8> {
    (0x100..0x200).contains(&code).then_some((code & 0xff) as u8)
}
