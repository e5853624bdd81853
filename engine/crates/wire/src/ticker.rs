//! Interrupts the waiting system calls of a thread now and then, so that it can see what else is due.
//!
//! A time limit of its own (SO_RCVTIMEO) would have the kernel start and cancel a timer for every receive.

use std::cell::Cell;
use std::io;

thread_local! {
    /// Why the kernel refused this thread a timer: it is not asked again, else a caller without one would ask at every wait.
    static REFUSED: Cell<Option<i32>> = const { Cell::new(None) };
}

/// A signal that nothing else of ours uses.
const SIGNAL: libc::c_int = libc::SIGALRM;

/// Interrupts (EINTR) the thread that made it, at a fixed interval, as long as it lives.
#[derive(Debug)]
pub struct Ticker {
    timer: libc::timer_t,
}

extern "C" fn ignore(_: libc::c_int) {}

impl Ticker {
    /// Starts to interrupt the calling thread every `interval_ns`.
    ///
    /// # Errors
    /// As sigaction(2), timer_create(2) and timer_settime(2). Once refused, a thread gets the same error without asking.
    pub fn new(interval_ns: u64) -> io::Result<Self> {
        if let Some(code) = REFUSED.get() {
            return Err(io::Error::from_raw_os_error(code));
        }
        Self::ask(interval_ns).inspect_err(|error| REFUSED.set(error.raw_os_error()))
    }

    fn ask(interval_ns: u64) -> io::Result<Self> {
        // SAFETY: all-zero octets are a valid sigaction; without SA_RESTART waits are interrupted.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = ignore as *const () as libc::sighandler_t;
        // SAFETY: `action` lives over the call; the handler does nothing.
        if unsafe { libc::sigaction(SIGNAL, &raw const action, std::ptr::null_mut()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: all-zero octets are a valid sigevent.
        let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
        event.sigev_notify = libc::SIGEV_THREAD_ID;
        event.sigev_signo = SIGNAL;
        // SAFETY: no pointers.
        event.sigev_notify_thread_id = unsafe { libc::gettid() };
        let mut timer: libc::timer_t = std::ptr::null_mut();
        // SAFETY: both live over the call.
        if unsafe { libc::timer_create(libc::CLOCK_MONOTONIC, &raw mut event, &raw mut timer) } < 0 {
            return Err(io::Error::last_os_error());
        }
        let ticker = Self { timer };
        let interval = libc::timespec {
            tv_sec: (interval_ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (interval_ns % 1_000_000_000) as libc::c_long,
        };
        let times = libc::itimerspec { it_interval: interval, it_value: interval };
        // SAFETY: the timer was just made, `times` lives over the call.
        if unsafe { libc::timer_settime(ticker.timer, 0, &raw const times, std::ptr::null_mut()) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(ticker)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        // SAFETY: the timer is ours and deleted once.
        unsafe { libc::timer_delete(self.timer) };
    }
}
