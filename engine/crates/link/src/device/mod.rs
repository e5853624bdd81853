//! One end of the link: a packet(7) socket on a network device, read and written in batches.

use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

pub mod receive;
pub mod transmit;

/// Frames taken in or sent with one system call.
pub const BATCH: usize = 64;
/// Socket buffer: 5 ms of 64 B packets at 1 Mpkt/s with the kernel's overhead, 40 ms of super-packets at 12 Gbit/s.
const SOCKET_BUFFER_BYTES: libc::c_int = 64 << 20;

// linux/if_packet.h
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VNET_HDR: libc::c_int = 15;
const PACKET_QDISC_BYPASS: libc::c_int = 20;
const PACKET_IGNORE_OUTGOING: libc::c_int = 23;
const PACKET_ADD_MEMBERSHIP: libc::c_int = 1;
const PACKET_MR_PROMISC: libc::c_ushort = 1;
/// SKF_AD_OFF + SKF_AD_VLAN_TAG_PRESENT of linux/filter.h.
const VLAN_TAG_PRESENT: u32 = 0xffff_f000 + 48;

/// An open device.
#[derive(Debug)]
pub struct Device {
    socket: OwnedFd,
    name: String,
    transmit_dropped_before: u64,
}

/// struct tpacket_stats of linux/if_packet.h.
#[repr(C)]
#[derive(Default)]
struct TpacketStats {
    packets: libc::c_uint,
    drops: libc::c_uint,
}

/// struct packet_mreq of linux/if_packet.h.
#[repr(C)]
struct PacketMreq {
    index: libc::c_int,
    kind: libc::c_ushort,
    address_bytes: libc::c_ushort,
    address: [u8; 8],
}

impl Device {
    /// Opens a device of this network namespace, from which every frame it receives is then read: with
    /// `promiscuous`, also those for other hosts, until the socket is closed (PACKET_MR_PROMISC, packet(7)).
    ///
    /// # Errors
    /// As socket(2), setsockopt(2) and bind(2); `NotFound` when there is no such device.
    pub fn open(name: &str, promiscuous: bool) -> io::Result<Self> {
        let c_name = CString::new(name)?;
        // SAFETY: `c_name` is a valid string.
        let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
        if index == 0 {
            return Err(io::Error::new(io::ErrorKind::NotFound, "no such device in this network namespace"));
        }
        // Protocol 0: nothing is received before bind() names the device, so no frame of another one gets in.
        // SAFETY: no pointers.
        let socket =
            unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) };
        if socket < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: the descriptor was just made and belongs to nobody else.
        let socket = unsafe { OwnedFd::from_raw_fd(socket) };
        let fd = socket.as_raw_fd();
        if promiscuous {
            refuse_tagged(fd)?;
        }
        set_option(fd, libc::SOL_PACKET, PACKET_VNET_HDR, &1i32)?;
        set_option(fd, libc::SOL_PACKET, PACKET_IGNORE_OUTGOING, &1i32)?;
        set_option(fd, libc::SOL_PACKET, PACKET_QDISC_BYPASS, &1i32)?;
        set_option(fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1i32)?;
        set_buffer(fd, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF)?;
        set_buffer(fd, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF)?;
        // SAFETY: all-zero octets are a valid sockaddr_ll.
        let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
        address.sll_family = libc::AF_PACKET as u16;
        address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
        address.sll_ifindex = index as i32;
        // SAFETY: `address` is a sockaddr_ll and lives over the call.
        if unsafe { libc::bind(fd, (&raw const address).cast(), size_of_val(&address) as libc::socklen_t) } < 0 {
            return Err(io::Error::last_os_error());
        }
        if promiscuous {
            let kind = PACKET_MR_PROMISC;
            let membership = PacketMreq { index: index as i32, kind, address_bytes: 0, address: [0; 8] };
            set_option(fd, libc::SOL_PACKET, PACKET_ADD_MEMBERSHIP, &membership)?;
        }
        let transmit_dropped_before = transmit_dropped(name);
        Ok(Device { socket, name: name.to_owned(), transmit_dropped_before })
    }

    #[must_use]
    pub fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Frames that the socket had no room for, since the last call (PACKET_STATISTICS).
    #[must_use]
    pub fn receive_drops(&self) -> u64 {
        let mut statistics = TpacketStats::default();
        let mut length = size_of::<TpacketStats>() as libc::socklen_t;
        // SAFETY: `statistics` has room for `length` octets.
        let result = unsafe {
            libc::getsockopt(
                self.fd(),
                libc::SOL_PACKET,
                PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &raw mut length,
            )
        };
        if result < 0 { 0 } else { u64::from(statistics.drops) }
    }

    /// Frames that the device refused since it was opened: the queue of the other end of a veth pair was full.
    #[must_use]
    pub fn transmit_drops(&self) -> u64 {
        transmit_dropped(&self.name).saturating_sub(self.transmit_dropped_before)
    }

    /// Octets of socket buffer that the kernel granted for receiving.
    #[must_use]
    pub fn receive_buffer_bytes(&self) -> u64 {
        let mut value: libc::c_int = 0;
        let mut length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: `value` has room for `length` octets.
        unsafe {
            libc::getsockopt(self.fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, (&raw mut value).cast(), &raw mut length)
        };
        value.max(0) as u64
    }
}

