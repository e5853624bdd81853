//! A caller for the tests of the readers.

use crate::caller::{Caller, Exchange, Handshake, Totals};
use crate::content;
use crate::options::{ConnectionMode, Method, Options, Protocol};
use trifecta_wire::ErrorClass;

/// Compares content with the pattern, gives out as many requests as are asked for.
#[derive(Default)]
pub(crate) struct TestCaller {
    totals: Totals,
    requests: u64,
}

pub(crate) fn caller() -> TestCaller {
    TestCaller::default()
}

impl Caller for TestCaller {
    fn totals(&mut self) -> &mut Totals {
        &mut self.totals
    }

    fn next_request(&mut self, now_ns: u64) -> Option<Exchange> {
        self.requests += 1;
        Some(Exchange { request: self.requests - 1, started_ns: now_ns, ..Exchange::default() })
    }

    fn content(&mut self, exchange: &mut Exchange, octets: &[u8]) {
        exchange.wrong_content |= !content::matches(exchange.bytes_in, octets);
    }

    fn finish(&mut self, _: &Exchange, _: &Handshake, _: Option<u64>, _: u64, _: Option<ErrorClass>) {}

    fn fail_attempt(&mut self, _: &Handshake, _: u64, _: ErrorClass) {}
}

pub(crate) fn options(protocol: Protocol) -> Options {
    Options {
        trial: "t".into(),
        protocol,
        address: ([127, 0, 0, 1], 1).into(),
        server_name: "x".into(),
        ca_file: "x".into(),
        connection_mode: ConnectionMode::Reused,
        streams: 1,
        method: Method::Get,
        path: "/bytes/4".into(),
        user_agent: None,
        request_body_bytes: 0,
        connect_timeout_ns: 1_000_000_000,
        request_timeout_ns: 1_000_000_000,
        resumption: false,
        zero_rtt: false,
        congestion_control: Some("cubic".into()),
        tcp_nodelay: true,
        tls_version: "1.3".into(),
        key_exchange: "X25519".into(),
        cipher: None,
        udp_receive_buffer_bytes: 0,
        max_udp_payload_bytes: 1452,
        tcp_receive_buffer_bytes: 0,
        keylog_file: None,
        qlog_dir: None,
        quic_adaptations: trifecta_wire::quic::Adaptations::ALL,
        tuning: trifecta_wire::Tuning::default(),
    }
}
