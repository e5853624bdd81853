//! A small HTTP/2 server on the shared codec, one connection a call.

use std::io::{Read, Write};

use trifecta_wire::h2::{Event, Limits, PREFACE, Parser, setting, write};
use trifecta_wire::hpack::encoder;

use super::{Stream, pattern};

/// What a request brought when its stream ended.
pub struct Seen {
    pub stream: u32,
    pub body: Vec<u8>,
}

struct Body {
    stream: u32,
    octets: Vec<u8>,
    /// Left of the stream's window, where it is known.
    window: Option<i64>,
}

/// A connection after its preface.
pub struct Connection<'a> {
    pub stream: &'a mut Stream,
    parser: Parser,
    bodies: Vec<Body>,
    /// What the client may send on the connection, and on a stream that it opens after it has acknowledged the settings.
    connection_window: i64,
    stream_window: i64,
    acknowledged: bool,
    pub saw_reset: bool,
    pub saw_goaway: bool,
}

impl<'a> Connection<'a> {
    /// Reads the preface and sends SETTINGS with these pairs.
    pub fn accept(stream: &'a mut Stream, settings: &[(u16, u32)]) -> Option<Self> {
        let mut preface = [0; PREFACE.len()];
        stream.read_exact(&mut preface).ok()?;
        assert_eq!(&preface, PREFACE);
        let mut hello = Vec::new();
        write::settings(settings, &mut hello);
        stream.write_all(&hello).ok()?;
        let limits = Limits { max_frame_octets: 16_384, max_header_block_octets: 16_384 };
        let initial = settings.iter().find(|(id, _)| *id == setting::INITIAL_WINDOW_SIZE);
        Some(Self {
            stream,
            parser: Parser::new(limits),
            bodies: Vec::new(),
            connection_window: 65_535,
            stream_window: initial.map_or(65_535, |(_, octets)| i64::from(*octets)),
            acknowledged: false,
            saw_reset: false,
            saw_goaway: false,
        })
    }

    /// Requests that have ended with what the next read brought; `None` at the end of the stream.
    pub fn requests(&mut self) -> Option<Vec<Seen>> {
        let mut buffer = vec![0; 65_536];
        let octets = self.stream.read(&mut buffer).ok().filter(|octets| *octets > 0)?;
        let mut input = &buffer[..octets];
        let (mut seen, mut reply) = (Vec::new(), Vec::new());
        while let Some(event) = self.parser.next(&mut input).expect("the client's frames are well-formed") {
            match event {
                Event::Headers { stream, block, end_stream } => {
                    assert!(!block.is_empty());
                    if end_stream {
                        seen.push(Seen { stream, body: Vec::new() });
                    } else {
                        let window = self.acknowledged.then_some(self.stream_window);
                        self.bodies.push(Body { stream, octets: Vec::new(), window });
                    }
                }
                Event::Data { stream, content, flow_octets, end_stream } => {
                    self.connection_window -= i64::from(flow_octets);
                    assert!(self.connection_window >= 0, "the connection's window is overrun");
                    let Some(index) = self.bodies.iter().position(|body| body.stream == stream) else { continue };
                    let body = &mut self.bodies[index];
                    body.window = body.window.map(|window| window - i64::from(flow_octets));
                    assert!(body.window.is_none_or(|window| window >= 0), "the stream's window is overrun");
                    body.octets.extend_from_slice(content);
                    write::window_update(0, flow_octets, &mut reply);
                    self.connection_window += i64::from(flow_octets);
                    if end_stream {
                        let body = self.bodies.remove(index);
                        seen.push(Seen { stream, body: body.octets });
                    } else {
                        body.window = body.window.map(|window| window + i64::from(flow_octets));
                        write::window_update(stream, flow_octets, &mut reply);
                    }
                }
                Event::SettingsAck => self.acknowledged = true,
                Event::Settings(settings) => {
                    let table = settings.iter().find(|(id, _)| *id == setting::HEADER_TABLE_SIZE);
                    assert_eq!(table.map(|(_, size)| size), Some(0));
                    write::settings_ack(&mut reply);
                }
                Event::Ping { data, ack } => assert!(ack && data == *b"12345678"),
                Event::RstStream { .. } => self.saw_reset = true,
                Event::GoAway { .. } => self.saw_goaway = true,
                _ => {}
            }
        }
        self.send(&reply);
        Some(seen)
    }

    pub fn send(&mut self, frames: &[u8]) {
        let _ = self.stream.write_all(frames).and_then(|()| self.stream.flush());
    }
}

/// HEADERS of a response.
pub fn headers(stream: u32, status: u16, fields: &[(&str, &str)], end_stream: bool, out: &mut Vec<u8>) {
    let mut block = Vec::new();
    encoder::encode_status(status, &mut block);
    for (name, value) in fields {
        encoder::encode_field(name.as_bytes(), value.as_bytes(), &mut block);
    }
    write::headers(stream, &block, end_stream, out);
}

/// A DATA frame.
pub fn data(stream: u32, content: &[u8], end_stream: bool, out: &mut Vec<u8>) {
    write::data_header(stream, content.len(), end_stream, out);
    out.extend_from_slice(content);
}

/// A whole response with `length` octets of the pattern.
pub fn response(stream: u32, length: usize) -> Vec<u8> {
    let mut out = Vec::new();
    headers(stream, 200, &[("content-length", &length.to_string())], false, &mut out);
    let content = pattern(length);
    let mut pieces = content.chunks(16_384).peekable();
    while let Some(piece) = pieces.next() {
        data(stream, piece, pieces.peek().is_none(), &mut out);
    }
    out
}

/// Serves each ended request by `answer`, until the client ends the connection.
pub fn serve(
    settings: &'static [(u16, u32)],
    answer: impl Fn(&Seen) -> Vec<u8> + Send + Sync + 'static,
) -> impl Fn(&mut Stream) + Send + Sync + 'static {
    move |stream| {
        let Some(mut connection) = Connection::accept(stream, settings) else { return };
        while let Some(requests) = connection.requests() {
            let frames: Vec<u8> = requests.iter().flat_map(&answer).collect();
            connection.send(&frames);
        }
    }
}
