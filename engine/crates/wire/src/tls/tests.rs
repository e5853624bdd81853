//! Both sides of the driver against each other, through memory.

use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use trifecta_testpki::{SERVER_NAME, TestPki};

use super::*;

struct Setup {
    pki: TestPki,
    client: ClientConfig,
    server: ServerConfig,
}

#[derive(Clone, Copy)]
struct Options<'a> {
    versions: &'a [TlsVersion],
    version: TlsVersion,
    key_exchanges: &'a [&'a str],
    key_exchange: &'a str,
    cipher: Option<&'a str>,
    server_alpn: &'a [&'a [u8]],
    resumption: bool,
    early: bool,
}

const DEFAULTS: Options<'static> = Options {
    versions: &[TlsVersion::Tls13],
    version: TlsVersion::Tls13,
    key_exchanges: &["X25519MLKEM768", "X25519", "secp256r1"],
    key_exchange: "X25519",
    cipher: Some("TLS_AES_128_GCM_SHA256"),
    server_alpn: &[b"h2", b"http/1.1"],
    resumption: false,
    early: false,
};

fn setup(options: Options<'_>) -> Setup {
    let pki = TestPki::new();
    let client = client_config(&ClientOptions {
        ca_file: &pki.certificate_file(),
        alpn: &[b"h2"],
        version: options.version,
        key_exchange: options.key_exchange,
        cipher: options.cipher,
        resumption: options.resumption,
        early_data: options.early,
        keylog_file: None,
    })
    .unwrap();
    let server = server_config(&ServerOptions {
        certificate_file: &pki.certificate_file(),
        key_file: &pki.key_file(),
        alpn: options.server_alpn,
        versions: options.versions,
        key_exchanges: options.key_exchanges,
        resumption: options.resumption,
        early_data_bytes: if options.early { 16_384 } else { 0 },
        extra_certificates: 0,
        keylog_file: None,
    })
    .unwrap();
    Setup { pki, client, server }
}

struct Pair {
    client: TlsStream,
    server: TlsStream,
    buffer: ReceiveBuffer,
    to_client: Vec<u8>,
    to_server: Vec<u8>,
    early: Vec<u8>,
    /// Octets carried at a time.
    step: usize,
}

impl Pair {
    fn new(client: &Arc<ClientConfig>, server: &Arc<ServerConfig>) -> Self {
        let name = ServerName::try_from(SERVER_NAME).unwrap();
        let mut client = TlsStream::client(client, &name).unwrap();
        client.start().unwrap();
        let server = TlsStream::server(server).unwrap();
        Self {
            client,
            server,
            buffer: ReceiveBuffer::new(65_536),
            to_client: Vec::new(),
            to_server: Vec::new(),
            early: Vec::new(),
            step: usize::MAX,
        }
    }

    /// Carries octets both ways until nothing moves.
    fn carry(&mut self) -> Result<(), TlsError> {
        loop {
            let moved = self.client.output().len() + self.server.output().len();
            if moved == 0 {
                return Ok(());
            }
            let flight = self.client.output().to_vec();
            self.client.consume_output(flight.len());
            for piece in flight.chunks(self.step) {
                self.server.prepare(&mut self.buffer)[..piece.len()].copy_from_slice(piece);
                let (early, late) = (&mut self.early, &mut self.to_server);
                self.server.process(&mut self.buffer, piece.len(), &mut |octets, is_early| {
                    if is_early { early.extend_from_slice(octets) } else { late.extend_from_slice(octets) }
                })?;
            }
            let flight = self.server.output().to_vec();
            self.server.consume_output(flight.len());
            for piece in flight.chunks(self.step) {
                self.client.prepare(&mut self.buffer)[..piece.len()].copy_from_slice(piece);
                let received = &mut self.to_client;
                self.client
                    .process(&mut self.buffer, piece.len(), &mut |octets, _| received.extend_from_slice(octets))?;
            }
        }
    }
}

fn text(length: usize) -> Vec<u8> {
    (0..length).map(|index| (index * 7 + index / 251) as u8).collect()
}

