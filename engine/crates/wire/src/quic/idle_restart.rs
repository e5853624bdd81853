//! The restart of a congestion window after a rest, which quinn-proto does not know, by Linux's rule for TCP
//! (net.ipv4.tcp_slow_start_after_idle; `tcp_slow_start_after_idle_check` and `tcp_cwnd_restart` in
//! `net/ipv4/tcp_output.c`), so that one setting means the same on both transports.
//! RFC 9002 leaves it open what a sender does then (section 7.8 names RFC 7661).
//!
//! When everything is acknowledged and nothing was sent for longer than a retransmission timeout, the window is halved for
//! each such time that has passed, down to the initial one, and then grows again as in slow start until it is the
//! controller's own. A controller cannot be told to shrink, so its window is limited from outside, and it grows no further
//! meanwhile.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// What a retransmission timeout of Linux has besides the smoothed round trip (TCP_RTO_MIN), where that hardly varies.
const LEAST_TIMEOUT: Duration = Duration::from_millis(200);

/// What is known of one connection's rests, and the window since the last.
#[derive(Debug)]
pub struct IdleRestart {
    now: fn() -> Instant,
    initial_window: u64,
    /// When data was sent last.
    sent: Option<Instant>,
    /// Everything was acknowledged since.
    quiet: bool,
    /// Somebody asked for the window, which quinn-proto does only when it has data to send.
    asked: AtomicBool,
    limit: Option<Limit>,
}

/// The window after a rest, as long as it is smaller than the controller's own.
#[derive(Clone, Copy, Debug)]
struct Limit {
    window: u64,
    /// After a loss it grows by a packet a round trip.
    in_slow_start: bool,
    acked: u64,
}

impl IdleRestart {
    /// `now` is read when a window is asked for after a rest.
    pub fn new(now: fn() -> Instant, initial_window: u64) -> Self {
        Self { now, initial_window, sent: None, quiet: false, asked: AtomicBool::new(false), limit: None }
    }

    /// A copy, for a connection that has moved to another path.
    pub fn copy(&self) -> Self {
        Self { asked: AtomicBool::new(self.asked.load(Ordering::Relaxed)), ..*self }
    }

    /// The window that is now in force; `own` is the controller's.
    pub fn current(&self, own: u64) -> u64 {
        self.limit.map_or(own, |limit| limit.window.min(own))
    }

    /// Whether it is smaller than the controller's own.
    pub fn limits(&self, own: u64) -> bool {
        self.limit.is_some_and(|limit| limit.window < own)
    }

    /// The window for what is sent next, after a rest if there was one.
    pub fn window(&self, own: u64, srtt: Option<Duration>) -> u64 {
        self.asked.store(true, Ordering::Relaxed);
        if self.quiet { self.after_rest(own, srtt, (self.now)()) } else { self.current(own) }
    }

    fn after_rest(&self, own: u64, srtt: Option<Duration>, now: Instant) -> u64 {
        let (Some(sent), Some(srtt)) = (self.sent, srtt) else { return self.current(own) };
        let timeout = srtt + LEAST_TIMEOUT;
        let mut window = self.current(own);
        let least = self.initial_window.min(window);
        let mut rested = now.saturating_duration_since(sent);
        while rested > timeout && window > least {
            window /= 2;
            rested -= timeout;
        }
        window.max(least)
    }

    /// Something was sent, data if the window was asked for before.
    pub fn on_sent(&mut self, now: Instant, own: u64, srtt: Option<Duration>) {
        if !std::mem::take(self.asked.get_mut()) {
            return;
        }
        if std::mem::take(&mut self.quiet) {
            let window = self.after_rest(own, srtt, now);
            if window < own {
                self.limit = Some(Limit { window, in_slow_start: true, acked: 0 });
            }
        }
        self.sent = Some(now);
    }

    /// So much was acknowledged of what was sent in a window that may grow, or not if it was not used.
    pub fn on_acked(&mut self, bytes: u64, datagram_bytes: u64, may_grow: bool, own: u64) {
        let Some(limit) = &mut self.limit else { return };
        if may_grow && limit.in_slow_start {
            limit.window += bytes;
        } else if may_grow {
            limit.acked += bytes;
            if limit.acked >= limit.window {
                limit.acked -= limit.window;
                limit.window += datagram_bytes;
            }
        }
        if limit.window >= own {
            self.limit = None;
        }
    }

