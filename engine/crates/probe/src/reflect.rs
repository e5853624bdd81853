//! The far end: answers probes and counts what came.

use std::collections::HashMap;
use std::io;

use trifecta_wire::clock::now_ns;
use trifecta_wire::process;

use crate::config::MAX_TRAIN_PACKETS;
use crate::packet::{HEADER_BYTES, Kind, Packet};
use crate::sequence::Sequence;
use crate::socket::{Arrival, Socket};
use crate::summary::ReflectSummary;

/// Measurements remembered at the same time; a further one replaces the oldest.
const MAX_SESSIONS: usize = 64;
/// How often signals and standard input are looked at.
const TICK_NS: u64 = 100_000_000;

#[derive(Debug, Default)]
struct Session {
    started: u64,
    probes: Sequence,
    train: Sequence,
    /// When each packet of the train arrived, in the order of arrival.
    train_ns: Vec<u64>,
}

/// The time that a train of evenly spaced packets took from the first to the last, as most of it says: the median over half a
/// train, times its length. A link that woke up late shifts some packets together; by first and last alone 0.4 ms of that
/// would make 7 % of 50 packets at 100 Mbit/s.
fn train_duration_ns(arrivals: &[u64]) -> u64 {
    let half = arrivals.len() / 2;
    let mut spans: Vec<u64> = arrivals.iter().zip(&arrivals[half..]).map(|(a, b)| b.saturating_sub(*a)).collect();
    if half == 0 {
        return 0;
    }
    let middle = spans.len() / 2;
    let (_, median, _) = spans.select_nth_unstable(middle);
    (*median as u128 * (arrivals.len() as u128 - 1) / half as u128) as u64
}

/// Counts, and says what to answer.
#[derive(Debug, Default)]
pub struct Reflector {
    sessions: HashMap<u64, Session>,
    sessions_started: u64,
    received: u64,
    replied: u64,
    ignored: u64,
    send_errors: u64,
}

impl Reflector {
    /// Answers until the process is asked to stop.
    ///
    /// # Errors
    /// When the socket fails.
    pub fn run(&mut self, socket: &Socket) -> io::Result<()> {
        let watch_stdin = process::stdin_is_watched();
        let mut buffer = vec![0u8; 65_536];
        while !(process::stop_requested() || watch_stdin && process::stdin_closed()) {
            socket.wait(TICK_NS, watch_stdin);
            while let Some(arrival) = socket.receive(&mut buffer)? {
                let Some((mut reply, length)) = self.take(&buffer[..arrival.length], arrival) else { continue };
                if reply.kind == Kind::ProbeReply {
                    reply.third = now_ns();
                }
                reply.write(&mut buffer);
                match socket.send_to(&buffer[..length], arrival.from) {
                    Ok(_) => self.replied += 1,
                    Err(_) => self.send_errors += 1,
                }
            }
        }
        Ok(())
    }

    /// Takes a packet; the answer, if it gets one, with its length, which is never above that of the packet.
    fn take(&mut self, bytes: &[u8], arrival: Arrival) -> Option<(Packet, usize)> {
        let Some(packet) = Packet::read(bytes) else {
            self.ignored += 1;
            return None;
        };
        self.received += 1;
        let session = self.session(packet.session);
        match packet.kind {
            Kind::Probe => {
                session.probes.see(packet.sequence);
                let reply = Packet { kind: Kind::ProbeReply, second: arrival.received_ns, ..packet };
                Some((reply, bytes.len()))
            }
            Kind::Train => {
                let before = session.train.distinct();
                session.train.see(packet.sequence);
                if session.train.distinct() > before && session.train_ns.len() < MAX_TRAIN_PACKETS as usize {
                    session.train_ns.push(arrival.received_ns);
                }
                None
            }
            Kind::Size => Some((Packet { kind: Kind::SizeReply, ..packet }, HEADER_BYTES)),
            Kind::Report => {
                let probes = &session.probes;
                let reply = Packet {
                    kind: Kind::ReportReply,
                    first: probes.distinct(),
                    second: probes.duplicates(),
                    third: probes.reordered(),
                    train: (session.train_ns.len() as u32, train_duration_ns(&session.train_ns)),
                    ..packet
                };
                Some((reply, HEADER_BYTES))
            }
            Kind::ProbeReply | Kind::SizeReply | Kind::ReportReply => {
                self.ignored += 1;
                None
            }
        }
    }

