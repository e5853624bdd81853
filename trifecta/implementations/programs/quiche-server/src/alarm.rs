//! When something is due: a timer of the kernel's, as tokio's are of whole milliseconds and pacing needs less.

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use tokio::io::unix::AsyncFd;

/// One time at which it rings.
pub struct Alarm {
    timer: AsyncFd<OwnedFd>,
    set: Option<Instant>,
}

impl Alarm {
    pub fn new() -> io::Result<Self> {
        let timer = timerfd_create(TimerfdClockId::Monotonic, TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC)?;
        // SAFETY: an OwnedFd stays open, and is the same descriptor, until it is dropped.
        Ok(Self { timer: unsafe { AsyncFd::register(timer)? }, set: None })
    }

    /// It rings at `due`, or before: one that is set to an earlier time stays, which costs a look and saves many calls.
    pub fn set(&mut self, due: Option<Instant>) -> io::Result<()> {
        let Some(due) = due.filter(|due| self.set.is_none_or(|set| *due < set)) else { return Ok(()) };
        let left = due.saturating_duration_since(Instant::now()).max(Duration::from_nanos(1)); // 0 would turn it off
        let time = |wait: Duration| Timespec { tv_sec: wait.as_secs() as _, tv_nsec: wait.subsec_nanos() as _ };
        let spec = Itimerspec { it_interval: time(Duration::ZERO), it_value: time(left) };
        timerfd_settime(self.timer.get_ref(), TimerfdTimerFlags::empty(), &spec)?;
        self.set = Some(due);
        Ok(())
    }

    /// Waits until it rings.
    pub async fn rings(&mut self) -> io::Result<()> {
        let mut ready = self.timer.readable().await?;
        let _ = rustix::io::read(self.timer.get_ref(), &mut [0; 8]); // how often it rang
        ready.clear_ready();
        self.set = None;
        Ok(())
    }
}
