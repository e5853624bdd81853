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
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn entry(service: &str, to: Option<&str>, arrived_ns: u64, replied_ns: u64) -> Value {
        json!({"service": service, "to": to, "method": "POST", "path": "/chain", "arrived_ns": arrived_ns,
            "forwarded_ns": to.map(|_| arrived_ns + 1), "secured_ns": to.map(|_| arrived_ns + 2),
            "returned_ns": to.map(|_| replied_ns - 1), "replied_ns": replied_ns, "status": to.map(|_| 200), "error": null})
    }

    fn calls(meta: &[Value]) -> Option<Vec<(u8, String, String, u64, u64)>> {
        let text = json!({"message": {"meta": meta}}).to_string();
        let answer = Answer::from_content(text.as_bytes())?;
        let hops = hops(&answer.entries, "B")?;
        let row = |hop: &Hop| (hop.depth, hop.caller.into(), hop.callee.into(), hop.arrived_ns, hop.replied_ns);
        Some(hops.calls.iter().map(row).collect())
    }

    fn call(depth: u8, caller: &str, callee: &str, arrived_ns: u64, replied_ns: u64) -> (u8, String, String, u64, u64) {
        (depth, caller.into(), callee.into(), arrived_ns, replied_ns)
    }

    #[test]
    fn a_chain_becomes_its_hops() {
        let meta = [entry("B", Some("C"), 10, 90), entry("C", Some("D"), 20, 80), entry("D", None, 30, 70)];
        let text = json!({"message": {"meta": meta, "body": "abcd"}}).to_string();
        let answer = Answer::from_content(text.as_bytes()).unwrap();
        assert_eq!(answer.filler_octets, Some(4));
        let found = hops(&answer.entries, "B").unwrap();
        assert_eq!((found.arrived_ns, found.replied_ns), (10, 90));
        let hop = |depth, caller, callee, at: [u64; 5]| Hop {
            depth,
            caller,
            callee,
            method: "POST",
            path: "/chain",
            started_ns: at[0],
            secured_ns: at[1],
            arrived_ns: at[2],
            replied_ns: at[3],
            returned_ns: at[4],
            status: 200,
            error: None,
        };
        assert_eq!(found.calls, [hop(1, "B", "C", [11, 12, 20, 80, 89]), hop(2, "C", "D", [21, 22, 30, 70, 79])]);
    }

    #[test]
    fn several_calls_of_a_service_and_calls_back_are_told_apart() {
        // B calls C, which calls back to B, which calls E; then B calls D, then C again.
        let meta = [
            entry("B", Some("C"), 10, 99),
            entry("C", Some("B"), 20, 40),
            entry("B", Some("E"), 30, 35),
            entry("E", None, 32, 33),
            entry("B", Some("D"), 10, 99),
            entry("D", None, 50, 60),
            entry("B", Some("C"), 10, 99),
            entry("C", None, 70, 80),
        ];
        let expected = vec![
            call(1, "B", "C", 20, 40),
            call(2, "C", "B", 30, 35),
            call(3, "B", "E", 32, 33),
            call(1, "B", "D", 50, 60),
            call(1, "B", "C", 70, 80),
        ];
        assert_eq!(calls(&meta), Some(expected));
        assert_eq!(calls(&[entry("B", None, 10, 20)]), Some(vec![]));
    }

    #[test]
    fn a_call_that_never_arrived_has_its_error_and_no_times_of_the_callee() {
        let mut lost = entry("C", Some("D"), 20, 80);
        for field in ["secured_ns", "returned_ns", "status"] {
            lost[field] = Value::Null;
        }
        lost["error"] = json!("connect_refused");
        let text = json!({"message": {"meta": [entry("B", Some("C"), 10, 90), lost]}}).to_string();
        let answer = Answer::from_content(text.as_bytes()).unwrap();
        let found = hops(&answer.entries, "B").unwrap();
        let last = found.calls.last().unwrap();
        assert_eq!((last.arrived_ns, last.replied_ns, last.returned_ns, last.secured_ns), (0, 0, 0, 0));
        assert_eq!((last.started_ns, last.status, last.error), (21, 0, Some("connect_refused")));
        assert_eq!((found.calls[0].arrived_ns, found.calls[0].error), (20, None));
    }

    #[test]
    fn entries_that_do_not_fit_together_are_refused() {
        assert_eq!(calls(&[]), None, "nobody says anything");
        assert_eq!(calls(&[entry("C", None, 10, 20)]), None, "not the service that was asked");
        assert_eq!(calls(&[entry("B", None, 10, 20), entry("D", None, 12, 15)]), None, "nobody called it");
        let mut endless: Vec<Value> = Vec::new();
        for depth in 0..200u64 {
            let (service, to) = if depth % 2 == 0 { ("B", "C") } else { ("C", "B") };
            endless.push(entry(service, Some(to), 10 + depth, 1000 - depth));
        }
        assert_eq!(calls(&endless), None, "no chain is so deep");
        let mut timeless = entry("B", Some("C"), 10, 20);
        timeless["forwarded_ns"] = Value::Null;
        assert_eq!(calls(&[timeless]), None, "a call that never began");
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for content in ["", "{", "[]", "{}", r#"{"message":{}}"#, r#"{"message":{"meta":{}}}"#, "abcd"] {
            assert!(Answer::from_content(content.as_bytes()).is_none(), "{content}");
        }
        let negative = r#"{"message":{"meta":[{"service":"B","arrived_ns":-1}]}}"#;
        assert!(Answer::from_content(negative.as_bytes()).is_none());
        let behind = r#"{"message":{"meta":[{"service":"B"}]}} x"#;
        assert!(Answer::from_content(behind.as_bytes()).is_none());
        assert!(Answer::from_field(b"{}").is_none() && Answer::from_field(b"").is_none());
    }

    #[test]
    fn a_field_holds_the_entries_alone_and_names_may_have_escapes() {
        let text = format!("[{}]", entry("B", Some("\u{e9}\"C"), 10, 20));
        let answer = Answer::from_field(text.as_bytes()).unwrap();
        assert_eq!(hops(&answer.entries, "B").unwrap().calls[0].callee, "\u{e9}\"C");
        assert_eq!(answer.filler_octets, None);
    }

    #[test]
    fn damaged_answers_never_panic() {
        let meta = [entry("B", Some("C"), 10, 90), entry("C", Some("D"), 20, 80), entry("D", None, 30, 70)];
        let whole = json!({"message": {"meta": meta, "body": "abcd"}}).to_string().into_bytes();
        for position in 0..whole.len() {
            for mask in [1, 2, 4, 16, 0x80] {
                let mut damaged = whole.clone();
                damaged[position] ^= mask;
                if let Some(answer) = Answer::from_content(&damaged) {
                    let _ = hops(&answer.entries, "B");
                }
            }
            assert!(Answer::from_content(&whole[..position]).is_none());
        }
    }
}
