//! HTTP/2 (RFC 9113) as a server. A request without content whose answer fits the windows never becomes a stream: it is
//! answered where its HEADERS frame is read.

pub(crate) mod request;
mod send;
mod stream;

use crate::answer::Plan;
use crate::config::Protocol;
use crate::context::{Context, Delayed, Fate};
use crate::handler::{HeadCache, collect};
use crate::summary::{Mishap, ServerFault};
use request::{MAX_LIST_OCTETS, RequestReader};
use stream::{Stream, Streams};
use trifecta_wire::clock::now_ns;
use trifecta_wire::h2::{
    DEFAULT_MAX_FRAME_OCTETS, DEFAULT_WINDOW_OCTETS, ErrorCode, Event, H2Error, Limits, MAX_WINDOW_OCTETS, PREFACE,
    Parser, Settings, Windows, setting, write,
};
use trifecta_wire::hpack::HpackError;
use trifecta_wire::{ErrorClass, Tuning};

/// What a client may send before it hears from us. Content is thrown away as it comes, so this only has to be too large to
/// hold up TCP, whose own window is what a study varies.
const WINDOWS: Windows = Windows { stream: 16 << 20, connection: 32 << 20 };
/// Header blocks above this end the connection.
const MAX_BLOCK_OCTETS: usize = 64 * 1024;
/// RST_STREAM frames that a client may send beyond one for each answer it took (CVE-2023-44487).
const RESET_ALLOWANCE: u32 = 1000;

/// One connection.
pub struct H2 {
    preface_seen: usize,
    settings_seen: bool,
    parser: Option<Parser>,
    requests: RequestReader,
    streams: Streams,
    heads: HeadCache,
    max_streams: usize,
    /// The highest stream the client has opened.
    last_stream: u32,
    /// Where GOAWAY drew the line.
    goaway_at: Option<u32>,
    /// What we may still send on the connection; can be negative on streams only.
    send_window: i64,
    peer_initial_window: i64,
    peer_max_frame: usize,
    /// The peer's decoder must hear that we use no dynamic table (RFC 7541 4.2).
    announce_empty_table: bool,
    windows: Windows,
    /// What the client may still send on the connection.
    receive_window: i64,
    resets_left: u32,
    /// Responses are sent in the order of RFC 9218, else in that of their answers.
    by_priority: bool,
    answered: u64,
    input_ended: bool,
    fate: Option<Fate>,
}

impl H2 {
    /// A connection whose first frames, SETTINGS and the connection's window, are put into `plain`.
    pub fn new(max_streams: u32, by_priority: bool, tuning: &Tuning, plain: &mut Vec<u8>) -> Self {
        let windows = tuning.windows(WINDOWS);
        let settings = [
            (setting::MAX_CONCURRENT_STREAMS, max_streams),
            (setting::INITIAL_WINDOW_SIZE, windows.stream),
            (setting::MAX_HEADER_LIST_SIZE, MAX_LIST_OCTETS as u32),
            // Asks for PRIORITY_UPDATE (RFC 9218 2.1). Last, because it is left out where it says nothing.
            (setting::NO_RFC7540_PRIORITIES, 1),
        ];
        write::settings(&settings[..if by_priority { 4 } else { 3 }], plain);
        windows.announce(plain);
        let limits = Limits { max_frame_octets: DEFAULT_MAX_FRAME_OCTETS, max_header_block_octets: MAX_BLOCK_OCTETS };
        Self {
            preface_seen: 0,
            settings_seen: false,
            parser: Some(Parser::new(limits)),
            requests: RequestReader::new(),
            streams: Streams::default(),
            heads: HeadCache::default(),
            max_streams: max_streams as usize,
            last_stream: 0,
            goaway_at: None,
            send_window: i64::from(DEFAULT_WINDOW_OCTETS),
            peer_initial_window: i64::from(DEFAULT_WINDOW_OCTETS),
            peer_max_frame: DEFAULT_MAX_FRAME_OCTETS as usize,
            announce_empty_table: false,
            windows,
            receive_window: i64::from(windows.connection),
            resets_left: RESET_ALLOWANCE,
            by_priority,
            answered: 0,
            input_ended: false,
            fate: None,
        }
    }

