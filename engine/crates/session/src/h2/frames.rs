//! What the frames of the peer mean for the streams of a connection; no I/O.

use trifecta_wire::h2::{self, ErrorCode, Event, Limits, Parser, Settings, Windows, setting, write};
use trifecta_wire::hpack::{self, HpackError};

use super::streams::Streams;
use crate::caller::{Caller, Exchange};
use trifecta_wire::ErrorClass;

/// Octets that the header block of a response may have.
const MAX_HEADER_BLOCK_OCTETS: usize = 64 * 1024;
/// How a response of HTTP/1 begins (RFC 9112, section 4). As a frame it would be one of 4.7 MB, which nobody allowed.
const HTTP1: &[u8; 5] = b"HTTP/";

/// Windows for content (as h2load's default), so that the receiver never holds a server up.
pub(super) const WINDOWS: Windows = Windows { stream: 1 << 30, connection: 1 << 30 };

/// A request that has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Finished {
    pub(super) id: u32,
    pub(super) exchange: Exchange,
    /// 0 when the response is not whole.
    pub(super) done_ns: u64,
    pub(super) error: Option<ErrorClass>,
}

/// The client's view of a connection.
pub(super) struct Frames {
    parser: Parser,
    pub(super) streams: Streams,
    /// Requests that ended and were not handed back yet.
    pub(super) finished: Vec<Finished>,
    /// Frames that are to be sent.
    pub(super) reply: Vec<u8>,
    pub(super) max_concurrent: u32,
    pub(super) peer_initial_window: u32,
    pub(super) peer_max_frame: u32,
    /// What the peer lets us send on the connection.
    pub(super) send_window: i64,
    windows: Windows,
    /// Content octets received that were not yet given back by WINDOW_UPDATE on the connection.
    unacknowledged: u32,
    pub(super) going_away: bool,
    saw_settings: bool,
    /// The first octets of the peer, as far as they are there: they tell another protocol from a damaged one.
    first: [u8; HTTP1.len()],
    first_octets: usize,
}

impl Frames {
    pub(super) fn new(streams: u32, windows: Windows) -> Self {
        Self {
            parser: Parser::new(Limits {
                max_frame_octets: h2::DEFAULT_MAX_FRAME_OCTETS,
                max_header_block_octets: MAX_HEADER_BLOCK_OCTETS,
            }),
            streams: Streams::new(streams),
            finished: Vec::with_capacity(streams as usize),
            reply: Vec::new(),
            // Until the server says otherwise there is no limit (RFC 9113 6.5.2).
            max_concurrent: u32::MAX,
            peer_initial_window: h2::DEFAULT_WINDOW_OCTETS,
            peer_max_frame: h2::DEFAULT_MAX_FRAME_OCTETS,
            send_window: i64::from(h2::DEFAULT_WINDOW_OCTETS),
            windows,
            unacknowledged: 0,
            going_away: false,
            saw_settings: false,
            first: [0; HTTP1.len()],
            first_octets: 0,
        }
    }

    /// Processes octets that were received at `now_ns`. `next_stream` is the first identifier that was not used yet.
    ///
    /// # Errors
    /// The code with which the connection is to be closed.
    pub(super) fn read(
        &mut self,
        caller: &mut impl Caller,
        mut octets: &[u8],
        now_ns: u64,
        next_stream: u32,
    ) -> Result<(), ErrorCode> {
        if self.first_octets < HTTP1.len() {
            let more = octets.len().min(HTTP1.len() - self.first_octets);
            self.first[self.first_octets..self.first_octets + more].copy_from_slice(&octets[..more]);
            self.first_octets += more;
        }
        // The parser is taken apart from the rest, as its events borrow from it.
        let mut parser = std::mem::replace(
            &mut self.parser,
            Parser::new(Limits { max_frame_octets: 0, max_header_block_octets: 0 }),
        );
        let result = loop {
            match parser.next(&mut octets) {
                Ok(Some(event)) => {
                    if let Err(code) = self.event(caller, event, now_ns, next_stream) {
                        break Err(code);
                    }
                }
                Ok(None) => break Ok(()),
                Err(error) => match error.stream {
                    Some(id) => self.break_stream(id, error.code),
                    None => break Err(error.code),
                },
            }
        };
        self.parser = parser;
        result
    }

    /// What a connection that broke the protocol is to be called.
    pub(super) fn malformed(&self) -> ErrorClass {
        if self.first == *HTTP1 { ErrorClass::Http1OverHttp2 } else { ErrorClass::MalformedHttp2 }
    }

