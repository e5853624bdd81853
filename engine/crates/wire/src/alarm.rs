//! An alarm that wakes an epoll loop at a time, for deadlines that nearly always move on before they come.
//!
//! A timeout given to each wait has the kernel start and cancel a timer each time. Deadlines of requests lie far ahead and
//! are replaced by later ones; one timer at the earliest of them, set again only when it has gone off, costs next to nothing.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A timerfd(2) on CLOCK_MONOTONIC. To be watched with [`crate::epoll::READABLE`] and [`crate::epoll::EDGE`]; it needs no reading.
#[derive(Debug)]
pub struct Alarm {
    fd: OwnedFd,
    at_ns: u64,
}

impl Alarm {
    /// An alarm that is not set.
    ///
    /// # Errors
    /// As timerfd_create(2).
    pub fn new() -> io::Result<Self> {
        // SAFETY: no pointers; the result is checked before it is owned.
        let fd = unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, libc::TFD_CLOEXEC | libc::TFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just made and belongs to nobody else.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) }, at_ns: u64::MAX })
    }

    /// Sees to it that the alarm goes off at `at_ns` (CLOCK_MONOTONIC) or earlier, but after `now_ns`.
    ///
    /// # Errors
    /// As timerfd_settime(2).
    #[inline]
    pub fn no_later_than(&mut self, at_ns: u64, now_ns: u64) -> io::Result<()> {
        if self.at_ns <= at_ns && self.at_ns > now_ns { Ok(()) } else { self.set(at_ns) }
    }

    fn set(&mut self, at_ns: u64) -> io::Result<()> {
        let at = libc::itimerspec {
            it_interval: libc::timespec { tv_sec: 0, tv_nsec: 0 },
            it_value: libc::timespec {
                tv_sec: (at_ns / 1_000_000_000) as libc::time_t,
                // A time of 0 would turn the timer off.
                tv_nsec: (at_ns % 1_000_000_000).max(1) as libc::c_long,
            },
        };
        // SAFETY: `at` lives over the call; the old value is not asked for.
        let result = unsafe {
            libc::timerfd_settime(self.as_raw_fd(), libc::TFD_TIMER_ABSTIME, &raw const at, std::ptr::null_mut())
        };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        self.at_ns = at_ns;
        Ok(())
    }
}

impl AsRawFd for Alarm {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::now_ns;
    use crate::epoll::{EDGE, Epoll, READABLE};

    #[test]
    fn it_goes_off_in_time_and_can_be_set_again() {
        let mut alarm = Alarm::new().unwrap();
        let mut epoll = Epoll::new(4).unwrap();
        epoll.add(alarm.as_raw_fd(), READABLE | EDGE, 7).unwrap();
        assert_eq!(epoll.wait(Some(0)).unwrap(), 0, "not set");
        for _ in 0..3 {
            let start_ns = now_ns();
            alarm.no_later_than(start_ns + 20_000_000, start_ns).unwrap();
            // A later time changes nothing, an earlier one does.
            alarm.no_later_than(start_ns + 9_000_000_000, start_ns).unwrap();
            alarm.no_later_than(start_ns + 5_000_000, start_ns).unwrap();
            assert_eq!(epoll.wait(Some(3_000_000_000)).unwrap(), 1);
            assert_eq!(epoll.event(0).token, 7);
            assert!(now_ns() - start_ns >= 5_000_000);
            assert_eq!(epoll.wait(Some(0)).unwrap(), 0, "once");
        }
    }
}
