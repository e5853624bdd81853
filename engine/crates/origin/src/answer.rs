//! What a request asks and what it is answered, whichever protocol carries both.

use crate::content::Content;
use crate::range::{self, ContentRange};
use bytes::Bytes;
use trifecta_session::options::Method;

/// The head of a request, as far as an answer depends on it.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    pub method: &'a [u8],
    /// Path and query, or an absolute URI.
    pub target: &'a [u8],
    /// The authority of a request: Host, or `:authority`; may name a port.
    pub host: &'a [u8],
    /// The Range and If-Range fields (RFC 9110 14.2, 13.1.5).
    pub range: Option<&'a [u8]>,
    pub if_range: Option<&'a [u8]>,
    /// Content-Length, when announced.
    pub content_length: Option<u64>,
    /// Whether it came as 0-RTT data and may be a replay (RFC 8446 8).
    pub early: bool,
}

impl<'a> Request<'a> {
    /// A request without anything else.
    pub fn new(method: &'a [u8], target: &'a [u8]) -> Self {
        Self { method, target, host: b"", range: None, if_range: None, content_length: None, early: false }
    }
}

/// Whose fields a response has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fields {
    /// The origin's own.
    Own,
    /// Those of a response of the page archive.
    Recorded(u32),
    /// Those that say that the archive has no such response.
    Missing,
    /// Those of a file that changes while it is served.
    Live,
}

/// What makes the fields of a response; equal heads have equal fields, so encoded fields can be cached by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    pub status: u16,
    pub content_type: Option<&'static str>,
    /// The Content-Length that is announced; `None` where the field must not be (204, RFC 9110 8.6).
    pub content_length: Option<u64>,
    pub fields: Fields,
    pub range: Option<ContentRange>,
}

impl Head {
    /// A head with the origin's own fields.
    pub fn new(status: u16, content_type: Option<&'static str>, content_length: Option<u64>) -> Self {
        Self { status, content_type, content_length, fields: Fields::Own, range: None }
    }
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Plan {
    pub head: Head,
    /// What is to be sent; empty in answer to HEAD.
    pub content: Content,
    /// The value of a field for the meta of a relay's message, which has no place in an answer to HEAD.
    pub meta: Option<Bytes>,
    /// The real answer is the relay's, once it has the request's content.
    pub relayed: Option<Relayed>,
}

impl Plan {
    /// An answer that is known.
    pub fn new(head: Head, content: Content) -> Self {
        Self { head, content, meta: None, relayed: None }
    }

    /// An answer without content.
    pub fn status(status: u16) -> Self {
        let content_length = if status == 204 { None } else { Some(0) };
        Self::new(Head::new(status, None, content_length), Content::Empty)
    }

    pub(crate) fn content(content_type: &'static str, content: Content) -> Self {
        Self::new(Head::new(200, Some(content_type), Some(content.octets())), content)
    }

    /// Of the plan for the whole the one for what a Range field asks: 206, 416, or as it was.
    pub(crate) fn ranged(self, field: Option<&[u8]>) -> Self {
        let Some(range) = field.and_then(|field| range::parse(field, self.content.octets())) else { return self };
        let (status, content) = match range {
            ContentRange::Part { first, last, .. } => (206, self.content.part(first, last - first + 1)),
            ContentRange::Unsatisfied { .. } => (416, Content::Empty),
        };
        let head = Head { status, content_length: Some(content.octets()), range: Some(range), ..self.head };
        Self::new(head, content)
    }
}

/// What makes a request one of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relayed {
    /// The route's number.
    pub route: u16,
    pub method: Method,
    /// After the receive that completed the request; 0 before.
    pub arrived_ns: u64,
}

/// Path and query of a target in origin or absolute form (RFC 9112 3.2).
pub(crate) fn origin_form(target: &[u8]) -> &[u8] {
    if target.first() == Some(&b'/') {
        return target;
    }
    let after_scheme = [b"https://".as_slice(), b"http://"].iter().find_map(|scheme| target.strip_prefix(*scheme));
    let Some(rest) = after_scheme else { return target };
    match rest.iter().position(|&octet| octet == b'/') {
        Some(slash) => &rest[slash..],
        None => b"/",
    }
}
