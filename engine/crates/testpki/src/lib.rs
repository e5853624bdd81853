//! Certificates for the engine's own tests: made when a test runs, so that no key lies in the repository.
//!
//! A self-signed P-256 certificate that is both the leaf a server shows and the root a client trusts (RFC 5280).

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use std::path::{Path, PathBuf};

/// A certificate and its key on disk, in a folder that is removed with this value.
pub struct TestPki {
    folder: PathBuf,
}

/// The name the certificate is for, besides `localhost`.
pub const SERVER_NAME: &str = "origin.lab";

impl TestPki {
    /// Makes a new key and certificate for [`SERVER_NAME`], `localhost` and 127.0.0.1.
    ///
    /// # Panics
    /// When the temporary folder cannot be written: a test cannot go on then.
    #[must_use]
    pub fn new() -> Self {
        static COUNTER: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
        let number = COUNTER.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("trifecta-testpki-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("temporary folder");
        let (certificate, key) = self_signed();
        std::fs::write(folder.join("origin.pem"), pem("CERTIFICATE", &certificate)).expect("temporary file");
        std::fs::write(folder.join("origin.key"), pem("PRIVATE KEY", &key)).expect("temporary file");
        Self { folder }
    }

    /// PEM file of the certificate, for servers and as the only root of clients.
    #[must_use]
    pub fn certificate_file(&self) -> PathBuf {
        self.folder.join("origin.pem")
    }

    /// PEM file of the key (PKCS #8).
    #[must_use]
    pub fn key_file(&self) -> PathBuf {
        self.folder.join("origin.key")
    }

    /// The folder both are in; a test may keep its files there.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

impl Default for TestPki {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for TestPki {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

const ECDSA_WITH_SHA256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02];
const EC_PUBLIC_KEY: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01];
const PRIME256V1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07];
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const SUBJECT_ALT_NAME: &[u8] = &[0x55, 0x1d, 0x11];

const INTEGER: u8 = 0x02;
const BIT_STRING: u8 = 0x03;
const OCTET_STRING: u8 = 0x04;
const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;

/// DER of a certificate and of its PKCS #8 key.
fn self_signed() -> (Vec<u8>, Vec<u8>) {
    let random = SystemRandom::new();
    let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
    let key = EcdsaKeyPair::generate_pkcs8(algorithm, &random).expect("key generation");
    let pair = EcdsaKeyPair::from_pkcs8(algorithm, key.as_ref()).expect("key just made");
    let signature_algorithm = der(SEQUENCE, &der(OBJECT_IDENTIFIER, ECDSA_WITH_SHA256));
    let common_name =
        der(SEQUENCE, &[der(OBJECT_IDENTIFIER, COMMON_NAME), der(UTF8_STRING, b"trifecta test")].concat());
    let name = der(SEQUENCE, &der(SET, &common_name));
    let validity = [der(GENERALIZED_TIME, b"20000101000000Z"), der(GENERALIZED_TIME, b"21000101000000Z")].concat();
    let key_algorithm = [der(OBJECT_IDENTIFIER, EC_PUBLIC_KEY), der(OBJECT_IDENTIFIER, PRIME256V1)].concat();
    let public_key = [der(SEQUENCE, &key_algorithm), bits(pair.public_key().as_ref())].concat();
    // GeneralName: [2] dNSName, [7] iPAddress (RFC 5280 4.2.1.6).
    let names = [der(0x82, SERVER_NAME.as_bytes()), der(0x82, b"localhost"), der(0x87, &[127, 0, 0, 1])].concat();
    let alternative_names =
        [der(OBJECT_IDENTIFIER, SUBJECT_ALT_NAME), der(OCTET_STRING, &der(SEQUENCE, &names))].concat();
    let to_be_signed = der(
        SEQUENCE,
        &[
            der(0xa0, &der(INTEGER, &[2])),
            der(INTEGER, &[1]),
            signature_algorithm.clone(),
            name.clone(),
            // RFC 5280 4.1.2.5 wants UTCTime before 2050; parsers accept either.
            der(SEQUENCE, &validity),
            name,
            der(SEQUENCE, &public_key),
            der(0xa3, &der(SEQUENCE, &der(SEQUENCE, &alternative_names))),
        ]
        .concat(),
    );
    let signature = pair.sign(&random, &to_be_signed).expect("signature");
    let certificate = [to_be_signed, signature_algorithm, bits(signature.as_ref())].concat();
    (der(SEQUENCE, &certificate), key.as_ref().to_vec())
}

/// A BIT STRING without unused bits.
fn bits(octets: &[u8]) -> Vec<u8> {
    der(BIT_STRING, &[&[0], octets].concat())
}

fn der(tag: u8, content: &[u8]) -> Vec<u8> {
    let mut out = vec![tag];
    let length = content.len();
    match length {
        0..0x80 => out.push(length as u8),
        0x80..0x100 => out.extend_from_slice(&[0x81, length as u8]),
        _ => out.extend_from_slice(&[0x82, (length >> 8) as u8, length as u8]),
    }
    out.extend_from_slice(content);
    out
}

/// RFC 7468.
fn pem(label: &str, der: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for (index, group) in der.chunks(3).enumerate() {
        if index > 0 && index % 16 == 0 {
            text.push('\n');
        }
        let word = group.iter().fold(0u32, |word, &octet| word << 8 | u32::from(octet)) << (8 * (3 - group.len()));
        for place in 0..4 {
            let digit = ALPHABET[(word >> (18 - 6 * place)) as usize & 63];
            text.push(if place <= group.len() { digit as char } else { '=' });
        }
    }
    format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pem_is_base64_with_padding() {
        assert_eq!(pem("X", b"Man"), "-----BEGIN X-----\nTWFu\n-----END X-----\n");
        assert_eq!(pem("X", b"Ma"), "-----BEGIN X-----\nTWE=\n-----END X-----\n");
        assert_eq!(pem("X", b"M"), "-----BEGIN X-----\nTQ==\n-----END X-----\n");
    }

    #[test]
    fn files_exist_while_the_value_lives() {
        let pki = TestPki::new();
        let file = pki.certificate_file();
        assert!(file.is_file() && pki.key_file().is_file());
        drop(pki);
        assert!(!file.exists());
    }
}