#[test]
fn plaintext_crosses_whatever_the_size_of_the_pieces() {
    let setup = setup(DEFAULTS);
    let (client, server) = (Arc::new(setup.client), Arc::new(setup.server));
    for step in [usize::MAX, 1_000, 7, 1] {
        let mut pair = Pair::new(&client, &server);
        pair.step = step.min(30_000);
        assert!(!pair.client.can_write() && pair.client.is_handshaking());
        pair.carry().unwrap();
        assert!(pair.client.can_write() && pair.server.can_write() && !pair.client.is_handshaking());
        let length = if step < 100 { 40_000 } else { 200_000 };
        let (up, down) = (text(length), text(length / 2 + 1));
        pair.client.write(&up).unwrap();
        pair.server.write(&down).unwrap();
        pair.carry().unwrap();
        assert!(pair.to_server == up && pair.to_client == down, "step {step}");
    }
}

/// Octets of plaintext in each of these records of TLS 1.3 (RFC 8446 5.2).
fn records(mut octets: &[u8]) -> Vec<usize> {
    let mut found = Vec::new();
    while let [_, _, _, high, low, rest @ ..] = octets {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        found.push(length - 16 - 1);
        octets = &rest[length..];
    }
    found
}

#[test]
fn records_are_as_large_as_asked_for() {
    for (size, early) in [(64, false), (1_200, false), (1_200, true), (16_384, false)] {
        let mut setup = setup(Options { early, resumption: early, ..DEFAULTS });
        setup.client.max_fragment_size = fragment_octets(Some(size));
        setup.server.max_fragment_size = fragment_octets(Some(size));
        let mut pair = Pair::new(&Arc::new(setup.client), &Arc::new(setup.server));
        pair.carry().unwrap();
        let plaintext = text(40_000);
        for side in [&mut pair.client, &mut pair.server] {
            side.write(&plaintext).unwrap();
            let found = records(side.output());
            let (last, whole) = found.split_last().unwrap();
            assert!(whole.iter().all(|octets| *octets == usize::from(size)), "{size}: {found:?}");
            assert_eq!(whole.len() * usize::from(size) + last, plaintext.len());
        }
        pair.carry().unwrap();
        assert!(pair.to_server == plaintext && pair.to_client == plaintext);
    }
}

#[test]
fn what_was_negotiated_is_told() {
    let setup = setup(DEFAULTS);
    let mut pair = Pair::new(&Arc::new(setup.client), &Arc::new(setup.server));
    pair.carry().unwrap();
    for side in [&pair.client, &pair.server] {
        assert_eq!(side.alpn(), Some(&b"h2"[..]));
        assert_eq!(side.version(), Some("1.3"));
        assert_eq!(side.cipher(), Some("TLS_AES_128_GCM_SHA256"));
        assert_eq!(side.key_exchange(), Some("X25519"));
        assert!(!side.resumed() && !side.early_data_accepted());
    }
}

