//! Settings of the transports that a study exchanges one by one, to see what each does to a result. What is left out is as
//! the engine, its libraries or the kernel have it.

use std::fmt::Display;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::h2::{DEFAULT_WINDOW_OCTETS, Windows};

const LARGEST_WINDOW: u32 = 1_000_000_000;
const LARGEST_BUFFER: u32 = 1_000_000_000;

/// What is set otherwise. The kernel's own settings of TCP are those of the host and its routes, and not in here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Tuning {
    /// Full-size packets of QUIC's first congestion window, 2 to 1,000; else 10. TCP has that of its route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub initial_window_packets: Option<u16>,
    /// Packets are spread over the round trip. Else TCP's are not (but with BBR), and QUIC's are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing: Option<bool>,
    /// Octets that a peer may send on one stream of HTTP/2 or QUIC before it hears from us, 1,000 to 10^9.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream_window_bytes: Option<u32>,
    /// The same of all streams of a connection, 65,535 to 10^9: HTTP/2 begins with that many (RFC 9113 section 6.9.2).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection_window_bytes: Option<u32>,
    /// QUIC's window begins anew after a rest, by Linux's rule for TCP; else it is kept. TCP has that of its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_window_restarts: Option<bool>,
    /// How many packets later one must be acknowledged for QUIC to take a packet for lost (RFC 9002 section 6.1.1), 3 to
    /// 1,000; else 3. TCP has that of its host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub packet_threshold: Option<u16>,
    /// The kernel cuts trains of UDP datagrams (`UDP_SEGMENT`); else, false, each is handed over by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segmentation_offload: Option<bool>,
    /// How long a receiver of QUIC packets may wait before it acknowledges them, 1 ms to 1 s; else 25 ms. Its peer asks for
    /// it (draft-ietf-quic-ack-frequency), and quinn-proto for no more than 25 ms or a round trip, whichever is longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_delay_ns: Option<u64>,
    /// How many QUIC packets a receiver acknowledges at once, 1 to 1,000; else 2. Its peer asks for it, as well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ack_packets: Option<u16>,
    /// Octets of plaintext in the largest TLS record over TCP, 64 to 16,384. Else a server begins with what fits into one
    /// segment, and a client has 16,384.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_record_bytes: Option<u16>,
    /// How long a client waits between TCP's handshake and its Client Hello, 1 ms to 10 s; else not at all. A server has no
    /// such wait.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls_wait_ns: Option<u64>,
    /// Octets of UDP payload in the largest QUIC packet, 1,200 to 65,527, in the place of `max_udp_payload_bytes`. TCP has its
    /// segments' size of its route.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp_payload_bytes: Option<u16>,
    /// Octets of receive buffer of QUIC's socket, 4,096 to 10^9, in the place of `udp_receive_buffer_bytes`; TCP's is the
    /// kernel's, which sizes it by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub udp_buffer_bytes: Option<u32>,
}

impl Tuning {
    /// Whether all can be set.
    ///
    /// # Errors
    /// The first field that is out of range, as `tuning.FIELD`, and the range.
    pub fn check(&self) -> Result<(), (String, String)> {
        within("initial_window_packets", self.initial_window_packets, 2..=1_000)?;
        within("stream_window_bytes", self.stream_window_bytes, 1_000..=LARGEST_WINDOW)?;
        within("connection_window_bytes", self.connection_window_bytes, DEFAULT_WINDOW_OCTETS..=LARGEST_WINDOW)?;
        within("packet_threshold", self.packet_threshold, 3..=1_000)?;
        within("ack_delay_ns", self.ack_delay_ns, 1_000_000..=1_000_000_000)?;
        within("ack_packets", self.ack_packets, 1..=1_000)?;
        within("tls_record_bytes", self.tls_record_bytes, 64..=16_384)?;
        within("tls_wait_ns", self.tls_wait_ns, 1_000_000..=10_000_000_000)?;
        within("udp_payload_bytes", self.udp_payload_bytes, 1_200..=65_527)?;
        within("udp_buffer_bytes", self.udp_buffer_bytes, 4_096..=LARGEST_BUFFER)
    }

    /// The largest UDP payload of an endpoint that has this by itself.
    pub fn udp_payload(&self, own: u16) -> u16 {
        self.udp_payload_bytes.unwrap_or(own)
    }

    /// The receive buffer of a UDP socket that has this by itself.
    pub fn udp_buffer(&self, own: usize) -> usize {
        self.udp_buffer_bytes.map_or(own, |octets| octets as usize)
    }

    /// The windows of an endpoint of HTTP/2 that has these by itself.
    pub fn windows(&self, own: Windows) -> Windows {
        Windows {
            stream: self.stream_window_bytes.unwrap_or(own.stream),
            connection: self.connection_window_bytes.unwrap_or(own.connection),
        }
    }
}

fn within<T: Display + PartialOrd>(
    field: &str,
    value: Option<T>,
    range: RangeInclusive<T>,
) -> Result<(), (String, String)> {
    match value {
        Some(value) if !range.contains(&value) => {
            let message = format!("{value} is out of range; use {} to {}", range.start(), range.end());
            Err((format!("tuning.{field}"), message))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(document: Value) -> Tuning {
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn what_is_left_out_is_not_written() {
        assert_eq!(read(json!({})), Tuning::default());
        for document in [json!({}), json!({"initial_window_packets": 2}), json!({"pacing": false})] {
            assert_eq!(serde_json::to_value(read(document.clone())).unwrap(), document);
        }
        assert!(serde_json::from_value::<Tuning>(json!({"window": 1})).is_err());
    }

    #[test]
    fn values_out_of_range_are_named() {
        assert_eq!(Tuning::default().check(), Ok(()));
        for (field, least, most) in [
            ("initial_window_packets", 2_u64, 1_000),
            ("stream_window_bytes", 1_000, 1_000_000_000),
            ("connection_window_bytes", 65_535, 1_000_000_000),
            ("packet_threshold", 3, 1_000),
            ("ack_delay_ns", 1_000_000, 1_000_000_000),
            ("ack_packets", 1, 1_000),
            ("tls_record_bytes", 64, 16_384),
            ("tls_wait_ns", 1_000_000, 10_000_000_000),
            ("udp_payload_bytes", 1_200, 65_527),
            ("udp_buffer_bytes", 4_096, 1_000_000_000),
        ] {
            for (value, right) in [(least - 1, false), (least, true), (most, true), (most + 1, false)] {
                let found = read(json!({field: value})).check();
                assert_eq!(found.is_ok(), right, "{field}: {value}");
                if let Err((named, message)) = found {
                    assert_eq!(named, format!("tuning.{field}"));
                    assert!(message.contains(&format!("use {least} to {most}")), "{message}");
                }
            }
        }
    }
}
