//! Beginning requests: their streams and HEADERS frames.

use trifecta_wire::clock::now_ns;
use trifecta_wire::h2::{self, Windows, setting, write};
use trifecta_wire::hpack;

use super::streams::Stream;
use super::{H2Session, H2Shared, LAST_STREAM};
use crate::caller::{Caller, Exchange, Request};
use crate::content::Body;
use crate::options::Options;
use crate::{Session, State, request_fields};

pub(super) fn hello(windows: Windows) -> Vec<u8> {
    let mut octets = h2::PREFACE.to_vec();
    let settings =
        [(setting::HEADER_TABLE_SIZE, 0), (setting::ENABLE_PUSH, 0), (setting::INITIAL_WINDOW_SIZE, windows.stream)];
    write::settings(&settings, &mut octets);
    windows.announce(&mut octets);
    octets
}

/// The HEADERS frame of a request, on stream 0.
fn frame<'a>(
    method: &'a str,
    authority: &'a str,
    path: &'a str,
    fields: impl Iterator<Item = (&'a str, &'a str)>,
    end_stream: bool,
    out: &mut Vec<u8>,
) {
    let pseudo = [(":method", method), (":scheme", "https"), (":authority", authority), (":path", path)];
    let all = pseudo.into_iter().chain(fields);
    let block = hpack::encoder::block(all.map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    write::headers(0, &block, end_stream, out);
}

/// The frame of the request of the options.
pub(super) fn headers(options: &Options) -> Vec<u8> {
    let fields = request_fields(options);
    let fields = fields.iter().map(|(name, value)| (*name, value.as_str()));
    let mut octets = Vec::new();
    let end_stream = options.request_body_bytes == 0;
    frame(options.method.name(), &options.authority(), &options.path, fields, end_stream, &mut octets);
    octets
}

impl H2Session {
    /// Starts requests while there is room; they wait to be sent.
    pub(super) fn begin_due(&mut self, shared: &H2Shared, caller: &mut impl Caller) {
        if self.free_slots() > 0 && (shared.reused || self.next_stream == 1) {
            let now_ns = now_ns();
            let deadline_ns = now_ns + shared.request_timeout_ns;
            for _ in 0..self.free_slots() {
                let Some(mut exchange) = caller.next_request(now_ns) else { break };
                self.transport.handshake.bind(&mut exchange);
                self.begin(shared, caller, exchange, deadline_ns);
            }
        }
    }

    pub(super) fn begin(&mut self, shared: &H2Shared, caller: &mut impl Caller, exchange: Exchange, deadline_ns: u64) {
        let id = self.next_stream;
        let request = caller.request(&exchange);
        write_headers(shared, request.as_ref(), id, &mut self.frames.reply);
        let (body_octets, body) = match request {
            Some(request) => (request.content_octets(), Body::Octets(request.content)),
            None => (shared.body_octets, Body::Pattern),
        };
        self.add_stream(exchange, deadline_ns, body, body_octets);
        self.unsent.push(id);
        if body_octets > 0 {
            self.uploads.push_back(id);
        }
        if self.next_stream > LAST_STREAM {
            self.state = State::Draining;
        }
    }

    pub(super) fn add_stream(&mut self, exchange: Exchange, deadline_ns: u64, body: Body, body_octets: u64) {
        let send_window = i64::from(self.frames.peer_initial_window);
        self.frames.streams.insert(Stream {
            id: self.next_stream,
            exchange,
            deadline_ns,
            body,
            body_octets,
            body_left: body_octets,
            send_window,
            ..Stream::default()
        });
        self.deadline_ns = self.deadline_ns.min(deadline_ns);
        self.next_stream += 2;
    }
}

/// Appends the HEADERS frame of a request: that of the options, or one of its own.
pub(super) fn write_headers(shared: &H2Shared, request: Option<&Request>, id: u32, out: &mut Vec<u8>) {
    let start = out.len();
    match request {
        None => out.extend_from_slice(&shared.headers),
        Some(request) => {
            let mut fields: Vec<(String, String)> = Vec::new();
            request.for_each_field(|name, value| fields.push((name.to_owned(), value.to_owned())));
            let fields = fields.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let end_stream = request.content_octets() == 0;
            frame(request.method.name(), &shared.authority, &request.path, fields, end_stream, out);
        }
    }
    // Octets 5 to 9 of a frame are its stream identifier (RFC 9113 4.1).
    if let Some(field) = out.get_mut(start + 5..start + 9) {
        field.copy_from_slice(&id.to_be_bytes());
    }
}
