//! When the kernel got a packet from the device: SO_TIMESTAMPNS, moved to the engine's clock.

/// 64-bit words of control room for one SCM_TIMESTAMPNS message.
pub const CONTROL_WORDS: usize = 8;
/// A timestamp may not be older than this: then the wall clock was set in between.
const MAX_AGE_NS: u64 = 1_000_000_000;
/// How far in the future a timestamp may seem to lie: the clocks are read one after the other.
const TOLERANCE_NS: i64 = 1_000;
/// Readings of both clocks that lie so close are good enough.
const CLOSE_NS: u64 = 1_000;
const READINGS: usize = 8;

/// CLOCK_MONOTONIC and CLOCK_REALTIME at one moment, to convert timestamps of packets read just before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockPair {
    pub monotonic_ns: u64,
    pub realtime_ns: u64,
}

impl ClockPair {
    /// Reads both clocks: again when something came between the readings, which would move every time that is converted.
    #[must_use]
    pub fn now() -> Self {
        Self::closest(|| {
            let before_ns = clock_ns(libc::CLOCK_MONOTONIC);
            let realtime_ns = clock_ns(libc::CLOCK_REALTIME);
            (before_ns, realtime_ns, clock_ns(libc::CLOCK_MONOTONIC))
        })
    }

    /// Of some readings, CLOCK_REALTIME between two of CLOCK_MONOTONIC, the first that is close enough, else the closest.
    fn closest(mut read: impl FnMut() -> (u64, u64, u64)) -> Self {
        let (mut best, mut width_ns) = (None, u64::MAX);
        for _ in 0..READINGS {
            let (before_ns, realtime_ns, after_ns) = read();
            if best.is_none() || after_ns - before_ns < width_ns {
                width_ns = after_ns - before_ns;
                best = Some(Self { monotonic_ns: before_ns.midpoint(after_ns), realtime_ns });
            }
            if width_ns <= CLOSE_NS {
                break;
            }
        }
        best.expect("there is at least one reading")
    }

    /// A recent time on CLOCK_REALTIME as one on CLOCK_MONOTONIC; `None` when it lies in the future or over 1 s back.
    #[must_use]
    pub fn monotonic(&self, realtime_ns: u64) -> Option<u64> {
        let age_ns = self.realtime_ns as i64 - realtime_ns as i64;
        (-TOLERANCE_NS..=MAX_AGE_NS as i64).contains(&age_ns).then(|| self.monotonic_ns - age_ns.max(0) as u64)
    }
}

/// The SCM_TIMESTAMPNS of a received message, on CLOCK_REALTIME in ns.
///
/// # Safety
/// The kernel filled `header` in recvmsg(2) or recvmmsg(2), and its control room is still alive.
#[must_use]
pub unsafe fn receive_timestamp_ns(header: &libc::msghdr) -> Option<u64> {
    // SAFETY: promised by the caller; the kernel keeps control messages within `msg_controllen`.
    unsafe {
        let mut control = libc::CMSG_FIRSTHDR(header);
        while !control.is_null() {
            if (*control).cmsg_level == libc::SOL_SOCKET && (*control).cmsg_type == libc::SCM_TIMESTAMPNS {
                let time = libc::CMSG_DATA(control).cast::<libc::timespec>().read_unaligned();
                return Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64);
            }
            control = libc::CMSG_NXTHDR(header, control);
        }
    }
    None
}

fn clock_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; both clocks always exist.
    unsafe { libc::clock_gettime(clock, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reading_that_was_interrupted_is_made_again() {
        let readings = [(1_000, 50, 4_001_000), (4_002_000, 70, 4_002_100), (9_000_000, 90, 9_000_010)];
        let mut next = readings.into_iter();
        let clocks = ClockPair::closest(|| next.next().unwrap());
        assert_eq!((clocks.monotonic_ns, clocks.realtime_ns), (4_002_050, 70));
        let mut width_ns = 20_000;
        let clocks = ClockPair::closest(|| {
            width_ns -= 1_000;
            (0, width_ns, width_ns)
        });
        assert_eq!((clocks.monotonic_ns, clocks.realtime_ns), (6_000, 12_000));
    }

    #[test]
    fn timestamps_are_moved_to_the_monotonic_clock_or_refused() {
        let clocks = ClockPair { monotonic_ns: 5_000_000_000, realtime_ns: 1_700_000_000_000_000_000 };
        assert_eq!(clocks.monotonic(clocks.realtime_ns - 25_000), Some(4_999_975_000));
        assert_eq!(clocks.monotonic(clocks.realtime_ns + 100), Some(5_000_000_000));
        assert_eq!(clocks.monotonic(clocks.realtime_ns + 100_000), None);
        assert_eq!(clocks.monotonic(clocks.realtime_ns - 2_000_000_000), None);
    }
}
