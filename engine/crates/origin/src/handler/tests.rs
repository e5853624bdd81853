//! Methods, targets, fields.

use super::*;

fn handler(more: &str) -> Handler {
    let base = r#""address": "127.0.0.1", "port": 0, "certificate_file": "c", "key_file": "k""#;
    Handler::new(&Config::parse(&format!("{{{base}{more}}}")).unwrap(), 8443, Sources::default())
}

fn plan(handler: &mut Handler, method: &str, target: &str) -> (u16, Option<u64>, u64) {
    let request = Request::new(method.as_bytes(), target.as_bytes());
    let plan = handler.plan(request);
    (plan.head.status, plan.head.content_length, plan.content.octets())
}

#[test]
fn methods_and_targets() {
    let mut handler = handler("");
    let mut answer = |method, target| plan(&mut handler, method, target);
    assert_eq!(answer("GET", "/bytes/1000"), (200, Some(1000), 1000));
    assert_eq!(answer("GET", "/bytes/1000?x=/bytes/1"), (200, Some(1000), 1000));
    assert_eq!(answer("GET", "https://origin.lab:8443/bytes/7"), (200, Some(7), 7));
    assert_eq!(answer("HEAD", "/bytes/1000"), (200, Some(1000), 0));
    assert_eq!(answer("POST", "/bytes/5"), (200, Some(5), 5));
    assert_eq!(answer("PUT", "/anything"), (200, Some(0), 0));
    assert_eq!(answer("PATCH", "/bytes/0"), (200, Some(0), 0));
    assert_eq!(answer("DELETE", "/bytes/5"), (204, None, 0));
    assert_eq!(answer("GET", "/healthz"), (200, Some(3), 3));
    for target in ["/", "/nothing", "/bytes/", "/bytes/-1", "/bytes/1x", "/bytes/9999999999999999999", "*", ""] {
        assert_eq!(answer("GET", target).0, 404, "{target}");
    }
    for method in ["OPTIONS", "TRACE", "CONNECT", "get", "BREW"] {
        assert_eq!(answer(method, "/bytes/5").0, 405, "{method}");
    }
}

#[test]
fn early_data_with_effects_is_refused() {
    let mut handler = handler("");
    for (method, status) in [("GET", 200), ("HEAD", 200), ("POST", 425), ("DELETE", 425)] {
        let request = Request { early: true, ..Request::new(method.as_bytes(), b"/bytes/1") };
        assert_eq!(handler.plan(request).head.status, status, "{method}");
    }
    let large = Request { content_length: Some(u64::MAX), ..Request::new(b"POST", b"/bytes/1") };
    assert_eq!(handler.plan(large).head.status, 413);
}

#[test]
fn fields_are_few_and_constant() {
    let handler = handler(r#", "alt_svc": true"#);
    let head = Head::new(405, None, Some(0));
    let mut fields = Vec::new();
    handler.for_each_field(&head, Protocol::H2, |name, value| {
        fields.push(format!("{name}: {}", String::from_utf8_lossy(value)))
    });
    let allow = format!("allow: {ALLOW}");
    assert_eq!(fields, ["content-length: 0", "server: trifecta", &allow, "alt-svc: h3=\":8443\"; ma=86400"]);
    let mut count = 0;
    let head = Head::new(204, None, None);
    handler.for_each_field(&head, Protocol::H3, |_, _| count += 1);
    assert_eq!(count, 1);
}

#[test]
fn truncation_leaves_octets_out_of_content_only() {
    let mut handler = handler(r#", "faults": {"truncate_bytes": 1}"#);
    let request = |method| Request::new(method, b"/bytes/10");
    let get = handler.plan(request(b"GET"));
    assert!(handler.truncates(&get));
    assert_eq!(handler.octets_to_send(&get), 9);
    let head = handler.plan(request(b"HEAD"));
    assert!(!handler.truncates(&head));
}

#[test]
fn heads_are_encoded_once() {
    let mut cache = HeadCache::default();
    let mut encoded = 0;
    for round in 0..3 {
        for octets in 0..CACHED_HEADS as u64 {
            let head = Head::new(200, None, Some(octets));
            let text = cache.get(&head, |head, out| {
                encoded += 1;
                out.extend_from_slice(head.content_length.unwrap().to_string().as_bytes());
            });
            assert_eq!(text, octets.to_string().as_bytes(), "round {round}");
        }
    }
    assert_eq!(encoded, CACHED_HEADS);
    let mut value = String::new();
    server_timing(1_234_567, &mut value);
    assert_eq!(value, "app;dur=1.234567");
}
