//! Datagrams in and out of the socket, timers, and what is left to do when a connection ends.

use std::io;
use std::time::Instant;

use bytes::Bytes;
use quinn_proto::{DatagramEvent, Transmit, VarInt};
use trifecta_wire::clock::now_ns;
use trifecta_wire::h3::Code;
use trifecta_wire::quic::ecn;
use trifecta_wire::udp::{self, Destination, Ecn};

use super::requests::code;
use super::{H3Session, H3Shared};
use crate::caller::Caller;
use crate::transport_stats::QuicInfo;
use crate::{NEVER_NS, State};
use trifecta_wire::ErrorClass;

/// Packets that the socket did not take, because its send buffer was full.
#[derive(Default)]
pub(super) struct BlockedSend {
    packets: Vec<u8>,
    segment_bytes: usize,
    ecn: Ecn,
    since_ns: u64,
}

/// How long after a refused send it is tried again.
const SEND_RETRY_NS: u64 = 200_000;

impl BlockedSend {
    pub fn is_some(&self) -> bool {
        !self.packets.is_empty()
    }

    /// When to try again.
    pub fn retry_ns(&self) -> u64 {
        if self.is_some() { self.since_ns + SEND_RETRY_NS } else { NEVER_NS }
    }
}

impl H3Session {
    /// Takes what has arrived, in one call. Returns whether there may be more, and when it was received.
    pub(super) fn receive(&mut self, shared: &mut H3Shared) -> io::Result<(bool, u64)> {
        let H3Shared { batch, packets, clock, peer, .. } = shared;
        let Self { socket, endpoint, connection, .. } = self;
        let capacity = batch.capacity();
        let mut received: Option<(u64, Instant)> = None;
        let messages = socket.receive(batch, |mut message| {
            let (_, now) = *received.get_or_insert_with(|| {
                let time_ns = now_ns();
                (time_ns, clock.instant(time_ns))
            });
            let codepoint = ecn::from_socket(message.ecn);
            while let Some(datagram) = message.next_datagram() {
                packets.clear();
                // Any other event is an answer to what is not of this connection; a client owes none.
                if let Some(DatagramEvent::ConnectionEvent(_, event)) =
                    endpoint.handle(now, *peer, None, codepoint, datagram, packets)
                {
                    connection.handle_event(event);
                }
            }
        })?;
        let time_ns = received.map_or_else(now_ns, |(time_ns, _)| time_ns);
        if received.is_some() && !self.secured() {
            self.arrivals.note(self.handshake.connect_start_ns, time_ns);
        }
        Ok((messages == capacity, time_ns))
    }

    /// Sends all that congestion control, pacing and the socket allow, and notes which requests are out.
    pub(super) fn flush(&mut self, shared: &mut H3Shared, caller: &mut impl Caller, now_ns: u64) {
        if let Err(error) = self.send_packets(shared, now_ns) {
            let opening = !self.secured();
            self.fail(caller, ErrorClass::from_io(&error, opening));
            return;
        }
        if !self.unsent.is_empty() {
            let sent_ns = trifecta_wire::clock::now_ns();
            for id in self.unsent.drain(..) {
                if let Some(flight) = self.flights.get_mut(VarInt::from(id).into_inner()) {
                    flight.exchange.request_sent_ns = sent_ns;
                }
            }
        }
    }

    fn send_packets(&mut self, shared: &mut H3Shared, now_ns: u64) -> io::Result<()> {
        if self.blocked.is_some() {
            let BlockedSend { packets, segment_bytes, ecn, since_ns } = &mut self.blocked;
            if !self.socket.send(Destination::Peer, packets, *segment_bytes, *ecn)? {
                *since_ns = now_ns;
                return Ok(());
            }
            packets.clear();
        }
        let now = shared.clock.instant(now_ns);
        loop {
            let segments = udp::segments_per_send(usize::from(self.connection.current_mtu()));
            shared.packets.clear();
            let Some(transmit) = self.connection.poll_transmit(now, segments, &mut shared.packets) else {
                return Ok(());
            };
            let Transmit { size, segment_size, ecn, .. } = transmit;
            let ecn = ecn::to_socket(ecn);
            let segment_bytes = segment_size.unwrap_or(size);
            if !self.socket.send(Destination::Peer, &shared.packets[..size], segment_bytes, ecn)? {
                self.blocked.packets.extend_from_slice(&shared.packets[..size]);
                self.blocked.segment_bytes = segment_bytes;
                self.blocked.ecn = ecn;
                self.blocked.since_ns = now_ns;
                return Ok(());
            }
        }
    }

    /// Asks quinn-proto when its next timer is due.
    pub(super) fn refresh_timer(&mut self, shared: &H3Shared) {
        self.protocol_timer_ns =
            self.connection.poll_timeout().map_or(NEVER_NS, |instant| shared.clock.time_ns(instant));
    }

    /// Tells the peer that the connection ends, once; nothing more is heard of it.
    pub(super) fn abandon(&mut self, shared: &mut H3Shared, reason: Code) {
        let now = now_ns();
        self.connection.close(shared.clock.instant(now), code(reason), Bytes::new());
        // Errors are of no interest any more; what is counted is what happened to the requests.
        let _ = self.send_packets(shared, now);
    }

    /// Leaves the connection's statistics with the caller.
    pub(super) fn retire(&mut self, caller: &mut impl Caller, failed: bool) {
        let stats = self.connection.stats();
        let path = stats.path;
        let whole_ns = |duration: std::time::Duration| u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        if self.secured() {
            caller.totals().quic.add(&QuicInfo {
                min_rtt_ns: whole_ns(path.min_rtt),
                srtt_ns: whole_ns(path.rtt),
                lost_packets: path.lost_packets,
                sent_packets: path.sent_packets,
                // Without a pacer `path.cwnd` is not the window.
                congestion_window_bytes: self.connection.congestion_state().metrics().congestion_window,
                congestion_events: path.congestion_events,
                mtu_bytes: u64::from(path.current_mtu),
            });
        }
        let counters = self.socket.counters();
        caller.totals().wire_bytes_out += counters.bytes_out;
        caller.totals().wire_bytes_in += counters.bytes_in;
        let dropped = self.socket.kernel_drops().map_or(0, u64::from);
        caller.totals().udp_receive_errors += dropped + counters.truncated;
        self.state = State::Closed { failed };
    }
}
