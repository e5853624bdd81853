//! Nonblocking TCP sockets with the options that a comparison must pin, and read back.

use std::io;
use std::mem::{MaybeUninit, size_of};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};

/// Options of a socket; what is `None` or 0 is left to the kernel.
#[derive(Clone, Debug, Default)]
pub struct TcpOptions {
    /// TCP_NODELAY.
    pub nodelay: bool,
    /// TCP_CONGESTION: `cubic`, `bbr`, `reno`.
    pub congestion_control: Option<String>,
    /// SO_RCVBUF in octets; setting it turns the kernel's automatic tuning off.
    pub receive_buffer_bytes: usize,
    /// Segments leave at the kernel's pace, 2 windows a round trip in slow start and 1.2 later
    /// (net.ipv4.tcp_pacing_ss_ratio, tcp_pacing_ca_ratio), without a rate as limit.
    pub paced: bool,
    /// TCP_NOTSENT_LOWAT: octets that the kernel takes before it has sent them; 0 leaves it to the send buffer.
    pub unsent_bytes: u32,
}

/// SO_MAX_PACING_RATE, in octets per second: any limit has the kernel pace a connection by itself, and none is all ones
/// (`sk_setsockopt`, net/core/sock.c).
const LARGEST_PACING_RATE: u64 = u64::MAX - 1;

/// What tcp(7) TCP_INFO says of a connection; times in ns, windows in octets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TcpInfo {
    pub min_rtt_ns: u64,
    pub srtt_ns: u64,
    pub retransmits: u64,
    pub congestion_window_bytes: u64,
    pub mss_bytes: u64,
    /// Segments that may overtake another before it is taken for lost.
    pub reordering: u64,
    pub received_bytes: u64,
}

/// A nonblocking TCP socket.
#[derive(Debug)]
pub struct TcpSocket {
    fd: OwnedFd,
}

