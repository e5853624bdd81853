//! A thin wrapper of epoll(7) with nanosecond timeouts.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Readable (EPOLLIN).
pub const READABLE: u32 = libc::EPOLLIN as u32;
/// Writable (EPOLLOUT).
pub const WRITABLE: u32 = libc::EPOLLOUT as u32;
/// The peer has shut its side, hung up, or the socket has an error: reading until the end is needed.
pub const CLOSING: u32 = (libc::EPOLLRDHUP | libc::EPOLLHUP | libc::EPOLLERR) as u32;
/// Report a state once per change (EPOLLET): registered once for both directions, no EPOLL_CTL_MOD per request.
pub const EDGE: u32 = libc::EPOLLET as u32;

/// One readiness event.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// What was given to [`Epoll::add`].
    pub token: u64,
    /// A mask of [`READABLE`], [`WRITABLE`] and [`CLOSING`].
    pub flags: u32,
}

/// An epoll instance with its event buffer.
pub struct Epoll {
    fd: OwnedFd,
    events: Vec<libc::epoll_event>,
    ready: usize,
    has_pwait2: bool,
}

impl Epoll {
    /// An instance that reports at most `capacity` events per wait.
    ///
    /// # Errors
    /// When the kernel refuses (descriptor limit).
    pub fn new(capacity: usize) -> io::Result<Self> {
        // SAFETY: no pointers; the result is checked before it is owned.
        let fd = unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just made and belongs to nobody else.
        let fd = unsafe { OwnedFd::from_raw_fd(fd) };
        let events = vec![libc::epoll_event { events: 0, u64: 0 }; capacity.max(1)];
        Ok(Self { fd, events, ready: 0, has_pwait2: true })
    }

    fn control(&self, operation: libc::c_int, fd: RawFd, flags: u32, token: u64) -> io::Result<()> {
        let mut event = libc::epoll_event { events: flags, u64: token };
        // SAFETY: `event` lives over the call; the kernel checks both descriptors.
        let result = unsafe { libc::epoll_ctl(self.fd.as_raw_fd(), operation, fd, &raw mut event) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Watches `fd` for `flags`; its events carry `token`. Closing the descriptor ends the watch.
    ///
    /// # Errors
    /// As epoll_ctl(2).
    pub fn add(&self, fd: RawFd, flags: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, flags, token)
    }

    /// Changes what is watched of `fd`.
    ///
    /// # Errors
    /// As epoll_ctl(2).
    pub fn modify(&self, fd: RawFd, flags: u32, token: u64) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, flags, token)
    }

    /// Stops watching `fd`.
    ///
    /// # Errors
    /// As epoll_ctl(2).
    pub fn remove(&self, fd: RawFd) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_DEL, fd, 0, 0)
    }

    /// Waits until something is ready or `timeout_ns` has passed (`None`: no limit); returns the number of events, to
    /// be fetched by [`Epoll::event`]. An interrupting signal gives 0 events.
    ///
    /// # Errors
    /// As epoll_wait(2).
    pub fn wait(&mut self, timeout_ns: Option<u64>) -> io::Result<usize> {
        self.ready = 0;
        let result = if self.has_pwait2 { self.wait_ns(timeout_ns) } else { self.wait_ms(timeout_ns) };
        if result >= 0 {
            self.ready = result as usize;
            return Ok(self.ready);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => Ok(0),
            // epoll_pwait2 came with Linux 5.11; container filters may refuse it with EPERM.
            Some(libc::ENOSYS | libc::EPERM) if self.has_pwait2 => {
                self.has_pwait2 = false;
                self.wait(timeout_ns)
            }
            _ => Err(error),
        }
    }

    fn wait_ns(&mut self, timeout_ns: Option<u64>) -> i64 {
        let timeout = timeout_ns.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as libc::time_t,
            tv_nsec: (ns % 1_000_000_000) as libc::c_long,
        });
        let pointer = timeout.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `events` has room for its length, `pointer` is null or valid over the call, no signal mask is given.
        unsafe {
            libc::syscall(
                libc::SYS_epoll_pwait2,
                self.fd.as_raw_fd(),
                self.events.as_mut_ptr(),
                self.events.len() as libc::c_int,
                pointer,
                std::ptr::null::<libc::sigset_t>(),
                0usize,
            )
        }
    }

    fn wait_ms(&mut self, timeout_ns: Option<u64>) -> i64 {
        // Rounded up: a wait that is too short would make the caller spin.
        let timeout = timeout_ns.map_or(-1, |ns| ns.div_ceil(1_000_000).min(i32::MAX as u64) as libc::c_int);
        let length = self.events.len() as libc::c_int;
        // SAFETY: `events` has room for `length` entries.
        i64::from(unsafe { libc::epoll_wait(self.fd.as_raw_fd(), self.events.as_mut_ptr(), length, timeout) })
    }

    /// Event `index` of the last wait.
    ///
    /// # Panics
    /// When `index` is not below the count that the last wait returned.
    #[inline]
    #[must_use]
    pub fn event(&self, index: usize) -> Event {
        let event = self.events[..self.ready][index];
        Event { token: event.u64, flags: event.events }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::net::UnixStream;

    #[test]
    fn readiness_carries_the_token_and_edges_come_once() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let mut epoll = Epoll::new(8).unwrap();
        epoll.add(far.as_raw_fd(), READABLE | EDGE, 77).unwrap();
        assert_eq!(epoll.wait(Some(0)).unwrap(), 0);
        near.write_all(b"x").unwrap();
        assert_eq!(epoll.wait(None).unwrap(), 1);
        assert_eq!(epoll.event(0).token, 77);
        assert_ne!(epoll.event(0).flags & READABLE, 0);
        assert_eq!(epoll.wait(Some(0)).unwrap(), 0, "an edge must be reported once");
        drop(near);
        assert_eq!(epoll.wait(Some(1_000_000_000)).unwrap(), 1);
        assert_ne!(epoll.event(0).flags & CLOSING, 0);
    }

    #[test]
    fn millisecond_fallback_waits_as_well() {
        let (mut near, far) = UnixStream::pair().unwrap();
        let mut epoll = Epoll::new(1).unwrap();
        epoll.has_pwait2 = false;
        epoll.add(far.as_raw_fd(), READABLE, 1).unwrap();
        assert_eq!(epoll.wait(Some(1)).unwrap(), 0);
        near.write_all(b"x").unwrap();
        assert_eq!(epoll.wait(None).unwrap(), 1);
        epoll.remove(far.as_raw_fd()).unwrap();
        assert_eq!(epoll.wait(Some(0)).unwrap(), 0);
    }
}
