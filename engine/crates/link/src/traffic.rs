//! What is on its way in both directions: frames, their wire packets, what happens to them and when.

use trifecta_record::link_log::{Fate, LinkRow};

use crate::buffer::{Buffer, Frames};
use crate::capture::{Capture, Sighting};
use crate::chain::{Chain, Dropped, Sink};
use crate::device::transmit::Run;
use crate::frame::{Layout, parse};
use crate::impair::WirePacket;
use crate::leaving::Leaving;
use crate::log::Log;
use crate::neighbours::{Neighbours, Passing};
use crate::random::Identity;
use crate::schedule::Schedule;
use crate::segment::{extract, flip_payload_bit};
use crate::statistics::Statistics;

/// Consecutive wire packets of a frame that are to leave at the same time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Departure {
    pub direction: usize,
    pub run: Run,
    pub ordinal: u64,
    pub copy: u8,
    pub back_to_back: bool,
    /// When the last of them left the last queue.
    pub dequeued_ns: u64,
    pub corrupted: bool,
}

/// Between which times packets left: read before and after the system call that sent them. The kernel of the other side
/// has them within the call, and answers to them too: what answers a packet comes after `given_ns`, always.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    pub given_ns: u64,
    pub taken_ns: u64,
}

/// What the schedule holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Event {
    Depart(Departure),
    /// A packet reaches an impairment that can take it only now.
    Advance {
        direction: usize,
        stage: usize,
        packet: WirePacket,
    },
    /// An impairment gives out what it holds.
    Release {
        direction: usize,
        stage: usize,
    },
}

/// One direction.
pub struct Direction {
    pub chain: Chain,
    pub statistics: Statistics,
    ordinal: u64,
}

/// All traffic of the link; knows nothing of devices.
pub struct Traffic {
    pub directions: [Direction; 2],
    pub frames: Frames,
    pub schedule: Schedule<Event>,
    pub log: Option<Log>,
    pub capture: Option<Capture>,
    /// Of a bridge: what passes beside the impairments.
    pub neighbours: Option<Neighbours>,
    memory_bytes: u64,
    /// Wire packets given out by `next_departure` but not yet settled are in flight too.
    in_flight: [u64; 2],
}

impl Traffic {
    #[must_use]
    pub fn new(chains: [Chain; 2], memory_bytes: u64, log: Option<Log>, capture: Option<Capture>) -> Self {
        let direction = |chain: Chain| {
            let statistics = Statistics::of(&chain);
            Direction { chain, statistics, ordinal: 0 }
        };
        Traffic {
            directions: chains.map(direction),
            frames: Frames::default(),
            schedule: Schedule::default(),
            log,
            capture,
            neighbours: None,
            memory_bytes,
            in_flight: [0; 2],
        }
    }

    /// Wire packets of a direction that have neither left nor been dropped.
    #[must_use]
    pub fn in_flight(&self, direction: usize) -> u64 {
        self.in_flight[direction]
    }

    /// Takes a captured frame, virtio-net header first, and sends its wire packets through the impairments.
    pub fn arrive(&mut self, direction: usize, mut buffer: Buffer, length: usize, arrived_ns: u64) {
        let layout = match parse(&mut buffer[..length]) {
            Ok(layout) => layout,
            Err(why) => {
                if let Some(neighbours) = &mut self.neighbours
                    && neighbours.passes(direction, why, &mut buffer[..length])
                {
                    return neighbours.waiting.push(Passing { direction, buffer, length, why });
                }
                self.directions[direction].statistics.refuse(why);
                return self.frames.pool.give_back(buffer);
            }
        };
        let first_ordinal = self.directions[direction].ordinal;
        self.directions[direction].ordinal += u64::from(layout.segments);
        let statistics = &mut self.directions[direction].statistics;
        statistics.wire_packets += u64::from(layout.segments);
        statistics.super_packets += u64::from(layout.segments > 1);
        if let Some(capture) = &mut self.capture {
            for segment in 0..layout.segments {
                let ordinal = first_ordinal + u64::from(segment);
                let seen = Sighting { direction, copy: 0, ordinal, at_ns: arrived_ns, left: false };
                capture.push(&buffer[..length], &layout, segment, seen);
            }
        }
        if self.frames.bytes() + buffer.len() as u64 > self.memory_bytes {
            return self.refuse_for_memory(direction, buffer, &layout, first_ordinal, arrived_ns);
        }
        let frame = self.frames.insert(buffer, layout, arrived_ns);
        self.in_flight[direction] += u64::from(layout.segments);
        self.with_sink(direction, |chain, sink| {
            for segment in 0..layout.segments {
                let bytes = layout.wire_bytes(segment);
                sink.statistics.wire_bytes += u64::from(bytes);
                let packet = WirePacket {
                    identity: Identity { ordinal: first_ordinal + u64::from(segment), copy: 0 },
                    bytes,
                    at_ns: arrived_ns,
                    floor_ns: arrived_ns,
                    back_to_back: false,
                    frame,
                    segment,
                    corrupted: false,
                };
                chain.admit(packet, sink);
            }
        });
    }

