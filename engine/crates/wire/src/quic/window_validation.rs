//! Congestion window validation: whether the window was used enough to be allowed to grow.
//!
//! RFC 9002 section 7.8 forbids growth of an *underutilized* window. quinn-proto takes every acknowledgement that comes
//! while nothing waits to be sent as one of an underutilized window, also when the round trip had filled it. For requests
//! and responses that is nearly every acknowledgement of the last flight, so that its Cubic and NewReno stop a window short
//! of one response, and each response takes a round trip more than over TCP. Here the window's use is judged as Linux
//! judges it for TCP (`tcp_cwnd_validate` and `tcp_is_cwnd_limited` in `net/ipv4/tcp_output.c` and `include/net/tcp.h`), so
//! that both transports of a comparison grow by the same rule: what counts is the most that was in flight over the last
//! round trip. In slow start the window may grow to twice that, which is the validated phase of RFC 7661 section 4.3; in
//! congestion avoidance it may grow only if it was full.
//!
//! BBR needs none of this: its model sets the window, and `app_limited` tells it something else, that a sample of the
//! delivery rate says nothing about the path.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use super::idle_restart::IdleRestart;

/// Builds controllers of `F`, each with its window validated as described in the module.
#[derive(Debug)]
pub struct ValidatedWindow<F> {
    config: Arc<F>,
    restarts: Option<fn() -> Instant>,
}

impl<F> ValidatedWindow<F> {
    /// Wraps the configuration of Cubic or NewReno. `restarts`: their window restarts after a rest, by this clock.
    pub fn new(config: F, restarts: Option<fn() -> Instant>) -> Self {
        Self { config: Arc::new(config), restarts }
    }
}

impl<F: ControllerFactory + Send + Sync> ControllerFactory for ValidatedWindow<F> {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = Arc::clone(&self.config).build(now, current_mtu);
        Box::new(Validated {
            restart: self.restarts.map(|clock| IdleRestart::new(clock, inner.initial_window())),
            inner,
            window_use: WindowUse::default(),
            datagram_bytes: u64::from(current_mtu),
            acked: Vec::new(),
            rtt: None,
        })
    }
}

/// A controller that hears of underutilization instead of an empty send queue.
struct Validated {
    inner: Box<dyn Controller>,
    restart: Option<IdleRestart>,
    window_use: WindowUse,
    datagram_bytes: u64,
    /// The packets of an ACK frame, kept until its end: only then is it known how much was in flight before it.
    acked: Vec<AckedPacket>,
    rtt: Option<RttEstimator>,
}

#[derive(Clone, Copy)]
struct AckedPacket {
    sent: Instant,
    bytes: u64,
    app_limited: bool,
}

impl Validated {
    fn underutilized(&self) -> bool {
        let metrics = self.inner.metrics();
        let slow_start = metrics.ssthresh.is_none_or(|threshold| metrics.congestion_window < threshold);
        self.window_use.underutilized(metrics.congestion_window, slow_start)
    }

    fn srtt(&self) -> Option<Duration> {
        self.rtt.map(|rtt| rtt.get())
    }

    /// The window in force: the controller's own, or the smaller one after a rest.
    fn current(&self) -> u64 {
        let own = self.inner.window();
        self.restart.as_ref().map_or(own, |restart| restart.current(own))
    }

    /// An acknowledged packet for a window that is smaller than the controller's own, after a rest. False where it is not.
    fn acked_after_rest(&mut self, packet: AckedPacket) -> bool {
        let own = self.inner.window();
        let Some(restart) = self.restart.as_mut().filter(|restart| restart.limits(own)) else { return false };
        let underutilized = packet.app_limited && self.window_use.underutilized(restart.current(own), true);
        restart.on_acked(packet.bytes, self.datagram_bytes, !underutilized, own);
        true
    }
}

