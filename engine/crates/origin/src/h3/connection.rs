//! One QUIC connection of a client, and the HTTP/3 spoken on it.

mod uni;

use std::time::Instant;

use bytes::Bytes;
use quinn_proto::{Connection, ConnectionHandle, Dir, Endpoint, Event, ReadError, StreamEvent, StreamId, VarInt};
use trifecta_wire::ErrorClass;
use trifecta_wire::clock::now_ns;
use trifecta_wire::h3::{Code, ControlPlane, Error, Role, control, frame};
use trifecta_wire::quic::{self, InstantClock, StreamMap, send_order};
use trifecta_wire::udp;

use super::outbox::Outbox;
use super::priority;
use super::receiving::Receiving;
use super::response::{Sending, Written};
use super::timers::Timers;
use super::{Delayed, Shared, varint};
use crate::answer::Plan;
use crate::config::Protocol;
use crate::h2::request::MAX_LIST_OCTETS;
use crate::handler::Handler;
use crate::relay::Ticket;
use crate::stats::Stats;
use crate::summary::{Mishap, ServerFault};

/// Trains of datagrams that one connection may send before the others have their turn.
const TRAINS_PER_TURN: usize = 16;

/// What a turn came to.
pub(super) enum Turn {
    /// Nothing to do until something happens.
    Done,
    /// There is more to send.
    More,
    /// The connection is over and forgotten.
    Gone,
}

/// A request that is not answered whole yet.
enum Exchange {
    Receiving(Receiving),
    /// The answer waits for the relay, for its time (fault `delay_ns`), or for ever (fault `stall`).
    Waiting(Waiting),
    Sending(Sending),
}

/// A request that is there whole.
struct Waiting {
    plan: Plan,
    received_ns: u64,
    /// Its content, when a relay wants it.
    collected: Vec<u8>,
}

/// One QUIC connection of a client.
pub(super) struct H3Connection {
    pub quic: Connection,
    pub serial: u64,
    /// Waits for a turn.
    pub dirty: bool,
    /// The entry in the timers that counts; 0: none.
    pub timer_ns: u64,
    handle: ConnectionHandle,
    control: ControlPlane,
    control_stream: Option<StreamId>,
    /// The client's first unidirectional streams.
    uni_streams: Vec<StreamId>,
    exchanges: StreamMap<Exchange>,
    secured: bool,
    answered: u64,
    /// Answers that were begun and that the client has not acknowledged whole.
    unacknowledged: u64,
    /// The first request that is not handled any more, once the end was announced.
    goaway: Option<u64>,
    /// The stream after the last one that the client has opened.
    next_stream: u64,
}

impl H3Connection {
    pub fn new(quic: Connection, index: usize, serial: u64) -> Self {
        Self {
            quic,
            serial,
            dirty: false,
            timer_ns: 0,
            handle: ConnectionHandle(index),
            control: ControlPlane::new(Role::Server),
            control_stream: None,
            uni_streams: Vec::new(),
            exchanges: StreamMap::default(),
            secured: false,
            answered: 0,
            unacknowledged: 0,
            goaway: None,
            next_stream: 0,
        }
    }

    /// Handles what has happened, answers, and sends.
    pub fn take_turn(
        &mut self,
        endpoint: &mut Endpoint,
        outbox: &mut Outbox,
        shared: &mut Shared,
        handler: &mut Handler,
        stats: &mut Stats,
        now_ns: u64,
    ) -> Turn {
        let now = shared.clock.instant(now_ns);
        if self.exchange_endpoint_events(endpoint) {
            return Turn::Gone;
        }
        while let Some(event) = self.quic.poll() {
            if let Err(error) = self.on_event(event, shared, handler, stats, now_ns) {
                stats.error(match error.is_excess() {
                    true => Mishap::from(ServerFault::ExcessHttp3),
                    false => ErrorClass::MalformedHttp3.into(),
                });
                self.quic.close(now, varint(error.code), Bytes::from_static(error.reason.as_bytes()));
                break;
            }
        }
        self.close_if_served(handler, now);
        let turn = self.send(outbox, stats, now);
        // Timeouts and closing make the last of them.
        if self.exchange_endpoint_events(endpoint) { Turn::Gone } else { turn }
    }