    fn session(&mut self, id: u64) -> &mut Session {
        if !self.sessions.contains_key(&id) {
            if self.sessions.len() >= MAX_SESSIONS
                && let Some(oldest) = self.sessions.iter().min_by_key(|(_, session)| session.started).map(|(id, _)| *id)
            {
                self.sessions.remove(&oldest);
            }
            self.sessions_started += 1;
        }
        let started = self.sessions_started;
        self.sessions.entry(id).or_insert_with(|| Session { started, ..Session::default() })
    }

    /// What was done.
    #[must_use]
    pub fn summary(&self) -> ReflectSummary {
        ReflectSummary {
            sessions: self.sessions_started,
            received: self.received,
            replied: self.replied,
            ignored: self.ignored,
            send_errors: self.send_errors,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrival(received_ns: u64) -> Arrival {
        Arrival { length: 0, from: "127.0.0.1:9".parse().unwrap(), received_ns }
    }

    fn give(reflector: &mut Reflector, packet: Packet, length: usize, at_ns: u64) -> Option<(Packet, usize)> {
        let mut bytes = vec![0; length];
        packet.write(&mut bytes);
        reflector.take(&bytes, arrival(at_ns))
    }

    #[test]
    fn probes_are_answered_at_their_size_and_counted() {
        let mut reflector = Reflector::default();
        for sequence in [0, 1, 3, 3, 2] {
            let (reply, length) =
                give(&mut reflector, Packet { first: 5, ..Packet::new(Kind::Probe, 7, sequence) }, 900, 10).unwrap();
            assert_eq!(
                (reply.kind, reply.sequence, reply.first, reply.second, length),
                (Kind::ProbeReply, sequence, 5, 10, 900)
            );
        }
        let (report, length) = give(&mut reflector, Packet::new(Kind::Report, 7, 0), HEADER_BYTES, 11).unwrap();
        assert_eq!((report.first, report.second, report.third, length), (4, 1, 1, HEADER_BYTES));
        let (other, _) = give(&mut reflector, Packet::new(Kind::Report, 8, 0), HEADER_BYTES, 11).unwrap();
        assert_eq!(other.first, 0, "sessions are apart");
    }

    #[test]
    fn a_train_is_timed_and_not_answered() {
        let mut reflector = Reflector::default();
        for sequence in 0..10 {
            assert!(
                give(&mut reflector, Packet::new(Kind::Train, 7, sequence), 1472, 1_000 + sequence * 100).is_none()
            );
        }
        let (report, _) = give(&mut reflector, Packet::new(Kind::Report, 7, 0), HEADER_BYTES, 9_999).unwrap();
        assert_eq!(report.train, (10, 900));
    }

    #[test]
    fn a_late_start_of_a_train_does_not_change_its_rate() {
        let even: Vec<u64> = (0..50).map(|n| 1_000_000 + n * 121_000).collect();
        assert_eq!(train_duration_ns(&even), 49 * 121_000);
        let mut late = even.clone();
        for arrival in &mut late[..5] {
            *arrival = 1_000_000 + 4 * 121_000; // the link slept, then sent what was due at once
        }
        assert_eq!(train_duration_ns(&late), 49 * 121_000);
        let mut slow = even;
        for (n, arrival) in slow.iter_mut().enumerate() {
            *arrival += n as u64 * 12_100; // a link at nine tenths of its rate is still seen
        }
        assert_eq!(train_duration_ns(&slow), 49 * 133_100);
        for few in [&[][..], &[5][..]] {
            assert_eq!(train_duration_ns(few), 0);
        }
        assert_eq!(train_duration_ns(&[5, 9]), 4);
    }

    #[test]
    fn strangers_and_replies_are_ignored_and_old_sessions_forgotten() {
        let mut reflector = Reflector::default();
        assert!(reflector.take(b"GET / HTTP/1.1\r\n\r\n", arrival(1)).is_none());
        assert!(give(&mut reflector, Packet::new(Kind::ProbeReply, 1, 1), 64, 1).is_none());
        assert_eq!(reflector.ignored, 2);
        for session in 0..1000 {
            give(&mut reflector, Packet::new(Kind::Probe, session, 0), 64, 1);
        }
        assert_eq!(reflector.sessions.len(), MAX_SESSIONS);
        assert!(reflector.sessions.contains_key(&999) && !reflector.sessions.contains_key(&0));
    }
}
