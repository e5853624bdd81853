//! The cycles that are under way: what came in, how far the calls are, what is answered.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use trifecta_session::options::Method;
use trifecta_wire::ErrorClass;
use trifecta_wire::clock::now_ns;

use super::config::{AnswerConfig, BodyConfig, MethodConfig, RelayConfig, method_of};
use super::message::{self, Entry, Message};
use crate::answer::{Head, Plan, Relayed};
use crate::content::Content;

/// The header field that holds the meta where there is no content.
pub(crate) const META_FIELD: &str = "trifecta-meta";
pub(crate) const JSON: &str = "application/json";

/// Who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ticket {
    /// A connection's token; the stream is 0 in HTTP/1.1.
    Tcp { token: u64, stream: u32 },
    /// A connection's place and number.
    Quic { connection: usize, serial: u64, stream: u64 },
}

/// A request that has come in whole.
pub struct Submission {
    pub ticket: Ticket,
    pub relayed: Relayed,
    pub content: Vec<u8>,
}

/// A call of a route.
pub(super) struct PlannedCall {
    /// Number of the service.
    pub(super) service: usize,
    to: String,
    method: MethodConfig,
    pub(super) path: Arc<str>,
    body: BodyConfig,
}

struct Route {
    path: String,
    calls: Vec<PlannedCall>,
    answer: AnswerConfig,
}

/// What the routes ask; the same for all workers.
pub(crate) struct Routes {
    service: String,
    routes: Vec<Route>,
}

impl Routes {
    /// The routes of a configuration that was checked, in the order of their paths.
    pub(crate) fn new(config: &RelayConfig) -> Self {
        let number = |name: &str| config.services.keys().position(|key| key == name).unwrap_or(usize::MAX);
        let routes = config.routes.iter().map(|(path, route)| {
            let calls = route.calls.iter().map(|call| PlannedCall {
                service: number(&call.to),
                to: call.to.clone(),
                method: call.method,
                path: call.path.as_str().into(),
                body: call.body,
            });
            Route { path: path.clone(), calls: calls.collect(), answer: route.answer }
        });
        Self { service: config.service.clone(), routes: routes.collect() }
    }

    /// What a request asks for, if its path is a route's.
    pub(crate) fn find(&self, path: &[u8]) -> Option<u16> {
        self.routes.iter().position(|route| route.path.as_bytes() == path).map(|place| place as u16)
    }

    /// The request of a route; `None` when the method is none of a relay's.
    pub(crate) fn relayed(route: u16, method: &[u8]) -> Option<Relayed> {
        method_of(method).map(|method| Relayed { route, method, arrived_ns: 0 })
    }
}

/// A call that was begun.
#[derive(Default)]
pub(super) struct Call {
    pub(super) method: Method,
    /// When it was handed to the service's connections.
    pub(super) queued_ns: u64,
    /// When it was begun; 0 while it waits for a connection.
    pub(super) forwarded_ns: u64,
    pub(super) secured_ns: u64,
    pub(super) returned_ns: u64,
    pub(super) status: u16,
    pub(super) error: Option<ErrorClass>,
    /// Content of the response, or the meta of its head.
    pub(super) response: Vec<u8>,
    /// Where in it the callee's entries are.
    entries: Range<usize>,
}

impl Call {
    /// The response is whole: finds its entries. False when it is no message, or meta for HEAD.
    pub(super) fn read_response(&mut self) -> bool {
        let found = if self.method == Method::Head {
            message::parse_meta(&self.response)
        } else {
            message::parse(&self.response).map(|message| message.meta)
        };
        let is_sound = found.is_some();
        self.entries = found.unwrap_or_default();
        is_sound
    }
}

pub(super) struct Cycle {
    ticket: Ticket,
    relayed: Relayed,
    content: Vec<u8>,
    message: Message,
    calls: Vec<Call>,
    /// Refused without a call.
    refused: Option<u16>,
}

/// The cycles of one worker, by number. A cycle has at most one call under way, so its number names that too.
pub(super) struct Cycles {
    routes: Arc<Routes>,
    slots: Vec<Option<Cycle>>,
    free: Vec<u32>,
    /// Cycles whose call has ended.
    pub(super) returned: VecDeque<u32>,
}

impl Cycles {
    pub(super) fn new(routes: Arc<Routes>) -> Self {
        Self { routes, slots: Vec::new(), free: Vec::new(), returned: VecDeque::new() }
    }

    pub(super) fn in_flight(&self) -> u64 {
        (self.slots.len() - self.free.len()) as u64
    }

    /// Takes a request in; its number.
    pub(super) fn add(&mut self, submission: Submission) -> u32 {
        let Submission { ticket, relayed, content } = submission;
        let mut cycle =
            Cycle { ticket, relayed, content, message: Message::default(), calls: Vec::new(), refused: None };
        // Requests without content carry no message.
        if relayed.method.has_content() && !cycle.content.is_empty() {
            match message::parse(&cycle.content) {
                Some(message) => cycle.message = message,
                None => cycle.refused = Some(400),
            }
        }
        match self.free.pop() {
            Some(id) => {
                self.slots[id as usize] = Some(cycle);
                id
            }
            None => {
                self.slots.push(Some(cycle));
                (self.slots.len() - 1) as u32
            }
        }
    }

