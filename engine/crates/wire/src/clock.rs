//! The one clock of the engine: CLOCK_MONOTONIC in nanoseconds, shared by every program on the machine.

use std::time::{SystemTime, UNIX_EPOCH};

/// Time now on CLOCK_MONOTONIC, in nanoseconds since an arbitrary point that all processes of the machine share.
#[inline]
#[must_use]
pub fn now_ns() -> u64 {
    timespec_ns(libc::CLOCK_MONOTONIC)
}

/// CPU time the calling thread has used so far (user and system), in nanoseconds.
#[must_use]
pub fn thread_cpu_ns() -> u64 {
    timespec_ns(libc::CLOCK_THREAD_CPUTIME_ID)
}

/// What to add to CLOCK_MONOTONIC to get CLOCK_REALTIME.
#[derive(Clone, Copy, Debug)]
pub struct RealtimeOffset {
    pub offset_ns: i64,
    /// How far the truth can be from that: half of what reading the clocks took.
    pub bound_ns: u64,
}

/// The closest of some readings.
#[must_use]
pub fn realtime_offset() -> RealtimeOffset {
    let reading = || {
        let before = now_ns();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as i64);
        let after = now_ns();
        (after - before, wall - before.midpoint(after) as i64)
    };
    let mut best = reading();
    for _ in 1..16 {
        best = best.min(reading());
    }
    RealtimeOffset { offset_ns: best.1, bound_ns: best.0.div_ceil(2) }
}

#[inline]
fn timespec_ns(clock: libc::clockid_t) -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a valid timespec; these clocks exist on every Linux, so the call cannot fail.
    unsafe { libc::clock_gettime(clock, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_go_backwards() {
        let first = now_ns();
        assert!(first > 0);
        assert!(now_ns() >= first);
    }

    #[test]
    fn the_wall_clock_is_so_far_ahead() {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as i64;
        let found = realtime_offset();
        let apart = wall - now_ns() as i64 - found.offset_ns;
        assert!(apart.abs() < 50_000_000, "{apart} ns");
        assert!(found.bound_ns < 1_000_000, "{found:?}");
    }

    #[test]
    fn a_thread_s_cpu_time_is_its_own_work_and_no_wait() {
        let (wall, worked) = (now_ns(), thread_cpu_ns());
        let mut sum = 0u64;
        while thread_cpu_ns() - worked < 1_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert!(now_ns() - wall >= 1_000_000);
        let (wall, waited) = (now_ns(), thread_cpu_ns());
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(thread_cpu_ns() - waited < (now_ns() - wall) / 2);
    }
}
