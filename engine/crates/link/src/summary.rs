//! What the link says: the lines `ready` and `summary`.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::config::Split;
use crate::histogram::Histogram;

/// The `ready` line.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Ready {
    pub a_device: String,
    pub b_device: String,
    /// Got SCHED_FIFO.
    pub realtime: bool,
    pub memory_locked: bool,
    pub short_slice: bool,
    pub receive_buffer_bytes: u64,
}

/// The `summary` line. Times in ns, `started_ns` and `ended_ns` on CLOCK_MONOTONIC.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Summary {
    pub started_ns: u64,
    pub ended_ns: u64,
    pub ended: Ended,
    pub wall_ns: u64,
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    pub max_rss_bytes: u64,
    pub realtime: bool,
    pub memory_locked: bool,
    pub short_slice: bool,
    pub spin_ns: u64,
    pub split: Split,
    pub seed: u64,
    pub a_to_b: DirectionSummary,
    pub b_to_a: DirectionSummary,
    /// With a log that could be written.
    #[serde(flatten)]
    pub log: Option<LogSummary>,
    /// With a capture that could be written.
    #[serde(flatten)]
    pub capture: Option<CaptureSummary>,
    /// Of a bridge.
    #[serde(flatten)]
    pub bridge: Option<BridgeSummary>,
    /// Where netem did what was asked, which times no packet: delays and lateness are then empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub netem: Option<NetemSummary>,
}

/// Why the link ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Ended {
    Signal,
    Stdin,
    /// A device went away.
    Device,
}

/// What was logged.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct LogSummary {
    pub log_rows: u64,
    /// The disk was too slow.
    pub log_rows_dropped: u64,
}

/// What was captured.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct CaptureSummary {
    pub captured_packets: u64,
    /// The disk was too slow.
    pub capture_missed: u64,
    /// CLOCK_REALTIME less CLOCK_MONOTONIC.
    pub realtime_offset_ns: i64,
}

/// What passed beside the impairments: frames of ARP and of IPv6 neighbour discovery.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct BridgeSummary {
    pub neighbours_a_to_b: u64,
    pub neighbours_b_to_a: u64,
}

/// Who netem was, and how it was set up.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct NetemSummary {
    /// The kernel's release, as of uname(2).
    pub kernel: String,
    pub commands: Vec<String>,
}

/// What became of the packets of a direction.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct DirectionSummary {
    pub wire_packets: u64,
    pub wire_bytes: u64,
    pub super_packets: u64,
    pub delivered: u64,
    pub delivered_bytes: u64,
    pub lost: u64,
    pub queue_dropped: u64,
    pub corrupted: u64,
    pub duplicated: u64,
    /// Sent ahead.
    pub reordered: u64,
    /// RFC 4737.
    pub out_of_order: u64,
    pub memory_dropped: u64,
    /// At the end.
    pub in_flight: u64,
    /// Of `delay`.
    pub delay_asked_ns: u64,
    pub delay_given_ns: Quantiles,
    /// With queue and jitter.
    pub delay_scheduled_ns: Quantiles,
    pub lateness_ns: Quantiles,
    /// A share, 0 to 1.
    pub loss_asked: f64,
    pub loss_given: Option<f64>,
    pub rate_asked_bits_per_s: Option<u64>,
    /// Over busy periods of 1 ms and more.
    pub rate_given_bits_per_s: Option<f64>,
    pub rate_busy_ns: u64,
    pub rate_busy_periods: u64,
    pub queue_peak_bytes: Option<u64>,
    /// PACKET_STATISTICS of the device that receives.
    pub device_drops: u64,
    /// Of the device that sends.
    pub transmit_drops: u64,
    pub send_errors: u64,
    pub refused: RefusedSummary,
    pub impairments: Vec<ImpairmentSummary>,
    pub truncated: u64,
    pub timestamps_replaced: u64,
}

/// Quantiles in ns, `None` when there was nothing.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct Quantiles {
    pub min: Option<u64>,
    pub p50: Option<u64>,
    pub p90: Option<u64>,
    pub p99: Option<u64>,
    pub max: Option<u64>,
}

impl From<&Histogram> for Quantiles {
    fn from(histogram: &Histogram) -> Self {
        Self {
            min: histogram.min(),
            p50: histogram.quantile(0.5),
            p90: histogram.quantile(0.9),
            p99: histogram.quantile(0.99),
            max: histogram.max(),
        }
    }
}

/// Frames that the link does not carry.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct RefusedSummary {
    pub arp: u64,
    pub neighbour_discovery: u64,
    pub multicast: u64,
    pub other_protocol: u64,
    pub malformed: u64,
}

/// What an impairment did.
#[derive(Clone, Debug, Serialize, JsonSchema)]
pub struct ImpairmentSummary {
    pub kind: String,
    /// Its fields as read; of a list the length.
    pub asked: Map<String, Value>,
    pub met: u64,
    pub hit: u64,
    pub clamped: u64,
    pub queue_peak_bytes: Option<u64>,
}
