//! The message that passes through the services, `{"message": {"meta": [...], "body": ...}}`, read without copying it and
//! written around what stays as it is.

use std::io::Write as _;
use std::ops::Range;

use serde::Deserialize;
use serde_json::value::RawValue;

/// A message above this is refused with 413.
pub(crate) const MAX_MESSAGE_OCTETS: usize = 16_000_000;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Envelope<'a> {
    #[serde(borrow)]
    message: Parts<'a>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Parts<'a> {
    #[serde(borrow)]
    meta: &'a RawValue,
    #[serde(borrow, default)]
    body: Option<&'a RawValue>,
}

/// Where the parts of a message stand in its octets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Message {
    /// The entries, without the brackets around them; may be empty.
    pub(crate) meta: Range<usize>,
    /// The value of `body`.
    pub(crate) body: Option<Range<usize>>,
}

/// Reads a message; `None` when it is none.
pub(crate) fn parse(octets: &[u8]) -> Option<Message> {
    let parts = serde_json::from_slice::<Envelope<'_>>(octets).ok()?.message;
    let place = |part: &str| {
        let start = part.as_ptr() as usize - octets.as_ptr() as usize;
        start..start + part.len()
    };
    Some(Message { meta: place(entries(parts.meta.get())?), body: parts.body.map(|body| place(body.get())) })
}

/// Reads a list of entries that stands alone, as in a header field; its inside.
pub(crate) fn parse_meta(octets: &[u8]) -> Option<Range<usize>> {
    let list: &RawValue = serde_json::from_slice(octets).ok()?;
    let inside = entries(list.get())?;
    let start = inside.as_ptr() as usize - octets.as_ptr() as usize;
    Some(start..start + inside.len())
}

/// The inside of a JSON list; what is between the brackets was found to be JSON before.
fn entries(list: &str) -> Option<&str> {
    Some(list.strip_prefix('[')?.strip_suffix(']')?.trim_ascii())
}

/// Octets of filler in a body: letters, so that nothing is escaped.
pub(crate) fn write_filler(octets: usize, out: &mut Vec<u8>) {
    out.push(b'"');
    out.extend((0..octets).map(|place| b'a' + (place % 26) as u8));
    out.push(b'"');
}