fn set_option<T>(fd: RawFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: `value` is valid for its size and only read.
    let result = unsafe {
        libc::setsockopt(fd, level, option, std::ptr::from_ref(value).cast(), size_of::<T>() as libc::socklen_t)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Has frames with a VLAN tag left out: the kernel takes the tag off, so that they would be passed on without it.
fn refuse_tagged(fd: RawFd) -> io::Result<()> {
    // bpf(4): load whether there is a tag; when it is 0 take the whole frame, else nothing of it.
    let step = |code, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let mut steps = [
        step(0x30, 0, 0, VLAN_TAG_PRESENT), // BPF_LD | BPF_B | BPF_ABS
        step(0x15, 0, 1, 0),                // BPF_JMP | BPF_JEQ | BPF_K
        step(0x06, 0, 0, u32::MAX),         // BPF_RET | BPF_K
        step(0x06, 0, 0, 0),
    ];
    let program = libc::sock_fprog { len: steps.len() as u16, filter: steps.as_mut_ptr() };
    set_option(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &program)
}

/// Asks for a large buffer, beyond net.core's maximum where that is allowed (CAP_NET_ADMIN).
fn set_buffer(fd: RawFd, forced: libc::c_int, limited: libc::c_int) -> io::Result<()> {
    set_option(fd, libc::SOL_SOCKET, forced, &SOCKET_BUFFER_BYTES)
        .or_else(|_| set_option(fd, libc::SOL_SOCKET, limited, &SOCKET_BUFFER_BYTES))
}

/// The `drop` column of Transmit in /proc/net/dev (proc_pid_net(5)).
fn transmit_dropped(name: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/net/dev").unwrap_or_default();
    parse_transmit_dropped(&text, name).unwrap_or(0)
}

fn parse_transmit_dropped(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.trim_start().strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().nth(11)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_drop_column_of_the_right_device_is_read() {
        let text = "Inter-|   Receive                                                |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed\n    \
            ra1:     100       1    2    3    4     5          6         7      200       8    9   10   11    12      13         14\n     \
            ra:     100       1    2    3    4     5          6         7      200       8    9   77   11    12      13         14\n";
        assert_eq!(parse_transmit_dropped(text, "ra"), Some(77));
        assert_eq!(parse_transmit_dropped(text, "ra1"), Some(10));
        assert_eq!(parse_transmit_dropped(text, "rb"), None);
    }

    #[test]
    fn a_missing_device_is_said_to_be_missing() {
        assert_eq!(Device::open("no-such-dev", false).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