    /// Takes plaintext in.
    pub fn receive(&mut self, data: &[u8], early: bool, context: &mut Context<'_>) {
        let mut input = data;
        if self.preface_seen < PREFACE.len() && !self.preface(&mut input, context) {
            return;
        }
        // Taken out, so that an event's slices and the rest of the session can be used together.
        let Some(mut parser) = self.parser.take() else { return };
        while self.fate.is_none() {
            let result = match parser.next(&mut input) {
                Ok(None) => break,
                Ok(Some(event)) => self.event(event, early, context),
                Err(error) => Err(error),
            };
            if let Err(error) = result {
                self.error(error, context);
            }
        }
        self.parser = Some(parser);
    }

    /// RFC 9113 3.4. `false` when the session is not behind it.
    fn preface(&mut self, input: &mut &[u8], context: &mut Context<'_>) -> bool {
        let expected = &PREFACE[self.preface_seen..];
        let compared = expected.len().min(input.len());
        if input[..compared] != expected[..compared] {
            self.error(H2Error::connection(ErrorCode::PROTOCOL_ERROR, "not the connection preface"), context);
            return false;
        }
        self.preface_seen += compared;
        *input = &input[compared..];
        self.preface_seen == PREFACE.len()
    }

    fn event(&mut self, event: Event<'_>, early: bool, context: &mut Context<'_>) -> Result<(), H2Error> {
        // RFC 9113 3.4: the preface includes a SETTINGS frame, the first of all.
        if !self.settings_seen && !matches!(event, Event::Settings(_)) {
            return Err(H2Error::connection(ErrorCode::PROTOCOL_ERROR, "the first frame is not SETTINGS"));
        }
        match event {
            Event::Headers { stream, block, end_stream } => self.headers(stream, block, end_stream, early, context),
            Event::Data { stream, content, flow_octets, end_stream } => {
                self.data(stream, content, flow_octets, end_stream, context)
            }
            Event::WindowUpdate { stream, increment } => self.window_update(stream, increment),
            Event::Settings(settings) => {
                self.settings_seen = true;
                self.apply(settings)?;
                write::settings_ack(context.plain);
                Ok(())
            }
            Event::Ping { data, ack: false } => {
                write::ping(data, true, context.plain);
                Ok(())
            }
            Event::RstStream { stream, .. } => self.reset_by_peer(stream),
            Event::PriorityUpdate { stream, priority } => {
                match self.streams.get(stream) {
                    Some(open) => open.priority = priority,
                    None if stream > self.last_stream => self.streams.hold_priority(stream, priority),
                    None => {}
                }
                Ok(())
            }
            Event::SettingsAck
            | Event::Ping { .. }
            | Event::Priority { .. }
            | Event::GoAway { .. }
            | Event::Unknown { .. } => Ok(()),
        }
    }

