//! Builders of the rustls configurations of client and server. Versions, key exchange and cipher are pinned, because
//! they decide how many octets and how much CPU a handshake takes; certificates are always verified.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, SupportedKxGroup, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, ServerSessionMemoryCache};
use rustls::{ClientConfig, NamedGroup, RootCertStore, ServerConfig, SupportedCipherSuite, SupportedProtocolVersion};

use super::verifier::RememberingVerifier;
use super::{KeyLogWriter, cipher_name};

/// A TLS version that the engine can speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsVersion {
    Tls12,
    Tls13,
}

impl TlsVersion {
    /// From `1.2` or `1.3`.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "1.2" => Some(Self::Tls12),
            "1.3" => Some(Self::Tls13),
            _ => None,
        }
    }

    fn supported(self) -> &'static SupportedProtocolVersion {
        match self {
            Self::Tls12 => &rustls::version::TLS12,
            Self::Tls13 => &rustls::version::TLS13,
        }
    }
}

/// What a client configuration pins.
#[derive(Clone, Copy, Debug)]
pub struct ClientOptions<'a> {
    /// PEM file with the only certificates that are trusted.
    pub ca_file: &'a Path,
    /// ALPN identifiers that are offered, in order.
    pub alpn: &'a [&'a [u8]],
    pub version: TlsVersion,
    /// One of [`key_exchange_names`]; the only group offered in TLS 1.3.
    pub key_exchange: &'a str,
    /// IANA name of the only cipher suite; in TLS 1.2 the name of a TLS 1.3 suite stands for the ECDHE suites with the
    /// same AEAD. `None`: all of the provider.
    pub cipher: Option<&'a str>,
    /// Whether session tickets are used.
    pub resumption: bool,
    /// Whether 0-RTT is used when a ticket allows it.
    pub early_data: bool,
    pub keylog_file: Option<&'a Path>,
}

/// What a server configuration pins.
#[derive(Clone, Copy, Debug)]
pub struct ServerOptions<'a> {
    /// PEM file: the leaf first, then its chain.
    pub certificate_file: &'a Path,
    pub key_file: &'a Path,
    pub alpn: &'a [&'a [u8]],
    pub versions: &'a [TlsVersion],
    /// Groups accepted, in order of preference.
    pub key_exchanges: &'a [&'a str],
    /// Whether sessions can be resumed.
    pub resumption: bool,
    /// Octets of 0-RTT data accepted; 0 turns it off, QUIC needs `u32::MAX` (RFC 9001 4.6.1).
    pub early_data_bytes: u32,
    /// The leaf stands that many times more at the end of the chain, which only makes it longer; for tests of the checks.
    pub extra_certificates: u32,
    pub keylog_file: Option<&'a Path>,
}

/// A field of the configuration that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The field of the JSON document.
    pub field: &'static str,
    /// What is wrong and how to mend it.
    pub message: String,
}

impl ConfigError {
    fn new(field: &'static str, message: impl fmt::Display) -> Self {
        Self { field, message: message.to_string() }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.field, self.message)
    }
}

impl std::error::Error for ConfigError {}

/// Names of the key exchange groups, as in the IANA registry "TLS Supported Groups".
#[must_use]
pub fn key_exchange_names() -> &'static [&'static str] {
    &["X25519", "X25519MLKEM768", "secp256r1", "secp384r1"]
}

