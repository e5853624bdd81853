//! Cycles: requests to services that call others. What is sent into one, and the hops that its answer tells of.

mod answer;
mod message;

use std::borrow::Cow;
use std::sync::Arc;

use trifecta_record::{Span, SpanStore};
use trifecta_session::caller::{Exchange, Handshake, Request};
use trifecta_wire::ErrorClass;

use crate::config::{Config, Method};
use answer::Answer;
use message::MAX_MESSAGE_OCTETS;
pub(crate) use message::Messages;

/// What a client holds of the cycle that it has in flight.
#[derive(Debug, Default)]
struct InFlight {
    /// Content of the response as far as it has come, or the field that stands for it.
    answer: Vec<u8>,
    /// More came than any message holds.
    overlong: bool,
}

/// The cycles of one worker.
#[derive(Debug)]
pub(crate) struct Cycles {
    service: String,
    to: String,
    method: Method,
    path: Arc<str>,
    messages: Option<Arc<Messages>>,
    expected_filler: Option<u64>,
    /// By client, of which each has one cycle in flight at most.
    in_flight: Vec<InFlight>,
    keeps_spans: bool,
    pub(crate) spans: SpanStore,
}

impl Cycles {
    /// The cycles of `clients` clients; `None` when the configuration asks for none. `messages` is there if it has any.
    pub(crate) fn new(config: &Config, messages: Option<Arc<Messages>>, clients: usize) -> Option<Self> {
        Some(Self {
            service: config.service.clone(),
            to: config.to.clone()?,
            method: config.method,
            path: config.path.as_str().into(),
            messages,
            expected_filler: config.expect_body_bytes.filter(|_| config.method != Method::Head),
            in_flight: (0..clients).map(|_| InFlight::default()).collect(),
            keeps_spans: config.spans_file.is_some(),
            spans: SpanStore::default(),
        })
    }

    /// A cycle of `client` begins.
    pub(crate) fn begin(&mut self, client: u32) {
        let cycle = &mut self.in_flight[client as usize];
        cycle.answer.clear();
        cycle.overlong = false;
    }

    /// The request of a cycle: its ordinal in a field, and its message where the method has content.
    pub(crate) fn request(&self, exchange: &Exchange) -> Request {
        let mut fields: Vec<(&'static str, Cow<'static, str>)> =
            vec![("trifecta-cycle", exchange.request.to_string().into())];
        let mut content = Vec::new();
        if let Some(messages) = &self.messages {
            fields.push(("content-type", "application/json".into()));
            content = messages.message(exchange.request, exchange.started_ns);
        }
        Request { method: self.method, path: self.path.clone(), fields, content: content.into() }
    }

    /// The response field that stands for the content, where a response has none.
    pub(crate) fn wanted_field(&self) -> Option<&'static str> {
        (self.method == Method::Head).then_some("trifecta-meta")
    }

    /// Octets of the answer, in order.
    pub(crate) fn take(&mut self, client: u32, octets: &[u8]) {
        let cycle = &mut self.in_flight[client as usize];
        cycle.overlong |= (cycle.answer.len() + octets.len()) as u64 > MAX_MESSAGE_OCTETS;
        if !cycle.overlong {
            cycle.answer.extend_from_slice(octets);
        }
    }

    /// A cycle has ended, with `error` if it is known to have failed: judges its answer and keeps its hops, as
    /// those of `client` (its number in the run). Returns the error of the sample.
    pub(crate) fn finish(
        &mut self,
        exchange: &Exchange,
        client: u32,
        handshake: &Handshake,
        done_ns: u64,
        error: Option<ErrorClass>,
    ) -> Option<ErrorClass> {
        let cycle = &self.in_flight[exchange.client as usize];
        // Without an end there may be a part of an answer; it says nothing that could be trusted.
        let answer = (done_ns != 0 && !cycle.overlong).then(|| match self.method {
            Method::Head => Answer::from_field(&cycle.answer),
            _ => Answer::from_content(&cycle.answer),
        });
        let answer = answer.flatten();
        let hops = answer.as_ref().and_then(|answer| answer::hops(&answer.entries, &self.to));
        let error = error.or_else(|| match (&answer, &hops) {
            (Some(answer), Some(_)) => {
                let differs = |octets| octets != answer.filler_octets.unwrap_or(0);
                self.expected_filler.is_some_and(differs).then_some(ErrorClass::Length)
            }
            _ => Some(ErrorClass::Content),
        });
        if !self.keeps_spans {
            return error;
        }
        let first = Span {
            request: exchange.request,
            connection: handshake.connection,
            client,
            warmup: exchange.warmup,
            ordinal: 0,
            depth: 0,
            caller: &self.service,
            callee: &self.to,
            method: self.method.name(),
            path: &self.path,
            started_ns: exchange.started_ns,
            // A connection that stood before the call began is a reused one.
            secured_ns: if handshake.secured_ns >= exchange.started_ns { handshake.secured_ns } else { 0 },
            arrived_ns: hops.as_ref().map_or(0, |hops| hops.arrived_ns),
            replied_ns: hops.as_ref().map_or(0, |hops| hops.replied_ns),
            returned_ns: done_ns,
            status: exchange.status,
            error: error.map(ErrorClass::as_str),
        };
        self.spans.push(&first);
        for (hop, ordinal) in hops.iter().flat_map(|hops| &hops.calls).zip(1..) {
            self.spans.push(&Span {
                ordinal,
                depth: hop.depth,
                caller: hop.caller,
                callee: hop.callee,
                method: hop.method,
                path: hop.path,
                started_ns: hop.started_ns,
                secured_ns: hop.secured_ns,
                arrived_ns: hop.arrived_ns,
                replied_ns: hop.replied_ns,
                returned_ns: hop.returned_ns,
                status: hop.status,
                error: hop.error,
                ..first
            });
        }
        error
    }
}