    /// An ACK frame has been handled.
    pub fn on_end_acks(&mut self, in_flight: u64) {
        self.quiet = in_flight == 0;
    }

    /// A loss reduces the window by 0.7 as Cubic does (RFC 9438 section 4.6), to two packets in persistent congestion
    /// (RFC 9002 sections 7.6.2 and 7.2).
    pub fn on_congestion_event(&mut self, is_persistent: bool, datagram_bytes: u64) {
        if let Some(limit) = &mut self.limit {
            let reduced = if is_persistent { 0 } else { limit.window * 7 / 10 };
            *limit = Limit { window: reduced.max(2 * datagram_bytes), in_slow_start: is_persistent, acked: 0 };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    thread_local!(static NOW: Cell<Option<Instant>> = const { Cell::new(None) });

    fn now() -> Instant {
        NOW.get().unwrap()
    }

    const RTT: Duration = Duration::from_millis(50);
    const OWN: u64 = 160_000;

    /// One that sent something at `start`, which was acknowledged whole.
    fn rested(start: Instant) -> IdleRestart {
        NOW.set(Some(start));
        let mut restart = IdleRestart::new(now, 10_000);
        restart.window(OWN, Some(RTT));
        restart.on_sent(start, OWN, Some(RTT));
        restart.on_end_acks(0);
        restart
    }

    #[test]
    fn a_window_is_halved_for_each_timeout_down_to_the_initial_one() {
        let start = Instant::now();
        for (milliseconds, expected) in
            [(0, OWN), (250, OWN), (251, 80_000), (500, 80_000), (501, 40_000), (1_001, 10_000), (99_999, 10_000)]
        {
            let mut restart = rested(start);
            let later = start + Duration::from_millis(milliseconds);
            NOW.set(Some(later));
            assert_eq!(restart.window(OWN, Some(RTT)), expected, "{milliseconds} ms");
            restart.on_sent(later, OWN, Some(RTT));
            assert_eq!((restart.current(OWN), restart.limits(OWN)), (expected, expected < OWN));
        }
    }

    #[test]
    fn it_grows_again_to_the_controllers_own_where_it_is_used() {
        let start = Instant::now();
        let mut restart = rested(start);
        let later = start + Duration::from_secs(9);
        NOW.set(Some(later));
        restart.window(OWN, Some(RTT));
        restart.on_sent(later, OWN, Some(RTT));
        restart.on_acked(10_000, 1_000, false, OWN);
        assert_eq!(restart.current(OWN), 10_000, "not used");
        for expected in [20_000, 40_000, 80_000, OWN] {
            restart.on_acked(restart.current(OWN), 1_000, true, OWN);
            assert_eq!(restart.current(OWN), expected);
        }
        assert!(!restart.limits(OWN));
        restart.on_end_acks(0);
        NOW.set(Some(later + RTT));
        assert_eq!(restart.window(OWN, Some(RTT)), OWN);
    }

    #[test]
    fn a_loss_meanwhile_ends_its_slow_start() {
        let start = Instant::now();
        let mut restart = rested(start);
        NOW.set(Some(start + Duration::from_secs(9)));
        restart.window(OWN, Some(RTT));
        restart.on_sent(now(), OWN, Some(RTT));
        restart.on_congestion_event(false, 1_000);
        assert_eq!(restart.current(OWN), 7_000);
        restart.on_acked(7_000, 1_000, true, OWN);
        assert_eq!(restart.current(OWN), 8_000);
        restart.on_congestion_event(true, 1_000);
        assert_eq!(restart.current(OWN), 2_000);
        restart.on_acked(2_000, 1_000, true, OWN);
        assert_eq!(restart.current(OWN), 4_000);
    }

    #[test]
    fn what_is_sent_without_asking_is_no_data_and_ends_no_rest() {
        let start = Instant::now();
        let mut restart = rested(start);
        let later = start + Duration::from_secs(9);
        restart.on_sent(later, OWN, Some(RTT));
        NOW.set(Some(later));
        assert_eq!(restart.window(OWN, Some(RTT)), 10_000);
        // What is in flight is no rest, however long it is.
        let mut busy = rested(start);
        busy.on_end_acks(1_000);
        assert_eq!(busy.window(OWN, Some(RTT)), OWN);
        assert_eq!(busy.copy().window(OWN, Some(RTT)), OWN);
        assert_eq!(rested(start).window(OWN, None), OWN, "no round trip is known");
    }
}