impl TcpSocket {
    fn new(address: &SocketAddr) -> io::Result<Self> {
        let domain = if address.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
        let kind = libc::SOCK_STREAM | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; the result is checked before it is owned.
        let fd = unsafe { libc::socket(domain, kind, 0) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `fd` was just made and belongs to nobody else.
        Ok(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } })
    }

    /// Starts to connect to `address`; writability will tell how that went, then ask [`TcpSocket::take_error`].
    ///
    /// # Errors
    /// As socket(2), setsockopt(2) and connect(2); `EADDRNOTAVAIL` means that no ephemeral port is left.
    pub fn connect(address: &SocketAddr, options: &TcpOptions) -> io::Result<Self> {
        let socket = Self::new(address)?;
        socket.set(options)?;
        let (storage, length) = raw_address(address);
        // SAFETY: `storage` holds a socket address of `length` octets.
        let result = unsafe { libc::connect(socket.as_raw_fd(), (&raw const storage).cast(), length) };
        if result == 0 {
            return Ok(socket);
        }
        let error = io::Error::last_os_error();
        if error.raw_os_error() == Some(libc::EINPROGRESS) { Ok(socket) } else { Err(error) }
    }

    /// A listening socket; accepted sockets inherit the options.
    ///
    /// # Errors
    /// As socket(2), setsockopt(2), bind(2), listen(2).
    pub fn listen(address: &SocketAddr, options: &TcpOptions, reuse_port: bool, backlog: i32) -> io::Result<Self> {
        let socket = Self::new(address)?;
        socket.set(options)?;
        set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEADDR, &1i32)?;
        if reuse_port {
            set_option(socket.as_raw_fd(), libc::SOL_SOCKET, libc::SO_REUSEPORT, &1i32)?;
        }
        let (storage, length) = raw_address(address);
        // SAFETY: `storage` holds a socket address of `length` octets.
        if unsafe { libc::bind(socket.as_raw_fd(), (&raw const storage).cast(), length) } < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: no pointers.
        if unsafe { libc::listen(socket.as_raw_fd(), backlog) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(socket)
    }

    /// The next waiting connection, or `None` when there is none now.
    ///
    /// # Errors
    /// As accept4(2); an aborted connection counts as none.
    pub fn accept(&self) -> io::Result<Option<Self>> {
        let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no peer address is asked for.
        let fd = unsafe { libc::accept4(self.as_raw_fd(), std::ptr::null_mut(), std::ptr::null_mut(), flags) };
        if fd >= 0 {
            // SAFETY: `fd` was just made and belongs to nobody else.
            return Ok(Some(Self { fd: unsafe { OwnedFd::from_raw_fd(fd) } }));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR | libc::ECONNABORTED) => Ok(None),
            _ => Err(error),
        }
    }

    fn set(&self, options: &TcpOptions) -> io::Result<()> {
        if options.nodelay {
            self.set_nodelay(true)?;
        }
        if let Some(name) = &options.congestion_control {
            self.set_congestion_control(name)?;
        }
        if options.receive_buffer_bytes > 0 {
            let bytes = options.receive_buffer_bytes.min(i32::MAX as usize) as i32;
            set_option(self.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF, &bytes)?;
        }
        if options.paced {
            set_option(self.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE, &LARGEST_PACING_RATE)?;
        }
        if options.unsent_bytes > 0 {
            set_option(self.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NOTSENT_LOWAT, &options.unsent_bytes)?;
        }
        Ok(())
    }

    /// Sets TCP_NODELAY.
    ///
    /// # Errors
    /// As setsockopt(2).
    pub fn set_nodelay(&self, on: bool) -> io::Result<()> {
        set_option(self.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY, &i32::from(on))
    }

    /// Reads TCP_NODELAY back.
    ///
    /// # Errors
    /// As getsockopt(2).
    pub fn nodelay(&self) -> io::Result<bool> {
        Ok(get_option::<i32>(self.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_NODELAY)?.0 != 0)
    }

    /// Sets TCP_CONGESTION.
    ///
    /// # Errors
    /// `ENOENT` when the kernel has no such algorithm, `EPERM` when it is not allowed to this user.
    pub fn set_congestion_control(&self, name: &str) -> io::Result<()> {
        let length = name.len() as libc::socklen_t;
        // SAFETY: `name` is valid for `length` octets; the kernel needs no terminator.
        let result = unsafe {
            libc::setsockopt(self.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION, name.as_ptr().cast(), length)
        };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Reads TCP_CONGESTION back.
    ///
    /// # Errors
    /// As getsockopt(2).
    pub fn congestion_control(&self) -> io::Result<String> {
        let (name, length) = get_option::<[u8; 16]>(self.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_CONGESTION)?;
        let name = &name[..length.min(name.len())];
        Ok(String::from_utf8_lossy(name.split(|&octet| octet == 0).next().unwrap_or_default()).into_owned())
    }

    /// Whether the kernel was asked to pace: the limit of the rate is another than none.
    ///
    /// # Errors
    /// As getsockopt(2).
    pub fn paced(&self) -> io::Result<bool> {
        Ok(get_option::<u64>(self.as_raw_fd(), libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE)?.0 != u64::MAX)
    }

    /// Reads SO_RCVBUF back, in octets (the kernel doubles what was set, socket(7)).
    ///
    /// # Errors
    /// As getsockopt(2).
    pub fn receive_buffer_bytes(&self) -> io::Result<usize> {
        Ok(get_option::<i32>(self.as_raw_fd(), libc::SOL_SOCKET, libc::SO_RCVBUF)?.0.max(0) as usize)
    }

    /// What the kernel knows of the connection now.
    ///
    /// # Errors
    /// As getsockopt(2).
    pub fn info(&self) -> io::Result<TcpInfo> {
        let (raw, length) = get_option::<RawTcpInfo>(self.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO)?;
        let has_min_rtt = length >= std::mem::offset_of!(RawTcpInfo, min_rtt_us) + size_of::<u32>();
        // The kernel says u32::MAX when it has no minimum yet.
        let min_rtt_us = if has_min_rtt && raw.min_rtt_us != u32::MAX { raw.min_rtt_us } else { 0 };
        Ok(TcpInfo {
            min_rtt_ns: u64::from(min_rtt_us) * 1000,
            srtt_ns: u64::from(raw.rtt_us) * 1000,
            retransmits: u64::from(raw.total_retrans),
            congestion_window_bytes: u64::from(raw.snd_cwnd) * u64::from(raw.snd_mss),
            mss_bytes: u64::from(raw.snd_mss),
            reordering: u64::from(raw.reordering),
            received_bytes: raw.bytes_received,
        })
    }

    /// Takes the pending error (SO_ERROR), the result of a connection attempt.
    ///
    /// # Errors
    /// The pending error, or that of getsockopt(2).
    pub fn take_error(&self) -> io::Result<()> {
        match get_option::<i32>(self.as_raw_fd(), libc::SOL_SOCKET, libc::SO_ERROR)?.0 {
            0 => Ok(()),
            code => Err(io::Error::from_raw_os_error(code)),
        }
    }

    /// Receives into `buffer`; `Ok(None)` when nothing is there now, `Ok(Some(0))` at the end of the stream.
    ///
    /// # Errors
    /// As recv(2).
    #[inline]
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.receive_with(buffer, libc::MSG_DONTWAIT)
    }

    /// As [`TcpSocket::receive`], but waits for octets until a signal comes ([`crate::ticker`]). Needs
    /// [`TcpSocket::let_receives_wait`].
    ///
    /// # Errors
    /// As recv(2).
    #[inline]
    pub fn receive_waiting(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        self.receive_with(buffer, 0)
    }

    #[inline]
    fn receive_with(&self, buffer: &mut [u8], flags: libc::c_int) -> io::Result<Option<usize>> {
        // SAFETY: `buffer` is valid for its length.
        let result = unsafe { libc::recv(self.as_raw_fd(), buffer.as_mut_ptr().cast(), buffer.len(), flags) };
        would_block(result)
    }

    /// Lets [`TcpSocket::receive_waiting`] wait; all other calls still return at once.
    ///
    /// # Errors
    /// As fcntl(2).
    pub fn let_receives_wait(&self) -> io::Result<()> {
        // SAFETY: no pointers. O_NONBLOCK is the only flag that a socket of ours has.
        if unsafe { libc::fcntl(self.as_raw_fd(), libc::F_SETFL, 0) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// Sends from `bytes`; `Ok(None)` when the socket takes nothing now. Never raises SIGPIPE.
    ///
    /// # Errors
    /// As send(2).
    #[inline]
    pub fn send(&self, bytes: &[u8]) -> io::Result<Option<usize>> {
        let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
        // SAFETY: `bytes` is valid for its length.
        let result = unsafe { libc::send(self.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), flags) };
        would_block(result)
    }

    /// Ends the sending direction with a FIN.
    ///
    /// # Errors
    /// As shutdown(2).
    pub fn shutdown_write(&self) -> io::Result<()> {
        // SAFETY: no pointers.
        if unsafe { libc::shutdown(self.as_raw_fd(), libc::SHUT_WR) } < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }

    /// The address this end is bound to.
    ///
    /// # Errors
    /// As getsockname(2).
    pub fn local_address(&self) -> io::Result<SocketAddr> {
        // A borrowed view through std, which must not close the descriptor.
        // SAFETY: the descriptor is open; ManuallyDrop keeps the view from closing it.
        let view = std::mem::ManuallyDrop::new(unsafe { std::net::TcpStream::from_raw_fd(self.as_raw_fd()) });
        view.local_addr()
    }
}

