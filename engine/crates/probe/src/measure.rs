//! The near end: sends probes, times the replies, and asks what the far end counted.

use std::io;
use std::net::SocketAddr;

use trifecta_wire::clock::{now_ns, realtime_offset};
use trifecta_wire::process;

use crate::config::Measure;
use crate::packet::{HEADER_BYTES, Kind, Packet};
use crate::sequence::Sequence;
use crate::socket::Socket;
use crate::summary::{Ended, MeasureSummary, Quantiles};

/// How long after the slowest round trip a question is asked again.
const ASK_AGAIN_NS: u64 = 100_000_000;
/// Packets of one size that are sent before it counts as too large: so many at least, and more where the path loses packets.
const SIZE_TRIES: u64 = 5;
/// However much is lost.
const MOST_SIZE_TRIES: u64 = 64;
/// How likely all packets of a size that passes may be lost.
const FALSE_SIZE: f64 = 1e-6;
/// For the count of the far end at most, where its timeout is shorter than the tries that the loss of the path asks for.
const REPORT_NS: u64 = 10_000_000_000;
/// For the largest payload at most; what is not known by then is not told.
const SIZES_NS: u64 = 30_000_000_000;
/// RFC 1122 section 3.3.2 and RFC 8200 section 5: every path takes 576 (IPv4) or 1280 octets (IPv6).
const SMALLEST_PAYLOAD_BYTES: usize = 548;
const ETHERNET_HEADER_BYTES: usize = 14;

/// One probe that came back. Times are on CLOCK_MONOTONIC in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoundTrip {
    pub sequence: u64,
    /// Read immediately before the probe was given to the kernel.
    pub sent_ns: u64,
    /// When the reflector's kernel received it.
    pub reflected_in_ns: u64,
    /// Read immediately before the reply was given to the kernel.
    pub reflected_out_ns: u64,
    /// When this kernel received the reply.
    pub received_ns: u64,
}

impl RoundTrip {
    /// Time on the way, without the time in the reflector: differences on one clock each, whatever the other one says.
    #[must_use]
    pub fn rtt_ns(&self) -> u64 {
        let away = self.received_ns.saturating_sub(self.sent_ns);
        away.saturating_sub(self.reflected_out_ns.saturating_sub(self.reflected_in_ns))
    }

    #[must_use]
    pub fn forward_ns(&self) -> u64 {
        self.reflected_in_ns.saturating_sub(self.sent_ns)
    }

    #[must_use]
    pub fn backward_ns(&self) -> u64 {
        self.received_ns.saturating_sub(self.reflected_out_ns)
    }
}

/// A running measurement.
pub struct Measurement {
    config: Measure,
    socket: Socket,
    session: u64,
    watch_stdin: bool,
    buffer: Vec<u8>,
    sent: u64,
    send_errors: u64,
    replies: Sequence,
    pub round_trips: Vec<RoundTrip>,
}

impl Measurement {
    /// Opens the socket.
    ///
    /// # Errors
    /// As socket(2) and connect(2).
    pub fn new(config: Measure) -> io::Result<Self> {
        let socket = Socket::connect(SocketAddr::new(config.address, config.port))?;
        let session = now_ns() ^ u64::from(std::process::id()) << 40;
        let round_trips = Vec::with_capacity(config.packets as usize);
        Ok(Measurement {
            config,
            socket,
            session,
            watch_stdin: process::stdin_is_watched(),
            buffer: vec![0; 65_536],
            sent: 0,
            send_errors: 0,
            replies: Sequence::default(),
            round_trips,
        })
    }

    fn asked_to_stop(&self) -> bool {
        process::stop_requested() || self.watch_stdin && process::stdin_closed()
    }