impl Controller for Validated {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        let (own, srtt) = (self.inner.window(), self.srtt());
        if let Some(restart) = &mut self.restart {
            restart.on_sent(now, own, srtt);
        }
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, _now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.acked.push(AckedPacket { sent, bytes, app_limited });
        self.rtt = Some(*rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest_packet_num_acked: Option<u64>) {
        let mut acked = std::mem::take(&mut self.acked);
        if let Some(newest_sent) = acked.iter().map(|packet| packet.sent).max() {
            let before = in_flight + acked.iter().map(|packet| packet.bytes).sum::<u64>();
            let full = before + self.datagram_bytes >= self.current();
            self.window_use.observe(now, newest_sent, before, full);
        }
        if let Some(rtt) = self.rtt {
            for packet in acked.drain(..) {
                // quinn-proto's word is taken where it is the more lenient: data that waits for the pacer does not make
                // a window underutilized (RFC 9002 section 7.8).
                //= https://www.rfc-editor.org/rfc/rfc9002#section-7.8
                //# When bytes in flight is smaller than the congestion window and sending is not pacing limited,
                //# the congestion window is underutilized. This can happen due to insufficient application data or
                //# flow control limits. When this occurs, the congestion window SHOULD NOT be increased in either
                //# slow start or congestion avoidance.
                let app_limited = self.acked_after_rest(packet) || (packet.app_limited && self.underutilized());
                self.inner.on_ack(now, packet.sent, packet.bytes, app_limited, &rtt);
            }
        }
        // The emptied vector, for its memory.
        self.acked = acked;
        let app_limited = app_limited && self.underutilized();
        if let Some(restart) = &mut self.restart {
            restart.on_end_acks(in_flight);
        }
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        if let Some(restart) = &mut self.restart {
            restart.on_congestion_event(is_persistent_congestion, self.datagram_bytes);
        }
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.datagram_bytes = u64::from(new_mtu);
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        let own = self.inner.window();
        self.restart.as_ref().map_or(own, |restart| restart.window(own, self.srtt()))
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = self.inner.metrics();
        metrics.congestion_window = self.current();
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            restart: self.restart.as_ref().map(IdleRestart::copy),
            window_use: self.window_use,
            datagram_bytes: self.datagram_bytes,
            acked: self.acked.clone(),
            rtt: self.rtt,
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// How much of the window was used over the last round trip. What is in flight is greatest just before an
/// acknowledgement, so it is observed there, and ACK-only packets, which do not count as in flight, are left out.
#[derive(Clone, Copy, Debug, Default)]
struct WindowUse {
    /// When the values below were observed; the round trip ends with the acknowledgement of what was sent since.
    observed_at: Option<Instant>,
    most_in_flight: u64,
    /// There was no room for one more full-size datagram.
    full: bool,
}

impl WindowUse {
    /// Takes in what was in flight, in octets, before the acknowledgement at `now` of a packet sent at `newest_sent`.
    fn observe(&mut self, now: Instant, newest_sent: Instant, in_flight: u64, full: bool) {
        let round_trip_over = self.observed_at.is_none_or(|observed_at| newest_sent >= observed_at);
        if round_trip_over || full || (!self.full && in_flight > self.most_in_flight) {
            *self = Self { observed_at: Some(now), most_in_flight: in_flight, full };
        }
    }

    /// Whether a window of that many octets must not grow.
    fn underutilized(&self, window: u64, slow_start: bool) -> bool {
        !(self.full || (slow_start && window < 2 * self.most_in_flight))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn at(start: Instant, milliseconds: u64) -> Instant {
        start + Duration::from_millis(milliseconds)
    }

    #[test]
    fn nothing_observed_allows_nothing() {
        assert!(WindowUse::default().underutilized(14_520, true));
    }

    #[test]
    fn slow_start_may_grow_to_twice_what_was_in_flight_and_congestion_avoidance_only_when_full() {
        let start = Instant::now();
        let mut window_use = WindowUse::default();
        window_use.observe(at(start, 80), start, 100_000, false);
        assert!(!window_use.underutilized(199_999, true));
        assert!(window_use.underutilized(200_000, true));
        assert!(window_use.underutilized(100_001, false));
        window_use.observe(at(start, 81), start, 100_000, true);
        assert!(!window_use.underutilized(u64::MAX, true) && !window_use.underutilized(u64::MAX, false));
    }

    #[test]
    fn the_most_of_a_round_trip_holds_until_what_was_sent_after_it_is_acknowledged() {
        let start = Instant::now();
        let mut window_use = WindowUse::default();
        window_use.observe(at(start, 80), start, 100_000, true);
        // The rest of the flight: less and less is in flight, all of it sent before.
        for later in 1..8 {
            window_use.observe(at(start, 80 + later), at(start, later), 100_000 - 12_000 * later, false);
            assert!(window_use.full && window_use.most_in_flight == 100_000);
        }
        // A small request sent afterwards.
        window_use.observe(at(start, 170), at(start, 90), 1000, false);
        assert!(!window_use.full && window_use.most_in_flight == 1000);
        // More in flight counts at once.
        window_use.observe(at(start, 171), at(start, 91), 5000, false);
        assert_eq!(window_use.most_in_flight, 5000);
    }
}
