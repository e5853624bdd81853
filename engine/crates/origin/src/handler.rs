//! What is answered to a request, the same for every protocol: a [`Request`]'s method and target become a [`Plan`], and
//! the protocol writes the plan's fields ([`Handler::for_each_field`]) and its [`Content`].
//!
//! A protocol must: send the first [`Handler::octets_to_send`] octets of the content and then end the message
//! (`truncate_bytes`), obey the other [`Handler::faults`], and count into [`crate::stats::Stats`].

use crate::answer::{Fields, Head, Plan, Relayed, Request, origin_form};
use crate::config::{Config, Faults, Protocol};
use crate::content::{Content, OCTET_STREAM};
use crate::folder::Folder;
use crate::live;
use crate::relay::{MAX_MESSAGE_OCTETS, Routes, Submission, Ticket};
use crate::replay::{self, Archive};
use bytes::Bytes;
use std::fmt::Write as _;
use std::sync::Arc;

/// Request content above this is refused with 413 (RFC 9110 15.5.14), in octets.
pub const MAX_REQUEST_CONTENT_OCTETS: u64 = 1 << 36;

const ALLOW: &str = "GET, HEAD, POST, PUT, PATCH, DELETE";

/// Where answers come from, a worker's own handles.
#[derive(Default)]
pub(crate) struct Sources {
    pub folder: Option<Folder>,
    pub archive: Option<Arc<Archive>>,
    pub live: Option<Folder>,
    pub routes: Option<Arc<Routes>>,
}

/// Turns requests into answers; one a worker.
pub struct Handler {
    sources: Sources,
    faults: Faults,
    server_timing: bool,
    /// The value of the Alt-Svc field (RFC 7838 3).
    alt_svc: Option<String>,
    /// What a request is looked up by in the archive.
    key: Vec<u8>,
    /// Requests that have come in whole and that the worker's relay is to take.
    submitted: Vec<Submission>,
}

impl Handler {
    /// `port` is the one in use.
    pub(crate) fn new(config: &Config, port: u16, sources: Sources) -> Self {
        let alt_svc = (config.alt_svc && config.serves(Protocol::H3)).then(|| format!("h3=\":{port}\"; ma=86400"));
        let (faults, server_timing) = (config.faults, config.server_timing);
        Self { sources, faults, server_timing, alt_svc, key: Vec::new(), submitted: Vec::new() }
    }

    /// A request of a route has come in whole: whoever `ticket` names waits for [`crate::relay::Relay::next_answer`].
    pub(crate) fn submit(&mut self, ticket: Ticket, relayed: Relayed, content: Vec<u8>) {
        self.submitted.push(Submission { ticket, relayed, content });
    }

    /// What was submitted, oldest first.
    #[inline]
    pub(crate) fn take_submitted(&mut self) -> Vec<Submission> {
        std::mem::take(&mut self.submitted)
    }

    /// The misbehaviour asked for.
    #[inline]
    pub fn faults(&self) -> Faults {
        self.faults
    }

    /// Whether responses carry a Server-Timing field, to be written with [`server_timing`] after the cached fields.
    #[inline]
    pub fn server_timing(&self) -> bool {
        self.server_timing
    }

    /// The answer to a request; the content of the request is still to be read and thrown away.
    pub fn plan(&mut self, request: Request<'_>) -> Plan {
        let safe = matches!(request.method, b"GET" | b"HEAD");
        if request.early && !safe {
            // RFC 8470 5.2: what could be a replay and has effects is not done.
            return Plan::status(425);
        }
        if request.content_length.is_some_and(|octets| octets > MAX_REQUEST_CONTENT_OCTETS) {
            return Plan::status(413);
        }
        let path = path_of(request.target);
        if let Some(route) = self.sources.routes.as_ref().and_then(|routes| routes.find(path)) {
            return relay_plan(route, request);
        }
        if let Some(folder) = &mut self.sources.live
            && let Some(name) = live::name_of(path)
        {
            return live::plan(folder, name, &request);
        }
        if let Some(archive) = &self.sources.archive {
            return archive.plan(&request, &mut self.key);
        }
        match request.method {
            b"GET" => self.resource(path).unwrap_or_else(|| Plan::status(404)),
            b"HEAD" => {
                let mut plan = self.resource(path).unwrap_or_else(|| Plan::status(404));
                plan.content = Content::Empty;
                plan
            }
            b"POST" | b"PUT" | b"PATCH" => match path.strip_prefix(b"/bytes/") {
                Some(digits) => bytes_plan(digits).unwrap_or_else(|| Plan::status(404)),
                None => Plan::content(OCTET_STREAM, Content::Empty),
            },
            b"DELETE" => Plan::status(204),
            _ => Plan::status(405),
        }
    }

    fn resource(&mut self, path: &[u8]) -> Option<Plan> {
        if let Some(digits) = path.strip_prefix(b"/bytes/") {
            return bytes_plan(digits);
        }
        if path == b"/healthz" {
            return Some(Plan::content("text/plain", Content::Memory(Bytes::from_static(b"ok\n"))));
        }
        let (content_type, content) = self.sources.folder.as_mut()?.open(path)?;
        Some(Plan::content(content_type, content))
    }

