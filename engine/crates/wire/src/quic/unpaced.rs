//! Sending without a pacer: what a window lets go leaves at once, as it does over TCP without fq or BBR.
//!
//! quinn-proto paces every connection and has no switch for it, but leaves its pacer out where the window has more octets
//! than fit into 32 bits (`Pacer::delay`). So the controller is wrapped in one that says such a window as long as the
//! packet that quinn-proto asks about goes into the real one. It asks twice for each datagram, first whether it goes into
//! the window, then for the pacer (`poll_transmit`), and tells what was sent only when a train of them is whole: the
//! datagrams of a train are counted by the questions. What is in flight is never taken for less than it is, so that the
//! real window is never exceeded; where it is taken for more, as after packets of acknowledgements alone, the pacer may
//! hold back a packet until the next acknowledgement tells.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// The least window that quinn-proto does not pace.
const UNPACED_WINDOW: u64 = 1 << 32;

/// Builds controllers that are not paced, of those that another factory builds.
pub struct Unpaced(Arc<dyn ControllerFactory + Send + Sync>);

impl Unpaced {
    /// Wraps the configuration of any controller.
    pub fn new(inner: Arc<dyn ControllerFactory + Send + Sync>) -> Self {
        Self(inner)
    }
}

impl ControllerFactory for Unpaced {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(UnpacedController {
            inner: Arc::clone(&self.0).build(now, current_mtu),
            datagram_bytes: u64::from(current_mtu),
            in_flight: 0,
            asked: AtomicU64::new(0),
        })
    }
}

struct UnpacedController {
    inner: Box<dyn Controller>,
    datagram_bytes: u64,
    /// Octets in flight at most, without the train that is being made.
    in_flight: u64,
    /// How often the window was asked for since a train was sent, or something was heard.
    asked: AtomicU64,
}

impl UnpacedController {
    fn heard(&mut self, in_flight: u64) {
        self.in_flight = in_flight;
        *self.asked.get_mut() = 0;
    }
}

impl Controller for UnpacedController {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.heard(self.in_flight + bytes);
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest_packet_num_acked: Option<u64>) {
        self.heard(in_flight);
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        self.heard(self.in_flight.saturating_sub(lost_bytes));
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.datagram_bytes = u64::from(new_mtu);
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        let window = self.inner.window();
        // Two questions a datagram: the one that is asked about is the next.
        let datagrams = self.asked.fetch_add(1, Ordering::Relaxed) / 2 + 1;
        if self.in_flight + datagrams * self.datagram_bytes < window { UNPACED_WINDOW } else { window }
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self {
            inner: self.inner.clone_box(),
            datagram_bytes: self.datagram_bytes,
            in_flight: self.in_flight,
            asked: AtomicU64::new(self.asked.load(Ordering::Relaxed)),
        })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use quinn_proto::congestion::NewRenoConfig;

    use super::*;

    fn controller(window: u64) -> Box<dyn Controller> {
        let mut config = NewRenoConfig::default();
        config.initial_window(window);
        Arc::new(Unpaced::new(Arc::new(config))).build(Instant::now(), 1_000)
    }

    #[test]
    fn a_window_is_unpaced_as_long_as_a_datagram_goes_into_it() {
        let mut controller = controller(3_001);
        for _ in 0..3 {
            // Once for the window, once for the pacer.
            assert_eq!([controller.window(), controller.window()], [UNPACED_WINDOW; 2]);
        }
        assert_eq!(controller.window(), 3_001, "a fourth does not");
        controller.on_sent(Instant::now(), 3_000, 2);
        assert_eq!(controller.window(), 3_001);
        controller.on_end_acks(Instant::now(), 1_000, false, Some(1));
        assert_eq!([(); 4].map(|()| controller.window()), [UNPACED_WINDOW; 4]);
        assert_eq!(controller.window(), 3_001);
        assert_eq!((controller.metrics().congestion_window, controller.initial_window()), (3_001, 3_001));
    }

    #[test]
    fn what_was_lost_makes_room() {
        let mut controller = controller(10_001);
        controller.on_sent(Instant::now(), 10_000, 9);
        assert_eq!(controller.window(), 10_001);
        let now = Instant::now();
        controller.on_congestion_event(now, now, false, 7_000);
        assert_eq!(controller.window(), UNPACED_WINDOW, "3,000 octets of half a window");
    }
}