    /// Measures everything that is asked for.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn run(&mut self) -> io::Result<MeasureSummary> {
        self.probe()?;
        let train_bytes = self.socket.device_payload_bytes()?.min(1_472);
        if self.config.train_packets > 0 {
            self.send_train(train_bytes);
        }
        let report = if self.asked_to_stop() { None } else { self.report()? };
        let largest = if self.config.largest && !self.asked_to_stop() { self.largest_payload()? } else { None };
        Ok(self.summary(report, train_bytes, largest))
    }

    /// Sends the probes at their times, which do not depend on when replies come, and takes the replies.
    fn probe(&mut self) -> io::Result<()> {
        let start_ns = now_ns();
        let count = u64::from(self.config.packets);
        let mut probe = vec![0u8; self.config.payload_bytes];
        while self.sent < count && !self.asked_to_stop() {
            self.take_replies_until(start_ns + self.sent * self.config.interval_ns, u64::MAX)?;
            let mut packet = Packet::new(Kind::Probe, self.session, self.sent);
            packet.first = now_ns();
            packet.write(&mut probe);
            if self.socket.send(&probe).is_err() {
                self.send_errors += 1;
            }
            self.sent += 1;
        }
        self.take_replies_until(now_ns() + self.config.timeout_ns, count)
    }

    /// Takes replies until a time, or until this many have come.
    fn take_replies_until(&mut self, until_ns: u64, enough: u64) -> io::Result<()> {
        loop {
            while let Some((packet, received_ns)) = self.receive()? {
                if packet.kind == Kind::ProbeReply && packet.sequence < self.sent && self.replies.see(packet.sequence) {
                    self.round_trips.push(RoundTrip {
                        sequence: packet.sequence,
                        sent_ns: packet.first,
                        reflected_in_ns: packet.second,
                        reflected_out_ns: packet.third,
                        received_ns,
                    });
                }
            }
            let now = now_ns();
            if now >= until_ns || self.replies.distinct() >= enough || self.asked_to_stop() {
                return Ok(());
            }
            self.socket.wait((until_ns - now).min(ASK_AGAIN_NS), self.watch_stdin);
        }
    }

    fn receive(&mut self) -> io::Result<Option<(Packet, u64)>> {
        while let Some(arrival) = self.socket.receive(&mut self.buffer)? {
            if let Some(packet) = Packet::read(&self.buffer[..arrival.length])
                && packet.session == self.session
            {
                return Ok(Some((packet, arrival.received_ns)));
            }
        }
        Ok(None)
    }

    /// Full-size packets, one right after the other: what arrives is spaced by the slowest link on the way.
    fn send_train(&mut self, payload_bytes: usize) {
        let mut bytes = vec![0u8; payload_bytes];
        for sequence in 0..u64::from(self.config.train_packets) {
            Packet::new(Kind::Train, self.session, sequence).write(&mut bytes);
            if self.socket.send(&bytes).is_err() {
                self.send_errors += 1;
            }
        }
    }

    /// What the far end counted: asked for until the timeout, and as often as a path that loses packets needs.
    fn report(&mut self) -> io::Result<Option<Packet>> {
        let needed_ns = if self.replies.distinct() == 0 { 0 } else { self.tries() * self.patience_ns() };
        let deadline_ns = now_ns() + self.config.timeout_ns.max(needed_ns.min(REPORT_NS));
        self.ask(Kind::Report, HEADER_BYTES, 0, u64::MAX, deadline_ns)
    }

    /// How often something is sent before it counts as not coming through.
    fn tries(&self) -> u64 {
        size_tries(1.0 - self.replies.distinct() as f64 / self.sent.max(1) as f64)
    }

    /// Asks until there is an answer to this kind and number, `tries` times and until `deadline_ns` at most.
    fn ask(
        &mut self,
        kind: Kind,
        length: usize,
        sequence: u64,
        tries: u64,
        deadline_ns: u64,
    ) -> io::Result<Option<Packet>> {
        let answer = if kind == Kind::Size { Kind::SizeReply } else { Kind::ReportReply };
        let mut bytes = vec![0u8; length];
        Packet::new(kind, self.session, sequence).write(&mut bytes);
        let patience_ns = self.patience_ns();
        for _ in 0..tries {
            if self.socket.send(&bytes).is_err_and(|error| error.raw_os_error() == Some(libc::EMSGSIZE)) {
                return Ok(None);
            }
            let again_ns = (now_ns() + patience_ns).min(deadline_ns);
            while now_ns() < again_ns && !self.asked_to_stop() {
                if let Some((packet, _)) = self.receive()? {
                    if packet.kind == answer && packet.sequence == sequence {
                        return Ok(Some(packet));
                    }
                    continue;
                }
                self.socket.wait(again_ns.saturating_sub(now_ns()), self.watch_stdin);
            }
            if now_ns() >= deadline_ns || self.asked_to_stop() {
                break;
            }
        }
        Ok(None)
    }

    /// A question goes behind the train; with a slow link it has to wait for it.
    fn patience_ns(&self) -> u64 {
        self.round_trips.iter().map(RoundTrip::rtt_ns).max().unwrap_or(ASK_AGAIN_NS) + ASK_AGAIN_NS
    }

    /// The largest payload that gets through unfragmented, by bisection below what the device takes; `None` when nothing
    /// came back, or the time was too short.
    fn largest_payload(&mut self) -> io::Result<Option<usize>> {
        if self.replies.distinct() == 0 {
            return Ok(None);
        }
        let limit = self.socket.device_payload_bytes()?;
        let tries = self.tries();
        let deadline_ns = now_ns() + SIZES_NS;
        let smallest = SMALLEST_PAYLOAD_BYTES.min(limit);
        let passes = |this: &mut Self, size: usize| -> io::Result<bool> {
            Ok(this.ask(Kind::Size, size.max(HEADER_BYTES), size as u64, tries, deadline_ns)?.is_some())
        };
        if passes(self, limit)? {
            return Ok(Some(limit));
        }
        if !passes(self, smallest)? {
            return Ok(None);
        }
        let (mut good, mut bad) = (smallest, limit);
        while bad - good > 1 && !self.asked_to_stop() {
            let middle = good + (bad - good) / 2;
            if passes(self, middle)? { good = middle } else { bad = middle }
        }
        let in_time = now_ns() < deadline_ns && !self.asked_to_stop();
        Ok(in_time.then_some(good))
    }

    fn summary(&mut self, report: Option<Packet>, train_bytes: usize, largest: Option<usize>) -> MeasureSummary {
        let share = |part: u64, whole: u64| (whole > 0).then(|| part as f64 / whole as f64);
        let received = self.replies.distinct();
        let reached = report.map(|report| report.first);
        let headers = ETHERNET_HEADER_BYTES + if self.config.address.is_ipv4() { 28 } else { 48 };
        let train_rate = report.filter(|report| report.train.0 > 1 && report.train.1 > 0).map(|report| {
            // The first packet only starts the clock.
            (u64::from(report.train.0 - 1) * (train_bytes + headers) as u64 * 8) as f64 * 1e9 / report.train.1 as f64
        });
        let wall = realtime_offset();
        MeasureSummary {
            sent: self.sent,
            received,
            send_errors: self.send_errors,
            ended: if self.asked_to_stop() { Ended::Signal } else { Ended::Done },
            loss_forward: reached.and_then(|reached| share(self.sent - reached.min(self.sent), self.sent)),
            loss_backward: reached.and_then(|reached| share(reached - received.min(reached), reached)),
            loss: share(self.sent - received, self.sent),
            rtt_ns: Quantiles::of(self.round_trips.iter().map(RoundTrip::rtt_ns)),
            one_way_forward_ns: Quantiles::of(self.round_trips.iter().map(RoundTrip::forward_ns)),
            one_way_backward_ns: Quantiles::of(self.round_trips.iter().map(RoundTrip::backward_ns)),
            reordered: self.replies.reordered(),
            duplicates: self.replies.duplicates(),
            reordered_forward: report.map(|report| report.third),
            duplicates_forward: report.map(|report| report.second),
            train_received: report.map(|report| report.train.0),
            rate_bits_per_s: train_rate,
            largest_payload_bytes: largest,
            realtime_offset_ns: wall.offset_ns,
            realtime_bound_ns: wall.bound_ns,
        }
    }
}