    fn headers(
        &mut self,
        id: u32,
        block: &[u8],
        end_stream: bool,
        early: bool,
        context: &mut Context<'_>,
    ) -> Result<(), H2Error> {
        // RFC 9113 5.1.1: identifiers of new streams only grow.
        if id <= self.last_stream || id.is_multiple_of(2) {
            return self.trailers(id, block, end_stream, context);
        }
        self.last_stream = id;
        let windows = (self.peer_initial_window, i64::from(self.windows.stream));
        let refused = self.streams.len() >= self.max_streams || self.goaway_at.is_some_and(|last| id > last);
        // Even the block of a stream that is refused changes the table (RFC 9113 4.3).
        let head = match self.requests.read(block) {
            Ok(head) => head,
            Err(HpackError::ListTooLarge) => {
                let plan = Plan::status(431);
                let stream = Stream::new(id, windows, end_stream, None, context.now_ns);
                self.answer(stream, plan, context);
                return Ok(());
            }
            Err(HpackError::Malformed(reason)) => {
                return Err(H2Error::on_stream(id, ErrorCode::PROTOCOL_ERROR, reason));
            }
            Err(_) => return Err(H2Error::connection(ErrorCode::COMPRESSION_ERROR, "header block cannot be decoded")),
        };
        if refused {
            // RFC 9113 5.1.2, of its two codes the one that allows a retry (8.7).
            return Err(H2Error::on_stream(id, ErrorCode::REFUSED_STREAM, "too many streams"));
        }
        let content_length = head.content_length;
        // RFC 9113 8.1.1: a content-length that is not the sum of the DATA is malformed; also below.
        if end_stream && content_length.is_some_and(|octets| octets > 0) {
            return Err(H2Error::on_stream(id, ErrorCode::PROTOCOL_ERROR, "less content than announced"));
        }
        context.stats.early_requests += u64::from(early);
        let plan = context.handler.plan(head.request(early));
        let mut stream = Stream::new(id, windows, end_stream, content_length, context.now_ns);
        // RFC 9218 7: a frame counts for more than the field, also when it came first.
        stream.priority = self.streams.take_priority(id).or(head.priority).unwrap_or_default();
        if end_stream || matches!(plan.head.status, 405 | 413 | 425) {
            self.answer(stream, plan, context);
        } else {
            stream.plan = Some(plan);
            self.streams.push(stream);
        }
        Ok(())
    }

    /// HEADERS on a stream that was opened before.
    fn trailers(&mut self, id: u32, block: &[u8], end_stream: bool, context: &mut Context<'_>) -> Result<(), H2Error> {
        if id.is_multiple_of(2) {
            //= https://www.rfc-editor.org/rfc/rfc9113#section-5.1.1
            //# Streams initiated by a client MUST use odd-numbered stream identifiers; streams initiated by the
            //# server MUST use even-numbered stream identifiers.
            return Err(H2Error::connection(ErrorCode::PROTOCOL_ERROR, "a client's streams are odd"));
        }
        if self.requests.skip(block).is_err() {
            return Err(H2Error::connection(ErrorCode::COMPRESSION_ERROR, "trailers cannot be decoded"));
        }
        let was_reset = self.streams.was_reset(id);
        match self.streams.get(id) {
            Some(stream) if stream.receiving && end_stream => self.content_ended(id, context),
            // RFC 9113 8.1.
            Some(stream) if stream.receiving => {
                Err(H2Error::on_stream(id, ErrorCode::PROTOCOL_ERROR, "trailers without END_STREAM"))
            }
            // RFC 9113 5.1: a stream we have reset may get what was on its way.
            None if was_reset => Ok(()),
            _ => Err(H2Error::connection(ErrorCode::STREAM_CLOSED, "HEADERS on a closed stream")),
        }
    }

    fn data(
        &mut self,
        id: u32,
        content: &[u8],
        flow_octets: u32,
        end_stream: bool,
        context: &mut Context<'_>,
    ) -> Result<(), H2Error> {
        if id > self.last_stream || id.is_multiple_of(2) {
            // RFC 9113 5.1: on an idle stream there may be HEADERS and PRIORITY, nothing else; also below.
            return Err(H2Error::connection(ErrorCode::PROTOCOL_ERROR, "DATA on an idle stream"));
        }
        // Half a window is many frames, and what is used up is given back before the next frame is read: nobody can exceed it.
        self.receive_window -= i64::from(flow_octets);
        if self.receive_window < i64::from(self.windows.connection / 2) {
            let increment = i64::from(self.windows.connection) - self.receive_window;
            self.receive_window += increment;
            write::window_update(0, increment as u32, context.plain);
        }
        let octets = content.len() as u64;
        context.stats.content_bytes_in += octets;
        let Some(stream) = self.streams.get(id).filter(|stream| stream.receiving) else {
            if self.streams.was_reset(id) {
                return Ok(());
            }
            // RFC 9113 6.1.
            return Err(H2Error::on_stream(id, ErrorCode::STREAM_CLOSED, "DATA on a closed stream"));
        };
        stream.received += octets;
        if let Some(plan) = &mut stream.plan {
            collect(plan, &mut stream.collected, content);
        }
        stream.receive_window -= i64::from(flow_octets);
        if stream.expected.is_some_and(|expected| stream.received > expected) {
            return Err(H2Error::on_stream(id, ErrorCode::PROTOCOL_ERROR, "more content than announced"));
        }
        if end_stream {
            return self.content_ended(id, context);
        }
        if stream.receive_window < i64::from(self.windows.stream / 2) {
            let increment = i64::from(self.windows.stream) - stream.receive_window;
            stream.receive_window += increment;
            write::window_update(id, increment as u32, context.plain);
        }
        Ok(())
    }

