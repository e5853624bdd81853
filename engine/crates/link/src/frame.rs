//! What a captured frame is: an Ethernet frame behind a virtio-net header, perhaps a super-packet of many wire packets.
//!
//! Everything read from a device is checked here once; the other modules rely on the offsets of a `Layout`.

/// Length of `struct virtio_net_hdr` (virtio 1.2 section 5.1.6 without `num_buffers`), as packet(7) sockets use it.
pub const VNET_HEADER_BYTES: usize = 10;
pub const ETHERNET_HEADER_BYTES: usize = 14;
/// Where the IP header begins in a buffer.
pub const IP_OFFSET: usize = VNET_HEADER_BYTES + ETHERNET_HEADER_BYTES;
/// Longest run of headers, with the virtio-net header, of a super-packet that is split.
pub const MAX_HEADER_BYTES: usize = 256;

/// VIRTIO_NET_HDR_F_NEEDS_CSUM: the transport checksum holds only the sum of the pseudo-header.
pub const NEEDS_CHECKSUM: u8 = 1;
const GSO_NONE: u8 = 0;
const GSO_TCP_IPV4: u8 = 1;
const GSO_TCP_IPV6: u8 = 4;
/// VIRTIO_NET_HDR_GSO_UDP_L4, from include/uapi/linux/virtio_net.h.
const GSO_UDP: u8 = 5;
/// VIRTIO_NET_HDR_GSO_ECN, may be set beside a TCP type.
const GSO_ECN: u8 = 0x80;

const ETHERTYPE_IPV4: u16 = 0x0800;
const ETHERTYPE_ARP: u16 = 0x0806;
const ETHERTYPE_IPV6: u16 = 0x86dd;
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
const PROTOCOL_ICMPV6: u8 = 58;
const IPV6_HEADER_BYTES: usize = 40;

/// Checksum offsets within the TCP (RFC 9293 section 3.1) and UDP (RFC 768) headers.
const TCP_CHECKSUM_OFFSET: usize = 16;
const UDP_CHECKSUM_OFFSET: usize = 6;
const UDP_HEADER_BYTES: usize = 8;

/// The virtio-net header, in native byte order as packet(7) sockets give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VnetHeader {
    pub flags: u8,
    pub gso_type: u8,
    pub header_bytes: u16,
    pub gso_size: u16,
    pub checksum_start: u16,
    pub checksum_offset: u16,
}

impl VnetHeader {
    fn read(bytes: &[u8]) -> Self {
        let word = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
        VnetHeader {
            flags: bytes[0],
            gso_type: bytes[1],
            header_bytes: word(2),
            gso_size: word(4),
            checksum_start: word(6),
            checksum_offset: word(8),
        }
    }

    /// Writes the header to the front of `out`.
    pub fn write(self, out: &mut [u8]) {
        out[0] = self.flags;
        out[1] = self.gso_type;
        let words = [self.header_bytes, self.gso_size, self.checksum_start, self.checksum_offset];
        for (word, out) in words.into_iter().zip(out[2..VNET_HEADER_BYTES].chunks_exact_mut(2)) {
            out.copy_from_slice(&word.to_ne_bytes());
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Tcp,
    Udp,
    /// Anything else, and all but the first fragment of a datagram.
    Other,
}

impl Transport {
    /// The IP protocol number, for pseudo-headers.
    #[must_use]
    pub fn protocol(self) -> u8 {
        if self == Transport::Udp { PROTOCOL_UDP } else { PROTOCOL_TCP }
    }

    #[must_use]
    pub fn checksum_offset(self) -> usize {
        if self == Transport::Udp { UDP_CHECKSUM_OFFSET } else { TCP_CHECKSUM_OFFSET }
    }
}

/// Why a frame is not carried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    Arp,
    /// ICMPv6 types 133 to 137 (RFC 4861), unicast ones too.
    NeighbourDiscovery,
    /// To a group address, of Ethernet or IP.
    Multicast,
    /// Neither IPv4 nor IPv6.
    OtherProtocol,
    /// Cut short, or headers that contradict each other.
    Malformed,
}

/// Where things are in the buffer of a frame that is carried. Offsets count from the virtio-net header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// End of the frame.
    pub end: usize,
    pub ipv6: bool,
    /// First octet after the IP header and its extensions.
    pub transport_offset: usize,
    /// End of the IP packet: at most `end`, less when Ethernet padding follows.
    pub ip_end: usize,
    pub transport: Transport,
    /// First octet of the payload that a super-packet is split in.
    pub payload_offset: usize,
    /// Payload octets of each wire packet, 0 when the frame is one wire packet.
    pub gso_size: usize,
    /// Wire packets in the frame, at least 1.
    pub segments: u32,
    /// Where the checksum still has to be computed from and the field it belongs in, if it has to be.
    pub partial_checksum: Option<(usize, usize)>,
    /// Names the flow: addresses, protocol and ports.
    pub flow_hash: u32,
}

