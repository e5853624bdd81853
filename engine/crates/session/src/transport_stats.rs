//! Statistics of the transports, added up over the connections of a run.

use schemars::JsonSchema;
use serde::Serialize;
use trifecta_wire::quic::Adaptations;
use trifecta_wire::tcp::TcpInfo;

/// What the summary says of TCP. Times in ns, windows in octets, the largest of all connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TcpSummary {
    pub connections: u64,
    /// `None`: the kernel knew none.
    pub min_rtt_ns: Option<u64>,
    /// The mean of the connections' last smoothed times.
    pub srtt_ns: u64,
    pub retransmits: u64,
    pub congestion_window_bytes: u64,
    /// As read back.
    pub congestion_control: Option<String>,
    pub mss_bytes: u64,
    /// As read back.
    pub nodelay: Option<bool>,
    pub initial_window_bytes: Option<u64>,
    /// Whether a pace was asked for, as read back; BBR has its own.
    pub paced: Option<bool>,
    /// Segments that may overtake another before it is taken for lost, at the beginning of a connection.
    pub packet_threshold: Option<u64>,
}

/// TCP_INFO of all connections, taken when each is closed. Times in ns, windows in octets.
#[derive(Clone, Debug, Default)]
pub struct TcpStats {
    connections: u64,
    min_rtt_ns: u64,
    srtt_sum_ns: u64,
    retransmits: u64,
    congestion_window_bytes: u64,
    mss_bytes: u64,
    /// Read back from the first connection.
    pub congestion_control: Option<String>,
    pub nodelay: Option<bool>,
    pub initial_window_bytes: Option<u64>,
    pub paced: Option<bool>,
    pub packet_threshold: Option<u64>,
}

impl TcpStats {
    /// Adds a connection that is about to be closed.
    pub fn add(&mut self, info: &TcpInfo) {
        self.connections += 1;
        self.min_rtt_ns = least(self.min_rtt_ns, info.min_rtt_ns);
        self.srtt_sum_ns += info.srtt_ns;
        self.retransmits += info.retransmits;
        self.congestion_window_bytes = self.congestion_window_bytes.max(info.congestion_window_bytes);
        self.mss_bytes = self.mss_bytes.max(info.mss_bytes);
    }

    /// Adds what another worker saw.
    pub fn merge(&mut self, other: &Self) {
        self.connections += other.connections;
        self.min_rtt_ns = least(self.min_rtt_ns, other.min_rtt_ns);
        self.srtt_sum_ns += other.srtt_sum_ns;
        self.retransmits += other.retransmits;
        self.congestion_window_bytes = self.congestion_window_bytes.max(other.congestion_window_bytes);
        self.mss_bytes = self.mss_bytes.max(other.mss_bytes);
        self.congestion_control = self.congestion_control.take().or_else(|| other.congestion_control.clone());
        self.nodelay = self.nodelay.or(other.nodelay);
        self.initial_window_bytes = self.initial_window_bytes.or(other.initial_window_bytes);
        self.paced = self.paced.or(other.paced);
        self.packet_threshold = self.packet_threshold.or(other.packet_threshold);
    }

    /// The `tcp` object of the summary, `None` without a connection.
    #[must_use]
    pub fn summary(&self) -> Option<TcpSummary> {
        Some(TcpSummary {
            connections: self.connections,
            min_rtt_ns: known(self.min_rtt_ns),
            srtt_ns: self.srtt_sum_ns.checked_div(self.connections)?,
            retransmits: self.retransmits,
            congestion_window_bytes: self.congestion_window_bytes,
            congestion_control: self.congestion_control.clone(),
            mss_bytes: self.mss_bytes,
            nodelay: self.nodelay,
            initial_window_bytes: self.initial_window_bytes,
            paced: self.paced,
            packet_threshold: self.packet_threshold,
        })
    }
}

/// What the summary says of QUIC. Times in ns, windows in octets, the largest of all connections.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct QuicSummary {
    pub connections: u64,
    /// `None`: no round trip was measured.
    pub min_rtt_ns: Option<u64>,
    /// The mean of the connections' last smoothed times.
    pub srtt_ns: u64,
    pub lost_packets: u64,
    pub sent_packets: u64,
    pub congestion_window_bytes: u64,
    pub congestion_events: u64,
    /// What was configured: `cubic`, `bbr` or `reno`.
    pub congestion_control: Option<String>,
    pub mtu_bytes: u64,
    /// Those that were on.
    pub adaptations: Option<Adaptations>,
    pub initial_window_bytes: Option<u64>,
}