    /// Passes events between connection and endpoint; true when the connection is over.
    fn exchange_endpoint_events(&mut self, endpoint: &mut Endpoint) -> bool {
        while let Some(event) = self.quic.poll_endpoint_events() {
            let over = event.is_drained();
            if let Some(event) = endpoint.handle_event(self.handle, event) {
                self.quic.handle_event(event);
            }
            if over {
                return true;
            }
        }
        false
    }

    fn send(&mut self, outbox: &mut Outbox, stats: &mut Stats, now: Instant) -> Turn {
        let mut packets = outbox.take_scratch();
        let mut turn = Turn::More;
        for _ in 0..TRAINS_PER_TURN {
            if outbox.is_blocked() {
                break;
            }
            packets.clear();
            let segments = udp::segments_per_send(usize::from(self.quic.current_mtu()));
            let Some(transmit) = self.quic.poll_transmit(now, segments, &mut packets) else {
                turn = Turn::Done;
                break;
            };
            if outbox.send(&transmit, &packets[..transmit.size]).is_err() {
                stats.error(ServerFault::UdpSend);
            }
        }
        outbox.return_scratch(packets);
        turn
    }

    /// Enters the connection's next timeout, if it comes before the one that is entered.
    pub fn schedule(&mut self, index: usize, timers: &mut Timers, clock: &InstantClock) {
        let Some(timeout) = self.quic.poll_timeout() else { return };
        let time_ns = clock.time_ns(timeout).max(1);
        if self.timer_ns == 0 || time_ns < self.timer_ns {
            self.timer_ns = time_ns;
            timers.insert(time_ns, index);
        }
    }

