use super::shared::BARRIER_NS;
use super::*;
use serde_json::{Value, json};

/// A driver that was released at 1 us.
pub(crate) fn driver(changes: Value) -> Driver {
    driver_of(changes, 0)
}

fn driver_of(changes: Value, worker: u32) -> Driver {
    let mut document = json!({"trial": "t", "protocol": "h2", "address": "127.0.0.1", "port": 1, "server_name": "x",
        "ca_file": "x", "connections": 4, "streams": 10, "connection_mode": "reused", "loop": {"kind": "closed"}, "requests": 3,
        "method": "GET", "path": "/bytes/4", "expect_status": 200, "expect_body_bytes": 4, "samples_file": "x"});
    for (field, value) in changes.as_object().unwrap() {
        document[field] = value.clone();
    }
    let config = Arc::new(Config::parse(&document.to_string()).unwrap());
    let mut driver = Driver::new(config.clone(), Arc::new(Shared::new(&config).unwrap()), worker);
    driver.set_place(0);
    assert!(driver.next_request(500).is_none(), "held until the release");
    driver.release(1_000);
    driver
}

fn answered(driver: &mut Driver, now_ns: u64, status: u16, content: &[u8]) -> Option<&'static str> {
    let mut exchange = driver.next_request(now_ns).unwrap();
    exchange.first_byte_ns = now_ns + 1;
    exchange.status = status;
    exchange.content(driver, content);
    driver.finish(&exchange, &Handshake::default(), None, now_ns + 2, None);
    driver.samples.iter().last().unwrap().error.map(ErrorClass::as_str)
}

#[test]
fn a_response_is_judged_by_status_length_and_content() {
    let mut driver = driver(json!({"requests": 10}));
    assert_eq!(answered(&mut driver, 2_000, 200, b"abcd"), None);
    assert_eq!(answered(&mut driver, 2_000, 404, b"abcd"), Some("status"));
    assert_eq!(answered(&mut driver, 2_000, 200, b"abc"), Some("length"));
    assert_eq!(answered(&mut driver, 2_000, 200, b"abcdx"), Some("length"));
    assert_eq!(answered(&mut driver, 2_000, 200, b"abxd"), Some("content"));
    assert_eq!((driver.counters.samples, driver.counters.errors, driver.in_flight()), (5, 4, 0));
}

#[test]
fn requests_end_at_their_number_and_warmup_comes_before() {
    let mut driver = driver(json!({"requests": 3, "warmup_requests": 2}));
    let started: Vec<_> = std::iter::from_fn(|| driver.next_request(5_000)).map(|e| (e.request, e.warmup)).collect();
    assert_eq!(started, [(0, true), (1, true), (2, false), (3, false), (4, false)]);
    assert_eq!(driver.in_flight(), 5);
    assert!(!driver.may_start(5_000) && driver.next_due_ns() == u64::MAX);
}

#[test]
fn workers_share_requests_without_overlap() {
    let changes = json!({"requests": 5, "warmup_requests": 1, "workers": 2});
    let mut ordinals: Vec<u64> = Vec::new();
    for worker in 0..2 {
        let mut driver = driver_of(changes.clone(), worker);
        ordinals.extend(std::iter::from_fn(|| driver.next_request(5_000)).map(|exchange| exchange.request));
    }
    ordinals.sort_unstable();
    ordinals.dedup();
    assert_eq!(ordinals.len(), 6);
}

#[test]
fn time_limits_count_from_the_end_of_the_warmup() {
    let mut driver = driver(json!({"requests": 0, "duration_ns": 100, "warmup_ns": 50}));
    assert!(driver.next_request(1_049).unwrap().warmup);
    assert!(!driver.next_request(1_050).unwrap().warmup);
    assert!(driver.next_request(1_149).is_some());
    assert!(driver.next_request(1_150).is_none());
    let mut driver = driver_of(json!({"requests": 0, "duration_ns": 100, "warmup_requests": 1}), 0);
    assert_eq!(driver.deadline_ns(), u64::MAX);
    assert!(driver.next_request(9_000).unwrap().warmup);
    assert!(!driver.next_request(10_000).unwrap().warmup);
    assert_eq!(driver.deadline_ns(), 10_100);
}

#[test]
fn an_open_loop_starts_slots_when_due_and_counts_lag_and_missed_ones() {
    let changes = json!({"requests": 0, "duration_ns": 1_000_000, "loop": {"kind": "open", "rate_per_s": 10_000}});
    let mut driver = driver(changes);
    assert_eq!(driver.next_due_ns(), 1_000);
    assert_eq!(driver.next_request(1_000).unwrap().intended_ns, 1_000);
    assert!(driver.next_request(1_000).is_none(), "the second slot is not due");
    assert_eq!(driver.next_due_ns(), 101_000);
    let late = driver.next_request(151_000).unwrap();
    assert_eq!((late.intended_ns, late.started_ns), (101_000, 151_000));
    assert_eq!(driver.lag.max_ns(), 50_000);
    assert_eq!(driver.count_missed_slots(501_000), 3, "slots at 200, 300, 400 us");
    assert_eq!(driver.count_missed_slots(u64::MAX), 5, "and 500 to 900 us, the deadline ends it");
}