fn key_exchange(field: &'static str, name: &str) -> Result<&'static dyn SupportedKxGroup, ConfigError> {
    match name {
        "X25519" => Ok(aws_lc_rs::kx_group::X25519),
        "X25519MLKEM768" => Ok(aws_lc_rs::kx_group::X25519MLKEM768),
        "secp256r1" => Ok(aws_lc_rs::kx_group::SECP256R1),
        "secp384r1" => Ok(aws_lc_rs::kx_group::SECP384R1),
        _ => {
            let known = key_exchange_names().join(", ");
            Err(ConfigError::new(field, format!("unknown key exchange '{name}'; one of {known}")))
        }
    }
}

fn cipher_suites(version: TlsVersion, cipher: Option<&str>) -> Result<Vec<SupportedCipherSuite>, ConfigError> {
    let of_version = |suite: &&SupportedCipherSuite| match version {
        TlsVersion::Tls12 => suite.tls13().is_none(),
        TlsVersion::Tls13 => suite.tls13().is_some(),
    };
    let all = || aws_lc_rs::ALL_CIPHER_SUITES.iter().filter(of_version);
    let Some(cipher) = cipher else { return Ok(all().copied().collect()) };
    // "TLS_AES_128_GCM_SHA256" ends like "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256".
    let aead = cipher.strip_prefix("TLS_").filter(|_| version == TlsVersion::Tls12 && !cipher.contains("_WITH_"));
    let chosen: Vec<_> = all()
        .filter(|suite| {
            let name = cipher_name(suite.suite());
            name == cipher || aead.is_some_and(|aead| name.ends_with(&format!("_WITH_{aead}")))
        })
        .copied()
        .collect();
    if chosen.is_empty() {
        let known: Vec<_> = all().map(|suite| cipher_name(suite.suite())).collect();
        return Err(ConfigError::new("cipher", format!("unknown cipher '{cipher}'; one of {}", known.join(", "))));
    }
    Ok(chosen)
}

fn certificates(field: &'static str, path: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let wrong = |error: rustls::pki_types::pem::Error| ConfigError::new(field, format!("{}: {error}", path.display()));
    let list = CertificateDer::pem_file_iter(path).map_err(wrong)?.collect::<Result<Vec<_>, _>>().map_err(wrong)?;
    if list.is_empty() {
        return Err(ConfigError::new(field, format!("{}: holds no certificate in PEM", path.display())));
    }
    Ok(list)
}

fn key_log(path: Option<&Path>) -> Result<Option<Arc<KeyLogWriter>>, ConfigError> {
    path.map(|path| {
        KeyLogWriter::open(path)
            .map(Arc::new)
            .map_err(|error| ConfigError::new("keylog_file", format!("{}: {error}", path.display())))
    })
    .transpose()
}

/// The client configuration, for TCP and for QUIC.
///
/// # Errors
/// Names the field that cannot be used.
pub fn client_config(options: &ClientOptions<'_>) -> Result<ClientConfig, ConfigError> {
    let mut groups = vec![key_exchange("key_exchange", options.key_exchange)?];
    if options.version == TlsVersion::Tls12 {
        // In TLS 1.2 this list also says which curves a certificate may use (RFC 8422 5.1.1), and hybrid groups do not
        // exist: the curves of common certificates follow the wanted group.
        groups.retain(|group| group.name() != NamedGroup::X25519MLKEM768);
        for group in [aws_lc_rs::kx_group::SECP256R1, aws_lc_rs::kx_group::SECP384R1] {
            if groups.iter().all(|have| have.name() != group.name()) {
                groups.push(group);
            }
        }
    }
    let provider = Arc::new(CryptoProvider {
        cipher_suites: cipher_suites(options.version, options.cipher)?,
        kx_groups: groups,
        ..aws_lc_rs::default_provider()
    });
    let mut roots = RootCertStore::empty();
    for certificate in certificates("ca_file", options.ca_file)? {
        roots.add(certificate).map_err(|error| ConfigError::new("ca_file", error))?;
    }
    let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .build()
        .map_err(|error| ConfigError::new("ca_file", error))?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[options.version.supported()])
        .map_err(|error| ConfigError::new("tls_version", error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(RememberingVerifier::new(verifier)))
        .with_no_client_auth();
    config.alpn_protocols = options.alpn.iter().map(|name| name.to_vec()).collect();
    config.resumption = if options.resumption { Resumption::in_memory_sessions(256) } else { Resumption::disabled() };
    config.enable_early_data = options.early_data;
    if let Some(writer) = key_log(options.keylog_file)? {
        config.key_log = writer;
    }
    Ok(config)
}

/// The server configuration, for TCP and for QUIC.
///
/// # Errors
/// Names the field that cannot be used.
pub fn server_config(options: &ServerOptions<'_>) -> Result<ServerConfig, ConfigError> {
    let groups = options
        .key_exchanges
        .iter()
        .map(|name| key_exchange("key_exchanges", name))
        .collect::<Result<Vec<_>, ConfigError>>()?;
    let provider = Arc::new(CryptoProvider { kx_groups: groups, ..aws_lc_rs::default_provider() });
    let versions: Vec<_> = options.versions.iter().map(|version| version.supported()).collect();
    let mut chain = certificates("certificate_file", options.certificate_file)?;
    let leaf = chain[0].clone();
    chain.extend((0..options.extra_certificates).map(|_| leaf.clone()));
    let key = PrivateKeyDer::from_pem_file(options.key_file)
        .map_err(|error| ConfigError::new("key_file", format!("{}: {error}", options.key_file.display())))?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&versions)
        .map_err(|error| ConfigError::new("tls_versions", error))?
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .map_err(|error| ConfigError::new("certificate_file", error))?;
    config.alpn_protocols = options.alpn.iter().map(|name| name.to_vec()).collect();
    if !options.resumption {
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    } else if options.early_data_bytes > 0 {
        // rustls accepts 0-RTT for stateful sessions only, since each may be used once (RFC 8446 8.1).
        config.session_storage = ServerSessionMemoryCache::new(65_536);
        config.max_early_data_size = options.early_data_bytes;
        // Without this the answer to a 0-RTT request would wait for the client's Finished, one round trip.
        config.send_half_rtt_data = true;
    } else {
        config.ticketer = aws_lc_rs::Ticketer::new().map_err(|error| ConfigError::new("certificate_file", error))?;
    }
    if let Some(writer) = key_log(options.keylog_file)? {
        config.key_log = writer;
    }
    Ok(config)
}
