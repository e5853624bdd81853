//! A client for HTTP/3 on quinn-proto, over std's blocking socket: sends the octets a test gives and hands back what came.

use std::collections::HashMap;
use std::net::UdpSocket;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, ReadError,
    StreamEvent, StreamId, VarInt,
};
use trifecta_testpki::SERVER_NAME;
use trifecta_wire::h3::{MessageEvent, MessageReader, frame};
use trifecta_wire::qpack::{Decoder, encoder};
use trifecta_wire::quic::{self, Adaptations, ClientTls, TransportOptions};
use trifecta_wire::tls::{ClientOptions, TlsVersion, client_config};

use super::{PATIENCE, Server};

/// What came on a stream.
#[derive(Debug, Default)]
pub struct Received {
    pub octets: Vec<u8>,
    pub ended: bool,
    /// The code the server reset the stream with.
    pub reset: Option<u64>,
}

/// A response, read whole.
#[derive(Debug)]
pub struct Response {
    pub status: u16,
    pub fields: Vec<(String, String)>,
    pub content: Vec<u8>,
}

impl Response {
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

pub struct H3Client {
    socket: UdpSocket,
    endpoint: Endpoint,
    handle: ConnectionHandle,
    pub connection: Connection,
    pub streams: HashMap<StreamId, Received>,
    /// Streams in the order in which they ended.
    pub ended: Vec<StreamId>,
    pub lost: Option<ConnectionError>,
    /// Reads nothing from streams, as a client that is busy with something else.
    pub lazy: bool,
    /// The datagram from now on that is lost, 1 the next one; 0: none.
    pub loses: usize,
}

/// TLS of a client that remembers sessions.
pub fn tls(server: &Server, early_data: bool) -> Arc<ClientTls> {
    let options = ClientOptions {
        ca_file: &server.pki.certificate_file(),
        alpn: &[b"h3"],
        version: TlsVersion::Tls13,
        key_exchange: "X25519",
        cipher: None,
        resumption: true,
        early_data,
        keylog_file: None,
    };
    Arc::new(ClientTls::new(Arc::new(client_config(&options).unwrap()), Adaptations::ALL).unwrap())
}

impl H3Client {
    /// A connection whose handshake is complete.
    pub fn connect(server: &Server) -> Self {
        let mut client = Self::start(server, &tls(server, false), 64 << 20);
        client.run_until(|client| client.lost.is_some() || !client.connection.is_handshaking());
        client
    }

    /// A connection that has not sent anything yet.
    pub fn start(server: &Server, tls: &Arc<ClientTls>, window_bytes: u64) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(server.address).unwrap();
        let options = TransportOptions {
            stream_window_bytes: window_bytes,
            connection_window_bytes: window_bytes,
            ..TransportOptions::default()
        };
        let mut config = ClientConfig::new(Arc::clone(tls) as _);
        config.transport_config(Arc::new(quic::transport_config(&options).unwrap()));
        let endpoint = Arc::new(quic::client_endpoint_config(1452, Adaptations::ALL).unwrap());
        let mut endpoint = Endpoint::new(endpoint, None, true, None);
        let (handle, connection) = endpoint.connect(Instant::now(), config, server.address, SERVER_NAME).unwrap();
        Self {
            socket,
            endpoint,
            handle,
            connection,
            streams: HashMap::new(),
            ended: Vec::new(),
            lost: None,
            lazy: false,
            loses: 0,
        }
    }

