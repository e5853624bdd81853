//! A server of this process that does what a test tells it, on std's sockets and rustls' buffered API, and runs against it.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use rustls::{ServerConfig, ServerConnection, StreamOwned};
use serde_json::{Value, json};
use trifecta_load::config::{Config, Protocol};
use trifecta_load::{Report, execute};
use trifecta_record::{Sample, SpanStore};
use trifecta_session::{h1::H1Session, h2::H2Session, h3::H3Session};
use trifecta_testpki::{SERVER_NAME, TestPki};
use trifecta_wire::ErrorClass;
use trifecta_wire::tls::{ServerOptions, TlsVersion, server_config};

pub mod h2server;
pub mod h3server;

pub type Stream = StreamOwned<ServerConnection, TcpStream>;

/// Listens until dropped; each connection gets a thread that runs what the test gave.
pub struct Server {
    pub pki: Arc<TestPki>,
    pub address: SocketAddr,
    pub accepted: Arc<AtomicUsize>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

pub fn tls_server(pki: &TestPki, alpn: &[&[u8]], versions: &[TlsVersion], early_data_bytes: u32) -> ServerConfig {
    server_config(&ServerOptions {
        certificate_file: &pki.certificate_file(),
        key_file: &pki.key_file(),
        alpn,
        versions,
        key_exchanges: &["X25519", "secp256r1"],
        resumption: true,
        early_data_bytes,
        extra_certificates: 0,
        keylog_file: None,
    })
    .unwrap()
}

impl Server {
    /// Speaks TLS with what `alpn` offers, then hands the stream to `serve`.
    pub fn tls(alpn: &[&[u8]], serve: impl Fn(&mut Stream) + Send + Sync + 'static) -> Self {
        let pki = TestPki::new();
        let config = tls_server(&pki, alpn, &[TlsVersion::Tls13], 0);
        Self::tls_with(pki, config, serve)
    }

    pub fn tls_with(pki: TestPki, config: ServerConfig, serve: impl Fn(&mut Stream) + Send + Sync + 'static) -> Self {
        let config = Arc::new(config);
        Self::tcp_with(pki, move |socket| {
            let connection = ServerConnection::new(config.clone()).unwrap();
            let mut stream = StreamOwned::new(connection, socket);
            serve(&mut stream);
            stream.conn.send_close_notify();
            let _ = stream.conn.write_tls(&mut stream.sock);
        })
    }

    /// Hands the bare socket to `serve`.
    pub fn tcp(serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        Self::tcp_with(TestPki::new(), serve)
    }

    fn tcp_with(pki: TestPki, serve: impl Fn(TcpStream) + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, accepted) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let serve = Arc::new(serve);
        let thread = std::thread::spawn({
            let (stop, accepted) = (stop.clone(), accepted.clone());
            move || {
                for socket in listener.incoming() {
                    if stop.load(Ordering::SeqCst) {
                        return;
                    }
                    let Ok(socket) = socket else { continue };
                    accepted.fetch_add(1, Ordering::SeqCst);
                    socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
                    socket.set_nodelay(true).unwrap();
                    let serve = serve.clone();
                    std::thread::spawn(move || serve(socket));
                }
            }
        });
        Self { pki: Arc::new(pki), address, accepted, stop, thread: Some(thread) }
    }

    /// Runs the load generator against this server; `changes` are fields of the configuration.
    pub fn run(&self, changes: Value) -> Run {
        run(&self.pki, self.address, changes)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What a run brought.
pub struct Run {
    pub summary: Value,
    pub samples: Vec<Sample>,
    pub spans: Vec<SpanStore>,
}

impl Run {
    /// The error of each sample, in order.
    pub fn errors(&self) -> Vec<Option<&'static str>> {
        self.samples.iter().map(|sample| sample.error.map(ErrorClass::as_str)).collect()
    }

    /// The one error that all samples have.
    pub fn only_error(&self) -> Option<&'static str> {
        let errors = self.errors();
        assert!(!errors.is_empty() && errors.iter().all(|error| *error == errors[0]), "{errors:?}");
        errors[0]
    }
}

pub fn document(pki: &TestPki, address: SocketAddr) -> Value {
    json!({"trial": "t", "protocol": "h1", "address": address.ip(), "port": address.port(), "server_name": SERVER_NAME,
        "ca_file": pki.certificate_file(), "connection_mode": "reused", "loop": {"kind": "closed"}, "requests": 1,
        "method": "GET", "path": "/bytes/5", "expect_body_bytes": 5, "expect_status": 200,
        "connect_timeout_ns": 300_000_000, "request_timeout_ns": 300_000_000, "total_timeout_ns": 10_000_000_000u64,
        "samples_file": "unused"})
}

pub fn run(pki: &TestPki, address: SocketAddr, changes: Value) -> Run {
    let mut document = document(pki, address);
    for (field, value) in changes.as_object().unwrap() {
        document[field] = value.clone();
    }
    let config = Arc::new(Config::parse(&document.to_string()).unwrap());
    let report: Report = match config.protocol {
        Protocol::H1 => execute::<H1Session>(&config).unwrap(),
        Protocol::H2 => execute::<H2Session>(&config).unwrap(),
        Protocol::H3 => execute::<H3Session>(&config).unwrap(),
    };
    let samples = report.samples.iter().flat_map(|store| store.iter()).collect();
    Run { summary: serde_json::to_value(report.summary).unwrap(), samples, spans: report.spans }
}

/// A request as the server saw it.
pub struct Request {
    pub head: String,
    pub body: Vec<u8>,
}

/// Reads one HTTP/1.1 request; `None` at the end of the stream.
pub fn read_request(stream: &mut impl Read) -> Option<Request> {
    let mut head = Vec::new();
    let mut octet = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut octet).ok()? == 0 {
            return None;
        }
        head.push(octet[0]);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).ok()?;
    Some(Request { head, body })
}

/// Answers every request on a connection with the same octets.
pub fn answer(response: &'static [u8]) -> impl Fn(&mut Stream) + Send + Sync + 'static {
    move |stream| {
        while read_request(stream).is_some() {
            if stream.write_all(response).and_then(|()| stream.flush()).is_err() {
                return;
            }
        }
    }
}

pub const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nabcde";

pub fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|index| 0x61 + (index % 26) as u8).collect()
}

/// A small generator of numbers for damaged octets.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() >> 11) as usize % limit.max(1)
    }

    /// Flips, cuts, doubles and inserts octets.
    pub fn damage(&mut self, octets: &mut Vec<u8>) {
        for _ in 0..1 + self.below(4) {
            if octets.is_empty() {
                return;
            }
            let position = self.below(octets.len());
            match self.below(5) {
                0 => octets.truncate(position),
                1 => octets.insert(position, self.next() as u8),
                2 => {
                    let copy = octets[position..].to_vec();
                    octets.extend_from_slice(&copy[..copy.len().min(40)]);
                }
                3 => drop(octets.remove(position)),
                _ => octets[position] ^= 1 << self.below(8),
            }
        }
    }
}
