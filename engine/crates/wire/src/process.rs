//! What every subcommand of the engine does as a process: end with its parent, end on a signal or a closed standard
//! input, say things in single JSON lines, and account for its CPU time.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use serde::Serialize;

static STOP: AtomicBool = AtomicBool::new(false);

extern "C" fn on_stop_signal(_: libc::c_int) {
    STOP.store(true, Ordering::Relaxed);
}

/// Prepares the process: SIGKILL when the parent dies, SIGTERM and SIGINT set [`stop_requested`], SIGPIPE is ignored, and
/// timers fire without the usual 50 us of slack (PR_SET_TIMERSLACK).
///
/// # Errors
/// As prctl(2) and sigaction(2).
pub fn prepare() -> io::Result<()> {
    // SAFETY: prctl without pointers.
    if unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) } < 0 {
        return Err(io::Error::last_os_error());
    }
    set_timer_slack_ns(1);
    for (signal, handler) in [
        (libc::SIGTERM, on_stop_signal as *const () as libc::sighandler_t),
        (libc::SIGINT, on_stop_signal as *const () as libc::sighandler_t),
        (libc::SIGPIPE, libc::SIG_IGN),
    ] {
        // SAFETY: all-zero octets are a valid sigaction; no SA_RESTART, so that waits are interrupted.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        action.sa_sigaction = handler;
        // SAFETY: `action` lives over the call; the handler only stores into an atomic.
        if unsafe { libc::sigaction(signal, &raw const action, std::ptr::null_mut()) } < 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

/// Sets the timer slack of the calling thread, in nanoseconds; threads inherit it.
pub fn set_timer_slack_ns(slack_ns: u64) {
    // SAFETY: prctl without pointers. It cannot fail for the calling thread.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns as libc::c_ulong) };
}

/// Whether SIGTERM or SIGINT came, or [`request_stop`] was called.
#[must_use]
pub fn stop_requested() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Asks every loop of this process to end.
pub fn request_stop() {
    STOP.store(true, Ordering::Relaxed);
}

/// Whether standard input is a pipe or a socket, so that its end means that the parent is gone. A terminal, a file and
/// /dev/null do not count.
#[must_use]
pub fn stdin_is_watched() -> bool {
    // SAFETY: all-zero octets are a valid stat.
    let mut status: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: `status` lives over the call.
    if unsafe { libc::fstat(0, &raw mut status) } < 0 {
        return false;
    }
    matches!(status.st_mode & libc::S_IFMT, libc::S_IFIFO | libc::S_IFSOCK)
}

/// Whether a watched standard input has ended; does not block. Octets on it are read and ignored.
#[must_use]
pub fn stdin_closed() -> bool {
    let mut scratch = [0u8; 256];
    loop {
        let mut poll = libc::pollfd { fd: 0, events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd.
        if unsafe { libc::poll(&raw mut poll, 1, 0) } <= 0 {
            return false;
        }
        if poll.revents & libc::POLLIN == 0 {
            return poll.revents & (libc::POLLHUP | libc::POLLERR | libc::POLLNVAL) != 0;
        }
        // SAFETY: `scratch` has room for its length.
        let octets = unsafe { libc::read(0, scratch.as_mut_ptr().cast(), scratch.len()) };
        if octets == 0 {
            return true;
        }
        if octets < 0 {
            return false;
        }
    }
}

/// CPU time (getrusage(2)) and peak resident memory (proc_pid_status(5)) of this process so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    pub cpu_user_ns: u64,
    pub cpu_system_ns: u64,
    pub max_rss_bytes: u64,
}

impl Usage {
    /// What the process has used so far.
    #[must_use]
    pub fn now() -> Self {
        // SAFETY: all-zero octets are a valid rusage.
        let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
        // SAFETY: `usage` lives over the call, which cannot fail for RUSAGE_SELF.
        unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        Self {
            cpu_user_ns: ns(usage.ru_utime),
            cpu_system_ns: ns(usage.ru_stime),
            // ru_maxrss counts what the process was before execve(2) too: with vfork(2), the memory of a large parent.
            max_rss_bytes: peak_resident_bytes().unwrap_or(usage.ru_maxrss as u64 * 1024),
        }
    }

    /// What was used since `earlier`; the peak of memory stays as it is.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            cpu_user_ns: self.cpu_user_ns.saturating_sub(earlier.cpu_user_ns),
            cpu_system_ns: self.cpu_system_ns.saturating_sub(earlier.cpu_system_ns),
            max_rss_bytes: self.max_rss_bytes,
        }
    }
}

