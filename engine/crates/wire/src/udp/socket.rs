//! Creating datagram sockets and their options.

use std::io;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

use super::address::{RawAddress, local_address};
use super::control::{UDP_GRO, UDP_SEGMENT};

/// How a socket is set up.
#[derive(Clone, Debug)]
pub struct UdpOptions {
    /// Octets of receive buffer wanted; what the kernel granted is [`UdpSocket::receive_buffer_bytes`]. 0 keeps the default.
    pub receive_buffer_bytes: usize,
    /// Octets of send buffer wanted. 0 keeps the default.
    pub send_buffer_bytes: usize,
    /// Segmentation offload both ways (`UDP_SEGMENT`, `UDP_GRO`).
    pub offload: bool,
    /// Reads and sets the ECN bits. Off, datagrams leave as not-ECT, which is what TCP connections do under Linux'
    /// default `net.ipv4.tcp_ecn=2`.
    pub ecn: bool,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self { receive_buffer_bytes: 4 << 20, send_buffer_bytes: 4 << 20, offload: true, ecn: false }
    }
}

/// What went through a socket.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UdpCounters {
    /// Receive calls that returned at least one message.
    pub receive_calls: u64,
    /// Send calls.
    pub send_calls: u64,
    /// Datagrams received, after segments of a train are told apart.
    pub datagrams_in: u64,
    /// Datagrams handed to the kernel.
    pub datagrams_out: u64,
    /// Octets of UDP payload received.
    pub bytes_in: u64,
    /// Octets of UDP payload handed to the kernel.
    pub bytes_out: u64,
    /// Messages that did not fit the receive buffer and were cut (`MSG_TRUNC`); they are dropped.
    pub truncated: u64,
    /// Datagrams refused as larger than the route's or the device's MTU (`EMSGSIZE`): lost, as on a path that drops them.
    pub too_large: u64,
    /// Sends refused for want of a route or by a firewall (`ENETUNREACH`, `EPERM` and the like): lost as well.
    pub refused_sends: u64,
    /// Sends that the device could not segment (`EIO`), sent again datagram by datagram.
    pub offload_failures: u64,
}

/// A nonblocking UDP socket, connected to one peer or bound to a local address.
#[derive(Debug)]
pub struct UdpSocket {
    fd: OwnedFd,
    local: SocketAddr,
    pub(super) peer: Option<SocketAddr>,
    pub(super) ipv6: bool,
    pub(super) ecn: bool,
    pub(super) offload: bool,
    /// Bound to the wildcard address, so each answer must name the address it is sent from.
    pub(super) names_source: bool,
    receive_buffer_bytes: usize,
    pub(super) counters: UdpCounters,
}

impl UdpSocket {
    /// A socket connected to `peer`: it hears only that peer, and ICMP errors (such as a closed port) surface as errors.
    pub fn connect(peer: SocketAddr, options: &UdpOptions) -> io::Result<Self> {
        let fd = open(peer)?;
        let receive_buffer_bytes = configure(&fd, peer.is_ipv6(), options)?;
        let raw = RawAddress::from(peer);
        // SAFETY: `raw` holds a valid address of `length` octets.
        check(unsafe { libc::connect(fd.as_raw_fd(), raw.as_ptr(), raw.length) })?;
        Self::assemble(fd, Some(peer), options, receive_buffer_bytes)
    }

    /// A socket bound to `local`, hearing everyone. With `reuse_port` several sockets share the port and the kernel
    /// spreads flows over them (`SO_REUSEPORT`, socket(7)).
    pub fn bind(local: SocketAddr, reuse_port: bool, options: &UdpOptions) -> io::Result<Self> {
        let fd = open(local)?;
        let receive_buffer_bytes = configure(&fd, local.is_ipv6(), options)?;
        if reuse_port {
            set_option(&fd, libc::SOL_SOCKET, libc::SO_REUSEPORT, 1)?;
        }
        if local.is_ipv6() {
            set_option(&fd, libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1)?;
        }
        if local.ip().is_unspecified() {
            if local.is_ipv6() {
                set_option(&fd, libc::IPPROTO_IPV6, libc::IPV6_RECVPKTINFO, 1)?;
            } else {
                set_option(&fd, libc::IPPROTO_IP, libc::IP_PKTINFO, 1)?;
            }
        }
        let raw = RawAddress::from(local);
        // SAFETY: `raw` holds a valid address of `length` octets.
        check(unsafe { libc::bind(fd.as_raw_fd(), raw.as_ptr(), raw.length) })?;
        Self::assemble(fd, None, options, receive_buffer_bytes)
    }

