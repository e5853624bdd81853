//! The connections to one service, of one protocol: a new one for each call, or kept ones that calls wait for in order.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::mem::take;

use trifecta_session::caller::{Caller, Exchange, Handshake, Request, Totals};
use trifecta_session::options::{ConnectionMode, FieldError, Method, Options};
use trifecta_session::{NEVER_NS, Session, State};
use trifecta_wire::ErrorClass;
use trifecta_wire::clock::now_ns;
use trifecta_wire::epoll::Epoll;

use super::cycles::{Cycles, JSON, META_FIELD};
use super::message::MAX_MESSAGE_OCTETS;
use super::stats::CallStats;

/// A service as the relay sees it, whatever its protocol.
pub(super) trait Upstream: Send {
    /// Makes the call of a cycle, now or when a connection has room.
    fn begin(&mut self, id: u32, cycles: &mut Cycles, epoll: &Epoll);
    /// A descriptor is ready. `key` came from [`key_of`].
    fn on_event(&mut self, key: u64, flags: u32, cycles: &mut Cycles, epoll: &Epoll);
    /// [`Upstream::next_timeout_ns`] has come.
    fn on_timer(&mut self, now_ns: u64, cycles: &mut Cycles, epoll: &Epoll);
    /// When something is due, or [`NEVER_NS`].
    fn next_timeout_ns(&self, cycles: &mut Cycles) -> u64;
    /// Ends every connection; what is under way fails as interrupted.
    fn close(&mut self, cycles: &mut Cycles);
    fn stats(&mut self) -> CallStats;
}

/// What the sessions report to; the cycles are lent for the time of a call.
#[derive(Default)]
struct Desk {
    /// Calls that wait for a connection with room.
    queue: VecDeque<u32>,
    stats: CallStats,
    /// How the last connection that could not be opened failed.
    refusal: Option<ErrorClass>,
}

/// The caller that sessions see.
struct DeskCaller<'a> {
    desk: &'a mut Desk,
    cycles: &'a mut Cycles,
}

impl DeskCaller<'_> {
    /// The call begins now.
    fn exchange(&mut self, id: u32, now_ns: u64) -> Exchange {
        let mut to_head = false;
        if let Some(call) = self.cycles.call(id) {
            call.forwarded_ns = now_ns;
            to_head = call.method == Method::Head;
        }
        Exchange { request: u64::from(id), to_head, started_ns: now_ns, ..Exchange::default() }
    }

    /// A call has ended without a connection.
    fn fail(&mut self, id: u32, error: ErrorClass) {
        *self.desk.stats.errors.entry(error).or_default() += 1;
        if let Some(call) = self.cycles.call(id) {
            call.error = Some(error);
        }
        self.cycles.returned.push_back(id);
    }
}

impl Caller for DeskCaller<'_> {
    fn totals(&mut self) -> &mut Totals {
        &mut self.desk.stats.totals
    }

    fn next_request(&mut self, now_ns: u64) -> Option<Exchange> {
        let id = self.desk.queue.pop_front()?;
        Some(self.exchange(id, now_ns))
    }

    fn request(&mut self, exchange: &Exchange) -> Option<Request> {
        let (method, path, content) = self.cycles.outgoing(exchange.request as u32)?;
        let fields = if method.has_content() { vec![("content-type", Cow::Borrowed(JSON))] } else { Vec::new() };
        Some(Request { method, path, fields, content })
    }

    fn wants_fields(&self, exchange: &Exchange) -> bool {
        exchange.to_head
    }

    fn field(&mut self, exchange: &Exchange, name: &[u8], value: &[u8]) {
        if name.eq_ignore_ascii_case(META_FIELD.as_bytes())
            && let Some(call) = self.cycles.call(exchange.request as u32)
        {
            call.response = value.to_vec();
        }
    }

    fn content(&mut self, exchange: &mut Exchange, octets: &[u8]) {
        if exchange.bytes_in as usize + octets.len() > MAX_MESSAGE_OCTETS {
            exchange.wrong_content = true;
        } else if let Some(call) = self.cycles.call(exchange.request as u32) {
            call.response.extend_from_slice(octets);
        }
    }

    fn finish(
        &mut self,
        exchange: &Exchange,
        handshake: &Handshake,
        _: Option<u64>,
        done_ns: u64,
        error: Option<ErrorClass>,
    ) {
        let id = exchange.request as u32;
        let stats = &mut self.desk.stats;
        if let Some(protocol) = handshake.protocol {
            *stats.spoken.entry(protocol).or_default() += 1;
        }
        if let Some(error) = error
            && handshake.secured_ns == 0
        {
            self.desk.refusal = Some(error);
        }
        if let Some(call) = self.cycles.call(id) {
            call.status = exchange.status;
            call.returned_ns = done_ns;
            if exchange.first_on_connection {
                call.secured_ns = handshake.secured_ns;
            }
            // The entries of one that failed tell how far it came; they are wanted all the same.
            let is_message = done_ns != 0 && !exchange.wrong_content && call.read_response();
            call.error = match error {
                Some(error) => Some(error),
                None if exchange.status >= 400 => Some(ErrorClass::Status),
                None if exchange.wrong_content => Some(ErrorClass::Length),
                None => (!is_message).then_some(ErrorClass::Content),
            };
            if exchange.status != 0 {
                *stats.statuses.entry(exchange.status).or_default() += 1;
            }
            if let Some(error) = call.error {
                *stats.errors.entry(error).or_default() += 1;
            }
        }
        self.cycles.returned.push_back(id);
    }

    fn fail_attempt(&mut self, _: &Handshake, _: u64, _: ErrorClass) {
        // Every connection is opened for a call; one that its call has left is only counted.
        self.desk.stats.totals.connections_lost_idle += 1;
    }
}