    fn content_ended(&mut self, id: u32, context: &mut Context<'_>) -> Result<(), H2Error> {
        let Some(mut stream) = self.streams.remove(id) else { return Ok(()) };
        stream.receiving = false;
        if stream.expected.is_some_and(|expected| stream.received != expected) {
            return Err(H2Error::on_stream(id, ErrorCode::PROTOCOL_ERROR, "less content than announced"));
        }
        if let Some(plan) = stream.plan.take() {
            self.answer(stream, plan, context);
        }
        Ok(())
    }

    /// Answers, unless a fault has it wait or never come. The stream is not in the table.
    #[inline]
    fn answer(&mut self, mut stream: Stream, mut plan: Plan, context: &mut Context<'_>) {
        if let Some(relayed) = &mut plan.relayed {
            relayed.arrived_ns = now_ns();
        }
        let faults = context.handler.faults().over(Protocol::H2);
        if faults.stall {
            self.streams.push(stream);
        } else if faults.delay_ns > 0 {
            let due_ns = context.now_ns + faults.delay_ns;
            context.delays.push_back(Delayed { due_ns, token: context.token, stream: stream.id });
            stream.plan = Some(plan);
            self.streams.push(stream);
        } else {
            self.answer_now(stream, plan, context);
        }
    }

    #[inline]
    fn answer_now(&mut self, mut stream: Stream, plan: Plan, context: &mut Context<'_>) {
        match plan.relayed {
            Some(relayed) => {
                context.submit(stream.id, relayed, std::mem::take(&mut stream.collected));
                stream.plan = Some(plan);
                self.streams.push(stream);
            }
            None => self.respond(stream, plan, context),
        }
    }

    /// Lets a delayed answer go: `plan` from the relay, or the one that waits. False when none does.
    pub fn release(&mut self, id: u32, plan: Option<Plan>, context: &mut Context<'_>) -> bool {
        let Some(mut stream) = self.streams.remove(id) else { return false };
        match (stream.plan.take(), plan) {
            (Some(_), Some(plan)) => self.respond(stream, plan, context),
            (Some(waiting), None) => self.answer_now(stream, waiting, context),
            (None, _) => {
                self.streams.push(stream);
                return false;
            }
        }
        true
    }

    /// Whether the relay has yet to answer.
    pub fn is_relaying(&self) -> bool {
        self.streams.any(|stream| stream.plan.as_ref().is_some_and(|plan| plan.relayed.is_some()))
    }

    fn window_update(&mut self, id: u32, increment: u32) -> Result<(), H2Error> {
        // RFC 9113 6.9.1.
        let maximum = i64::from(MAX_WINDOW_OCTETS);
        if id == 0 {
            self.send_window += i64::from(increment);
            if self.send_window > maximum {
                return Err(H2Error::connection(ErrorCode::FLOW_CONTROL_ERROR, "connection window above 2^31-1"));
            }
        } else if id > self.last_stream || id.is_multiple_of(2) {
            return Err(H2Error::connection(ErrorCode::PROTOCOL_ERROR, "WINDOW_UPDATE on an idle stream"));
        } else if let Some(stream) = self.streams.get(id) {
            stream.send_window += i64::from(increment);
            if stream.send_window > maximum {
                return Err(H2Error::on_stream(id, ErrorCode::FLOW_CONTROL_ERROR, "stream window above 2^31-1"));
            }
        }
        Ok(())
    }

