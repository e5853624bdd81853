//! What an answer says of the cycle behind it: the entries of the services, and the hops that follow from them.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Deeper than any chain of services; calls of calls end there.
const MAX_DEPTH: u8 = 64;

/// A text that is copied only where it has escapes.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Text<'_> {
    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}

/// What a service says of one of its calls, or of itself when it makes none (`to` is null). Fields that it does not know are
/// null or left out.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Entry<'a> {
    #[serde(borrow)]
    service: Text<'a>,
    #[serde(borrow, default)]
    to: Option<Text<'a>>,
    #[serde(borrow, default)]
    method: Option<Text<'a>>,
    #[serde(borrow, default)]
    path: Option<Text<'a>>,
    #[serde(default)]
    arrived_ns: Option<u64>,
    #[serde(default)]
    forwarded_ns: Option<u64>,
    #[serde(default)]
    secured_ns: Option<u64>,
    #[serde(default)]
    returned_ns: Option<u64>,
    #[serde(default)]
    replied_ns: Option<u64>,
    #[serde(default)]
    status: Option<u16>,
    #[serde(borrow, default)]
    error: Option<Text<'a>>,
}

#[derive(Deserialize)]
struct Document<'a> {
    #[serde(borrow)]
    message: Message<'a>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    meta: Vec<Entry<'a>>,
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
}

/// A whole answer.
#[derive(Debug)]
pub(crate) struct Answer<'a> {
    pub(crate) entries: Vec<Entry<'a>>,
    /// Octets of the filler; `None`: the answer has no body, or one that is not a text.
    pub(crate) filler_octets: Option<u64>,
}

impl<'a> Answer<'a> {
    /// Reads the content of a response: `{"message":{"meta":[...],"body":...}}`. `None`: it is something else.
    pub(crate) fn from_content(content: &'a [u8]) -> Option<Self> {
        let Message { meta, body } = serde_json::from_slice::<Document<'a>>(content).ok()?.message;
        // A filler holds no escapes, so what stands between its quotation marks is all of it.
        let filler = body.and_then(|body| body.get().strip_prefix('"')?.strip_suffix('"'));
        Some(Self { entries: meta, filler_octets: filler.map(|filler| filler.len() as u64) })
    }

    /// Reads the field `trifecta-meta`, which holds the entries alone. `None`: it is something else.
    pub(crate) fn from_field(value: &'a [u8]) -> Option<Self> {
        Some(Self { entries: serde_json::from_slice(value).ok()?, filler_octets: None })
    }
}

/// A call of one service to another. Times are as in [`trifecta_record::Span`], 0: not known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Hop<'a> {
    pub(crate) depth: u8,
    pub(crate) caller: &'a str,
    pub(crate) callee: &'a str,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) started_ns: u64,
    pub(crate) secured_ns: u64,
    pub(crate) arrived_ns: u64,
    pub(crate) replied_ns: u64,
    pub(crate) returned_ns: u64,
    pub(crate) status: u16,
    pub(crate) error: Option<&'a str>,
}

/// What the first service did, and all calls behind it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hops<'a> {
    /// When the request reached the first service, and when it gave its answer away; 0: not known.
    pub(crate) arrived_ns: u64,
    pub(crate) replied_ns: u64,
    /// In the order of the calls.
    pub(crate) calls: Vec<Hop<'a>>,
}

/// The hops that `entries` tell of, when the first service is `callee`. `None`: they do not fit together.
///
/// The entries stand in the order of the calls, the caller's before the callee's. A service that makes several calls has as many
/// entries, all of which say when the request arrived; that tells them from those of a later call of the same service.
pub(crate) fn hops<'a>(entries: &'a [Entry<'a>], callee: &str) -> Option<Hops<'a>> {
    let mut walk = Walk { entries, calls: Vec::with_capacity(entries.len()) };
    let visit = walk.visit(callee, 1)?.filter(|_| walk.entries.is_empty())?;
    Some(Hops { arrived_ns: visit.arrived_ns, replied_ns: visit.replied_ns, calls: walk.calls })
}

struct Visit {
    arrived_ns: u64,
    replied_ns: u64,
}

struct Walk<'a> {
    /// Those that were not looked at yet.
    entries: &'a [Entry<'a>],
    calls: Vec<Hop<'a>>,
}

impl<'a> Walk<'a> {
    /// Takes the entries of one visit of `service` with all that it called; the inner `None`: there are none, as the call never
    /// got there or was not answered. The outer one: they contradict themselves.
    fn visit(&mut self, service: &str, depth: u8) -> Option<Option<Visit>> {
        let Some(first) = self.entries.first().filter(|entry| entry.service.as_str() == service) else {
            return Some(None);
        };
        if depth > MAX_DEPTH {
            return None;
        }
        let mut visit = Visit { arrived_ns: first.arrived_ns.unwrap_or(0), replied_ns: 0 };
        while let Some((entry, rest)) = self.entries.split_first() {
            if entry.service != first.service || entry.arrived_ns != first.arrived_ns {
                break;
            }
            self.entries = rest;
            visit.replied_ns = entry.replied_ns.unwrap_or(visit.replied_ns);
            let Some(to) = &entry.to else { break };
            let call = self.calls.len();
            self.calls.push(Hop {
                depth,
                caller: entry.service.as_str(),
                callee: to.as_str(),
                method: text(entry.method.as_ref()),
                path: text(entry.path.as_ref()),
                started_ns: entry.forwarded_ns?,
                secured_ns: entry.secured_ns.unwrap_or(0),
                arrived_ns: 0,
                replied_ns: 0,
                returned_ns: entry.returned_ns.unwrap_or(0),
                status: entry.status.unwrap_or(0),
                error: entry.error.as_ref().map(Text::as_str),
            });
            if let Some(reached) = self.visit(to.as_str(), depth + 1)? {
                self.calls[call].arrived_ns = reached.arrived_ns;
                self.calls[call].replied_ns = reached.replied_ns;
            }
        }
        Some(Some(visit))
    }
}

fn text<'a>(value: Option<&'a Text<'a>>) -> &'a str {
    value.map_or("", Text::as_str)
}

#[cfg(test)]
mod tests;
