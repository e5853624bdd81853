//! How requests are handed back, and how a connection ends.

use trifecta_wire::clock::now_ns;
use trifecta_wire::h2::{ErrorCode, write};

use super::streams::Stream;
use super::{H2Session, H2Shared};
use crate::caller::Caller;
use crate::{NEVER_NS, State};
use trifecta_wire::ErrorClass;

impl H2Session {
    pub(super) fn hand_back_finished(&mut self, caller: &mut impl Caller) {
        for finished in self.frames.finished.drain(..) {
            let stream = Some(u64::from(finished.id));
            caller.finish(&finished.exchange, &self.transport.handshake, stream, finished.done_ns, finished.error);
        }
    }

    pub(super) fn hand_back_all(&mut self, caller: &mut impl Caller, error: ErrorClass) {
        self.hand_back_finished(caller);
        if let Some(exchange) = self.first.take() {
            caller.finish(&exchange, &self.transport.handshake, None, 0, Some(error));
        }
        for id in self.frames.streams.ids(|_| true) {
            if let Some(stream) = self.frames.streams.remove(id) {
                caller.finish(&stream.exchange, &self.transport.handshake, Some(u64::from(id)), 0, Some(error));
            }
        }
    }

    /// Whether nothing more is to come on this connection.
    pub(super) fn is_done(&mut self, shared: &H2Shared) -> bool {
        if self.frames.going_away && self.state == State::Open {
            self.state = State::Draining;
        }
        let idle = self.frames.streams.len() == 0 && self.first.is_none();
        idle && !matches!(self.state, State::Closed { .. })
            && (self.state == State::Draining || (!shared.reused && self.next_stream > 1))
    }

    /// Whether to wait for session tickets before closing.
    pub(super) fn lingers(&mut self, shared: &H2Shared) -> bool {
        let Some(until_ns) = self.transport.linger_until_ns(&shared.transport) else { return false };
        if !self.lingering {
            self.lingering = true;
            self.state = State::Draining;
            self.deadline_ns = until_ns;
        }
        true
    }

    /// The peer ended the stream.
    pub(super) fn ended(&mut self, caller: &mut impl Caller) -> Result<(), ErrorClass> {
        let idle = self.frames.streams.len() == 0 && self.first.is_none();
        if !idle || !self.transport.is_secured() {
            return Err(ErrorClass::Closed);
        }
        self.end(caller, ErrorCode::NO_ERROR, false);
        Ok(())
    }

    /// The peer broke the protocol in a way that ends the connection.
    pub(super) fn malformed(&mut self, caller: &mut impl Caller, code: ErrorCode) {
        let class = self.frames.malformed();
        self.lose(caller, class);
        self.end(caller, code, true);
    }

    /// The connection is over because of `error`.
    pub(super) fn fail(&mut self, caller: &mut impl Caller, error: ErrorClass) {
        self.lose(caller, error);
        self.end(caller, ErrorCode::NO_ERROR, true);
    }

    pub(super) fn lose(&mut self, caller: &mut impl Caller, error: ErrorClass) {
        let in_flight = self.frames.streams.len() > 0 || self.first.is_some() || !self.frames.finished.is_empty();
        if in_flight {
            // What was announced and cut off (RFC 9113 8.1.1) is a matter of length, as with HTTP/1.1.
            let is_cut = |stream: &Stream| {
                error == ErrorClass::Closed
                    && stream.content_length.is_some_and(|octets| octets > stream.exchange.bytes_in)
            };
            for id in self.frames.streams.ids(is_cut) {
                if let Some(stream) = self.frames.streams.remove(id) {
                    let error = Some(ErrorClass::Length);
                    caller.finish(&stream.exchange, &self.transport.handshake, Some(u64::from(id)), 0, error);
                }
            }
            self.hand_back_all(caller, error);
        } else if !self.transport.is_secured() || !self.transport.handshake.bound {
            caller.fail_attempt(&self.transport.handshake, now_ns(), error);
        } else {
            caller.totals().connections_lost_idle += 1;
        }
    }

    pub(super) fn end(&mut self, caller: &mut impl Caller, code: ErrorCode, failed: bool) {
        if self.transport.is_secured() && self.state != State::Opening {
            // RFC 9113 6.8: an endpoint should say GOAWAY before it closes. No stream of the peer was processed.
            self.frames.reply.clear();
            write::goaway(0, code, &[], &mut self.frames.reply);
            let _ = self.transport.write(&self.frames.reply);
        }
        self.transport.close(caller);
        self.state = State::Closed { failed };
        self.deadline_ns = NEVER_NS;
    }
}
