//! Gives up the capabilities of a program that was given them by its file (capabilities(7)), once its devices are open.
//!
//! Until then its /proc/PID belongs to root, and whoever started it as an ordinary user cannot tell it from another
//! process: the keeper of a host by SSH (`trifecta/lab/ssh/keeper.py`) knows its programs by their working directory.

use std::io;

/// _LINUX_CAPABILITY_VERSION_3 of linux/capability.h.
const VERSION_3: u32 = 0x2008_0522;

/// struct __user_cap_header_struct.
#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

/// struct __user_cap_data_struct; version 3 has two.
#[repr(C)]
#[derive(Clone, Copy)]
struct Sets {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Gives up every capability of the calling thread; the process is an ordinary one of its user afterwards. Of root
/// nothing is taken.
///
/// # Errors
/// As capset(2) and prctl(2).
pub fn give_up() -> io::Result<()> {
    // SAFETY: no pointers.
    if unsafe { libc::geteuid() } == 0 {
        return Ok(());
    }
    let header = Header { version: VERSION_3, pid: 0 };
    let none = [Sets { effective: 0, permitted: 0, inheritable: 0 }; 2];
    // SAFETY: header and sets are valid and of the size that version 3 has; the kernel only reads the sets.
    if unsafe { libc::syscall(libc::SYS_capset, &raw const header, none.as_ptr()) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: prctl without pointers.
    if unsafe { libc::prctl(libc::PR_SET_DUMPABLE, 1) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