    /// RFC 9113 6.5.2, 6.9.2.
    fn apply(&mut self, settings: Settings<'_>) -> Result<(), H2Error> {
        for (identifier, value) in settings.iter() {
            match identifier {
                setting::HEADER_TABLE_SIZE => self.announce_empty_table |= value < 4096,
                setting::MAX_FRAME_SIZE => self.peer_max_frame = value as usize,
                setting::INITIAL_WINDOW_SIZE => {
                    let change = i64::from(value) - self.peer_initial_window;
                    self.peer_initial_window = i64::from(value);
                    if !self.streams.change_send_windows(change) {
                        let reason = "SETTINGS_INITIAL_WINDOW_SIZE makes a window too large";
                        return Err(H2Error::connection(ErrorCode::FLOW_CONTROL_ERROR, reason));
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn reset_by_peer(&mut self, id: u32) -> Result<(), H2Error> {
        if id > self.last_stream || id.is_multiple_of(2) {
            return Err(H2Error::connection(ErrorCode::PROTOCOL_ERROR, "RST_STREAM on an idle stream"));
        }
        self.streams.remove(id);
        self.resets_left = self.resets_left.saturating_sub(1);
        if self.resets_left == 0 {
            return Err(H2Error::connection(ErrorCode::ENHANCE_YOUR_CALM, "too many streams reset"));
        }
        Ok(())
    }

    #[cold]
    fn error(&mut self, error: H2Error, context: &mut Context<'_>) {
        match error.stream {
            Some(id) => {
                let refused = error.code == ErrorCode::REFUSED_STREAM;
                context.stats.error(match refused {
                    true => Mishap::from(ServerFault::RefusedStream),
                    false => ErrorClass::MalformedHttp2.into(),
                });
                self.streams.remove(id);
                self.streams.remember_reset(id);
                write::rst_stream(id, error.code, context.plain);
            }
            None => {
                context.stats.error(ErrorClass::MalformedHttp2);
                write::goaway(self.last_stream, error.code, error.reason.as_bytes(), context.plain);
                self.fate = Some(Fate::Close);
            }
        }
    }

    /// The peer sends no more.
    pub fn end_of_input(&mut self) {
        self.input_ended = true;
        self.streams.retain(|stream| !stream.receiving);
        self.close_at_end();
    }

    /// The server ends: GOAWAY, and what was begun is finished.
    pub fn shut_down(&mut self, context: &mut Context<'_>) {
        if self.goaway_at.is_none() && self.fate.is_none() {
            self.goaway_at = Some(self.last_stream);
            write::goaway(self.last_stream, ErrorCode::NO_ERROR, b"", context.plain);
        }
        if context.handler.faults().stall {
            self.streams.retain(|_| false);
        }
        self.close_at_end();
    }

    fn close_at_end(&mut self) {
        // Without further input no window opens again.
        let over = if self.input_ended { !self.streams.can_proceed(self.send_window) } else { self.streams.is_empty() };
        if over && (self.input_ended || self.goaway_at.is_some()) {
            self.fate.get_or_insert(Fate::Close);
        }
    }

    /// What is to become of the connection.
    #[inline]
    pub fn fate(&self) -> Fate {
        self.fate.unwrap_or(Fate::Open)
    }

    fn count_response(&mut self, status: u16, context: &mut Context<'_>) {
        self.answered += 1;
        self.resets_left = (self.resets_left + 1).min(RESET_ALLOWANCE);
        context.stats.response(Protocol::H2, status);
    }
}