impl Layout {
    /// Length of one wire packet in octets: the Ethernet frame without FCS.
    #[must_use]
    pub fn wire_bytes(&self, segment: u32) -> u32 {
        if self.segments == 1 {
            return (self.end - VNET_HEADER_BYTES) as u32;
        }
        let start = self.payload_offset + segment as usize * self.gso_size;
        (self.payload_offset - VNET_HEADER_BYTES + self.gso_size.min(self.end - start)) as u32
    }
}

fn be16(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

struct Ip {
    ipv6: bool,
    protocol: u8,
    transport_offset: usize,
    end: usize,
    /// Not the first fragment: no transport header follows.
    later_fragment: bool,
    fragment: bool,
    addresses: std::ops::Range<usize>,
}

/// Reads the headers of a captured frame (virtio-net header first) and decides whether it is carried.
///
/// The virtio-net header of a frame that is one wire packet is rewritten so that it can be sent as it is.
pub fn parse(frame: &mut [u8]) -> Result<Layout, Refusal> {
    if frame.len() < IP_OFFSET {
        return Err(Refusal::Malformed);
    }
    let vnet = VnetHeader::read(frame);
    let ethernet = &frame[VNET_HEADER_BYTES..];
    let group = ethernet[0] & 1 != 0;
    let ip = match be16(ethernet, 12) {
        ETHERTYPE_IPV4 => ipv4(frame)?,
        ETHERTYPE_IPV6 => ipv6(frame)?,
        ETHERTYPE_ARP => return Err(Refusal::Arp),
        _ if group => return Err(Refusal::Multicast),
        _ => return Err(Refusal::OtherProtocol),
    };
    if ip.protocol == PROTOCOL_ICMPV6
        && ip.ipv6
        && frame.get(ip.transport_offset).is_some_and(|kind| (133..=137).contains(kind))
    {
        return Err(Refusal::NeighbourDiscovery);
    }
    if group || is_multicast(frame, &ip) {
        return Err(Refusal::Multicast);
    }
    let transport = match ip.protocol {
        PROTOCOL_TCP if !ip.later_fragment => Transport::Tcp,
        PROTOCOL_UDP if !ip.later_fragment => Transport::Udp,
        _ => Transport::Other,
    };
    let mut layout = Layout {
        end: frame.len(),
        ipv6: ip.ipv6,
        transport_offset: ip.transport_offset,
        ip_end: ip.end,
        transport,
        payload_offset: ip.transport_offset,
        gso_size: 0,
        segments: 1,
        partial_checksum: None,
        flow_hash: flow_hash(frame, &ip, transport),
    };
    if vnet.gso_type & !GSO_ECN != GSO_NONE {
        split(frame, vnet, &ip, &mut layout)?;
    } else if vnet.flags & NEEDS_CHECKSUM != 0 {
        let start = VNET_HEADER_BYTES + usize::from(vnet.checksum_start);
        let field = start + usize::from(vnet.checksum_offset);
        if start < IP_OFFSET || field + 2 > frame.len() {
            return Err(Refusal::Malformed);
        }
        layout.partial_checksum = Some((start, field));
    }
    if layout.segments == 1 {
        single_packet_header(layout.partial_checksum).write(frame);
    }
    Ok(layout)
}

/// The virtio-net header of one wire packet with this partial checksum.
#[must_use]
pub fn single_packet_header(partial_checksum: Option<(usize, usize)>) -> VnetHeader {
    let (flags, start, field) = match partial_checksum {
        Some((start, field)) => (NEEDS_CHECKSUM, start - VNET_HEADER_BYTES, field - start),
        None => (0, 0, 0),
    };
    VnetHeader {
        flags,
        gso_type: GSO_NONE,
        header_bytes: 0,
        gso_size: 0,
        checksum_start: start as u16,
        checksum_offset: field as u16,
    }
}

/// The virtio-net header of several wire packets of this layout in one super-packet.
#[must_use]
pub fn super_packet_header(layout: &Layout) -> VnetHeader {
    VnetHeader {
        flags: NEEDS_CHECKSUM,
        gso_type: match (layout.transport, layout.ipv6) {
            (Transport::Udp, _) => GSO_UDP,
            (_, false) => GSO_TCP_IPV4,
            (_, true) => GSO_TCP_IPV6,
        },
        header_bytes: (layout.payload_offset - VNET_HEADER_BYTES) as u16,
        gso_size: layout.gso_size as u16,
        checksum_start: (layout.transport_offset - VNET_HEADER_BYTES) as u16,
        checksum_offset: layout.transport.checksum_offset() as u16,
    }
}

/// Fills in how a super-packet is split.
fn split(frame: &[u8], vnet: VnetHeader, ip: &Ip, layout: &mut Layout) -> Result<(), Refusal> {
    let right_type = match layout.transport {
        Transport::Tcp => vnet.gso_type & !GSO_ECN == if ip.ipv6 { GSO_TCP_IPV6 } else { GSO_TCP_IPV4 },
        Transport::Udp => vnet.gso_type == GSO_UDP,
        Transport::Other => false,
    };
    let transport_bytes = match layout.transport {
        Transport::Tcp => usize::from(frame.get(ip.transport_offset + 12).ok_or(Refusal::Malformed)? >> 4) * 4,
        _ => UDP_HEADER_BYTES,
    };
    let long_enough = layout.transport != Transport::Tcp || transport_bytes >= 20;
    let payload_offset = ip.transport_offset + transport_bytes;
    let whole = ip.end == frame.len() && payload_offset < frame.len() && payload_offset <= MAX_HEADER_BYTES;
    if !right_type || !long_enough || !whole || ip.fragment || vnet.gso_size == 0 {
        return Err(Refusal::Malformed);
    }
    layout.payload_offset = payload_offset;
    layout.gso_size = usize::from(vnet.gso_size);
    layout.segments = (frame.len() - payload_offset).div_ceil(layout.gso_size) as u32;
    if vnet.flags & NEEDS_CHECKSUM != 0 || layout.segments > 1 {
        let field = ip.transport_offset + layout.transport.checksum_offset();
        layout.partial_checksum = Some((ip.transport_offset, field));
    }
    Ok(())
}

fn ipv4(frame: &[u8]) -> Result<Ip, Refusal> {
    let header = &frame[IP_OFFSET..];
    if header.len() < 20 || header[0] >> 4 != 4 {
        return Err(Refusal::Malformed);
    }
    let header_bytes = usize::from(header[0] & 0x0f) * 4;
    let total = usize::from(be16(header, 2));
    if header_bytes < 20 || total < header_bytes || total > header.len() {
        return Err(Refusal::Malformed);
    }
    // RFC 791 section 3.1: More Fragments and, in 13 bits, the offset.
    let fragment = be16(header, 6);
    Ok(Ip {
        ipv6: false,
        protocol: header[9],
        transport_offset: IP_OFFSET + header_bytes,
        end: IP_OFFSET + total,
        later_fragment: fragment & 0x1fff != 0,
        fragment: fragment & 0x3fff != 0,
        addresses: IP_OFFSET + 12..IP_OFFSET + 20,
    })
}

fn ipv6(frame: &[u8]) -> Result<Ip, Refusal> {
    let header = &frame[IP_OFFSET..];
    if header.len() < IPV6_HEADER_BYTES || header[0] >> 4 != 6 {
        return Err(Refusal::Malformed);
    }
    let end = IP_OFFSET + IPV6_HEADER_BYTES + usize::from(be16(header, 4));
    if end > frame.len() {
        return Err(Refusal::Malformed);
    }
    let mut ip = Ip {
        ipv6: true,
        protocol: header[6],
        transport_offset: IP_OFFSET + IPV6_HEADER_BYTES,
        end,
        later_fragment: false,
        fragment: false,
        addresses: IP_OFFSET + 8..IP_OFFSET + 40,
    };
    // Extension headers, RFC 8200 section 4: hop-by-hop, routing, fragment, destination options.
    while matches!(ip.protocol, 0 | 43 | 44 | 60) && !ip.later_fragment {
        let extension = frame.get(ip.transport_offset..end).filter(|rest| rest.len() >= 8).ok_or(Refusal::Malformed)?;
        let bytes = if ip.protocol == 44 {
            ip.fragment = be16(extension, 2) & 0xfff9 != 0;
            ip.later_fragment = be16(extension, 2) & 0xfff8 != 0;
            8
        } else {
            (usize::from(extension[1]) + 1) * 8
        };
        if bytes > extension.len() {
            return Err(Refusal::Malformed);
        }
        ip.protocol = extension[0];
        ip.transport_offset += bytes;
    }
    Ok(ip)
}

/// 224.0.0.0/4 (RFC 1112 section 4) and all above it, which no host has; ff00::/8 (RFC 4291 section 2.7).
fn is_multicast(frame: &[u8], ip: &Ip) -> bool {
    let destination = ip.addresses.start + ip.addresses.len() / 2;
    if ip.ipv6 { frame[destination] == 0xff } else { frame[destination] >= 224 }
}

/// FNV-1a over addresses, protocol and, where there are any, ports.
fn flow_hash(frame: &[u8], ip: &Ip, transport: Transport) -> u32 {
    let ports = match transport {
        Transport::Other => &[],
        _ => frame.get(ip.transport_offset..ip.transport_offset + 4).unwrap_or(&[]),
    };
    let mut hash = 0x811c_9dc5u32;
    for byte in frame[ip.addresses.clone()].iter().chain(&[ip.protocol]).chain(ports) {
        hash = (hash ^ u32::from(*byte)).wrapping_mul(0x0100_0193);
    }
    hash
}

#[cfg(test)]
#[path = "frame_tests.rs"]
pub(crate) mod tests;