/// A place for one connection at a time.
struct Place<S> {
    session: Option<S>,
    /// Counts the sessions of this place, so that an event of an earlier one is not taken for a later one's.
    generation: u32,
    timeout_ns: u64,
}

/// Tokens of the relay's descriptors have the upper bit; then the service, the generation and the place.
pub(super) const TOKEN: u64 = 1 << 63;
const SERVICE_BITS: u64 = 15;
const GENERATION_BITS: u64 = 24;
const PLACE_BITS: u64 = 24;

/// The service that a token belongs to, and the key of its connection.
pub(super) fn key_of(token: u64) -> (usize, u64) {
    let key = token & ((1 << (GENERATION_BITS + PLACE_BITS)) - 1);
    ((token >> (GENERATION_BITS + PLACE_BITS) & ((1 << SERVICE_BITS) - 1)) as usize, key)
}

/// The connections to a service.
pub(super) struct Pool<S: Session> {
    shared: S::Shared,
    desk: Desk,
    places: Vec<Place<S>>,
    vacant: Vec<u32>,
    /// Connections there are.
    live: u32,
    connections: u32,
    streams: u32,
    reused: bool,
    request_timeout_ns: u64,
    /// Where the search for a connection with room begins, so that all are used in turn.
    turn: usize,
    opened: u32,
    service: u64,
}

impl<S: Session> Pool<S> {
    /// `service` is its number; `connections` how many are kept at most.
    ///
    /// # Errors
    /// The field that cannot be used.
    pub(super) fn new(service: usize, options: &Options, connections: u32) -> Result<Self, FieldError> {
        let stats = CallStats { protocol: options.protocol.name(), ..CallStats::default() };
        Ok(Self {
            shared: S::shared(options)?,
            desk: Desk { stats, ..Desk::default() },
            places: Vec::new(),
            vacant: Vec::new(),
            live: 0,
            connections,
            streams: options.streams,
            reused: options.connection_mode == ConnectionMode::Reused,
            request_timeout_ns: options.request_timeout_ns,
            turn: 0,
            opened: 0,
            service: service as u64,
        })
    }

    /// Opens a connection for a call.
    fn open(&mut self, id: u32, cycles: &mut Cycles, epoll: &Epoll) {
        let opened_ns = now_ns();
        let connection = self.opened;
        self.opened = self.opened.wrapping_add(1);
        let mut caller = DeskCaller { desk: &mut self.desk, cycles };
        let mut exchange = caller.exchange(id, opened_ns);
        let session = match S::open(&mut self.shared, &mut caller, connection, Some(exchange), opened_ns) {
            Ok(session) => session,
            Err(error) => {
                exchange.first_on_connection = true;
                let handshake = Handshake { connection, connect_start_ns: opened_ns, ..Handshake::default() };
                caller.finish(&exchange, &handshake, None, 0, Some(error));
                return;
            }
        };
        let place = self.vacant.pop().unwrap_or_else(|| {
            self.places.push(Place { session: None, generation: 0, timeout_ns: NEVER_NS });
            (self.places.len() - 1) as u32
        });
        let slot = &mut self.places[place as usize];
        slot.generation = (slot.generation + 1) & ((1 << GENERATION_BITS) - 1);
        let key = u64::from(slot.generation) << PLACE_BITS | u64::from(place);
        let token = TOKEN | self.service << (GENERATION_BITS + PLACE_BITS) | key;
        let watched = epoll.add(session.fd(), S::WATCHED, token);
        slot.timeout_ns = session.next_timeout_ns();
        slot.session = Some(session);
        self.live += 1;
        if watched.is_err() {
            self.close_place(place as usize, ErrorClass::Socket, cycles);
        }
        // It may be over already, when the kernel refused its first datagram.
        self.after(place as usize);
    }

    fn close_place(&mut self, place: usize, error: ErrorClass, cycles: &mut Cycles) {
        if let Some(session) = &mut self.places[place].session {
            session.close(&mut self.shared, &mut DeskCaller { desk: &mut self.desk, cycles }, error);
            self.after(place);
        }
    }

