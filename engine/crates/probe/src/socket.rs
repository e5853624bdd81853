//! A UDP socket whose packets carry the time at which the kernel received them and are never fragmented.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;

use trifecta_wire::timestamp::{CONTROL_WORDS, ClockPair, receive_timestamp_ns};

const BUFFER_BYTES: libc::c_int = 8 << 20;

/// IP_MTU_DISCOVER and IPV6_MTU_DISCOVER: set DF, ignore what was learnt about the path (ip(7)).
const PMTUDISC_PROBE: libc::c_int = 3;

/// A received packet.
#[derive(Clone, Copy, Debug)]
pub struct Arrival {
    pub length: usize,
    pub from: SocketAddr,
    /// On CLOCK_MONOTONIC.
    pub received_ns: u64,
}

pub struct Socket {
    socket: UdpSocket,
}

impl Socket {
    /// Opens a socket bound to this address.
    ///
    /// # Errors
    /// As socket(2), bind(2) and setsockopt(2).
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        socket.set_nonblocking(true)?;
        let this = Socket { socket };
        this.set_option(libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, 1)?;
        this.set_option(libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, BUFFER_BYTES)
            .or_else(|_| this.set_option(libc::SOL_SOCKET, libc::SO_RCVBUF, BUFFER_BYTES))?;
        if address.is_ipv4() {
            this.set_option(libc::IPPROTO_IP, libc::IP_MTU_DISCOVER, PMTUDISC_PROBE)?;
        } else {
            this.set_option(libc::IPPROTO_IPV6, libc::IPV6_MTU_DISCOVER, PMTUDISC_PROBE)?;
        }
        Ok(this)
    }

    /// Opens a socket that talks to this address only.
    ///
    /// # Errors
    /// As `bind`, and connect(2).
    pub fn connect(address: SocketAddr) -> io::Result<Self> {
        let any: IpAddr = if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
        let this = Self::bind(SocketAddr::new(any, 0))?;
        this.socket.connect(address)?;
        Ok(this)
    }

    /// Largest UDP payload that the device towards the peer takes in one frame.
    ///
    /// # Errors
    /// As getsockopt(2).
    pub fn device_payload_bytes(&self) -> io::Result<usize> {
        let ipv4 = self.socket.peer_addr()?.is_ipv4();
        let (level, option, headers) =
            if ipv4 { (libc::IPPROTO_IP, libc::IP_MTU, 28) } else { (libc::IPPROTO_IPV6, libc::IPV6_MTU, 48) };
        let mut mtu: libc::c_int = 0;
        let mut length = size_of::<libc::c_int>() as libc::socklen_t;
        // SAFETY: `mtu` has room for `length` octets.
        let result =
            unsafe { libc::getsockopt(self.socket.as_raw_fd(), level, option, (&raw mut mtu).cast(), &raw mut length) };
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(usize::try_from(mtu).unwrap_or(0).saturating_sub(headers).min(65_507))
    }

    fn set_option(&self, level: libc::c_int, option: libc::c_int, value: libc::c_int) -> io::Result<()> {
        // SAFETY: `value` is an int and only read.
        let result = unsafe {
            libc::setsockopt(
                self.socket.as_raw_fd(),
                level,
                option,
                (&raw const value).cast(),
                size_of::<libc::c_int>() as libc::socklen_t,
            )
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Sends to the connected peer.
    ///
    /// # Errors
    /// As send(2).
    pub fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        self.socket.send(bytes)
    }

    /// Sends to this address.
    ///
    /// # Errors
    /// As sendto(2).
    pub fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        self.socket.send_to(bytes, to)
    }

    /// Waits for a packet or standard input (if `watch_stdin`), at most `timeout_ns`.
    pub fn wait(&self, timeout_ns: u64, watch_stdin: bool) {
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // poll(2) ignores negative descriptors.
        let mut watched = [poll(self.socket.as_raw_fd()), poll(if watch_stdin { 0 } else { -1 })];
        let timeout = libc::timespec {
            tv_sec: (timeout_ns / 1_000_000_000) as i64,
            tv_nsec: (timeout_ns % 1_000_000_000) as i64,
        };
        // SAFETY: two valid pollfd and a valid timespec.
        unsafe { libc::ppoll(watched.as_mut_ptr(), 2, &raw const timeout, std::ptr::null()) };
    }

    /// Takes in a packet if there is one. An ICMP error about an earlier packet reads as none.
    ///
    /// # Errors
    /// As recvmsg(2).
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<Arrival>> {
        let mut control = [0u64; CONTROL_WORDS];
        // SAFETY: all-zero octets are a valid sockaddr_storage and an empty message header.
        let (mut address, mut header): (libc::sockaddr_storage, libc::msghdr) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        let mut iovec = libc::iovec { iov_base: buffer.as_mut_ptr().cast(), iov_len: buffer.len() };
        header.msg_name = (&raw mut address).cast();
        header.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
        header.msg_iov = &raw mut iovec;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of_val(&control);
        // SAFETY: `header` points to buffers that live over the call.
        let length = unsafe { libc::recvmsg(self.socket.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) };
        if length < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN | libc::EINTR | libc::ECONNREFUSED | libc::EHOSTUNREACH | libc::EMSGSIZE) => Ok(None),
                _ => Err(error),
            };
        }
        let clocks = ClockPair::now();
        // SAFETY: the kernel filled `header` just now, and `control` is alive.
        let timestamp_ns = unsafe { receive_timestamp_ns(&header) }.and_then(|time_ns| clocks.monotonic(time_ns));
        let received_ns = timestamp_ns.ok_or_else(|| io::Error::other("a packet came without a usable timestamp"))?;
        let from = socket_address(&address).ok_or_else(|| io::Error::other("a packet came from no IP address"))?;
        Ok(Some(Arrival { length: length as usize, from, received_ns }))
    }
}

fn socket_address(address: &libc::sockaddr_storage) -> Option<SocketAddr> {
    let storage = std::ptr::from_ref(address);
    match libc::c_int::from(address.ss_family) {
        libc::AF_INET => {
            // SAFETY: the family says that this is a sockaddr_in, and the storage is aligned and large enough for it.
            let v4 = unsafe { storage.cast::<libc::sockaddr_in>().read() };
            Some(SocketAddr::new(Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr)).into(), u16::from_be(v4.sin_port)))
        }
        libc::AF_INET6 => {
            // SAFETY: as above, for a sockaddr_in6.
            let v6 = unsafe { storage.cast::<libc::sockaddr_in6>().read() };
            let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
            Some(std::net::SocketAddrV6::new(ip, u16::from_be(v6.sin6_port), 0, v6.sin6_scope_id).into())
        }
        _ => None,
    }
}
