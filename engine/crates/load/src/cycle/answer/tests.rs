use super::*;
use serde_json::{Value, json};

fn entry(service: &str, to: Option<&str>, arrived_ns: u64, replied_ns: u64) -> Value {
    json!({"service": service, "to": to, "method": "POST", "path": "/chain", "arrived_ns": arrived_ns,
        "forwarded_ns": to.map(|_| arrived_ns + 1), "secured_ns": to.map(|_| arrived_ns + 2),
        "returned_ns": to.map(|_| replied_ns - 1), "replied_ns": replied_ns, "status": to.map(|_| 200), "error": null})
}

/// Depth, caller, callee, and when the call arrived there and was answered.
type Call = (u8, String, String, u64, u64);

fn calls(meta: &[Value]) -> Option<Vec<Call>> {
    let text = json!({"message": {"meta": meta}}).to_string();
    let answer = Answer::from_content(text.as_bytes())?;
    let hops = hops(&answer.entries, "B")?;
    let row = |hop: &Hop| (hop.depth, hop.caller.into(), hop.callee.into(), hop.arrived_ns, hop.replied_ns);
    Some(hops.calls.iter().map(row).collect())
}

fn call(depth: u8, caller: &str, callee: &str, arrived_ns: u64, replied_ns: u64) -> Call {
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