/// How many packets of a size are sent before it counts as too large, on a path that loses this share on the way and back.
fn size_tries(lost: f64) -> u64 {
    let (mut tries, mut all_lost) = (0, 1.0);
    while tries < MOST_SIZE_TRIES && (tries < SIZE_TRIES || all_lost > FALSE_SIZE) {
        tries += 1;
        all_lost *= lost;
    }
    tries
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;

    use super::*;

    #[test]
    fn a_size_is_tried_more_often_where_packets_are_lost() {
        assert_eq!([0.0, 0.02, 0.36, 0.5, 1.0].map(size_tries), [5, 5, 14, 20, 64]);
    }

    /// Answers as a reflector does, but for every fifth probe and the first three times that anything else is asked.
    fn answer_the_fourth_time(socket: &UdpSocket) {
        let mut buffer = [0u8; 65_536];
        let mut asked = std::collections::HashMap::new();
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let packet = Packet::read(&buffer[..length]).unwrap();
            let kind = match packet.kind {
                Kind::Probe => Kind::ProbeReply,
                Kind::Size => Kind::SizeReply,
                _ => Kind::ReportReply,
            };
            let times = asked.entry((packet.kind == Kind::Size, packet.sequence)).or_insert(0);
            *times += 1;
            if kind == Kind::ProbeReply && packet.sequence.is_multiple_of(5) || kind != Kind::ProbeReply && *times < 4 {
                continue;
            }
            let first = if kind == Kind::ProbeReply { packet.first } else { 8 };
            Packet { kind, first, ..packet }.write(&mut buffer);
            socket.send_to(&buffer[..HEADER_BYTES], from).unwrap();
        }
    }

    #[test]
    fn questions_that_are_lost_are_asked_again_however_short_the_timeout_is() {
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        let port = far.local_addr().unwrap().port();
        far.set_read_timeout(Some(std::time::Duration::from_secs(2))).unwrap();
        let answers = std::thread::spawn(move || answer_the_fourth_time(&far));
        let asked = format!(
            r#"{{"role":"measure","address":"127.0.0.1","port":{port},"packets":10,"timeout_ns":50000000,"largest":true}}"#
        );
        let Ok(crate::config::Config::Measure(config)) = crate::config::Config::parse(&asked) else { panic!() };
        let found = Measurement::new(config).unwrap().run().unwrap();
        assert_eq!(found.received, 8);
        assert_eq!(found.loss_forward, Some(0.2));
        assert_eq!(found.largest_payload_bytes, Some(65_507));
        answers.join().unwrap();
    }

    #[test]
    fn time_in_the_reflector_is_not_time_on_the_way() {
        let trip =
            RoundTrip { sequence: 0, sent_ns: 100, reflected_in_ns: 150, reflected_out_ns: 900, received_ns: 970 };
        assert_eq!((trip.forward_ns(), trip.backward_ns(), trip.rtt_ns()), (50, 70, 120));
    }

    #[test]
    fn a_round_trip_needs_no_common_clock() {
        for ahead in [1_000_000, 50] {
            let trip = RoundTrip {
                sequence: 0,
                sent_ns: 100,
                reflected_in_ns: 150 + ahead,
                reflected_out_ns: 900 + ahead,
                received_ns: 970,
            };
            assert_eq!(trip.rtt_ns(), 120);
        }
        let behind = RoundTrip {
            sequence: 0,
            sent_ns: 10_100,
            reflected_in_ns: 150,
            reflected_out_ns: 900,
            received_ns: 10_970,
        };
        assert_eq!(behind.rtt_ns(), 120);
    }
}