impl AsRawFd for TcpSocket {
    fn as_raw_fd(&self) -> RawFd {
        self.fd.as_raw_fd()
    }
}

#[inline]
fn would_block(result: isize) -> io::Result<Option<usize>> {
    if result >= 0 {
        return Ok(Some(result as usize));
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EAGAIN | libc::EINTR | libc::ENOTCONN) => Ok(None),
        _ => Err(error),
    }
}

/// The first part of the kernel's `struct tcp_info` (include/uapi/linux/tcp.h), to `tcpi_min_rtt`.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawTcpInfo {
    state_to_options: [u8; 8],
    rto_us: u32,
    ato_us: u32,
    snd_mss: u32,
    rcv_mss: u32,
    unacked_to_fackets: [u32; 5],
    last_times_ms: [u32; 4],
    pmtu: u32,
    rcv_ssthresh: u32,
    rtt_us: u32,
    rttvar_us: u32,
    snd_ssthresh: u32,
    snd_cwnd: u32,
    advmss: u32,
    reordering: u32,
    rcv_rtt: u32,
    rcv_space: u32,
    total_retrans: u32,
    pacing_rate: u64,
    max_pacing_rate: u64,
    bytes_acked: u64,
    bytes_received: u64,
    segs_out: u32,
    segs_in: u32,
    notsent_bytes: u32,
    min_rtt_us: u32,
}

fn raw_address(address: &SocketAddr) -> (libc::sockaddr_storage, libc::socklen_t) {
    // SAFETY: all-zero octets are a valid sockaddr_storage.
    let mut storage: libc::sockaddr_storage = unsafe { MaybeUninit::zeroed().assume_init() };
    let length = match address {
        SocketAddr::V4(address) => {
            let raw = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: address.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from_ne_bytes(address.ip().octets()) },
                sin_zero: [0; 8],
            };
            // SAFETY: sockaddr_storage is large enough and aligned for every socket address.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in>().write(raw) };
            size_of::<libc::sockaddr_in>()
        }
        SocketAddr::V6(address) => {
            let raw = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: address.port().to_be(),
                sin6_flowinfo: address.flowinfo(),
                sin6_addr: libc::in6_addr { s6_addr: address.ip().octets() },
                sin6_scope_id: address.scope_id(),
            };
            // SAFETY: sockaddr_storage is large enough and aligned for every socket address.
            unsafe { (&raw mut storage).cast::<libc::sockaddr_in6>().write(raw) };
            size_of::<libc::sockaddr_in6>()
        }
    };
    (storage, length as libc::socklen_t)
}

fn set_option<T>(fd: RawFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    let length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` is valid for `length` octets.
    if unsafe { libc::setsockopt(fd, level, name, std::ptr::from_ref(value).cast(), length) } < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Only for types for which every bit pattern, all zeros included, is a value.
fn get_option<T: Copy>(fd: RawFd, level: libc::c_int, name: libc::c_int) -> io::Result<(T, usize)> {
    let mut value = MaybeUninit::<T>::zeroed();
    let mut length = size_of::<T>() as libc::socklen_t;
    // SAFETY: `value` has room for `length` octets, and the kernel writes no more.
    if unsafe { libc::getsockopt(fd, level, name, value.as_mut_ptr().cast(), &raw mut length) } < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was zeroed, and `T` is one of the plain types of this file.
    Ok((unsafe { value.assume_init() }, length as usize))
}

#[cfg(test)]
mod tests;
