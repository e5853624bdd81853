//! One QUIC connection: what came over it is answered, and what quiche has to send leaves in trains.

use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::time::Instant;

use quiche::h3;
use quinn_udp::{Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::h3::{Http3, Shared};

pub struct Peer {
    pub quic: quiche::Connection,
    /// By which packets find it.
    pub names: [Vec<u8>; 2],
    /// When it is to be looked at, as the server's list has it.
    pub due: Option<Instant>,
    http: Option<Http3>,
    held: Option<(Train, Vec<u8>)>,
}

/// Packets of one size, but the last, which leave together.
#[derive(Clone, Copy)]
struct Train {
    octets: usize,
    packet: usize,
    to: SocketAddr,
}

/// Why a connection sends no more for now.
pub enum Pause {
    Done,
    Until(Instant),
    Blocked,
}

impl Peer {
    pub fn new(quic: quiche::Connection, names: [Vec<u8>; 2]) -> Self {
        Self { quic, names, due: None, http: None, held: None }
    }

    /// Answers what has come.
    pub fn read(&mut self, config: &h3::Config, shared: &mut Shared) {
        if self.http.is_none() && self.quic.is_established() {
            self.http = Http3::new(&mut self.quic, config).ok(); // or the connection is over
        }
        if let Some(http) = &mut self.http {
            http.read(&mut self.quic, shared);
            http.write(&mut self.quic, shared);
        }
    }

    /// Hands quiche more of the responses. Whether there was room for any.
    pub fn write(&mut self, shared: &mut Shared) -> bool {
        self.http.as_mut().is_some_and(|http| http.write(&mut self.quic, shared))
    }

    /// Drops what waits for the socket.
    pub fn forget(&mut self) {
        self.held = None;
    }

    /// Sends all that may be sent now.
    pub fn send(&mut self, socket: &UdpSocket, state: &UdpSocketState, room: &mut [u8]) -> Pause {
        loop {
            let (train, held) = match self.held.take() {
                Some((train, octets)) => (train, Some(octets)),
                None => match self.train(state.max_gso_segments(), room) {
                    Ok(train) => (train, None),
                    Err(pause) => return pause,
                },
            };
            let octets = held.as_deref().unwrap_or(&room[..train.octets]);
            if train.leave(octets, socket, state).is_err() {
                self.held = Some((train, octets.to_vec()));
                return Pause::Blocked;
            }
        }
    }

    /// The next packets: as many as may leave at once.
    fn train(&mut self, most: usize, room: &mut [u8]) -> Result<Train, Pause> {
        let now = Instant::now();
        let first = self.quic.get_next_release_time();
        if let Some(at) = first.and_then(|release| release.time(now)) {
            return Err(Pause::Until(at));
        }
        let packet = self.quic.max_send_udp_payload_size();
        let fits = most.min(room.len() / packet);
        // BBR says of each packet when it may leave, the others how many may at a time.
        let paced = self.quic.gcongestion_enabled() == Some(true);
        let fits = if paced { fits } else { fits.min(self.quic.send_quantum() / packet).max(1) };
        let (mut octets, mut to) = (0, None);
        for _ in 0..fits {
            let Ok((written, info)) = self.quic.send(&mut room[octets..octets + packet]) else { break };
            octets += written;
            to.get_or_insert(info.to);
            let next = self.quic.get_next_release_time().zip(first);
            let together = next.is_none_or(|(next, first)| next.can_burst() || next.time_eq(&first, now));
            if written < packet || paced && !together {
                break;
            }
        }
        to.map(|to| Train { octets, packet, to }).ok_or(Pause::Done)
    }
}

impl Train {
    /// An error where the socket is full. What is refused for another reason is lost, as on any path.
    fn leave(&self, octets: &[u8], socket: &UdpSocket, state: &UdpSocketState) -> io::Result<()> {
        let transmit = Transmit {
            destination: self.to,
            ecn: None,
            contents: octets,
            segment_size: (self.octets > self.packet).then_some(self.packet),
            src_ip: None,
        };
        match socket.try_io(Interest::WRITABLE, || state.try_send(socket.into(), &transmit)) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }
}