    fn event(
        &mut self,
        caller: &mut impl Caller,
        event: Event<'_>,
        now_ns: u64,
        next_stream: u32,
    ) -> Result<(), ErrorCode> {
        // RFC 9113 3.4: the server's preface is a SETTINGS frame.
        if !self.saw_settings && !matches!(event, Event::Settings(_)) {
            return Err(ErrorCode::PROTOCOL_ERROR);
        }
        match event {
            Event::Data { stream, content, flow_octets, end_stream } => {
                check_used(stream, next_stream)?;
                self.acknowledge(flow_octets)?;
                self.data(caller, stream, content, flow_octets, end_stream, now_ns)?;
            }
            Event::Headers { stream, block, end_stream } => {
                check_used(stream, next_stream)?;
                self.headers(caller, stream, block, end_stream, now_ns)?;
            }
            Event::RstStream { stream, code } => {
                check_used(stream, next_stream)?;
                // RFC 9113 8.7: closed "prior to any processing having occurred", as streams behind a GOAWAY are.
                let error = if code == ErrorCode::REFUSED_STREAM { ErrorClass::Goaway } else { ErrorClass::Reset };
                self.finish(stream, 0, Some(error));
            }
            Event::Settings(settings) => self.settings(settings)?,
            Event::Ping { data, ack: false } => write::ping(data, true, &mut self.reply),
            Event::GoAway { last_stream, .. } => {
                self.going_away = true;
                // RFC 9113 6.8: what lies above the last stream identifier was not and will not be handled.
                for id in self.streams.ids(|stream| stream.id > last_stream) {
                    self.finish(id, 0, Some(ErrorClass::Goaway));
                }
            }
            Event::WindowUpdate { stream: 0, increment } => {
                // RFC 9113 6.9.1: no window may exceed 2^31 - 1; of a stream it is its error, here the connection's.
                self.send_window += i64::from(increment);
                if self.send_window > i64::from(h2::MAX_WINDOW_OCTETS) {
                    return Err(ErrorCode::FLOW_CONTROL_ERROR);
                }
            }
            Event::WindowUpdate { stream: id, increment } => {
                check_used(id, next_stream)?;
                if let Some(stream) = self.streams.get_mut(id) {
                    stream.send_window += i64::from(increment);
                    if stream.send_window > i64::from(h2::MAX_WINDOW_OCTETS) {
                        self.break_stream(id, ErrorCode::FLOW_CONTROL_ERROR);
                    }
                }
            }
            // RFC 9218 7.1: only clients send PRIORITY_UPDATE.
            Event::PriorityUpdate { .. } => return Err(ErrorCode::PROTOCOL_ERROR),
            Event::SettingsAck | Event::Ping { ack: true, .. } | Event::Priority { .. } | Event::Unknown { .. } => {}
        }
        Ok(())
    }

    /// Gives the connection's window back, in large steps. What exceeds it is an error (RFC 9113 6.9).
    fn acknowledge(&mut self, flow_octets: u32) -> Result<(), ErrorCode> {
        self.unacknowledged = self.unacknowledged.saturating_add(flow_octets);
        if self.unacknowledged > self.windows.connection {
            return Err(ErrorCode::FLOW_CONTROL_ERROR);
        }
        if self.unacknowledged > self.windows.connection / 2 {
            write::window_update(0, self.unacknowledged, &mut self.reply);
            self.unacknowledged = 0;
        }
        Ok(())
    }

    fn data(
        &mut self,
        caller: &mut impl Caller,
        id: u32,
        content: &[u8],
        flow_octets: u32,
        end_stream: bool,
        now_ns: u64,
    ) -> Result<(), ErrorCode> {
        // A stream that we have given up may still have frames on their way (RFC 9113 5.1).
        let Some(stream) = self.streams.get_mut(id) else { return Ok(()) };
        // RFC 9113 8.1: a response begins with HEADERS.
        if stream.exchange.status == 0 {
            self.break_stream(id, ErrorCode::PROTOCOL_ERROR);
            return Ok(());
        }
        stream.exchange.content(caller, content);
        stream.unacknowledged = stream.unacknowledged.saturating_add(flow_octets);
        if stream.unacknowledged > self.windows.stream {
            self.break_stream(id, ErrorCode::FLOW_CONTROL_ERROR);
            return Ok(());
        }
        if end_stream {
            self.complete(id, now_ns);
        } else if stream.unacknowledged > self.windows.stream / 2 {
            let octets = std::mem::take(&mut stream.unacknowledged);
            write::window_update(id, octets, &mut self.reply);
        }
        Ok(())
    }