    fn assemble(
        fd: OwnedFd,
        peer: Option<SocketAddr>,
        options: &UdpOptions,
        receive_buffer_bytes: usize,
    ) -> io::Result<Self> {
        let local = local_address(fd.as_raw_fd())?;
        Ok(Self {
            fd,
            local,
            peer,
            ipv6: local.is_ipv6(),
            ecn: options.ecn,
            offload: options.offload,
            names_source: peer.is_none() && local.ip().is_unspecified(),
            receive_buffer_bytes,
            counters: UdpCounters::default(),
        })
    }

    /// The descriptor, for epoll.
    pub fn raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }

    /// The address this socket is bound to.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// The receive buffer the kernel granted, in octets as `SO_RCVBUF` counts them (twice the usable size, socket(7)).
    pub fn receive_buffer_bytes(&self) -> usize {
        self.receive_buffer_bytes
    }

    /// What went through so far.
    pub fn counters(&self) -> UdpCounters {
        self.counters
    }

    /// Datagrams that the kernel dropped at this socket, mostly because its receive buffer was full.
    ///
    /// `SO_MEMINFO` is the count that `SO_RXQ_OVFL` reports, but it costs nothing per message and also covers drops after
    /// the last message received.
    pub fn kernel_drops(&self) -> io::Result<u32> {
        let mut values = [0_u32; libc::SK_MEMINFO_DROPS as usize + 1];
        let mut length = mem::size_of_val(&values) as libc::socklen_t;
        // SAFETY: `values` is a writable buffer of `length` octets.
        check(unsafe {
            libc::getsockopt(
                self.raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                values.as_mut_ptr().cast(),
                &raw mut length,
            )
        })?;
        Ok(values[libc::SK_MEMINFO_DROPS as usize])
    }
}

fn open(address: SocketAddr) -> io::Result<OwnedFd> {
    let family = if address.is_ipv6() { libc::AF_INET6 } else { libc::AF_INET };
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::socket(family, libc::SOCK_DGRAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the kernel has just returned this descriptor, nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets buffers, offload, don't-fragment and ECN; returns the granted receive buffer.
fn configure(fd: &OwnedFd, ipv6: bool, options: &UdpOptions) -> io::Result<usize> {
    if options.receive_buffer_bytes > 0 {
        set_buffer(fd, libc::SO_RCVBUFFORCE, libc::SO_RCVBUF, options.receive_buffer_bytes)?;
    }
    if options.send_buffer_bytes > 0 {
        set_buffer(fd, libc::SO_SNDBUFFORCE, libc::SO_SNDBUF, options.send_buffer_bytes)?;
    }
    if options.offload {
        // Setting a segment size of 0 changes nothing but fails where the kernel (before 4.18) does not know the option.
        set_option(fd, libc::SOL_UDP, UDP_SEGMENT, 0)?;
        set_option(fd, libc::SOL_UDP, UDP_GRO, 1)?;
    }
    if ipv6 {
        set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, libc::IPV6_PMTUDISC_PROBE)?;
    } else {
        set_option(fd, libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, libc::IP_PMTUDISC_PROBE)?;
    }
    if options.ecn {
        if ipv6 {
            set_option(fd, libc::IPPROTO_IPV6, libc::IPV6_RECVTCLASS, 1)?;
        } else {
            set_option(fd, libc::IPPROTO_IP, libc::IP_RECVTOS, 1)?;
        }
    }
    let granted = get_option(fd, libc::SOL_SOCKET, libc::SO_RCVBUF)?;
    Ok(usize::try_from(granted).unwrap_or(0))
}

/// Sets a buffer size past the system limit where allowed (CAP_NET_ADMIN), else up to it.
fn set_buffer(fd: &OwnedFd, force: libc::c_int, plain: libc::c_int, bytes: usize) -> io::Result<()> {
    let value = libc::c_int::try_from(bytes).unwrap_or(libc::c_int::MAX);
    if set_option(fd, libc::SOL_SOCKET, force, value).is_ok() {
        return Ok(());
    }
    // The limit (net.core.rmem_max) clips silently; callers see it in `receive_buffer_bytes`, and a check judges drops.
    set_option(fd, libc::SOL_SOCKET, plain, value)
}

fn set_option(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: libc::c_int) -> io::Result<()> {
    let length = mem::size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` is a readable c_int of `length` octets.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, name, (&raw const value).cast(), length) }).map(drop)
}

fn get_option(fd: &OwnedFd, level: libc::c_int, name: libc::c_int) -> io::Result<libc::c_int> {
    let mut value: libc::c_int = 0;
    let mut length = mem::size_of_val(&value) as libc::socklen_t;
    // SAFETY: `value` is a writable c_int of `length` octets.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, name, (&raw mut value).cast(), &raw mut length) })?;
    Ok(value)
}

fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}
