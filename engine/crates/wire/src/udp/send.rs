//! Sending datagrams, many in one call.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ptr;

use super::address::RawAddress;
use super::control::{ControlBuffer, ControlWriter};
use super::{Ecn, MAX_SEGMENTS, UdpSocket};

/// Where a send goes.
#[derive(Clone, Copy, Debug)]
pub enum Destination {
    /// To the peer the socket is connected to.
    Peer,
    /// To this address, from this local one if it is known (needed on a socket bound to the wildcard address).
    Address {
        /// The remote address.
        to: SocketAddr,
        /// The local address.
        from: Option<IpAddr>,
    },
}

impl UdpSocket {
    /// Sends `payload` as datagrams of `segment_bytes` (the last may be shorter), in one system call where possible.
    ///
    /// `Ok(false)`: the send buffer is full, nothing was sent; try again when the socket is writable. Datagrams that the
    /// local host refuses for their size or for want of a route count as sent and lost ([`super::UdpCounters`]), because
    /// a path may do the same at any moment and QUIC recovers. Errors: `ConnectionRefused` from ICMP on a connected
    /// socket, or any other of sendmsg(2).
    pub fn send(
        &mut self,
        destination: Destination,
        payload: &[u8],
        segment_bytes: usize,
        ecn: Ecn,
    ) -> io::Result<bool> {
        if payload.is_empty() {
            return Ok(true);
        }
        let segment_bytes = segment_bytes.max(1);
        if payload.len() <= segment_bytes {
            return self.send_one(destination, payload, None, ecn);
        }
        debug_assert!(payload.len().div_ceil(segment_bytes) <= MAX_SEGMENTS);
        if self.offload {
            match self.send_one(destination, payload, u16::try_from(segment_bytes).ok(), ecn) {
                Err(error) if error.raw_os_error() == Some(libc::EIO) => {
                    // The device cannot compute checksums of segments (udp(7)): it is counted, and no longer asked for.
                    self.counters.offload_failures += 1;
                    self.offload = false;
                }
                other => return other,
            }
        }
        for (index, datagram) in payload.chunks(segment_bytes).enumerate() {
            if !self.send_one(destination, datagram, None, ecn)? {
                // Part of the train is out. What did not fit is lost like in any full queue; reporting "nothing sent"
                // would send the first part twice.
                self.counters.refused_sends += u64::from(index > 0);
                return Ok(index > 0);
            }
        }
        Ok(true)
    }