    fn refuse_for_memory(&mut self, direction: usize, buffer: Buffer, layout: &Layout, first: u64, arrived_ns: u64) {
        let statistics = &mut self.directions[direction].statistics;
        statistics.memory_dropped += u64::from(layout.segments);
        for segment in 0..layout.segments {
            let bytes = layout.wire_bytes(segment);
            statistics.wire_bytes += u64::from(bytes);
            if let Some(log) = &mut self.log {
                log.push(LinkRow {
                    direction: direction as u8,
                    ordinal: first + u64::from(segment),
                    arrived_ns,
                    due_ns: None,
                    left_ns: None,
                    bytes,
                    fate: Fate::MemoryDropped,
                    flow_hash: layout.flow_hash,
                });
            }
        }
        self.frames.pool.give_back(buffer);
    }

    /// The next packets to leave by `now_ns`, with their due time. Whatever else falls due on the way is done.
    pub fn next_departure(&mut self, now_ns: u64) -> Option<(u64, Departure)> {
        loop {
            match self.schedule.pop_due(now_ns)? {
                (due_ns, Event::Depart(departure)) => return Some((due_ns, departure)),
                (_, Event::Advance { direction, stage, packet }) => {
                    self.with_sink(direction, |chain, sink| chain.advance(packet, stage, sink));
                }
                (due_ns, Event::Release { direction, stage }) => {
                    self.with_sink(direction, |chain, sink| chain.release(stage, due_ns, sink));
                }
            }
        }
    }

    /// Accounts for packets that were given to the device, or that it refused: the log and the statistics have the time
    /// at which they had surely left, the capture the one at which they had not yet.
    pub fn settle(&mut self, due_ns: u64, departure: Departure, left: Left, sent: bool) {
        let Left { given_ns, taken_ns: left_ns } = left;
        let Departure { direction, run, ordinal, copy, back_to_back, dequeued_ns, corrupted } = departure;
        let frame = self.frames.get(run.frame);
        let (layout, arrived_ns) = (frame.layout, frame.arrived_ns);
        let packets = u64::from(run.end - run.first);
        let bytes = (run.first..run.end).map(|segment| u64::from(layout.wire_bytes(segment))).sum();
        let statistics = &mut self.directions[direction].statistics;
        if sent {
            statistics.leave(Leaving {
                packets,
                bytes,
                ordinal,
                copy,
                back_to_back,
                dequeued_ns,
                arrived_ns,
                due_ns,
                left_ns,
            });
        } else {
            statistics.send_errors += packets;
        }
        if let Some(capture) = self.capture.as_mut().filter(|_| sent) {
            for segment in run.first..run.end {
                let ordinal = ordinal + u64::from(segment - run.first);
                let seen = Sighting { direction, copy, ordinal, at_ns: given_ns, left: true };
                capture.push(frame.bytes(), &layout, segment, seen);
            }
        }
        if let Some(log) = &mut self.log {
            let fate = match (sent, copy, corrupted) {
                (false, ..) => Fate::SendError,
                (true, 0, false) => Fate::Delivered,
                (true, 0, true) => Fate::Corrupted,
                (true, ..) => Fate::Duplicate,
            };
            for segment in run.first..run.end {
                log.push(LinkRow {
                    direction: direction as u8,
                    ordinal: ordinal + u64::from(segment - run.first),
                    arrived_ns,
                    due_ns: Some(due_ns),
                    left_ns: sent.then_some(left_ns),
                    bytes: layout.wire_bytes(segment),
                    fate,
                    flow_hash: layout.flow_hash,
                });
            }
        }
        self.in_flight[direction] -= packets;
        self.frames.release(run.frame, run.end - run.first);
    }

    /// Accounts for a frame beside the impairments, which a device took or refused.
    pub fn passed(&mut self, passing: Passing, sent: bool) {
        let Passing { direction, buffer, why, .. } = passing;
        match &mut self.neighbours {
            Some(neighbours) if sent => neighbours.carried[direction] += 1,
            _ => self.directions[direction].statistics.refuse(why),
        }
        self.frames.pool.give_back(buffer);
    }

