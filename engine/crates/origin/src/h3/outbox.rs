//! The UDP socket and what it did not take at once.

use std::io;
use std::net::SocketAddr;
use std::os::fd::RawFd;

use quinn_proto::Transmit;
use trifecta_wire::quic::ecn;
use trifecta_wire::udp::{Destination, Ecn, ReceiveBatch, Received, UdpCounters, UdpOptions, UdpSocket};

/// A socket with room for the one train of datagrams that it refused.
pub(super) struct Outbox {
    socket: UdpSocket,
    scratch: Vec<u8>,
    blocked: Vec<u8>,
    blocked_segment_bytes: usize,
    blocked_destination: Destination,
    blocked_ecn: Ecn,
}

impl Outbox {
    pub fn bind(address: SocketAddr, reuse_port: bool, options: &UdpOptions) -> io::Result<Self> {
        let socket = UdpSocket::bind(address, reuse_port, options)?;
        Ok(Self {
            socket,
            scratch: Vec::with_capacity(65_536),
            blocked: Vec::new(),
            blocked_segment_bytes: 0,
            blocked_destination: Destination::Peer,
            blocked_ecn: Ecn::NotCapable,
        })
    }

    pub fn fd(&self) -> RawFd {
        self.socket.raw_fd()
    }

    pub fn local_address(&self) -> SocketAddr {
        self.socket.local_address()
    }

    pub fn counters(&self) -> UdpCounters {
        self.socket.counters()
    }

    pub fn kernel_drops(&self) -> u64 {
        self.socket.kernel_drops().map_or(0, u64::from)
    }

    /// A buffer for packets, to be given back.
    pub fn take_scratch(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.scratch)
    }

    pub fn return_scratch(&mut self, scratch: Vec<u8>) {
        if scratch.capacity() > self.scratch.capacity() {
            self.scratch = scratch;
        }
    }

    /// Whether datagrams wait for the socket; nothing else may be sent until they are gone.
    pub fn is_blocked(&self) -> bool {
        !self.blocked.is_empty()
    }

    pub fn receive(&mut self, batch: &mut ReceiveBatch, on_message: impl FnMut(Received)) -> io::Result<usize> {
        self.socket.receive(batch, on_message)
    }

    /// Sends datagrams, or keeps them while the socket is full.
    pub fn send(&mut self, transmit: &Transmit, packets: &[u8]) -> io::Result<()> {
        debug_assert!(!self.is_blocked());
        let destination = Destination::Address { to: transmit.destination, from: transmit.src_ip };
        let segment_bytes = transmit.segment_size.unwrap_or(transmit.size);
        let ecn = ecn::to_socket(transmit.ecn);
        if !self.socket.send(destination, packets, segment_bytes, ecn)? {
            self.blocked.extend_from_slice(packets);
            self.blocked_segment_bytes = segment_bytes;
            self.blocked_destination = destination;
            self.blocked_ecn = ecn;
        }
        Ok(())
    }

    /// Sends what was kept.
    pub fn retry(&mut self) -> io::Result<()> {
        if self.is_blocked() {
            let sent =
                self.socket.send(self.blocked_destination, &self.blocked, self.blocked_segment_bytes, self.blocked_ecn);
            if !matches!(sent, Ok(false)) {
                self.blocked.clear();
            }
            sent?;
        }
        Ok(())
    }
}
