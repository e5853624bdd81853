//! Waiting until a time or a packet: asleep for most of it, then awake for a short, bounded while, because waking up
//! takes the kernel tens of microseconds.

use std::os::fd::RawFd;

use trifecta_wire::clock::now_ns;

/// Signals, standard input and lost wake-ups are looked at this often.
const LONGEST_SLEEP_NS: u64 = 100_000_000;
/// Below this the sockets are not asked again before the time has come.
const CLOSE_NS: u64 = 4_000;
/// The share of a window in which the link may be awake and still spin. The kernel stops a real-time thread that leaves
/// others less than 5 % of a second (sched(7)); far below that, spinning takes the CPU from what is measured.
const WINDOW_NS: u64 = 50_000_000;
const MOST_AWAKE: f64 = 0.7;

/// While packets come faster than this, arrivals do not wake the link one by one.
const BUSY_GAP_NS: u64 = 500_000;
/// Longest time for which arrivals are left to collect. Their times are the kernel's, so nothing is lost in precision.
const LONGEST_COLLECTING_NS: u64 = 250_000;

/// Decides how long before a due time the link is awake.
///
/// The margin follows the 98th percentile of how late the kernel wakes the thread (Robbins and Monro 1951), so that no
/// more is spun than it takes, up to the limit given.
#[derive(Debug)]
struct Margin {
    limit_ns: f64,
    margin_ns: f64,
}

impl Margin {
    const QUANTILE: f64 = 0.98;
    const STEP_NS: f64 = 5_000.0;

    fn woke_late_by(&mut self, late_ns: u64) {
        let exceeded = late_ns as f64 > self.margin_ns;
        self.margin_ns += Self::STEP_NS * if exceeded { Self::QUANTILE } else { Self::QUANTILE - 1.0 };
        self.margin_ns = self.margin_ns.clamp(0.0, self.limit_ns);
    }
}

/// The share of recent time in which the thread was awake.
#[derive(Debug)]
struct Awake {
    window_start_ns: u64,
    slept_ns: u64,
    spin_allowed: bool,
}

impl Awake {
    fn may_spin(&mut self, now_ns: u64) -> bool {
        let length_ns = now_ns.saturating_sub(self.window_start_ns);
        if length_ns >= WINDOW_NS {
            let awake = 1.0 - self.slept_ns as f64 / length_ns as f64;
            self.spin_allowed = awake < MOST_AWAKE;
            self.window_start_ns = now_ns;
            self.slept_ns = 0;
        }
        self.spin_allowed
    }
}

/// Waits for the link's loop.
#[derive(Debug)]
pub struct Waiter {
    margin: Margin,
    awake: Awake,
    watched: [libc::pollfd; 3],
    /// How long arrivals may wait to be looked at, at most; 0: not at all.
    collecting_ns: u64,
    last_arrival_ns: u64,
    busy: bool,
}

impl Waiter {
    /// Watches the devices and, if given, standard input; spins at most `spin_ns` before a due time. No packet has to be
    /// looked at sooner than `least_delay_ns` after its arrival.
    #[must_use]
    pub fn new(devices: [RawFd; 2], watch_stdin: bool, spin_ns: u64, least_delay_ns: u64) -> Self {
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        Waiter {
            margin: Margin { limit_ns: spin_ns as f64, margin_ns: spin_ns as f64 },
            awake: Awake { window_start_ns: now_ns(), slept_ns: 0, spin_allowed: true },
            // poll(2) ignores negative descriptors.
            watched: [poll(devices[0]), poll(devices[1]), poll(if watch_stdin { 0 } else { -1 })],
            collecting_ns: (least_delay_ns / 4).min(LONGEST_COLLECTING_NS),
            last_arrival_ns: 0,
            busy: false,
        }
    }

    /// Packets have arrived, the last of them now.
    pub fn arrived(&mut self, now_ns: u64) {
        self.busy = now_ns.saturating_sub(self.last_arrival_ns) < BUSY_GAP_NS;
        self.last_arrival_ns = now_ns;
    }

    /// Waits until shortly before `due_ns`, or a packet, or a while. True when standard input has something to say.
    pub fn wait(&mut self, due_ns: Option<u64>) -> bool {
        let now = now_ns();
        let left_ns = due_ns.map(|due_ns| due_ns.saturating_sub(now));
        let margin_ns = self.margin.margin_ns as u64;
        let may_spin = self.awake.may_spin(now);
        if let (Some(due_ns), Some(left_ns)) = (due_ns, left_ns) {
            if left_ns <= CLOSE_NS {
                while now_ns() < due_ns {
                    std::hint::spin_loop();
                }
                return false;
            }
            if may_spin && left_ns <= margin_ns {
                return false;
            }
        }
        let early_ns = if may_spin { margin_ns } else { 0 };
        let collecting = self.busy && self.collecting_ns > 0;
        self.busy = false;
        let longest_ns = if collecting { self.collecting_ns } else { LONGEST_SLEEP_NS };
        let sleep_ns = left_ns.map_or(longest_ns, |left_ns| (left_ns - early_ns).min(longest_ns));
        let timeout = libc::timespec { tv_sec: 0, tv_nsec: sleep_ns as i64 };
        let watched = if collecting { &mut self.watched[2..] } else { &mut self.watched[..] };
        // SAFETY: valid pollfd, as many as said, and a valid timespec.
        let ready = unsafe {
            libc::ppoll(watched.as_mut_ptr(), watched.len() as libc::nfds_t, &raw const timeout, std::ptr::null())
        };
        let woke = now_ns();
        self.awake.slept_ns += woke - now;
        if ready == 0 {
            self.margin.woke_late_by(woke.saturating_sub(now + sleep_ns));
        }
        ready > 0 && self.watched[2].revents != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_margin_settles_at_the_98th_percentile_and_keeps_its_limit() {
        let mut margin = Margin { limit_ns: 60_000.0, margin_ns: 60_000.0 };
        // Late by 0 to 29.7 us, evenly: the 98th percentile is 29.1 us.
        (0..200_000u64).for_each(|i| margin.woke_late_by(i * 7919 % 100 * 300));
        assert!((25_000.0..=40_000.0).contains(&margin.margin_ns), "{}", margin.margin_ns);
        (0..100).for_each(|_| margin.woke_late_by(1_000_000));
        assert_eq!(margin.margin_ns, 60_000.0);
    }

    #[test]
    fn no_spinning_when_awake_too_much() {
        let mut awake = Awake { window_start_ns: 0, slept_ns: 0, spin_allowed: true };
        assert!(awake.may_spin(WINDOW_NS - 1));
        assert!(!awake.may_spin(WINDOW_NS), "awake all the time");
        awake.slept_ns = WINDOW_NS / 2;
        assert!(awake.may_spin(2 * WINDOW_NS), "awake half of the time");
    }
}