    /// Whether both devices are on one network, where what passes comes back.
    #[must_use]
    pub fn in_a_circle(&self) -> bool {
        self.neighbours.as_ref().is_some_and(Neighbours::in_a_circle)
    }

    fn with_sink(&mut self, direction: usize, act: impl FnOnce(&mut Chain, &mut TrafficSink<'_>)) {
        let Direction { chain, statistics, .. } = &mut self.directions[direction];
        let mut sink = TrafficSink {
            direction,
            statistics,
            frames: &mut self.frames,
            schedule: &mut self.schedule,
            log: &mut self.log,
            in_flight: &mut self.in_flight[direction],
            pending: None,
        };
        act(chain, &mut sink);
        sink.flush();
    }
}

/// Puts what the impairments decide into effect.
struct TrafficSink<'a> {
    direction: usize,
    statistics: &'a mut Statistics,
    frames: &'a mut Frames,
    schedule: &'a mut Schedule<Event>,
    log: &'a mut Option<Log>,
    in_flight: &'a mut u64,
    /// The last departure, which the next packet may join.
    pending: Option<(u64, Departure)>,
}

impl TrafficSink<'_> {
    fn flush(&mut self) {
        if let Some((due_ns, departure)) = self.pending.take() {
            self.schedule.push(due_ns, Event::Depart(departure));
        }
    }
}

impl Sink for TrafficSink<'_> {
    fn depart(&mut self, packet: WirePacket) {
        let WirePacket { identity, at_ns, floor_ns: dequeued_ns, frame, segment, back_to_back, corrupted, .. } = packet;
        if let Some((due_ns, last)) = &mut self.pending
            && *due_ns == at_ns
            && last.run.frame == frame
            && last.run.end == segment
            && last.copy == identity.copy
        {
            last.run.end += 1;
            last.dequeued_ns = dequeued_ns;
            return;
        }
        self.flush();
        let run = Run { frame, first: segment, end: segment + 1 };
        let Identity { ordinal, copy } = identity;
        let departure =
            Departure { direction: self.direction, run, ordinal, copy, back_to_back, dequeued_ns, corrupted };
        self.pending = Some((at_ns, departure));
    }

    fn drop(&mut self, packet: WirePacket, why: Dropped) {
        let fate = match why {
            Dropped::Lost => {
                self.statistics.lost += 1;
                Fate::Lost
            }
            Dropped::Queue => {
                self.statistics.queue_dropped += 1;
                Fate::QueueDropped
            }
        };
        if let Some(log) = self.log {
            let frame = self.frames.get(packet.frame);
            log.push(LinkRow {
                direction: self.direction as u8,
                ordinal: packet.identity.ordinal,
                arrived_ns: frame.arrived_ns,
                due_ns: None,
                left_ns: None,
                bytes: packet.bytes,
                fate,
                flow_hash: frame.layout.flow_hash,
            });
        }
        *self.in_flight -= 1;
        self.frames.release(packet.frame, 1);
    }

    fn defer(&mut self, packet: WirePacket, stage: usize) {
        self.flush();
        self.schedule.push(packet.at_ns, Event::Advance { direction: self.direction, stage, packet });
    }

    fn wake(&mut self, stage: usize, at_ns: u64) {
        self.flush();
        self.schedule.push(at_ns, Event::Release { direction: self.direction, stage });
    }

    fn duplicate(&mut self, packet: &WirePacket) {
        self.statistics.duplicated += 1;
        *self.in_flight += 1;
        self.frames.retain(packet.frame);
    }

    fn corrupt(&mut self, packet: &mut WirePacket, random: u64) -> bool {
        let frame = self.frames.get(packet.frame);
        let arrived_ns = frame.arrived_ns;
        let length = packet.bytes as usize + crate::frame::VNET_HEADER_BYTES;
        let mut buffer = self.frames.pool.take(length);
        let frame = self.frames.get(packet.frame);
        let length = extract(frame.bytes(), &frame.layout, packet.segment, &mut buffer);
        // What was cut out of a frame that is carried is such a frame again.
        let damaged =
            parse(&mut buffer[..length]).ok().filter(|layout| flip_payload_bit(&mut buffer[..length], layout, random));
        let Some(layout) = damaged else {
            self.frames.pool.give_back(buffer);
            return false;
        };
        let whole = self.frames.insert(buffer, layout, arrived_ns);
        self.frames.release(packet.frame, 1);
        packet.frame = whole;
        packet.segment = 0;
        self.statistics.corrupted += u64::from(!packet.corrupted);
        packet.corrupted = true;
        true
    }
}

#[cfg(test)]
#[path = "traffic_tests.rs"]
mod tests;
