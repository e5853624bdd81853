//! The error classes of TLS, as they stand in a sample row.

use std::fmt;

use rustls::{AlertDescription, Error, PeerIncompatible};

use crate::ErrorClass;

/// A TLS failure: its class for the sample row and the words of rustls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsError {
    pub class: ErrorClass,
    pub detail: String,
}

impl fmt::Display for TlsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.class, self.detail)
    }
}

impl std::error::Error for TlsError {}

impl From<Error> for TlsError {
    fn from(error: Error) -> Self {
        Self { class: classify(&error), detail: error.to_string() }
    }
}

/// The error class of a rustls error.
#[must_use]
pub fn classify(error: &Error) -> ErrorClass {
    match error {
        Error::InvalidCertificate(_) | Error::NoCertificatesPresented | Error::InvalidCertRevocationList(_) => {
            ErrorClass::TlsCertificate
        }
        Error::NoApplicationProtocol | Error::AlertReceived(AlertDescription::NoApplicationProtocol) => {
            ErrorClass::TlsAlpn
        }
        Error::AlertReceived(AlertDescription::ProtocolVersion)
        | Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig
            | PeerIncompatible::SupportedVersionsExtensionRequired
            | PeerIncompatible::Tls12NotOffered
            | PeerIncompatible::Tls12NotOfferedOrEnabled
            | PeerIncompatible::Tls13RequiredForQuic,
        ) => ErrorClass::TlsVersion,
        Error::AlertReceived(_) => ErrorClass::TlsAlert,
        Error::InvalidMessage(_)
        | Error::InappropriateMessage { .. }
        | Error::InappropriateHandshakeMessage { .. }
        | Error::PeerMisbehaved(_)
        | Error::DecryptError
        | Error::PeerSentOversizedRecord => ErrorClass::TlsMalformed,
        _ => ErrorClass::Tls,
    }
}
