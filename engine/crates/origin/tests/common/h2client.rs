//! A plain HTTP/2 client that says what it is told to, right or wrong.

use super::{Response, Stream};
use std::collections::BTreeMap;
use std::io::{Read, Write};
use trifecta_wire::h2::{ErrorCode, Event, Limits, PREFACE, Parser, write};
use trifecta_wire::hpack::{Decoder, encoder};

/// What a server said of its own accord.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    Reset(u32, ErrorCode),
    GoAway(u32, ErrorCode),
    PingAck([u8; 8]),
    SettingsAck,
    Settings(Vec<(u16, u32)>),
    WindowUpdate(u32, u32),
    Closed,
}

pub struct H2Client {
    pub stream: Stream,
    parser: Option<Parser>,
    decoder: Decoder,
    pub responses: BTreeMap<u32, Response>,
    /// Header blocks as they came.
    pub blocks: BTreeMap<u32, Vec<u8>>,
    pub ended: Vec<u32>,
    /// The streams of DATA in the order in which it came, one behind the other once.
    pub served: Vec<u32>,
    pub said: Vec<Said>,
    pub closed: bool,
}

impl H2Client {
    pub fn new(stream: Stream) -> Self {
        let limits = Limits { max_frame_octets: 16_384, max_header_block_octets: 1 << 20 };
        Self {
            stream,
            parser: Some(Parser::new(limits)),
            decoder: Decoder::new(4096, 1 << 20),
            responses: BTreeMap::new(),
            blocks: BTreeMap::new(),
            ended: Vec::new(),
            served: Vec::new(),
            said: Vec::new(),
            closed: false,
        }
    }

    pub fn send(&mut self, octets: &[u8]) {
        // A server that gave the connection up may have closed it already.
        let _ = self.stream.write_all(octets);
        let _ = self.stream.flush();
    }

    /// The preface and SETTINGS.
    pub fn start(&mut self, settings: &[(u16, u32)]) {
        let mut out = PREFACE.to_vec();
        write::settings(settings, &mut out);
        self.send(&out);
    }

    pub fn block(method: &str, path: &str, more: &[(&str, &str)]) -> Vec<u8> {
        let fixed = [(":method", method), (":scheme", "https"), (":authority", "origin.lab"), (":path", path)];
        encoder::block(fixed.iter().chain(more).map(|(name, value)| (name.as_bytes(), value.as_bytes())))
    }

    pub fn request(&mut self, stream: u32, method: &str, path: &str, end_stream: bool) {
        let mut out = Vec::new();
        write::headers(stream, &Self::block(method, path, &[]), end_stream, &mut out);
        self.send(&out);
    }

    pub fn data(&mut self, stream: u32, content: &[u8], end_stream: bool) {
        let mut out = Vec::new();
        write::data_header(stream, content.len(), end_stream, &mut out);
        out.extend_from_slice(content);
        self.send(&out);
    }

    /// Reads once; answers nothing by itself, not even SETTINGS, so that a test decides what the server hears.
    pub fn read(&mut self) {
        let mut buffer = [0; 65_536];
        let octets = match self.stream.read(&mut buffer) {
            Ok(octets) => octets,
            Err(error) if matches!(error.kind(), std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut) => {
                panic!("the server hangs; so far {:?} {:?}", self.said, self.responses.keys())
            }
            Err(_) => 0,
        };
        if octets == 0 {
            self.closed = true;
            self.said.push(Said::Closed);
            return;
        }
        let mut parser = self.parser.take().unwrap();
        let mut input = &buffer[..octets];
        while let Some(event) = parser.next(&mut input).expect("frames of the server") {
            self.event(event);
        }
        self.parser = Some(parser);
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Headers { stream, block, end_stream } => {
                let mut response = Response::default();
                self.decoder
                    .decode(block, |name, value| {
                        let text: String = value.iter().copied().map(char::from).collect();
                        match name {
                            b":status" => response.status = text.parse().unwrap(),
                            b"content-length" => response.content_length = Some(text.parse().unwrap()),
                            _ => {}
                        }
                        response.head.push_str(&format!("{}: {text}\n", std::str::from_utf8(name).unwrap()));
                    })
                    .unwrap();
                self.blocks.insert(stream, block.to_vec());
                self.responses.insert(stream, response);
                self.ended.extend(end_stream.then_some(stream));
            }
            Event::Data { stream, content, end_stream, .. } => {
                self.responses.get_mut(&stream).expect("HEADERS first").content.extend_from_slice(content);
                self.ended.extend(end_stream.then_some(stream));
                self.served.push(stream);
                self.served.dedup();
            }
            Event::RstStream { stream, code } => self.said.push(Said::Reset(stream, code)),
            Event::GoAway { last_stream, code, .. } => self.said.push(Said::GoAway(last_stream, code)),
            Event::Ping { data, ack: true } => self.said.push(Said::PingAck(data)),
            Event::SettingsAck => self.said.push(Said::SettingsAck),
            Event::Settings(settings) => self.said.push(Said::Settings(settings.iter().collect())),
            Event::WindowUpdate { stream, increment } => self.said.push(Said::WindowUpdate(stream, increment)),
            other => panic!("{other:?}"),
        }
    }

    /// Reads until the response on a stream has ended.
    pub fn response(&mut self, stream: u32) -> Response {
        while !self.ended.contains(&stream) {
            assert!(!self.closed, "closed before the response; {:?}", self.said);
            self.read();
        }
        self.responses[&stream].clone()
    }

    /// Reads until the server has said this.
    pub fn hear(&mut self, expected: &Said) {
        while !self.said.contains(expected) {
            assert!(!self.closed, "expected {expected:?}, heard {:?}", self.said);
            self.read();
        }
    }

    /// Reads to the end of the connection and returns the code of GOAWAY, if one came.
    pub fn last_words(&mut self) -> Option<ErrorCode> {
        while !self.closed {
            self.read();
        }
        self.said.iter().find_map(|said| if let Said::GoAway(_, code) = said { Some(*code) } else { None })
    }
}
