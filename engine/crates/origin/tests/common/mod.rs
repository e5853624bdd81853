//! A running origin and clients for it, on rustls' buffered API and std's sockets: nothing of the code under test but
//! its codecs.
#![allow(dead_code)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ClientConnection, StreamOwned};
use trifecta_origin::Origin;
use trifecta_origin::config::Config;
use trifecta_origin::stats::Stats;
use trifecta_testpki::{SERVER_NAME, TestPki};
use trifecta_wire::http1::{ChunkedDecoder, ChunkedStep, Framing, parse_response_head};
use trifecta_wire::tls::{ClientOptions, TlsVersion, client_config};

pub mod h2client;
pub mod h3client;
pub mod services;

/// Anything that takes longer than this hangs.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// The summary's part of what was counted, as it is written.
pub trait Told {
    fn told(&self) -> serde_json::Value;
}

impl Told for Stats {
    fn told(&self) -> serde_json::Value {
        serde_json::to_value(self.counts()).unwrap()
    }
}

pub type Stream = StreamOwned<ClientConnection, TcpStream>;

/// An origin of this process.
pub struct Server {
    pub pki: TestPki,
    origin: Option<Origin>,
    pub address: SocketAddr,
}

impl Server {
    /// `more` are further fields of the configuration, each with a comma in front.
    pub fn start(more: &str) -> Self {
        Self::start_with(TestPki::new(), more)
    }

    pub fn start_with(pki: TestPki, more: &str) -> Self {
        let protocols = if more.contains("\"protocols\"") { "" } else { r#", "protocols": ["h2", "h1"]"# };
        let text = format!(
            r#"{{"address": "127.0.0.1", "port": 0, "certificate_file": {:?}, "key_file": {:?}{protocols}{more}}}"#,
            pki.certificate_file(),
            pki.key_file()
        );
        let origin = Origin::start(Config::parse(&text).unwrap()).unwrap();
        let address = origin.address();
        Self { pki, origin: Some(origin), address }
    }

    pub fn client_config(&self, alpn: &[&[u8]]) -> ClientConfig {
        let options = ClientOptions {
            ca_file: &self.pki.certificate_file(),
            alpn,
            version: TlsVersion::Tls13,
            key_exchange: "X25519",
            cipher: None,
            resumption: true,
            early_data: false,
            keylog_file: None,
        };
        client_config(&options).unwrap()
    }

    pub fn connect_with(&self, config: &Arc<ClientConfig>) -> Stream {
        let socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        socket.set_nodelay(true).unwrap();
        let name = ServerName::try_from(SERVER_NAME).unwrap();
        StreamOwned::new(ClientConnection::new(config.clone(), name).unwrap(), socket)
    }

    pub fn connect(&self, alpn: &[u8]) -> Stream {
        self.connect_with(&Arc::new(self.client_config(&[alpn])))
    }

    pub fn h1(&self) -> H1Client {
        H1Client { stream: self.connect(b"http/1.1"), received: Vec::new() }
    }

    pub fn h2(&self) -> h2client::H2Client {
        h2client::H2Client::new(self.connect(b"h2"))
    }

    pub fn finish(mut self) -> Stats {
        self.origin.take().unwrap().finish().unwrap()
    }
}

/// A response as the client saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub content_length: Option<u64>,
    pub content: Vec<u8>,
    pub keep_alive: bool,
    /// The head as it came (HTTP/1.1).
    pub head: String,
}

/// Octets 0..`octets` of the pattern.
pub fn pattern(octets: usize) -> Vec<u8> {
    (0..octets).map(|place| b'a' + (place % 26) as u8).collect()
}

pub struct H1Client {
    pub stream: Stream,
    received: Vec<u8>,
}

impl H1Client {
    pub fn send(&mut self, text: impl AsRef<[u8]>) {
        self.stream.write_all(text.as_ref()).unwrap();
        self.stream.flush().unwrap();
    }

    /// `false` at the end of the stream, in good order or not.
    fn more(&mut self) -> bool {
        let mut buffer = [0; 16_384];
        match self.stream.read(&mut buffer) {
            Ok(0) => false,
            Ok(octets) => {
                self.received.extend_from_slice(&buffer[..octets]);
                true
            }
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                panic!("the server hangs")
            }
            Err(_) => false,
        }
    }

    /// The next response to anything but HEAD, interim ones included; `None` when the connection ends first.
    pub fn response(&mut self) -> Option<Response> {
        self.response_to(false)
    }

    pub fn response_to(&mut self, to_head: bool) -> Option<Response> {
        let head = loop {
            match parse_response_head(&self.received, to_head).expect("response") {
                Some(head) => break head,
                None if self.more() => {}
                None => return None,
            }
        };
        let text: String = self.received.drain(..head.head_octets).map(char::from).collect();
        let mut response = Response {
            status: head.status,
            content_length: head.content_length,
            keep_alive: head.keep_alive,
            head: text,
            content: Vec::new(),
        };
        match head.framing {
            Framing::None => {}
            Framing::Length(octets) => {
                while self.received.len() < octets as usize {
                    if !self.more() {
                        response.content = std::mem::take(&mut self.received);
                        return Some(response);
                    }
                }
                response.content = self.received.drain(..octets as usize).collect();
            }
            Framing::Chunked => {
                let mut decoder = ChunkedDecoder::new();
                loop {
                    let received = std::mem::take(&mut self.received);
                    let mut input = received.as_slice();
                    while let ChunkedStep::Content(piece) = decoder.next(&mut input).unwrap() {
                        response.content.extend_from_slice(piece);
                    }
                    self.received = input.to_vec();
                    if decoder.next(&mut self.received.as_slice()).unwrap() == ChunkedStep::End || !self.more() {
                        break;
                    }
                }
            }
            Framing::UntilClose => {
                while self.more() {}
                response.content = std::mem::take(&mut self.received);
            }
        }
        Some(response)
    }

    pub fn get(&mut self, path: &str) -> Response {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: {SERVER_NAME}\r\n\r\n"));
        self.response().expect("a response")
    }

    /// Whether the server ends the connection without another octet.
    pub fn is_closed(&mut self) -> bool {
        !self.more()
    }
}
