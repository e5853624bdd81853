//! Socket addresses between Rust and the kernel.

use std::io;
use std::mem;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

/// A `sockaddr_storage` that holds an IPv4 or IPv6 address, and how many of its octets are used.
#[derive(Clone, Copy)]
pub(super) struct RawAddress {
    pub storage: libc::sockaddr_storage,
    pub length: libc::socklen_t,
}

impl RawAddress {
    /// Room for the kernel to write an address into.
    pub fn empty() -> Self {
        // SAFETY: sockaddr_storage is plain old data, all zeroes is a valid value (AF_UNSPEC).
        let storage = unsafe { mem::zeroed() };
        Self { storage, length: mem::size_of::<libc::sockaddr_storage>() as libc::socklen_t }
    }

    pub fn as_ptr(&self) -> *const libc::sockaddr {
        (&raw const self.storage).cast()
    }

    pub fn as_mut_ptr(&mut self) -> *mut libc::sockaddr {
        (&raw mut self.storage).cast()
    }

    /// The address, if it is IPv4 or IPv6.
    pub fn to_socket_addr(self) -> Option<SocketAddr> {
        match i32::from(self.storage.ss_family) {
            libc::AF_INET => {
                // SAFETY: the family says that the storage holds a sockaddr_in, which is smaller than the storage.
                let raw = unsafe { *self.as_ptr().cast::<libc::sockaddr_in>() };
                let ip = Ipv4Addr::from(u32::from_be(raw.sin_addr.s_addr));
                Some(SocketAddrV4::new(ip, u16::from_be(raw.sin_port)).into())
            }
            libc::AF_INET6 => {
                // SAFETY: the family says that the storage holds a sockaddr_in6, which is smaller than the storage.
                let raw = unsafe { *self.as_ptr().cast::<libc::sockaddr_in6>() };
                let ip = Ipv6Addr::from(raw.sin6_addr.s6_addr);
                let port = u16::from_be(raw.sin6_port);
                Some(SocketAddrV6::new(ip, port, raw.sin6_flowinfo, raw.sin6_scope_id).into())
            }
            _ => None,
        }
    }
}

impl From<SocketAddr> for RawAddress {
    fn from(address: SocketAddr) -> Self {
        let mut raw = Self::empty();
        match address {
            SocketAddr::V4(v4) => {
                let value = libc::sockaddr_in {
                    sin_family: libc::AF_INET as libc::sa_family_t,
                    sin_port: v4.port().to_be(),
                    sin_addr: libc::in_addr { s_addr: u32::from(*v4.ip()).to_be() },
                    sin_zero: [0; 8],
                };
                // SAFETY: sockaddr_storage is at least as large and as aligned as sockaddr_in.
                unsafe { raw.as_mut_ptr().cast::<libc::sockaddr_in>().write(value) };
                raw.length = mem::size_of::<libc::sockaddr_in>() as libc::socklen_t;
            }
            SocketAddr::V6(v6) => {
                let value = libc::sockaddr_in6 {
                    sin6_family: libc::AF_INET6 as libc::sa_family_t,
                    sin6_port: v6.port().to_be(),
                    sin6_flowinfo: v6.flowinfo(),
                    sin6_addr: libc::in6_addr { s6_addr: v6.ip().octets() },
                    sin6_scope_id: v6.scope_id(),
                };
                // SAFETY: sockaddr_storage is at least as large and as aligned as sockaddr_in6.
                unsafe { raw.as_mut_ptr().cast::<libc::sockaddr_in6>().write(value) };
                raw.length = mem::size_of::<libc::sockaddr_in6>() as libc::socklen_t;
            }
        }
        raw
    }
}

/// The address a socket is bound to.
pub(super) fn local_address(fd: libc::c_int) -> io::Result<SocketAddr> {
    let mut raw = RawAddress::empty();
    // SAFETY: storage and length describe a writable buffer of that size.
    if unsafe { libc::getsockname(fd, raw.as_mut_ptr(), &raw mut raw.length) } < 0 {
        return Err(io::Error::last_os_error());
    }
    raw.to_socket_addr().ok_or_else(|| io::Error::from(io::ErrorKind::AddrNotAvailable))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_survive_the_round_trip() {
        for text in ["127.0.0.1:443", "10.77.0.2:8443", "[::1]:443", "[2001:db8::7]:65535"] {
            let address: SocketAddr = text.parse().unwrap();
            assert_eq!(RawAddress::from(address).to_socket_addr(), Some(address));
        }
    }

    #[test]
    fn an_unknown_family_is_no_address() {
        assert_eq!(RawAddress::empty().to_socket_addr(), None);
    }
}