    /// A session was called: its timeout may have changed, or it is over.
    fn after(&mut self, place: usize) {
        let slot = &mut self.places[place];
        let Some(session) = &slot.session else { return };
        if !matches!(session.state(), State::Closed { .. }) {
            slot.timeout_ns = session.next_timeout_ns();
            return;
        }
        slot.timeout_ns = NEVER_NS;
        slot.session = None;
        self.live -= 1;
        self.vacant.push(place as u32);
    }

    /// Gives waiting calls to connections with room, in turn, and opens connections while there may be more.
    fn fill(&mut self, cycles: &mut Cycles, epoll: &Epoll) {
        for _ in 0..self.places.len() {
            if self.desk.queue.is_empty() {
                return;
            }
            self.turn = if self.turn + 1 >= self.places.len() { 0 } else { self.turn + 1 };
            let place = self.turn;
            if let Some(session) = &mut self.places[place].session
                && session.free_slots() > 0
            {
                session.start_requests(&mut self.shared, &mut DeskCaller { desk: &mut self.desk, cycles });
                self.after(place);
            }
        }
        while !self.desk.queue.is_empty() && self.live < self.connections {
            let opening = self.opening();
            // A connection that is being opened will have room for all its streams but the one it is opened for.
            if self.desk.queue.len() as u64 <= opening * u64::from(self.streams - 1) {
                return;
            }
            if let Some(id) = self.desk.queue.pop_front() {
                self.open(id, cycles, epoll);
            }
            self.refuse_waiting(cycles);
        }
    }

    fn opening(&self) -> u64 {
        let is_opening = |place: &&Place<S>| place.session.as_ref().is_some_and(|s| s.state() == State::Opening);
        self.places.iter().filter(is_opening).count() as u64
    }

    /// Calls wait for connections; when the last attempt at one has failed they fail like it, instead of one a time limit.
    fn refuse_waiting(&mut self, cycles: &mut Cycles) {
        let refusal = self.desk.refusal.take();
        if self.live > 0 {
            return;
        }
        if let Some(error) = refusal {
            for id in take(&mut self.desk.queue) {
                DeskCaller { desk: &mut self.desk, cycles }.fail(id, error);
            }
        }
    }

    /// Something has happened to a session: calls that wait may have room now, or none ever.
    fn settle(&mut self, cycles: &mut Cycles, epoll: &Epoll) {
        if self.reused {
            self.refuse_waiting(cycles);
            self.fill(cycles, epoll);
        }
    }
}

impl<S> Upstream for Pool<S>
where
    S: Session + Send,
{
    fn begin(&mut self, id: u32, cycles: &mut Cycles, epoll: &Epoll) {
        if self.reused {
            self.desk.queue.push_back(id);
            self.fill(cycles, epoll);
        } else {
            self.open(id, cycles, epoll);
        }
    }

    fn on_event(&mut self, key: u64, flags: u32, cycles: &mut Cycles, epoll: &Epoll) {
        let (place, generation) = ((key & ((1 << PLACE_BITS) - 1)) as usize, (key >> PLACE_BITS) as u32);
        let Some(slot) = self.places.get_mut(place).filter(|slot| slot.generation == generation) else { return };
        if let Some(session) = &mut slot.session {
            session.on_ready(&mut self.shared, &mut DeskCaller { desk: &mut self.desk, cycles }, flags);
            self.after(place);
            self.settle(cycles, epoll);
        }
    }

    fn on_timer(&mut self, now_ns: u64, cycles: &mut Cycles, epoll: &Epoll) {
        for place in 0..self.places.len() {
            if self.places[place].timeout_ns <= now_ns
                && let Some(session) = &mut self.places[place].session
            {
                session.on_timer(&mut self.shared, &mut DeskCaller { desk: &mut self.desk, cycles }, now_ns);
                self.after(place);
            }
        }
        // Before their own time is over, calls fail by the cause that is known.
        self.refuse_waiting(cycles);
        while let Some(&id) = self.desk.queue.front()
            && cycles.call(id).is_none_or(|call| call.queued_ns + self.request_timeout_ns <= now_ns)
        {
            self.desk.queue.pop_front();
            DeskCaller { desk: &mut self.desk, cycles }.fail(id, ErrorClass::Timeout);
        }
        self.settle(cycles, epoll);
    }

    fn next_timeout_ns(&self, cycles: &mut Cycles) -> u64 {
        let sessions = self.places.iter().map(|place| place.timeout_ns).fold(NEVER_NS, u64::min);
        let first = self.desk.queue.front().and_then(|id| cycles.call(*id));
        first.map_or(sessions, |call| sessions.min(call.queued_ns + self.request_timeout_ns))
    }

    fn close(&mut self, cycles: &mut Cycles) {
        for id in take(&mut self.desk.queue) {
            DeskCaller { desk: &mut self.desk, cycles }.fail(id, ErrorClass::Interrupted);
        }
        for place in 0..self.places.len() {
            self.close_place(place, ErrorClass::Interrupted, cycles);
        }
    }

    fn stats(&mut self) -> CallStats {
        self.desk.stats.clone()
    }
}