    fn send_one(
        &mut self,
        destination: Destination,
        payload: &[u8],
        segment_bytes: Option<u16>,
        ecn: Ecn,
    ) -> io::Result<bool> {
        let mut control = ControlBuffer::new();
        let mut writer = ControlWriter::new(&mut control);
        if let Some(bytes) = segment_bytes {
            writer.segment_bytes(bytes);
        }
        if self.ecn && ecn != Ecn::NotCapable {
            writer.ecn(ecn, self.ipv6);
        }
        let to = match destination {
            Destination::Peer => None,
            Destination::Address { to, from } => {
                if let Some(source) = from.filter(|_| self.names_source) {
                    writer.source(source);
                }
                (self.peer.is_none()).then(|| RawAddress::from(to))
            }
        };
        let control_bytes = writer.len();
        let sent = if to.is_none() && control_bytes == 0 {
            // SAFETY: `payload` is readable for its length.
            unsafe { libc::send(self.raw_fd(), payload.as_ptr().cast(), payload.len(), libc::MSG_DONTWAIT) }
        } else {
            let mut vector = libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
            // SAFETY: msghdr is plain old data; all zeroes is a valid empty message.
            let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
            header.msg_iov = &raw mut vector;
            header.msg_iovlen = 1;
            if let Some(address) = &to {
                header.msg_name = address.as_ptr().cast_mut().cast();
                header.msg_namelen = address.length;
            }
            header.msg_control = if control_bytes == 0 { ptr::null_mut() } else { control.as_mut_ptr() };
            header.msg_controllen = control_bytes as _;
            // SAFETY: every pointer in `header` refers to a local or to `payload`, alive until the call returns, and
            // sendmsg does not write through them.
            unsafe { libc::sendmsg(self.raw_fd(), &raw const header, libc::MSG_DONTWAIT) }
        };
        let datagrams = segment_bytes.map_or(1, |bytes| payload.len().div_ceil(usize::from(bytes)) as u64);
        self.counters.send_calls += 1;
        if sent >= 0 {
            self.counters.datagrams_out += datagrams;
            self.counters.bytes_out += payload.len() as u64;
            return Ok(true);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EAGAIN | libc::ENOBUFS | libc::EINTR) => Ok(false),
            Some(libc::EMSGSIZE) => {
                self.counters.too_large += datagrams;
                Ok(true)
            }
            // An unconnected socket also hears of other peers' closed ports here, depending on the error queue.
            Some(libc::ECONNREFUSED) if self.peer.is_none() => {
                self.counters.refused_sends += 1;
                Ok(true)
            }
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::EPERM | libc::EINVAL) if self.peer.is_none() => {
                self.counters.refused_sends += 1;
                Ok(true)
            }
            _ => Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ReceiveBatch, Received, UdpOptions, segments_per_send};
    use super::*;

    fn wait_readable(socket: &UdpSocket) {
        let mut poll = libc::pollfd { fd: socket.raw_fd(), events: libc::POLLIN, revents: 0 };
        // SAFETY: one valid pollfd.
        let ready = unsafe { libc::poll(&raw mut poll, 1, 5_000) };
        assert_eq!(ready, 1, "nothing arrived on loopback");
    }

    fn receive_all(socket: &mut UdpSocket, datagrams: usize) -> Vec<(Vec<u8>, Ecn, Option<IpAddr>, SocketAddr)> {
        let mut batch = ReceiveBatch::new(4);
        let mut all = Vec::new();
        while all.len() < datagrams {
            wait_readable(socket);
            socket
                .receive(&mut batch, |mut message: Received| {
                    while let Some(datagram) = message.next_datagram() {
                        all.push((datagram.to_vec(), message.ecn, message.to, message.from));
                    }
                })
                .unwrap();
        }
        all
    }

    fn pair(options: &UdpOptions, wildcard: &str, loopback: &str) -> (UdpSocket, UdpSocket) {
        let server = UdpSocket::bind(wildcard.parse().unwrap(), false, options).unwrap();
        let address = SocketAddr::new(loopback.parse().unwrap(), server.local_address().port());
        let client = UdpSocket::connect(address, options).unwrap();
        (server, client)
    }

    #[test]
    fn a_train_arrives_datagram_by_datagram() {
        for (wildcard, loopback) in [("0.0.0.0:0", "127.0.0.1"), ("[::]:0", "::1")] {
            for offload in [true, false] {
                let options = UdpOptions { offload, ecn: true, ..UdpOptions::default() };
                let (mut server, mut client) = pair(&options, wildcard, loopback);
                let payload: Vec<u8> = (0..1200 * 3 + 77).map(|i| (i % 251) as u8).collect();
                assert!(client.send(Destination::Peer, &payload, 1200, Ecn::Capable0).unwrap());
                let got = receive_all(&mut server, 4);
                let want: Vec<Vec<u8>> = payload.chunks(1200).map(<[u8]>::to_vec).collect();
                assert_eq!(got.iter().map(|one| one.0.clone()).collect::<Vec<_>>(), want);
                let local: IpAddr = loopback.parse().unwrap();
                assert!(got.iter().all(|one| one.1 == Ecn::Capable0 && one.2 == Some(local)));
                assert!(got.iter().all(|one| one.3 == client.local_address()));
                assert_eq!(server.counters().datagrams_in, 4);
                assert_eq!(client.counters().datagrams_out, 4);
                assert_eq!(client.counters().send_calls, if offload { 1 } else { 4 });
                // And back, from the address that was asked.
                let destination = Destination::Address { to: client.local_address(), from: Some(local) };
                assert!(server.send(destination, b"answer", 1200, Ecn::NotCapable).unwrap());
                let got = receive_all(&mut client, 1);
                assert_eq!((got[0].0.as_slice(), got[0].1), (b"answer".as_slice(), Ecn::NotCapable));
            }
        }
    }

    #[test]
    fn a_closed_port_is_connection_refused() {
        let address =
            UdpSocket::bind("127.0.0.1:0".parse().unwrap(), false, &UdpOptions::default()).unwrap().local_address();
        let mut client = UdpSocket::connect(address, &UdpOptions::default()).unwrap();
        client.send(Destination::Peer, b"anyone there?", 1200, Ecn::NotCapable).unwrap();
        wait_readable(&client);
        let mut batch = ReceiveBatch::new(1);
        let error = client.receive(&mut batch, |_| panic!("nobody is there")).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }

    #[test]
    fn a_full_receive_buffer_counts_drops() {
        let options = UdpOptions { receive_buffer_bytes: 4096, ..UdpOptions::default() };
        let (server, mut client) = pair(&options, "127.0.0.1:0", "127.0.0.1");
        assert!(server.receive_buffer_bytes() < 64_000);
        assert_eq!(server.kernel_drops().unwrap(), 0);
        for _ in 0..100 {
            client.send(Destination::Peer, &[0; 1200], 1200, Ecn::NotCapable).unwrap();
        }
        assert!(server.kernel_drops().unwrap() > 50, "{}", server.kernel_drops().unwrap());
    }

    #[test]
    fn buffers_are_used_again_and_kept_while_in_use() {
        let (mut server, mut client) = pair(&UdpOptions::default(), "127.0.0.1:0", "127.0.0.1");
        let mut batch = ReceiveBatch::new(1);
        let mut seen = Vec::new();
        let mut kept = Vec::new();
        for round in 0..4_u8 {
            client.send(Destination::Peer, &[round; 100], 1200, Ecn::NotCapable).unwrap();
            wait_readable(&server);
            server
                .receive(&mut batch, |message| {
                    seen.push(message.payload.as_ptr() as usize);
                    if round == 1 {
                        kept.push(message.payload);
                    }
                })
                .unwrap();
        }
        assert_eq!(seen[0], seen[1]);
        assert_ne!(seen[1], seen[2], "memory that is still in use must not be written again");
        assert_eq!(kept[0].as_ref(), [1; 100]);
        assert_eq!(seen[2], seen[3]);
    }

    #[test]
    fn segments_stay_within_the_kernel_limits() {
        assert_eq!(segments_per_send(1452), 45);
        assert_eq!(segments_per_send(1200), 54);
        assert_eq!(segments_per_send(500), MAX_SEGMENTS);
        assert_eq!(segments_per_send(65_507), 1);
        assert_eq!(segments_per_send(0), MAX_SEGMENTS);
    }
}