    /// Sends, receives for at most `wait`, and handles what came.
    pub fn step(&mut self, wait: Duration) {
        let mut packets = Vec::new();
        while let Some(transmit) = self.connection.poll_transmit(Instant::now(), 1, &mut packets) {
            let _ = self.socket.send(&packets[..transmit.size]);
            packets.clear();
        }
        let due = self.connection.poll_timeout().map_or(wait, |due| due.saturating_duration_since(Instant::now()));
        self.socket.set_read_timeout(Some(due.min(wait).max(Duration::from_micros(100)))).unwrap();
        let mut buffer = [0; 2048];
        let received = self.socket.recv(&mut buffer);
        let is_lost = received.is_ok() && self.loses == 1;
        self.loses = self.loses.saturating_sub(usize::from(received.is_ok()));
        if let (Ok(octets), false) = (received, is_lost) {
            let from = self.socket.peer_addr().unwrap();
            let datagram = BytesMut::from(&buffer[..octets]);
            let event = self.endpoint.handle(Instant::now(), from, None, None, datagram, &mut packets);
            if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
                self.connection.handle_event(event);
            }
        }
        self.connection.handle_timeout(Instant::now());
        while let Some(event) = self.connection.poll_endpoint_events() {
            if let Some(event) = self.endpoint.handle_event(self.handle, event) {
                self.connection.handle_event(event);
            }
        }
        while let Some(event) = self.connection.poll() {
            match event {
                Event::ConnectionLost { reason } => self.lost = Some(reason),
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = self.connection.streams().accept(dir) {
                        self.read(id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => self.read(id),
                _ => {}
            }
        }
    }

    pub fn read(&mut self, id: StreamId) {
        if self.lazy {
            return;
        }
        let received = self.streams.entry(id).or_default();
        let mut stream = self.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => received.octets.extend_from_slice(&chunk.bytes),
                Ok(None) => {
                    self.ended.push(id);
                    break received.ended = true;
                }
                Err(ReadError::Blocked) => break,
                Err(ReadError::Reset(code)) => break received.reset = Some(code.into_inner()),
            }
        }
        let _ = chunks.finalize();
    }

    pub fn run_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !done(self) {
            assert!(Instant::now() < end, "nothing came; lost: {:?}", self.lost);
            self.step(Duration::from_millis(20));
        }
    }

    /// Writes octets to a new stream of this kind; `end` finishes it.
    pub fn send(&mut self, dir: Dir, octets: &[u8], end: bool) -> StreamId {
        let id = self.connection.streams().open(dir).expect("the server allows more streams");
        let written = self.connection.send_stream(id).write(octets).unwrap_or(0);
        assert_eq!(written, octets.len(), "the server's windows are larger than a test");
        if end {
            self.connection.send_stream(id).finish().unwrap();
        }
        id
    }

    /// What came on the stream once it has ended, was reset, or the connection was lost.
    pub fn outcome(&mut self, id: StreamId) -> Received {
        self.run_until(|client| {
            let received = client.streams.get(&id);
            client.lost.is_some() || received.is_some_and(|received| received.ended || received.reset.is_some())
        });
        self.streams.remove(&id).unwrap_or_default()
    }

    pub fn response(&mut self, id: StreamId) -> Response {
        let received = self.outcome(id);
        assert!(received.ended, "{received:?}, lost {:?}", self.lost);
        parse(&received.octets)
    }

    /// Asks and reads the whole response.
    pub fn ask(&mut self, method: &str, path: &str, content: &[u8]) -> Response {
        let id = self.send(Dir::Bi, &request(method, path, content), true);
        self.response(id)
    }

    /// The code the server closed the connection with.
    pub fn close_code(&mut self) -> u64 {
        self.run_until(|client| client.lost.is_some());
        match &self.lost {
            Some(ConnectionError::ApplicationClosed(close)) => close.error_code.into_inner(),
            other => panic!("{other:?}"),
        }
    }

    pub fn close(&mut self) {
        self.connection.close(Instant::now(), VarInt::from_u32(0x100), bytes::Bytes::new());
        self.step(Duration::from_millis(1));
    }
}

/// HEADERS with these fields.
pub fn headers(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut out = Vec::new();
    let section = encoder::section(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    frame::write_headers(&section, &mut out);
    out
}

pub fn data(content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write_header(frame::kind::DATA, content.len() as u64, &mut out);
    out.extend_from_slice(content);
    out
}

/// A whole request.
pub fn request(method: &str, path: &str, content: &[u8]) -> Vec<u8> {
    let mut out = headers(&[(":method", method), (":scheme", "https"), (":authority", SERVER_NAME), (":path", path)]);
    if !content.is_empty() {
        out.extend(data(content));
    }
    out
}

fn parse(octets: &[u8]) -> Response {
    let mut response = Response { status: 0, fields: Vec::new(), content: Vec::new() };
    let (mut reader, mut rest) = (MessageReader::new(), octets);
    while let Some(event) = reader.read(&mut rest).unwrap() {
        match event {
            MessageEvent::Head(section) => Decoder::new(1 << 16)
                .decode(section, |name, value| {
                    let text = |octets: &[u8]| String::from_utf8(octets.to_vec()).unwrap();
                    if name == b":status" {
                        response.status = text(value).parse().unwrap();
                    } else {
                        response.fields.push((text(name), text(value)));
                    }
                })
                .unwrap(),
            MessageEvent::Content(piece) => response.content.extend_from_slice(piece),
            MessageEvent::Trailers(_) => panic!("the origin sends no trailers"),
        }
    }
    reader.finish().unwrap();
    response
}

/// Status, lines of the head (ISO 8859-1) and content of a response.
pub fn parse_lossy(octets: &[u8]) -> (u16, Vec<String>, Vec<u8>) {
    let (mut status, mut lines, mut content) = (0, Vec::new(), Vec::new());
    let (mut reader, mut rest) = (MessageReader::new(), octets);
    let text = |octets: &[u8]| octets.iter().copied().map(char::from).collect::<String>();
    while let Some(event) = reader.read(&mut rest).unwrap() {
        match event {
            MessageEvent::Head(section) => Decoder::new(1 << 16)
                .decode(section, |name, value| match name {
                    b":status" => status = text(value).parse().unwrap(),
                    _ => lines.push(format!("{}: {}", text(name), text(value))),
                })
                .unwrap(),
            MessageEvent::Content(piece) => content.extend_from_slice(piece),
            MessageEvent::Trailers(_) => panic!("the origin sends no trailers"),
        }
    }
    (status, lines, content)
}