/// The peak of resident memory of this program (VmHWM), where /proc is mounted.
fn peak_resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().strip_suffix(" kB")?.parse::<u64>().ok()? * 1024)
}

/// Lets this process open `descriptors` files and sockets at a time: raises the soft limit (RLIMIT_NOFILE), and the hard one where
/// that is allowed. Limits are never lowered.
///
/// # Errors
/// The most that is allowed, when that is less.
pub fn allow_descriptors(descriptors: u64) -> Result<(), u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` lives over the call, which cannot fail for this resource.
    unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) };
    if limit.rlim_cur >= descriptors {
        return Ok(());
    }
    let raised = libc::rlimit { rlim_cur: descriptors, rlim_max: limit.rlim_max.max(descriptors) };
    // SAFETY: `raised` lives over the call.
    if unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &raw const raised) } < 0 { Err(limit.rlim_max) } else { Ok(()) }
}

/// Binds the calling thread to one CPU.
///
/// # Errors
/// As sched_setaffinity(2): `EINVAL` when the CPU does not exist or is not allowed.
pub fn pin_to_cpu(cpu: usize) -> io::Result<()> {
    if cpu >= libc::CPU_SETSIZE as usize {
        return Err(io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: all-zero octets are an empty cpu_set_t, and `cpu` is below its size.
    let set = unsafe {
        let mut set: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu, &mut set);
        set
    };
    // SAFETY: `set` lives over the call.
    if unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const set) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Writes `{"KEY": VALUE}` as one line to standard output.
fn write_line(key: &str, value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(&BTreeMap::from([(key, value)]))?;
    line.push(b'\n');
    let mut stdout = io::stdout().lock();
    stdout.write_all(&line)?;
    stdout.flush()
}

/// Says that the program can be used: `{"ready": VALUE}`.
///
/// # Errors
/// When standard output is closed.
pub fn write_ready(value: &impl Serialize) -> io::Result<()> {
    write_line("ready", value)
}

/// Says how it went: `{"summary": VALUE}`.
///
/// # Errors
/// When standard output is closed.
pub fn write_summary(value: &impl Serialize) -> io::Result<()> {
    write_line("summary", value)
}

/// Closes standard output: the last that others hear, long before the kernel has closed what the process holds.
pub fn close_stdout() {
    // SAFETY: nothing is written to the descriptor any more, and nothing is opened that could get its number.
    unsafe { libc::close(libc::STDOUT_FILENO) };
}

/// Exit codes of the engine.
pub mod exit {
    /// Done.
    pub const DONE: i32 = 0;
    /// Bad input; the message names the field.
    pub const BAD_INPUT: i32 = 2;
    /// Cannot: no permission, port taken, disk full.
    pub const CANNOT: i32 = 3;
}

/// Writes `error: FIELD: MESSAGE` as one line to standard error and returns `code`.
pub fn fail(code: i32, field: &str, message: &str) -> i32 {
    eprintln!("error: {field}: {}", message.replace('\n', " "));
    code
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_grows_with_work() {
        let before = Usage::now();
        let mut sum = 0u64;
        while Usage::now().since(before).cpu_user_ns + Usage::now().since(before).cpu_system_ns < 2_000_000 {
            sum = std::hint::black_box(sum.wrapping_add(1));
        }
        assert_eq!(Some(Usage::now().max_rss_bytes), peak_resident_bytes());
        assert_eq!(before.since(Usage::now()).cpu_user_ns, 0, "never negative");
    }

    #[test]
    fn descriptors_are_allowed_up_to_what_the_kernel_gives() {
        assert_eq!(allow_descriptors(64), Ok(()));
        // fs.nr_open bounds the hard limit, of root too.
        let refused = allow_descriptors(1 << 40);
        assert!(refused.is_err_and(|most| (64..1 << 40).contains(&most)), "{refused:?}");
    }

    #[test]
    fn a_cpu_that_does_not_exist_is_refused() {
        assert!(pin_to_cpu(100_000).is_err());
        assert!(pin_to_cpu(1023).is_err());
    }
}