#[test]
fn a_slot_that_is_due_just_before_the_end_is_not_missed() {
    let changes = json!({"requests": 0, "duration_ns": 10_000_000, "loop": {"kind": "open", "rate_per_s": 1_000}});
    let mut driver = driver(changes);
    for slot in 0..9u64 {
        assert!(driver.next_request(1_000 + 1_000_000 * slot).is_some());
    }
    // The tenth is due at 9 ms; the client wakes 0.3 ms after the end, which is at 10 ms.
    let (ended_ns, late_ns) = (10_001_000, 10_301_000);
    assert!(driver.may_start(ended_ns) && driver.may_start(late_ns) && !driver.may_start(ended_ns + 1_000_000));
    assert_eq!(driver.next_request(late_ns).unwrap().intended_ns, 9_001_000);
    assert!(!driver.may_start(late_ns), "the next is due at the end");
    assert!(driver.next_request(late_ns).is_none());
    assert_eq!(driver.count_missed_slots(late_ns), 0);
}

#[test]
fn a_failed_attempt_is_a_row_and_twenty_without_a_response_are_a_dead_path() {
    let mut driver = driver(json!({"requests": 100, "streams": 1}));
    let handshake = Handshake { connection: 7, connect_start_ns: 4_000, ..Handshake::default() };
    for attempt in 0..DEAD_PATH_FAILURES {
        assert!(!driver.shared.is_dead_path(), "attempt {attempt}");
        driver.fail_attempt(&handshake, 5_000, ErrorClass::ConnectRefused);
    }
    assert!(driver.shared.is_dead_path());
    let mut exhausted = super::tests::driver(json!({"requests": 1}));
    exhausted.next_request(5_000).unwrap();
    exhausted.fail_attempt(&handshake, 5_000, ErrorClass::ConnectRefused);
    assert_eq!((exhausted.counters.samples, exhausted.totals.connections_lost_idle), (0, 1));
    let row = driver.samples.iter().next().unwrap();
    assert_eq!((row.connection, row.connect_start_ns, row.started_ns, row.done_ns), (7, 4_000, 4_000, 0));
    assert_eq!((row.error, row.protocol, row.intended_ns), (Some(ErrorClass::ConnectRefused), None, 0));
    // A response, even a wrong one, shows that the path is alive.
    assert_eq!(answered(&mut driver, 6_000, 500, b""), Some("status"));
    assert!(!driver.shared.is_dead_path());
}

#[test]
fn an_attempt_of_an_open_loop_takes_the_slot_that_is_due() {
    let mut driver = driver(json!({"loop": {"kind": "open", "rate_per_s": 1}}));
    let handshake = Handshake { connect_start_ns: 4_000, ..Handshake::default() };
    driver.fail_attempt(&handshake, 5_000, ErrorClass::ConnectTimeout);
    driver.fail_attempt(&handshake, 5_000, ErrorClass::ConnectTimeout);
    let intended: Vec<_> = driver.samples.iter().map(|row| row.intended_ns).collect();
    assert_eq!(intended, [1_000, 4_000]);
}

#[test]
fn only_the_first_request_of_a_connection_carries_its_times() {
    let mut driver = driver(json!({}));
    let mut handshake =
        Handshake { connect_start_ns: 10, tcp_connected_ns: 20, secured_ns: 30, ..Handshake::default() };
    for _ in 0..2 {
        let mut exchange = driver.next_request(5_000).unwrap();
        handshake.bind(&mut exchange);
        driver.finish(&exchange, &handshake, Some(0), 0, Some(ErrorClass::Reset));
    }
    let times: Vec<_> = driver.samples.iter().map(|row| (row.connect_start_ns, row.secured_ns)).collect();
    assert_eq!(times, [(10, 30), (0, 0)]);
}

#[test]
fn each_client_has_one_request_in_flight_and_as_many_as_it_is_asked_for() {
    let changes =
        json!({"connections": 2, "streams": 2, "requests": 0, "requests_per_client": 2, "warmup_requests": 1});
    let mut driver = driver(changes);
    let mut asked = Vec::new();
    for _ in 0..4 {
        let mut in_flight = Vec::new();
        for place in 0..2 {
            driver.set_place(place);
            in_flight.extend(std::iter::from_fn(|| driver.next_request(5_000)));
        }
        for exchange in in_flight {
            driver.finish(&exchange, &Handshake::default(), None, 0, Some(ErrorClass::Reset));
            asked.push((exchange.client, exchange.warmup));
        }
    }
    asked.sort_unstable();
    let twice =
        [(0, false), (0, false), (0, true), (1, false), (1, false), (2, false), (2, false), (3, false), (3, false)];
    assert_eq!(asked, twice);
    assert!(driver.is_done(0) && driver.is_done(1) && driver.reached_request_limit());
    let mut clients: Vec<u32> = driver.samples.iter().map(|sample| sample.client).collect();
    clients.sort_unstable();
    assert_eq!(clients, [0, 0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!((driver.beginnings().clients, driver.beginnings().last_ns), (4, 5_000));
}

#[test]
fn workers_begin_together_when_the_last_is_ready() {
    let driver = driver_of(json!({"workers": 2}), 0);
    driver.shared.arrive(1_000);
    assert_eq!(driver.shared.begin_ns(), None);
    driver.shared.arrive(5_000);
    assert_eq!(driver.shared.begin_ns(), Some(5_000 + BARRIER_NS));
    let alone = driver_of(json!({}), 0);
    alone.shared.arrive(1_000);
    assert_eq!(alone.shared.begin_ns(), Some(1_000));
}