/// Path statistics of one QUIC connection. Times in ns, windows in octets.
#[derive(Clone, Copy, Debug, Default)]
pub struct QuicInfo {
    pub min_rtt_ns: u64,
    pub srtt_ns: u64,
    pub lost_packets: u64,
    pub sent_packets: u64,
    pub congestion_window_bytes: u64,
    pub congestion_events: u64,
    pub mtu_bytes: u64,
}

/// Path statistics of all QUIC connections.
#[derive(Clone, Debug, Default)]
pub struct QuicStats {
    connections: u64,
    srtt_sum_ns: u64,
    total: QuicInfo,
    /// What was configured: `cubic`, `bbr` or `reno`.
    pub congestion_control: Option<String>,
    pub initial_window_bytes: Option<u64>,
    pub adaptations: Option<Adaptations>,
}

impl QuicStats {
    /// Adds a connection that is about to be closed.
    pub fn add(&mut self, info: &QuicInfo) {
        self.connections += 1;
        self.srtt_sum_ns += info.srtt_ns;
        self.add_total(info);
    }

    fn add_total(&mut self, info: &QuicInfo) {
        self.total.min_rtt_ns = least(self.total.min_rtt_ns, info.min_rtt_ns);
        self.total.lost_packets += info.lost_packets;
        self.total.sent_packets += info.sent_packets;
        self.total.congestion_events += info.congestion_events;
        self.total.congestion_window_bytes = self.total.congestion_window_bytes.max(info.congestion_window_bytes);
        self.total.mtu_bytes = self.total.mtu_bytes.max(info.mtu_bytes);
    }

    /// Adds what another worker saw.
    pub fn merge(&mut self, other: &Self) {
        self.connections += other.connections;
        self.srtt_sum_ns += other.srtt_sum_ns;
        self.add_total(&other.total);
        self.adaptations = self.adaptations.or(other.adaptations);
        self.congestion_control = self.congestion_control.take().or_else(|| other.congestion_control.clone());
        self.initial_window_bytes = self.initial_window_bytes.or(other.initial_window_bytes);
    }

    /// The `quic` object of the summary, `None` without a connection.
    #[must_use]
    pub fn summary(&self) -> Option<QuicSummary> {
        Some(QuicSummary {
            connections: self.connections,
            min_rtt_ns: known(self.total.min_rtt_ns),
            srtt_ns: self.srtt_sum_ns.checked_div(self.connections)?,
            lost_packets: self.total.lost_packets,
            sent_packets: self.total.sent_packets,
            congestion_window_bytes: self.total.congestion_window_bytes,
            congestion_events: self.total.congestion_events,
            congestion_control: self.congestion_control.clone(),
            mtu_bytes: self.total.mtu_bytes,
            adaptations: self.adaptations,
            initial_window_bytes: self.initial_window_bytes,
        })
    }
}

/// The smaller one; 0 means unknown.
fn least(one: u64, other: u64) -> u64 {
    match (one, other) {
        (0, known) | (known, 0) => known,
        _ => one.min(other),
    }
}

fn known(value: u64) -> Option<u64> {
    (value > 0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_and_workers_add_up() {
        let info = |rtt_ns, retransmits| TcpInfo {
            min_rtt_ns: rtt_ns,
            srtt_ns: 2 * rtt_ns,
            retransmits,
            congestion_window_bytes: rtt_ns,
            mss_bytes: 1448,
            ..TcpInfo::default()
        };
        let mut first = TcpStats::default();
        assert_eq!(first.summary(), None);
        first.add(&info(500, 1));
        first.add(&info(300, 2));
        let mut second = TcpStats { nodelay: Some(true), ..TcpStats::default() };
        second.add(&info(0, 4));
        first.merge(&second);
        let summary = first.summary().unwrap();
        assert_eq!(summary.min_rtt_ns, Some(300));
        assert_eq!(summary.retransmits, 7);
        assert_eq!(summary.srtt_ns, 1600 / 3);
        assert_eq!(summary.congestion_window_bytes, 500);
        assert_eq!(summary.nodelay, Some(true));
    }

    #[test]
    fn quic_adds_up() {
        let mut stats = QuicStats::default();
        stats.add(&QuicInfo { min_rtt_ns: 9, srtt_ns: 10, lost_packets: 1, sent_packets: 5, ..QuicInfo::default() });
        let mut other = QuicStats { congestion_control: Some("bbr".into()), ..QuicStats::default() };
        other.add(&QuicInfo { min_rtt_ns: 7, srtt_ns: 20, lost_packets: 2, sent_packets: 6, ..QuicInfo::default() });
        stats.merge(&other);
        let summary = stats.summary().unwrap();
        assert_eq!((summary.min_rtt_ns, summary.srtt_ns), (Some(7), 15));
        assert_eq!((summary.lost_packets, summary.sent_packets), (3, 11));
        assert_eq!(summary.congestion_control.as_deref(), Some("bbr"));
    }
}