    /// Calls `field` with each header field except the status, names in lowercase; `protocol` decides about Alt-Svc.
    ///
    /// The fields depend on the head alone, so there is no Date, which RFC 9110 6.6.1 wants of a server with a clock: a
    /// response has the same octets every time.
    pub fn for_each_field(&self, head: &Head, protocol: Protocol, mut field: impl FnMut(&str, &[u8])) {
        if let Some(octets) = head.content_length {
            field("content-length", octets.to_string().as_bytes());
        }
        if let Some(content_type) = head.content_type {
            field("content-type", content_type.as_bytes());
        }
        match (head.fields, &self.sources.archive) {
            (Fields::Own, _) => field("server", b"trifecta"),
            (Fields::Recorded(number), Some(archive)) => {
                archive.fields(number).iter().for_each(|(name, value)| field(name, value));
            }
            (Fields::Missing, _) => field(replay::MISSING_FIELD, b"missing"),
            (Fields::Live, _) => live::FIELDS.iter().for_each(|(name, value)| field(name, value.as_bytes())),
            (Fields::Recorded(_), None) => {}
        }
        if let Some(range) = head.range {
            field("content-range", range.to_string().as_bytes());
        }
        if head.status == 405 && head.fields == Fields::Own {
            // RFC 9110 15.5.6.
            field("allow", ALLOW.as_bytes());
        }
        if let Some(alt_svc) = self.alt_svc.as_deref().filter(|_| protocol != Protocol::H3) {
            field("alt-svc", alt_svc.as_bytes());
        }
    }

    /// How many octets of the content are really sent.
    #[inline]
    pub fn octets_to_send(&self, plan: &Plan) -> u64 {
        plan.content.octets().saturating_sub(self.faults.truncate_bytes)
    }

    /// Whether less is sent than is announced, after which HTTP/1.1 has to close the connection.
    #[inline]
    pub fn truncates(&self, plan: &Plan) -> bool {
        self.faults.truncate_bytes > 0 && plan.content.octets() > 0
    }
}

/// The answer to a request of a route, as far as it is known before its content is there.
fn relay_plan(route: u16, request: Request<'_>) -> Plan {
    if request.content_length.is_some_and(|octets| octets > MAX_MESSAGE_OCTETS as u64) {
        return Plan::status(413);
    }
    match Routes::relayed(route, request.method) {
        Some(relayed) => Plan { relayed: Some(relayed), ..Plan::status(502) },
        None => Plan::status(405),
    }
}

/// Keeps content of a request for the relay; without one it is thrown away. A message that grows too large is refused when it has
/// ended.
#[inline]
pub(crate) fn collect(plan: &mut Plan, collected: &mut Vec<u8>, octets: &[u8]) {
    if plan.relayed.is_none() {
        return;
    }
    if collected.len() + octets.len() > MAX_MESSAGE_OCTETS {
        *plan = Plan::status(413);
        *collected = Vec::new();
        return;
    }
    collected.extend_from_slice(octets);
}

/// The value of a Server-Timing field (W3C Server Timing): the time from the request's head to the response's, in
/// milliseconds.
pub fn server_timing(elapsed_ns: u64, value: &mut String) {
    value.clear();
    let _ = write!(value, "app;dur={}.{:06}", elapsed_ns / 1_000_000, elapsed_ns % 1_000_000);
}

/// The path of a target, without its query.
fn path_of(target: &[u8]) -> &[u8] {
    let target = origin_form(target);
    let end = target.iter().position(|&octet| octet == b'?' || octet == b'#').unwrap_or(target.len());
    &target[..end]
}

#[inline]
fn bytes_plan(digits: &[u8]) -> Option<Plan> {
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let octets = digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0'));
    Some(Plan::content(OCTET_STREAM, Content::Pattern { octets }))
}

/// Encoded heads by what they were made of: a study asks for few sizes, so a handful of places is enough.
#[derive(Debug, Default)]
pub struct HeadCache {
    entries: Vec<(Head, Vec<u8>)>,
    next: usize,
}

const CACHED_HEADS: usize = 16;

impl HeadCache {
    /// The encoded form of `head`, made by `encode` when it is not there yet.
    #[inline]
    pub fn get(&mut self, head: &Head, encode: impl FnOnce(&Head, &mut Vec<u8>)) -> &[u8] {
        match self.entries.iter().position(|(cached, _)| cached == head) {
            Some(place) => &self.entries[place].1,
            None => self.insert(head, encode),
        }
    }

    #[cold]
    fn insert(&mut self, head: &Head, encode: impl FnOnce(&Head, &mut Vec<u8>)) -> &[u8] {
        let mut encoded = Vec::new();
        encode(head, &mut encoded);
        let place = self.next;
        self.next = (self.next + 1) % CACHED_HEADS;
        if place < self.entries.len() {
            self.entries[place] = (*head, encoded);
        } else {
            self.entries.push((*head, encoded));
        }
        &self.entries[place].1
    }
}

#[cfg(test)]
mod tests;
