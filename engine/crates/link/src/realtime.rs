//! What the kernel can do so that the link runs when it has to: real-time scheduling, locked memory, a short slice.

use std::io;

/// Priority among SCHED_FIFO threads: above ordinary programs, below what a system may run itself.
const FIFO_PRIORITY: libc::c_int = 10;
/// Slice asked for where real-time scheduling is not allowed; a shorter one is scheduled sooner (EEVDF, Linux 6.12).
const SLICE_NS: u64 = 100_000;

/// What was granted.
#[derive(Clone, Copy, Debug, Default)]
pub struct Granted {
    pub fifo: bool,
    pub memory_locked: bool,
    /// Without SCHED_FIFO: the short slice.
    pub short_slice: bool,
}

/// struct sched_attr of sched_setattr(2), first version.
#[repr(C)]
struct SchedAttr {
    size: u32,
    policy: u32,
    flags: u64,
    nice: i32,
    priority: u32,
    runtime_ns: u64,
    deadline_ns: u64,
    period_ns: u64,
}

/// Asks for what helps; what is refused is reported, not an error.
#[must_use]
pub fn ask(realtime: bool) -> Granted {
    let mut granted = Granted::default();
    if realtime {
        let parameters = libc::sched_param { sched_priority: FIFO_PRIORITY };
        // SAFETY: `parameters` is valid and only read; 0 is the calling thread.
        granted.fifo = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } == 0;
        granted.memory_locked = lock_memory().is_ok();
    }
    if !granted.fifo {
        granted.short_slice = short_slice().is_ok();
    }
    granted
}

/// Locks memory, now and later. Only without a limit: with one, a later allocation beyond it would fail (mlockall(2)).
fn lock_memory() -> io::Result<()> {
    let unlimited = libc::rlimit { rlim_cur: libc::RLIM_INFINITY, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: `unlimited` is valid and only read.
    if unsafe { libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const unlimited) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: no pointers.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

fn short_slice() -> io::Result<()> {
    let attributes = SchedAttr {
        size: size_of::<SchedAttr>() as u32,
        policy: libc::SCHED_OTHER as u32,
        flags: 0,
        nice: 0,
        priority: 0,
        runtime_ns: SLICE_NS,
        deadline_ns: 0,
        period_ns: 0,
    };
    // SAFETY: `attributes` is a sched_attr of the size it says and only read; 0 is the calling thread.
    let result = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
