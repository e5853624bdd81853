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
        granted.fifo = first_in_first_out();
        granted.memory_locked = lock_memory().is_ok();
    }
    if !granted.fifo {
        granted.short_slice = short_slice().is_ok();
    }
    granted
}

/// Asks for SCHED_FIFO; whether it was granted. It stays when what allowed it is given up (sched(7)).
pub fn first_in_first_out() -> bool {
    let parameters = libc::sched_param { sched_priority: FIFO_PRIORITY };
    // SAFETY: `parameters` is valid and only read; 0 is the calling thread.
    unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) == 0 }
}

/// Locks memory, now and later. Only without a limit: with one, a later allocation beyond it would fail (mlockall(2)).
fn lock_memory() -> io::Result<()> {
    if !may_lock_beyond_the_limit()? {
        return Err(io::Error::from_raw_os_error(libc::EPERM));
    }
    // SAFETY: no pointers.
    if unsafe { libc::mlockall(libc::MCL_CURRENT | libc::MCL_FUTURE) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Whether RLIMIT_MEMLOCK does not bind this process, because there is none or by CAP_IPC_LOCK, which a user namespace
/// cannot give: tried out on address space that is never touched.
fn may_lock_beyond_the_limit() -> io::Result<bool> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid.
    if unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) } < 0 {
        return Err(io::Error::last_os_error());
    }
    if limit.rlim_cur == libc::RLIM_INFINITY {
        return Ok(true);
    }
    let length = usize::try_from(limit.rlim_cur).unwrap_or(usize::MAX).saturating_add(1 << 20);
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    // SAFETY: a new mapping at an address of the kernel's choice; locked on fault, so nothing is populated; then unmapped.
    unsafe {
        let address = libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, flags, -1, 0);
        if address == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let locked = libc::mlock2(address, length, libc::MLOCK_ONFAULT as libc::c_uint) == 0;
        libc::munmap(address, length);
        Ok(locked)
    }
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
