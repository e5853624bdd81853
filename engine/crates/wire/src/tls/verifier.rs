//! Certificate verification that remembers the chain it verified last, as browsers do.
//!
//! A load generator meets the same chain at every handshake. Checking it against the roots costs as much as the rest of
//! the client's handshake arithmetic, and comes out the same for the same octets, name and minute. What proves that the
//! server holds the key, its signature over this very handshake (RFC 8446 section 4.4.3), is verified every time.

use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, Error, SignatureScheme};

/// After so many seconds a chain is verified anew, since certificates expire.
const REMEMBERED_SECONDS: u64 = 60;

#[derive(Debug)]
struct Verified {
    at_seconds: u64,
    server_name: ServerName<'static>,
    end_entity: CertificateDer<'static>,
    intermediates: Vec<CertificateDer<'static>>,
    ocsp_response: Vec<u8>,
}

/// Verifies with webpki; the same chain for the same name only once a minute.
#[derive(Debug)]
pub(super) struct RememberingVerifier {
    full: Arc<WebPkiServerVerifier>,
    last: Mutex<Option<Verified>>,
}

impl RememberingVerifier {
    pub(super) fn new(full: Arc<WebPkiServerVerifier>) -> Self {
        Self { full, last: Mutex::new(None) }
    }
}

impl ServerCertVerifier for RememberingVerifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let known = last.as_ref().is_some_and(|known| {
            (known.at_seconds..known.at_seconds + REMEMBERED_SECONDS).contains(&now.as_secs())
                && known.end_entity == *end_entity
                && known.intermediates == *intermediates
                && known.server_name == *server_name
                && known.ocsp_response == ocsp_response
        });
        if known {
            return Ok(ServerCertVerified::assertion());
        }
        let verified = self.full.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)?;
        *last = Some(Verified {
            at_seconds: now.as_secs(),
            server_name: server_name.to_owned(),
            end_entity: end_entity.clone().into_owned(),
            intermediates: intermediates.iter().map(|certificate| certificate.clone().into_owned()).collect(),
            ocsp_response: ocsp_response.to_vec(),
        });
        Ok(verified)
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.full.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.full.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.full.supported_verify_schemes()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rustls::RootCertStore;
    use rustls::crypto::aws_lc_rs;
    use rustls::pki_types::pem::PemObject;
    use trifecta_testpki::{SERVER_NAME, TestPki};

    use super::*;

    /// 2100-01-01, when the test certificates expire.
    const NOT_AFTER: u64 = 4_102_444_800;

    fn certificate(pki: &TestPki) -> CertificateDer<'static> {
        CertificateDer::from_pem_file(pki.certificate_file()).unwrap()
    }

    fn trusting(root: &CertificateDer<'static>) -> RememberingVerifier {
        let mut roots = RootCertStore::empty();
        roots.add(root.clone()).unwrap();
        let provider = Arc::new(aws_lc_rs::default_provider());
        RememberingVerifier::new(
            WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap(),
        )
    }

    fn verify(verifier: &RememberingVerifier, shown: &CertificateDer<'_>, name: &str, seconds: u64) -> bool {
        let name = ServerName::try_from(name).unwrap();
        let now = UnixTime::since_unix_epoch(Duration::from_secs(seconds));
        verifier.verify_server_cert(shown, &[], &name, &[], now).is_ok()
    }

    #[test]
    fn another_chain_or_name_is_never_taken_for_the_remembered_one() {
        let (trusted, foreign) = (TestPki::new(), TestPki::new());
        let (trusted, foreign) = (certificate(&trusted), certificate(&foreign));
        let verifier = trusting(&trusted);
        let now = NOT_AFTER - 1_000_000;
        assert!(!verify(&verifier, &foreign, SERVER_NAME, now));
        assert!(verify(&verifier, &trusted, SERVER_NAME, now));
        assert!(!verify(&verifier, &foreign, SERVER_NAME, now));
        assert!(!verify(&verifier, &trusted, "other.example", now));
        assert!(verify(&verifier, &trusted, SERVER_NAME, now));
    }

    #[test]
    fn a_chain_is_remembered_for_a_minute_and_no_longer() {
        let trusted = certificate(&TestPki::new());
        let verifier = trusting(&trusted);
        assert!(verify(&verifier, &trusted, SERVER_NAME, NOT_AFTER - 30));
        assert!(verify(&verifier, &trusted, SERVER_NAME, NOT_AFTER + 29));
        assert!(!verify(&verifier, &trusted, SERVER_NAME, NOT_AFTER + 30));
    }
}