#[test]
fn pinned_parameters_are_used_by_table() {
    let both = &[TlsVersion::Tls13, TlsVersion::Tls12];
    let table: &[(TlsVersion, &str, &str, &str, &str)] = &[
        (TlsVersion::Tls13, "X25519MLKEM768", "TLS_AES_256_GCM_SHA384", "TLS_AES_256_GCM_SHA384", "X25519MLKEM768"),
        (TlsVersion::Tls13, "secp256r1", "TLS_CHACHA20_POLY1305_SHA256", "TLS_CHACHA20_POLY1305_SHA256", "secp256r1"),
        (TlsVersion::Tls12, "X25519", "TLS_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "X25519"),
        (
            TlsVersion::Tls12,
            "X25519MLKEM768",
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384",
            "secp256r1",
        ),
    ];
    for (version, key_exchange, cipher, agreed, group) in table {
        let options = Options { versions: both, version: *version, key_exchange, cipher: Some(cipher), ..DEFAULTS };
        let setup = setup(options);
        let mut pair = Pair::new(&Arc::new(setup.client), &Arc::new(setup.server));
        pair.carry().unwrap();
        assert_eq!((pair.client.cipher(), pair.client.key_exchange()), (Some(*agreed), Some(*group)));
        pair.client.write(b"hello").unwrap();
        pair.carry().unwrap();
        assert_eq!(pair.to_server, b"hello");
    }
}

#[test]
fn close_notify_ends_each_direction() {
    let setup = setup(DEFAULTS);
    let mut pair = Pair::new(&Arc::new(setup.client), &Arc::new(setup.server));
    pair.carry().unwrap();
    pair.client.write(b"last").unwrap();
    pair.client.close_notify().unwrap();
    pair.carry().unwrap();
    assert_eq!(pair.to_server, b"last");
    assert!(pair.server.peer_closed() && !pair.client.peer_closed());
    pair.server.write(b"answer").unwrap();
    pair.server.close_notify().unwrap();
    pair.carry().unwrap();
    assert_eq!(pair.to_client, b"answer");
    assert!(pair.client.peer_closed());
}

#[test]
fn failures_have_their_class() {
    let class = |options: Options<'_>| {
        let setup = setup(options);
        Pair::new(&Arc::new(setup.client), &Arc::new(setup.server)).carry().unwrap_err().class.as_str()
    };
    assert_eq!(class(Options { server_alpn: &[b"http/1.1"], ..DEFAULTS }), "tls:alpn");
    assert_eq!(class(Options { versions: &[TlsVersion::Tls12], ..DEFAULTS }), "tls:version");
    assert_eq!(class(Options { key_exchanges: &["secp256r1"], ..DEFAULTS }), "tls");
    let (ours, theirs) = (setup(DEFAULTS), setup(DEFAULTS));
    let error = Pair::new(&Arc::new(ours.client), &Arc::new(theirs.server)).carry().unwrap_err();
    assert_eq!(error.class.as_str(), "tls:certificate");
}

#[test]
fn an_alert_reaches_the_peer() {
    let (ours, theirs) = (setup(DEFAULTS), setup(DEFAULTS));
    let mut pair = Pair::new(&Arc::new(ours.client), &Arc::new(theirs.server));
    pair.carry().unwrap_err();
    let alert = pair.client.output().to_vec();
    assert!(!alert.is_empty(), "the client must tell the server");
    pair.server.prepare(&mut pair.buffer)[..alert.len()].copy_from_slice(&alert);
    let error = pair.server.process(&mut pair.buffer, alert.len(), &mut |_, _| {}).unwrap_err();
    assert_eq!(error.class.as_str(), "tls:alert");
}

#[test]
fn sessions_resume_and_early_data_is_accepted_once() {
    for early in [false, true] {
        let setup = setup(Options { resumption: true, early, ..DEFAULTS });
        let (client, server) = (Arc::new(setup.client), Arc::new(setup.server));
        for round in 0..3 {
            let mut pair = Pair::new(&client, &server);
            let taken = pair.client.write_early(b"early request").unwrap();
            pair.carry().unwrap();
            assert_eq!(pair.client.resumed(), round > 0, "round {round}");
            assert_eq!(taken > 0, early && round > 0);
            assert_eq!(pair.client.early_data_accepted(), early && round > 0);
            assert_eq!(pair.early, if taken > 0 { &b"early request"[..] } else { b"" });
            pair.client.write(b"late").unwrap();
            pair.server.write(b"answer").unwrap();
            pair.carry().unwrap();
            assert_eq!((&pair.to_server[..], &pair.to_client[..]), (&b"late"[..], &b"answer"[..]));
        }
    }
}

#[test]
fn early_data_for_a_server_that_forgot_is_rejected() {
    let setup = setup(Options { resumption: true, early: true, ..DEFAULTS });
    let (client, server) = (Arc::new(setup.client), Arc::new(setup.server.clone()));
    Pair::new(&client, &server).carry().unwrap();
    let mut forgetful = setup.server;
    forgetful.session_storage = rustls::server::ServerSessionMemoryCache::new(16);
    let mut pair = Pair::new(&client, &Arc::new(forgetful));
    assert!(pair.client.write_early(b"early").unwrap() > 0);
    pair.carry().unwrap();
    assert!(!pair.client.early_data_accepted() && !pair.client.resumed());
    assert!(pair.early.is_empty() && pair.to_server.is_empty());
    pair.client.write(b"again").unwrap();
    pair.carry().unwrap();
    assert_eq!(pair.to_server, b"again");
}

