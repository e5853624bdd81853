//! Ancillary data (cmsg(3)) of datagrams: segment size, ECN, local address.

use std::mem;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::Ecn;

/// `UDP_SEGMENT` and `UDP_GRO` of linux/udp.h, not in every libc version.
pub(super) const UDP_SEGMENT: libc::c_int = 103;
pub(super) const UDP_GRO: libc::c_int = 104;

/// Octets of ancillary data for one message: enough for a GRO size, a traffic class and a packet info of either family.
pub(super) const CONTROL_BYTES: usize = 128;

/// A buffer aligned as `cmsghdr` must be.
#[derive(Clone, Copy)]
#[repr(C, align(8))]
pub(super) struct ControlBuffer(pub [u8; CONTROL_BYTES]);

impl ControlBuffer {
    pub fn new() -> Self {
        Self([0; CONTROL_BYTES])
    }

    pub fn as_mut_ptr(&mut self) -> *mut libc::c_void {
        self.0.as_mut_ptr().cast()
    }
}

/// Appends control messages to a buffer.
pub(super) struct ControlWriter<'a> {
    buffer: &'a mut ControlBuffer,
    used: usize,
}

impl<'a> ControlWriter<'a> {
    pub fn new(buffer: &'a mut ControlBuffer) -> Self {
        Self { buffer, used: 0 }
    }

    /// Appends one message with a plain-data value.
    fn push<T: Copy>(&mut self, level: libc::c_int, kind: libc::c_int, value: T) {
        let value_bytes = mem::size_of::<T>() as libc::c_uint;
        // SAFETY: CMSG_SPACE and CMSG_LEN only compute sizes.
        let (space, length) = unsafe { (libc::CMSG_SPACE(value_bytes) as usize, libc::CMSG_LEN(value_bytes) as usize) };
        assert!(self.used + space <= CONTROL_BYTES, "control buffer is sized for every message we send");
        // SAFETY: the buffer is aligned for cmsghdr, `used` is a multiple of that alignment (CMSG_SPACE), and the assertion
        // above proves that header, padding and value lie inside.
        unsafe {
            let header = self.buffer.0.as_mut_ptr().add(self.used).cast::<libc::cmsghdr>();
            (*header).cmsg_level = level;
            (*header).cmsg_type = kind;
            (*header).cmsg_len = length as _;
            libc::CMSG_DATA(header).cast::<T>().write_unaligned(value);
        }
        self.used += space;
    }

    /// Asks the kernel to cut the payload into datagrams of this size.
    pub fn segment_bytes(&mut self, bytes: u16) {
        self.push(libc::SOL_UDP, UDP_SEGMENT, bytes);
    }

    /// Sets the ECN bits.
    pub fn ecn(&mut self, ecn: Ecn, ipv6: bool) {
        if ipv6 {
            self.push(libc::IPPROTO_IPV6, libc::IPV6_TCLASS, libc::c_int::from(ecn as u8));
        } else {
            self.push(libc::IPPROTO_IP, libc::IP_TOS, libc::c_int::from(ecn as u8));
        }
    }

    /// Sends from this local address.
    pub fn source(&mut self, source: IpAddr) {
        match source {
            IpAddr::V4(ip) => {
                let info = libc::in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr { s_addr: u32::from(ip).to_be() },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                self.push(libc::IPPROTO_IP, libc::IP_PKTINFO, info);
            }
            IpAddr::V6(ip) => {
                let info = libc::in6_pktinfo { ipi6_ifindex: 0, ipi6_addr: libc::in6_addr { s6_addr: ip.octets() } };
                self.push(libc::IPPROTO_IPV6, libc::IPV6_PKTINFO, info);
            }
        }
    }

    /// Octets used so far, for `msg_controllen`.
    pub fn len(&self) -> usize {
        self.used
    }
}

/// What the control messages of one received message say.
#[derive(Debug, Default)]
pub(super) struct ReceivedControl {
    pub segment_bytes: Option<usize>,
    pub ecn: Ecn,
    pub local_ip: Option<IpAddr>,
}

/// Reads the control messages that the kernel wrote for `header`.
pub(super) fn parse(header: &libc::msghdr) -> ReceivedControl {
    let mut found = ReceivedControl::default();
    // SAFETY: the kernel wrote msg_controllen octets of well-formed control messages; CMSG_FIRSTHDR and CMSG_NXTHDR stay
    // inside, and each value is read unaligned with the type the kernel documents for its level and type.
    unsafe {
        let mut message = libc::CMSG_FIRSTHDR(header);
        while !message.is_null() {
            let data = libc::CMSG_DATA(message);
            match ((*message).cmsg_level, (*message).cmsg_type) {
                (libc::SOL_UDP, UDP_GRO) => {
                    found.segment_bytes = usize::try_from(data.cast::<libc::c_int>().read_unaligned()).ok();
                }
                (libc::IPPROTO_IP, libc::IP_TOS) => found.ecn = Ecn::from_traffic_class(*data),
                (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                    found.ecn = Ecn::from_traffic_class(data.cast::<libc::c_int>().read_unaligned() as u8);
                }
                (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                    let info = data.cast::<libc::in_pktinfo>().read_unaligned();
                    found.local_ip = Some(Ipv4Addr::from(u32::from_be(info.ipi_addr.s_addr)).into());
                }
                (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                    let info = data.cast::<libc::in6_pktinfo>().read_unaligned();
                    found.local_ip = Some(Ipv6Addr::from(info.ipi6_addr.s6_addr).into());
                }
                _ => {}
            }
            message = libc::CMSG_NXTHDR(header, message);
        }
    }
    found
}