    fn headers(
        &mut self,
        caller: &mut impl Caller,
        id: u32,
        block: &[u8],
        end_stream: bool,
        now_ns: u64,
    ) -> Result<(), ErrorCode> {
        let Some(stream) = self.streams.get_mut(id) else { return Ok(()) };
        let exchange = &mut stream.exchange;
        exchange.header_bytes_in += block.len() as u64;
        if exchange.status != 0 {
            // Trailers; they end the stream (RFC 9113 8.1).
            if end_stream {
                self.complete(id, now_ns);
            } else {
                self.break_stream(id, ErrorCode::PROTOCOL_ERROR);
            }
            return Ok(());
        }
        let response = match hpack::scan_response(block) {
            Ok(response) => response,
            // RFC 9113 8.1.1: fields that make no response are an error of their stream, as over HTTP/3.
            Err(HpackError::Malformed(_)) => {
                self.break_stream(id, ErrorCode::PROTOCOL_ERROR);
                return Ok(());
            }
            // With a table of size 0 a block that cannot be decoded spoils no other, but the peer's encoder cannot be trusted any
            // more (RFC 9113 4.3).
            Err(_) => return Err(ErrorCode::COMPRESSION_ERROR),
        };
        if response.status < 200 {
            // Interim responses: the times of the row are those of the final one. They do not end a stream (RFC 9113
            // 8.1), and there is no 101 (8.6).
            if end_stream || response.status == 101 {
                self.break_stream(id, ErrorCode::PROTOCOL_ERROR);
            }
            return Ok(());
        }
        exchange.first_byte_ns = now_ns;
        exchange.status = response.status;
        if caller.wants_fields(exchange) {
            // The block was found sound above.
            let _ = hpack::Decoder::new(0, MAX_HEADER_BLOCK_OCTETS * 4)
                .decode(block, |name, value| caller.field(exchange, name, value));
        }
        stream.content_length = response.content_length;
        if end_stream {
            self.complete(id, now_ns);
        }
        Ok(())
    }

    fn settings(&mut self, settings: Settings<'_>) -> Result<(), ErrorCode> {
        self.saw_settings = true;
        for (identifier, value) in settings.iter() {
            match identifier {
                setting::MAX_CONCURRENT_STREAMS => self.max_concurrent = value,
                setting::MAX_FRAME_SIZE => self.peer_max_frame = value,
                // RFC 9113 6.5.2: a server must not enable push.
                setting::ENABLE_PUSH if value != 0 => return Err(ErrorCode::PROTOCOL_ERROR),
                setting::INITIAL_WINDOW_SIZE => {
                    // RFC 9113 6.9.2: by the difference, below 0 too.
                    let change = i64::from(value) - i64::from(self.peer_initial_window);
                    self.peer_initial_window = value;
                    for stream in self.streams.iter_mut() {
                        stream.send_window += change;
                        if stream.send_window > i64::from(h2::MAX_WINDOW_OCTETS) {
                            return Err(ErrorCode::FLOW_CONTROL_ERROR);
                        }
                    }
                }
                _ => {}
            }
        }
        write::settings_ack(&mut self.reply);
        Ok(())
    }

    /// The response is whole at `now_ns`.
    fn complete(&mut self, id: u32, now_ns: u64) {
        let Some(stream) = self.streams.get_mut(id) else { return };
        let (exchange, content_length) = (&stream.exchange, stream.content_length);
        if stream.body_left > 0 {
            // The answer came before the end of the request: the rest is not wanted (RFC 9113 8.1).
            write::rst_stream(id, ErrorCode::CANCEL, &mut self.reply);
        }
        // RFC 9113 8.1.1; responses without content may name the length that they would have.
        let has_content = !exchange.to_head && !matches!(exchange.status, 204 | 304);
        let cut = has_content && content_length.is_some_and(|octets| octets != exchange.bytes_in);
        self.finish(id, now_ns, cut.then_some(ErrorClass::Length));
    }

    /// The peer broke the rules on one stream.
    fn break_stream(&mut self, id: u32, code: ErrorCode) {
        if self.streams.get_mut(id).is_some() {
            write::rst_stream(id, code, &mut self.reply);
            self.finish(id, 0, Some(ErrorClass::MalformedHttp2));
        }
    }

    fn finish(&mut self, id: u32, done_ns: u64, error: Option<ErrorClass>) {
        if let Some(stream) = self.streams.remove(id) {
            self.finished.push(Finished { id, exchange: stream.exchange, done_ns, error });
        }
    }
}

/// RFC 9113 5.1.1: frames on a stream that was never opened are an error of the connection.
fn check_used(id: u32, next_stream: u32) -> Result<(), ErrorCode> {
    if id.is_multiple_of(2) || id >= next_stream { Err(ErrorCode::PROTOCOL_ERROR) } else { Ok(()) }
}