    fn on_event(
        &mut self,
        event: Event,
        shared: &mut Shared,
        handler: &mut Handler,
        stats: &mut Stats,
        now_ns: u64,
    ) -> Result<(), Error> {
        match event {
            Event::Connected => self.on_connected(stats),
            Event::Stream(StreamEvent::Opened { dir }) => {
                if dir == Dir::Bi && shared.by_priority {
                    self.read_priorities(shared)?;
                }
                while let Some(id) = self.quic.streams().accept(dir) {
                    if dir == Dir::Uni {
                        self.note_uni_stream(id);
                        self.read_uni_stream(id, shared)?;
                        continue;
                    }
                    self.next_stream = VarInt::from(id).into_inner() + 4;
                    self.read_request(id, shared, handler, stats, now_ns)?;
                }
            }
            Event::Stream(StreamEvent::Readable { id }) if id.dir() == Dir::Uni => {
                self.read_uni_stream(id, shared)?;
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read_request(id, shared, handler, stats, now_ns)?,
            Event::Stream(StreamEvent::Writable { id }) => self.continue_sending(id, stats),
            // Finished, or stopped when all had been written already.
            Event::Stream(StreamEvent::Finished { .. }) => self.unacknowledged = self.unacknowledged.saturating_sub(1),
            Event::Stream(StreamEvent::Stopped { id, .. }) => {
                // The client gave the request up (RFC 9114 4.1.1).
                if let Some(Exchange::Sending(_)) = self.exchanges.remove(&VarInt::from(id).into_inner()) {
                    self.unacknowledged = self.unacknowledged.saturating_sub(1);
                }
                let _ = self.quic.send_stream(id).reset(varint(Code::RequestCancelled));
                let _ = self.quic.recv_stream(id).stop(varint(Code::RequestCancelled));
            }
            Event::ConnectionLost { reason } => {
                self.exchanges.clear();
                let known = quic::Handshake::of(&self.quic);
                match quic::classify(&reason, known.as_ref()) {
                    // The way a client ends a connection.
                    ErrorClass::Closed => {}
                    // An idle client is none that failed.
                    ErrorClass::QuicTimeout if self.secured => stats.error(ServerFault::IdleTimeout),
                    class => stats.error(class),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn on_connected(&mut self, stats: &mut Stats) {
        self.secured = true;
        let agreed = quic::Handshake::of(&self.quic).unwrap_or_default();
        stats.connection(Protocol::H3, agreed.resumed, agreed.key_exchange);
        self.open_control_stream();
    }

    fn open_control_stream(&mut self) {
        if self.control_stream.is_some() {
            return;
        }
        // A client that allows no stream of ours (against RFC 9114 6.2) hears no settings, which change nothing for it.
        self.control_stream = self.quic.streams().open(Dir::Uni);
        if let Some(id) = self.control_stream {
            let opening = control::opening(MAX_LIST_OCTETS as u64);
            send_order::set_control(&mut self.quic, id);
            let _ = self.quic.send_stream(id).write_chunks(&mut [opening.into()]);
        }
    }

    fn read_request(
        &mut self,
        id: StreamId,
        shared: &mut Shared,
        handler: &mut Handler,
        stats: &mut Stats,
        now_ns: u64,
    ) -> Result<(), Error> {
        let number = VarInt::from(id).into_inner();
        if self.goaway.is_some_and(|first| number >= first) {
            // RFC 9114 4.1.1, 5.2.
            self.refuse(id, Code::RequestRejected);
            return Ok(());
        }
        let mut receiving = match self.exchanges.remove(&number) {
            None => Receiving::default(),
            Some(Exchange::Receiving(receiving)) => receiving,
            Some(other) => {
                self.exchanges.insert(number, other);
                return Ok(());
            }
        };
        // What came before the handshake was complete may be a replay (RFC 8446 8).
        let early = self.quic.is_handshaking();
        let mut stream = self.quic.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return Ok(()) };
        let outcome = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    if let Err(error) = receiving.take(&chunk.bytes, shared, handler, stats, early, now_ns) {
                        break Err(error);
                    }
                }
                Ok(None) => break receiving.end().map(|()| true),
                Err(ReadError::Blocked) => break Ok(false),
                Err(ReadError::Reset(_)) => {
                    let _ = chunks.finalize();
                    stats.error(ErrorClass::Reset);
                    let _ = self.quic.send_stream(id).reset(varint(Code::RequestCancelled));
                    return Ok(());
                }
            }
        };
        let _ = chunks.finalize();
        match outcome {
            Ok(false) => {
                self.exchanges.insert(number, Exchange::Receiving(receiving));
                Ok(())
            }
            Ok(true) => {
                let Receiving { plan, received_ns, collected, priority, .. } = receiving;
                if shared.by_priority {
                    priority::set_first(&mut self.quic, id, priority);
                }
                let Some(plan) = plan else { return Ok(()) };
                stats.early_requests += u64::from(early);
                self.answer(id, Waiting { plan, received_ns, collected }, shared, handler, stats, now_ns);
                Ok(())
            }
            // Malformed requests are errors of their stream (RFC 9114 4.1.2).
            Err(error) if matches!(error.code, Code::MessageError | Code::RequestIncomplete) => {
                stats.error(ErrorClass::MalformedHttp3);
                self.refuse(id, error.code);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    fn refuse(&mut self, id: StreamId, code: Code) {
        let _ = self.quic.recv_stream(id).stop(varint(code));
        let _ = self.quic.send_stream(id).reset(varint(code));
    }

    fn answer(
        &mut self,
        id: StreamId,
        mut waiting: Waiting,
        shared: &mut Shared,
        handler: &mut Handler,
        stats: &mut Stats,
        now_ns: u64,
    ) {
        let stream = VarInt::from(id).into_inner();
        if let Some(relayed) = &mut waiting.plan.relayed {
            relayed.arrived_ns = trifecta_wire::clock::now_ns();
        }
        let faults = handler.faults().over(Protocol::H3);
        let silent = faults.stall || self.is_served(handler);
        if silent || faults.delay_ns > 0 {
            self.exchanges.insert(stream, Exchange::Waiting(waiting));
            if !silent {
                let due_ns = now_ns.saturating_add(faults.delay_ns);
                shared.delayed.push_back(Delayed { due_ns, connection: self.handle.0, serial: self.serial, stream });
            }
            return;
        }
        self.answer_now(id, waiting, shared, handler, stats);
    }

    fn answer_now(
        &mut self,
        id: StreamId,
        mut waiting: Waiting,
        shared: &mut Shared,
        handler: &mut Handler,
        stats: &mut Stats,
    ) {
        let Some(relayed) = waiting.plan.relayed else {
            self.respond(id, &waiting.plan, waiting.received_ns, shared, handler, stats);
            return;
        };
        let stream = VarInt::from(id).into_inner();
        let ticket = Ticket::Quic { connection: self.handle.0, serial: self.serial, stream };
        handler.submit(ticket, relayed, std::mem::take(&mut waiting.collected));
        self.exchanges.insert(stream, Exchange::Waiting(waiting));
    }

    /// Lets an answer go: `plan` from the relay, or the one whose time has come. False when none waits.
    pub fn release(
        &mut self,
        stream: u64,
        plan: Option<Plan>,
        shared: &mut Shared,
        handler: &mut Handler,
        stats: &mut Stats,
    ) -> bool {
        match (self.exchanges.remove(&stream), VarInt::from_u64(stream)) {
            (Some(Exchange::Waiting(waiting)), Ok(id)) => {
                match plan {
                    Some(plan) => self.respond(id.into(), &plan, waiting.received_ns, shared, handler, stats),
                    None => self.answer_now(id.into(), waiting, shared, handler, stats),
                }
                true
            }
            (Some(other), _) => {
                self.exchanges.insert(stream, other);
                false
            }
            (None, _) => false,
        }
    }

    fn respond(
        &mut self,
        id: StreamId,
        plan: &Plan,
        received_ns: u64,
        shared: &mut Shared,
        handler: &Handler,
        stats: &mut Stats,
    ) {
        // In 0.5-RTT, our settings precede the first answer.
        self.open_control_stream();
        if shared.in_order {
            send_order::set_in_order(&mut self.quic, id, self.answered);
        }
        let octets = handler.octets_to_send(plan);
        let elapsed_ns = handler.server_timing().then(|| now_ns().saturating_sub(received_ns));
        let head = shared.heads.get(handler, plan, octets, elapsed_ns);
        stats.response(Protocol::H3, plan.head.status);
        self.answered += 1;
        self.unacknowledged += 1;
        self.write(id, Sending::new(head, plan, octets), stats);
    }

    fn continue_sending(&mut self, id: StreamId, stats: &mut Stats) {
        let number = VarInt::from(id).into_inner();
        match self.exchanges.remove(&number) {
            Some(Exchange::Sending(sending)) => self.write(id, sending, stats),
            Some(other) => {
                self.exchanges.insert(number, other);
            }
            None => {}
        }
    }

    fn write(&mut self, id: StreamId, mut sending: Sending, stats: &mut Stats) {
        match sending.write(&mut self.quic, id, &mut stats.content_bytes_out) {
            Written::Whole => {}
            Written::Blocked => {
                self.exchanges.insert(VarInt::from(id).into_inner(), Exchange::Sending(sending));
            }
            Written::Failed(fault) => {
                self.unacknowledged = self.unacknowledged.saturating_sub(1);
                stats.error(fault);
            }
        }
    }

    /// The server ends: requests in flight are still answered, new ones are not (RFC 9114 5.2).
    pub fn shut_down(&mut self, now: Instant) {
        if self.exchanges.is_empty() && self.unacknowledged == 0 {
            self.quic.close(now, varint(Code::NoError), Bytes::new());
            return;
        }
        self.goaway = Some(self.next_stream);
        if let Some(id) = self.control_stream {
            let mut octets = Vec::new();
            frame::write_goaway(self.next_stream, &mut octets);
            let _ = self.quic.send_stream(id).write_chunks(&mut [octets.into()]);
        }
    }

    /// Whether as many requests were answered as the fault `close_after_requests` allows.
    fn is_served(&self, handler: &Handler) -> bool {
        let limit = handler.faults().close_after_requests;
        limit > 0 && self.answered >= limit
    }

    /// Closes the connection when all answers have arrived and no more are to be given.
    fn close_if_served(&mut self, handler: &Handler, now: Instant) {
        let is_over = self.is_served(handler) || self.goaway.is_some() && self.exchanges.is_empty();
        let is_sending = self.unacknowledged > 0;
        if is_over && !is_sending && !self.quic.is_closed() {
            self.quic.close(now, varint(Code::NoError), Bytes::new());
        }
    }
}