/// Writes a message. `meta` is called to write the entries, with commas between them; `body` to write the body, if there is
/// one.
pub(crate) fn write(meta: impl FnOnce(&mut Vec<u8>), body: Option<impl FnOnce(&mut Vec<u8>)>, out: &mut Vec<u8>) {
    out.extend_from_slice(br#"{"message":{"meta":["#);
    meta(out);
    out.push(b']');
    if let Some(body) = body {
        out.extend_from_slice(br#","body":"#);
        body(out);
    }
    out.extend_from_slice(b"}}");
}

/// Appends entries that are JSON already, behind a comma where one is needed.
pub(crate) fn append_entries(entries: &[u8], out: &mut Vec<u8>) {
    if !entries.is_empty() {
        separate(out);
        out.extend_from_slice(entries);
    }
}

fn separate(out: &mut Vec<u8>) {
    if out.last().is_some_and(|octet| *octet != b'[') {
        out.push(b',');
    }
}

/// What a service says of one call, or of itself when it calls nobody. Times in ns on CLOCK_MONOTONIC of its host.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry<'a> {
    pub(crate) service: &'a str,
    pub(crate) to: Option<&'a str>,
    pub(crate) method: &'a str,
    pub(crate) path: &'a str,
    pub(crate) arrived_ns: u64,
    pub(crate) forwarded_ns: Option<u64>,
    pub(crate) secured_ns: Option<u64>,
    pub(crate) returned_ns: Option<u64>,
    pub(crate) replied_ns: Option<u64>,
    pub(crate) status: Option<u16>,
    pub(crate) error: Option<&'static str>,
}

impl Entry<'_> {
    /// Appends it, behind a comma where one is needed.
    pub(crate) fn append(&self, out: &mut Vec<u8>) {
        separate(out);
        // Names and error classes need no escaping; paths may hold quotes and backslashes.
        let _ = write!(out, r#"{{"service":"{}","to":"#, self.service);
        text_or_null(self.to, out);
        let _ = write!(out, r#","method":"{}","path":"#, self.method);
        let _ = serde_json::to_writer(&mut *out, self.path);
        let _ = write!(out, r#","arrived_ns":{}"#, self.arrived_ns);
        number_or_null(br#","forwarded_ns":"#, self.forwarded_ns, out);
        number_or_null(br#","secured_ns":"#, self.secured_ns, out);
        number_or_null(br#","returned_ns":"#, self.returned_ns, out);
        number_or_null(br#","replied_ns":"#, self.replied_ns, out);
        number_or_null(br#","status":"#, self.status.map(u64::from), out);
        out.extend_from_slice(br#","error":"#);
        text_or_null(self.error, out);
        out.push(b'}');
    }
}

fn text_or_null(text: Option<&str>, out: &mut Vec<u8>) {
    let _ = match text {
        Some(text) => write!(out, r#""{text}""#),
        None => write!(out, "null"),
    };
}

fn number_or_null(name: &[u8], number: Option<u64>, out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    let _ = match number {
        Some(number) => write!(out, "{number}"),
        None => write!(out, "null"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use trifecta_wire::mutate::{fuzz, mutated};

    const SAMPLE: &[u8] =
        br#" {"message": {"meta": [ {"service":"A","to":"B","arrived_ns":1} ], "body": {"k": ["\u00e9\"x", 1e3]}}} "#;

    /// Reads a message and writes it again with one entry more.
    fn spliced(octets: &[u8]) -> Option<Vec<u8>> {
        let message = parse(octets)?;
        let entry = Entry { service: "B", method: "POST", path: "/a\"\\b", arrived_ns: 7, ..Entry::default() };
        let mut out = Vec::new();
        let body = message.body.clone().map(|place| move |out: &mut Vec<u8>| out.extend_from_slice(&octets[place]));
        let meta = |out: &mut Vec<u8>| {
            append_entries(&octets[message.meta.clone()], out);
            entry.append(out);
        };
        write(meta, body, &mut out);
        Some(out)
    }

    #[test]
    fn an_entry_is_spliced_in_and_the_body_stays_as_it_was() {
        let out = spliced(SAMPLE).unwrap();
        let value: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["message"]["meta"][0]["service"], "A");
        let expected = json!({"service": "B", "to": null, "method": "POST", "path": "/a\"\\b", "arrived_ns": 7,
            "forwarded_ns": null, "secured_ns": null, "returned_ns": null, "replied_ns": null, "status": null, "error": null});
        assert_eq!(value["message"]["meta"][1], expected);
        assert!(out.ends_with(br#""body":{"k": ["\u00e9\"x", 1e3]}}}"#), "octet by octet");
        let empty = spliced(br#"{"message":{"meta":[ ]}}"#).unwrap();
        let value: Value = serde_json::from_slice(&empty).unwrap();
        assert_eq!(value["message"]["meta"].as_array().unwrap().len(), 1);
        assert_eq!(value["message"].get("body"), None);
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for text in [
            "",
            "{}",
            "[]",
            "null",
            "{\"message\":1}",
            r#"{"message":{}}"#,
            r#"{"message":{"meta":{}}}"#,
            r#"{"message":{"meta":[}}"#,
            r#"{"message":{"meta":[],"other":1}}"#,
            r#"{"message":{"meta":[]},"more":1}"#,
            r#"{"message":{"meta":[],"body":}}"#,
            r#"{"message":{"meta":[]}} x"#,
        ] {
            assert_eq!(parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_meta(br#" [{"a":1}] "#), Some(2..9));
        for text in ["", "{}", "[1", "[1]]"] {
            assert_eq!(parse_meta(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn damaged_messages_never_panic_and_what_passes_stays_json() {
        let deep = [b"{\"message\":{\"meta\":[".to_vec(), vec![b'['; 100_000]].concat();
        assert_eq!(spliced(&deep), None);
        let mut passed = 0;
        for seed in 0..60_000 {
            let damaged = mutated(SAMPLE, seed);
            let _ = parse_meta(&damaged);
            // What is JSON and no value of ours (a number beyond every range) passes through unread.
            if let Some(out) = spliced(&damaged)
                && let Ok(before) = serde_json::from_slice::<Value>(&damaged)
            {
                passed += 1;
                let value: Value = serde_json::from_slice(&out).expect("still JSON");
                let count = value["message"]["meta"].as_array().expect("still a list").len();
                assert_eq!(count, before["message"]["meta"].as_array().unwrap().len() + 1);
                assert_eq!(value["message"].get("body"), before["message"].get("body").filter(|body| !body.is_null()));
            }
        }
        assert!((100..59_000).contains(&passed), "{passed} of the damaged messages passed");
    }

    #[test]
    #[ignore = "long; run by make test-long"]
    fn many_damaged_messages_stay_json() {
        fuzz("relayed messages", &[SAMPLE.to_vec()], |data| {
            let _ = parse_meta(data);
            if let Some(out) = spliced(data)
                && serde_json::from_slice::<Value>(data).is_ok()
            {
                assert!(serde_json::from_slice::<Value>(&out).is_ok(), "still JSON");
            }
        });
    }

    #[test]
    fn filler_is_a_string_of_that_many_octets() {
        let mut out = Vec::new();
        write(|_| {}, Some(|out: &mut Vec<u8>| write_filler(128, out)), &mut out);
        let value: Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(value["message"]["body"].as_str().unwrap().len(), 128);
    }
}