    /// The next call of a cycle, if one is to be made: the number of the service. It is under way from now on.
    pub(super) fn next_call(&mut self, id: u32) -> Option<usize> {
        let cycle = self.slots.get_mut(id as usize)?.as_mut()?;
        let failed = cycle.calls.last().is_some_and(|call| call.error.is_some());
        if failed || cycle.refused.is_some() {
            return None;
        }
        let planned = self.routes.routes[usize::from(cycle.relayed.route)].calls.get(cycle.calls.len())?;
        let method = match planned.method {
            MethodConfig::Same => cycle.relayed.method,
            MethodConfig::Fixed(method) => method,
        };
        cycle.calls.push(Call { method, queued_ns: now_ns(), ..Call::default() });
        Some(planned.service)
    }

    /// The call that is under way.
    pub(super) fn call(&mut self, id: u32) -> Option<&mut Call> {
        self.slots.get_mut(id as usize)?.as_mut()?.calls.last_mut()
    }

    /// Path and message of the call that is under way: what came in, with our entry behind it.
    pub(super) fn outgoing(&self, id: u32) -> Option<(Method, Arc<str>, Bytes)> {
        let cycle = self.slots.get(id as usize)?.as_ref()?;
        let call = cycle.calls.last()?;
        let planned = &self.routes.routes[usize::from(cycle.relayed.route)].calls[cycle.calls.len() - 1];
        if !call.method.has_content() {
            return Some((call.method, planned.path.clone(), Bytes::new()));
        }
        let octets = match planned.body {
            BodyConfig::Octets(octets) => octets,
            _ => cycle.message.body.as_ref().map_or(0, Range::len),
        };
        let mut out = Vec::with_capacity(cycle.message.meta.len() + octets + ENTRY_OCTETS);
        let meta = |out: &mut Vec<u8>| {
            message::append_entries(&cycle.content[cycle.message.meta.clone()], out);
            cycle.entry(&self.routes.service, planned, call, None).append(out);
        };
        let forwarded = cycle.message.body.clone().filter(|_| planned.body == BodyConfig::Forward);
        let has_body = forwarded.is_some() || matches!(planned.body, BodyConfig::Octets(_));
        let body = has_body.then_some(|out: &mut Vec<u8>| match forwarded {
            Some(place) => out.extend_from_slice(&cycle.content[place]),
            None => message::write_filler(octets, out),
        });
        message::write(meta, body, &mut out);
        Some((call.method, planned.path.clone(), out.into()))
    }

    /// Ends a cycle: its answer, which is to be sent at once, and who waits for it.
    pub(super) fn answer(&mut self, id: u32) -> Option<(Ticket, Plan)> {
        let cycle = self.slots.get_mut(id as usize)?.take()?;
        self.free.push(id);
        let status = cycle.status();
        if cycle.refused.is_some() {
            return Some((cycle.ticket, Plan::status(status)));
        }
        let route = &self.routes.routes[usize::from(cycle.relayed.route)];
        let replied_ns = now_ns();
        let subtrees: usize = cycle.calls.iter().map(|call| call.entries.len() + ENTRY_OCTETS).sum();
        let octets = match route.answer {
            AnswerConfig::Octets(octets) if status == 200 => Some(octets),
            _ => None,
        };
        let mut out = Vec::with_capacity(subtrees + ENTRY_OCTETS + octets.unwrap_or(0));
        let meta = |out: &mut Vec<u8>| {
            for (call, planned) in cycle.calls.iter().zip(&route.calls) {
                cycle.entry(&self.routes.service, planned, call, Some(replied_ns)).append(out);
                message::append_entries(&call.response[call.entries.clone()], out);
            }
            if cycle.calls.is_empty() {
                let own = Entry {
                    service: &self.routes.service,
                    method: cycle.relayed.method.name(),
                    path: &route.path,
                    arrived_ns: cycle.relayed.arrived_ns,
                    replied_ns: Some(replied_ns),
                    status: Some(status),
                    ..Entry::default()
                };
                own.append(out);
            }
        };
        if cycle.relayed.method == Method::Head {
            out.push(b'[');
            meta(&mut out);
            out.push(b']');
            // No content-length, since nothing is made that could have one (RFC 9110 8.6).
            let head = Head::new(status, Some(JSON), None);
            return Some((cycle.ticket, Plan { meta: Some(out.into()), ..Plan::new(head, Content::Empty) }));
        }
        let body = octets.map(|octets| move |out: &mut Vec<u8>| message::write_filler(octets, out));
        message::write(meta, body, &mut out);
        let head = Head::new(status, Some(JSON), Some(out.len() as u64));
        Some((cycle.ticket, Plan::new(head, Content::Memory(out.into()))))
    }
}

/// About what an entry takes.
const ENTRY_OCTETS: usize = 320;

impl Cycle {
    /// RFC 9110 15.6.3, 15.6.5: what a gateway answers when the one behind it fails.
    fn status(&self) -> u16 {
        let error = self.calls.last().and_then(|call| call.error);
        match (self.refused, error) {
            (Some(status), _) => status,
            (None, None) => 200,
            (None, Some(ErrorClass::Timeout | ErrorClass::ConnectTimeout | ErrorClass::QuicTimeout)) => 504,
            (None, Some(_)) => 502,
        }
    }

    fn entry<'a>(&self, service: &'a str, planned: &'a PlannedCall, call: &Call, replied_ns: Option<u64>) -> Entry<'a> {
        let known = |time_ns: u64| (time_ns != 0).then_some(time_ns);
        Entry {
            service,
            to: Some(&planned.to),
            method: call.method.name(),
            path: &planned.path,
            arrived_ns: self.relayed.arrived_ns,
            forwarded_ns: known(call.forwarded_ns).or(Some(call.queued_ns)),
            secured_ns: known(call.secured_ns),
            returned_ns: known(call.returned_ns),
            replied_ns,
            status: (call.status != 0).then_some(call.status),
            error: call.error.map(ErrorClass::as_str),
        }
    }
}
