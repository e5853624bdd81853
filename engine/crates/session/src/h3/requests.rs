//! Beginning requests and writing their content.

use bytes::Bytes;
use quinn_proto::{Dir, StreamId, VarInt, WriteError};
use trifecta_wire::clock::now_ns;
use trifecta_wire::h3::{Code, MessageReader};
use trifecta_wire::quic::send_order;

use super::flight::Flight;
use super::{H3Session, H3Shared};
use crate::caller::{Caller, Exchange};
use crate::content::Body;
use crate::{NEVER_NS, Session, State};
use trifecta_wire::ErrorClass;

impl H3Session {
    /// Opens our control stream and says our settings on it (RFC 9114 section 6.2.1).
    pub(super) fn open_control_stream(&mut self, shared: &H3Shared) {
        // Peers have to allow three of them (RFC 9114 section 6.2); one that allows none hears no settings, and none of
        // ours changes what it may send.
        if let Some(id) = self.connection.streams().open(Dir::Uni) {
            send_order::set_control(&mut self.connection, id);
            let written = self.connection.send_stream(id).write_chunks(&mut [shared.control_stream.clone()]);
            debug_assert!(written.is_ok());
        }
    }

    /// Keeps a stream in hand that is open and unused: as long as there is one, another request can be begun.
    fn ensure_spare(&mut self) -> bool {
        if self.spare.is_none() {
            self.spare = self.connection.streams().open(Dir::Bi);
        }
        self.spare.is_some()
    }

    /// Begins the requests that wait for a stream, and then as many as the caller has and the peer allows. Returns whether
    /// there is something to send.
    pub(super) fn begin_requests(&mut self, shared: &mut H3Shared, caller: &mut impl Caller) -> bool {
        if self.state != State::Open {
            return false;
        }
        let mut begun = false;
        while !self.waiting.is_empty() && self.ensure_spare() {
            if let Some(exchange) = self.waiting.pop_front() {
                self.begin(shared, caller, exchange);
                begun = true;
            }
        }
        self.ensure_spare();
        let mut now = 0;
        while self.free_slots() > 0 {
            if now == 0 {
                now = now_ns();
            }
            let Some(mut exchange) = caller.next_request(now) else { break };
            self.handshake.bind(&mut exchange);
            self.begin(shared, caller, exchange);
            self.ensure_spare();
            begun = true;
        }
        begun
    }

    /// Writes a request to the spare stream.
    fn begin(&mut self, shared: &H3Shared, caller: &mut impl Caller, exchange: Exchange) {
        let Some(id) = self.spare.take() else {
            self.waiting.push_back(exchange);
            return;
        };
        if shared.in_order() {
            send_order::set_in_order(&mut self.connection, id, VarInt::from(id).into_inner() / 4);
        }
        // All requests have the same time to take, so the oldest in flight, begun first, is the first to expire.
        self.request_deadline_ns = self.request_deadline_ns.min(self.expiry_ns(exchange.started_ns));
        let (head, body_left, body) = match caller.request(&exchange) {
            Some(request) => (shared.block(&request), request.content_octets(), Body::Octets(request.content)),
            None => (shared.request.clone(), shared.request_body_bytes, Body::Pattern),
        };
        let flight = Flight { exchange, reader: MessageReader::new(), content_length: None, head, body, body_left };
        self.flights.insert(VarInt::from(id).into_inner(), flight);
        self.write_request(id);
    }

    /// Writes as much of a request as windows allow.
    pub(super) fn write_request(&mut self, id: StreamId) {
        let Some(flight) = self.flights.get_mut(VarInt::from(id).into_inner()) else { return };
        let mut stream = self.connection.send_stream(id);
        while !flight.head.is_empty() || flight.body_left > 0 {
            let body = if flight.body_left > 0 {
                flight.body.bytes(flight.exchange.bytes_out, flight.body_left)
            } else {
                Bytes::new()
            };
            let mut chunks = [std::mem::take(&mut flight.head), body];
            let head_octets = chunks[0].len();
            match stream.write_chunks(&mut chunks) {
                Ok(written) => {
                    // What was not taken of the head is left in its chunk.
                    flight.head = std::mem::take(&mut chunks[0]);
                    let of_body = (written.bytes + flight.head.len() - head_octets) as u64;
                    flight.exchange.bytes_out += of_body;
                    flight.body_left -= of_body;
                }
                Err(WriteError::Blocked) => {
                    flight.head = std::mem::take(&mut chunks[0]);
                    return;
                }
                // Stopped: the event for it follows. Closed: the response has ended it.
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => {
                    flight.body_left = 0;
                    return;
                }
            }
        }
        // Fails only when the peer has stopped the stream, and then its event follows.
        let _ = stream.finish();
        self.unsent.push(id);
    }

    /// The peer wants no more of the content (STOP_SENDING); its response may still come (RFC 9114 section 4.1).
    pub(super) fn stop_body(&mut self, id: StreamId) {
        let Some(flight) = self.flights.get_mut(VarInt::from(id).into_inner()) else { return };
        flight.head.clear();
        flight.body_left = 0;
        let _ = self.connection.send_stream(id).reset(code(Code::NoError));
    }

    /// Gives up a stream, both ways (RFC 9114 section 4.1.1).
    pub(super) fn cancel(&mut self, id: u64) {
        let Ok(id) = VarInt::from_u64(id).map(StreamId::from) else { return };
        let _ = self.connection.recv_stream(id).stop(code(Code::RequestCancelled));
        let _ = self.connection.send_stream(id).reset(code(Code::RequestCancelled));
    }

    /// When the time of a request is over. It counts on an open connection, as over TCP; before, there is the time to connect.
    pub(super) fn expiry_ns(&self, started_ns: u64) -> u64 {
        if self.secured() { started_ns.max(self.handshake.secured_ns) + self.request_timeout_ns } else { NEVER_NS }
    }

    /// Hands back requests whose time is over, also those that never got a stream.
    pub(super) fn expire_requests(&mut self, caller: &mut impl Caller, now_ns: u64) {
        for id in self.flights.select(|_, flight| self.expiry_ns(flight.exchange.started_ns) <= now_ns) {
            if let Some(flight) = self.flights.remove(id) {
                self.cancel(id);
                caller.finish(&flight.exchange, &self.handshake, Some(id), 0, Some(ErrorClass::Timeout));
            }
        }
        while self.waiting.front().is_some_and(|exchange| self.expiry_ns(exchange.started_ns) <= now_ns)
            && let Some(exchange) = self.waiting.pop_front()
        {
            caller.finish(&exchange, &self.handshake, None, 0, Some(ErrorClass::Timeout));
        }
        let waiting = self.waiting.iter().map(|exchange| exchange.started_ns);
        let oldest_ns = self.flights.earliest_start_ns().into_iter().chain(waiting).min();
        self.request_deadline_ns = oldest_ns.map_or(NEVER_NS, |started_ns| self.expiry_ns(started_ns));
    }
}

pub(super) fn code(code: Code) -> VarInt {
    VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX)
}