#[test]
fn damaged_octets_are_an_error_and_never_a_panic() {
    for early in [false, true] {
        let setup = setup(Options { resumption: early, early, ..DEFAULTS });
        let (client, server) = (Arc::new(setup.client), Arc::new(setup.server));
        let mut state = 88_172_645_463_325_252u64;
        let mut failures = 0;
        for _ in 0..60 {
            let mut pair = Pair::new(&client, &server);
            let flight = pair.client.output().to_vec();
            pair.client.consume_output(flight.len());
            pair.server.prepare(&mut pair.buffer)[..flight.len()].copy_from_slice(&flight);
            pair.server.process(&mut pair.buffer, flight.len(), &mut |_, _| {}).unwrap();
            let mut answer = pair.server.output().to_vec();
            for _ in 0..3 {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let position = state as usize % answer.len();
                match state >> 62 {
                    0 => answer.truncate(position.max(1)),
                    1 => answer.insert(position, (state >> 32) as u8),
                    _ => answer[position] ^= 1 << (state >> 59 & 7),
                }
            }
            pair.client.prepare(&mut pair.buffer)[..answer.len()].copy_from_slice(&answer);
            if let Err(error) = pair.client.process(&mut pair.buffer, answer.len(), &mut |_, _| {}) {
                assert!(error.class.as_str().starts_with("tls"), "{error}");
                failures += 1;
                // A driver that has failed fails again.
                let more = pair.client.prepare(&mut pair.buffer).len().min(16);
                assert!(pair.client.process(&mut pair.buffer, more, &mut |_, _| {}).is_err());
                assert!(pair.client.write(b"x").is_err());
            }
        }
        // Six in ten are cut short, which only leaves the client waiting. The keys, and so the octets, are new each time.
        assert!(failures > 10, "{failures} of 60");
    }
}

#[test]
fn wrong_fields_are_named() {
    let pki = TestPki::new();
    let certificate = pki.certificate_file();
    let good = ClientOptions {
        ca_file: &certificate,
        alpn: &[],
        version: TlsVersion::Tls13,
        key_exchange: "X25519",
        cipher: None,
        resumption: false,
        early_data: false,
        keylog_file: None,
    };
    let missing = pki.folder().join("missing.pem");
    let key = pki.key_file();
    let field = |options: ClientOptions<'_>| client_config(&options).unwrap_err().field;
    assert!(client_config(&good).is_ok());
    assert_eq!(field(ClientOptions { ca_file: &missing, ..good }), "ca_file");
    assert_eq!(field(ClientOptions { ca_file: &key, ..good }), "ca_file");
    assert_eq!(field(ClientOptions { key_exchange: "P-521", ..good }), "key_exchange");
    assert_eq!(field(ClientOptions { cipher: Some("TLS_RSA_WITH_RC4_128_SHA"), ..good }), "cipher");
    let nowhere = pki.folder().join("none").join("keys");
    assert_eq!(field(ClientOptions { keylog_file: Some(&nowhere), ..good }), "keylog_file");
}

#[test]
fn secrets_are_logged_for_the_owner_only() {
    use std::os::unix::fs::PermissionsExt;
    let setup = setup(DEFAULTS);
    let path = setup.pki.folder().join("keys.log");
    let mut client = setup.client;
    client.key_log = Arc::new(KeyLogWriter::open(&path).unwrap());
    Pair::new(&Arc::new(client), &Arc::new(setup.server)).carry().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert_eq!(text.lines().filter(|line| line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")).count(), 1);
    for line in text.lines() {
        let words: Vec<_> = line.split(' ').collect();
        assert_eq!(words.len(), 3);
        assert!(words[1].len() == 64 && words[1..].iter().all(|w| w.bytes().all(|b| b.is_ascii_hexdigit())));
    }
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
}
