//! What a session asks and tells: which request is next, and how one ended.

use std::sync::Arc;

use trifecta_record::{Sample, SampleStore, SpanStore};
use trifecta_session::caller::{Caller, Exchange, Handshake, Request, Totals};
use trifecta_session::content;
use trifecta_wire::ErrorClass;

use crate::config::{Config, Loop, Method};
use crate::cycle::Cycles;
use crate::fields::Fields;
use crate::lag::LagHistogram;
use crate::pacer::Pacer;

mod clients;
mod shared;

pub(crate) use clients::Beginnings;
use clients::Clients;
pub use shared::{DEAD_PATH_FAILURES, Shared};

/// A slot of an open loop that is due before the end may be started so much after it: as late as any other may be
/// (docs/checks.md, `headroom`).
const LATEST_START_NS: u64 = 1_000_000;

/// Counters of one worker.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    pub samples: u64,
    pub errors: u64,
}

/// The requests of one worker: which is next, what is in flight, how they ended.
pub struct Driver {
    pub config: Arc<Config>,
    pub counters: Counters,
    pub totals: Totals,
    pub lag: LagHistogram,
    pub samples: SampleStore,
    pub fields: Fields,
    verify_content: bool,
    to_head: bool,
    expected_content: Option<u64>,
    expected_status: Option<u16>,
    shared: Arc<Shared>,
    clients: Clients,
    /// The place whose session is being called.
    place: usize,
    cycles: Option<Box<Cycles>>,
    pacer: Pacer,
    worker: u64,
    workers: u64,
    /// Requests wait until the connections stand.
    held: bool,
    /// When requests began.
    started_ns: u64,
    ordinal: u64,
    warmup_requests: u64,
    warmup_until_ns: u64,
    measured: u64,
    first_measured_ns: u64,
    measured_limit: u64,
    /// When no new request may start; `u64::MAX` while not known.
    deadline_ns: u64,
    in_flight: u64,
    /// No request starts sooner: the least gap of a closed loop; 0 without one.
    not_before_ns: u64,
    stopped: bool,
    /// A status after which no request begins has come.
    turned_away: bool,
    has_response: bool,
    keeps_samples: bool,
}

impl Driver {
    /// The driver of `worker`. It gives out requests from [`Driver::release`] on.
    #[must_use]
    pub fn new(config: Arc<Config>, shared: Arc<Shared>, worker: u32) -> Self {
        let (index, workers) = (u64::from(worker), u64::from(config.workers));
        // The first workers take what does not divide evenly.
        let share = |total: u64| total / workers + u64::from(index < total % workers);
        let (places, streams) = (share(config.concurrency()), config.streams_per_connection());
        let clients = Clients::new(worker, config.workers, places as u32, streams, config.requests_per_client);
        let measured_limit = match (config.requests, config.requests_per_client) {
            (0, 0) => u64::MAX,
            (0, each) => each * clients.len() as u64,
            (total, _) => share(total),
        };
        Self {
            cycles: Cycles::new(&config, shared.messages(), clients.len()).map(Box::new),
            clients,
            place: 0,
            verify_content: config.verifies_content(),
            to_head: config.method == Method::Head,
            expected_content: config.expected_content(),
            expected_status: config.expect_status,
            pacer: Pacer::new(config.load, config.seed, worker, config.workers),
            warmup_requests: share(config.warmup_requests),
            warmup_until_ns: if config.warmup_ns > 0 { u64::MAX } else { 0 },
            measured_limit,
            deadline_ns: u64::MAX,
            keeps_samples: config.samples_file.is_some(),
            counters: Counters::default(),
            totals: Totals::default(),
            lag: LagHistogram::default(),
            samples: SampleStore::default(),
            fields: Fields::new(&config.record_fields),
            config,
            shared,
            worker: index,
            workers,
            held: true,
            started_ns: 0,
            ordinal: 0,
            measured: 0,
            first_measured_ns: 0,
            in_flight: 0,
            not_before_ns: 0,
            stopped: false,
            turned_away: false,
            has_response: false,
        }
    }

    /// Requests begin at `now_ns`: the schedule, the warm-up and the duration count from here.
    pub fn release(&mut self, now_ns: u64) {
        self.held = false;
        self.started_ns = now_ns;
        self.warmup_until_ns = now_ns + self.config.warmup_ns;
        if self.config.duration_ns > 0 && self.config.warmup_requests == 0 {
            self.deadline_ns = self.warmup_until_ns + self.config.duration_ns;
        }
    }

    /// The session of this place is called next.
    #[inline]
    pub fn set_place(&mut self, place: usize) {
        self.place = place;
    }

    /// Whether no request will be asked at a place any more, where none is in flight.
    #[must_use]
    pub fn is_done(&self, place: usize) -> bool {
        self.clients.is_done(place)
    }

    /// How the clients began.
    pub(crate) fn beginnings(&self) -> Beginnings {
        self.clients.beginnings()
    }

    /// Takes the hops of the cycles that have ended.
    pub fn take_spans(&mut self) -> SpanStore {
        self.cycles.as_mut().map(|cycles| std::mem::take(&mut cycles.spans)).unwrap_or_default()
    }

    /// Whether requests still wait for [`Driver::release`].
    #[must_use]
    pub fn is_held(&self) -> bool {
        self.held
    }

    /// When the first request after the warm-up started; 0: none did.
    #[must_use]
    pub fn first_measured_ns(&self) -> u64 {
        self.first_measured_ns
    }

    #[inline]
    fn start(&mut self, client: u32, intended_ns: u64, now_ns: u64) -> Exchange {
        let reference_ns = if intended_ns == 0 { now_ns } else { intended_ns };
        let warmup = self.ordinal < self.warmup_requests || reference_ns < self.warmup_until_ns;
        if !warmup {
            if self.measured == 0 {
                self.first_measured_ns = now_ns;
                if self.deadline_ns == u64::MAX && self.config.duration_ns > 0 {
                    self.deadline_ns = reference_ns + self.config.duration_ns;
                }
            }
            self.measured += 1;
            if intended_ns != 0 {
                self.lag.record(now_ns - intended_ns);
            }
        }
        let request = self.ordinal * self.workers + self.worker;
        self.ordinal += 1;
        self.in_flight += 1;
        if self.config.least_gap_ns() > 0 {
            self.not_before_ns = now_ns + self.config.least_gap_ns();
        }
        self.clients.start(client, warmup, now_ns);
        if let Some(cycles) = &mut self.cycles {
            cycles.begin(client);
        }
        let to_head = self.to_head;
        Exchange { request, client, warmup, to_head, intended_ns, started_ns: now_ns, ..Exchange::default() }
    }

    /// Whether limits leave room for another request at `now_ns`, due or not.
    #[inline]
    #[must_use]
    pub fn may_start(&self, now_ns: u64) -> bool {
        if self.stopped || self.measured >= self.measured_limit {
            return false;
        }
        // What is due just before the end is no more missed than any other that is started that late.
        let last_due =
            || self.pacer.next_slot_ns().is_some_and(|offset_ns| self.started_ns + offset_ns < self.deadline_ns);
        now_ns < self.deadline_ns || now_ns < self.deadline_ns.saturating_add(LATEST_START_NS) && last_due()
    }

    /// When the next request of an open loop is due, `u64::MAX` when none is; in a closed loop always now (0), or when its
    /// least gap is over.
    #[must_use]
    pub fn next_due_ns(&self) -> u64 {
        if self.held || self.stopped || self.measured >= self.measured_limit {
            return u64::MAX;
        }
        self.pacer.next_slot_ns().map_or(self.not_before_ns, |offset_ns| self.started_ns + offset_ns)
    }

    /// When no new request may start any more; `u64::MAX` while not known.
    #[must_use]
    pub fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// Requests that were started and not handed back.
    #[must_use]
    pub fn in_flight(&self) -> u64 {
        self.in_flight
    }

    /// No request may start from now on.
    pub fn stop(&mut self) {
        self.stopped = true;
    }

    /// Whether the server answered with a status after which no request begins.
    #[must_use]
    pub fn was_turned_away(&self) -> bool {
        self.turned_away
    }

    /// Whether all requests that were asked for have been started.
    #[must_use]
    pub fn reached_request_limit(&self) -> bool {
        self.measured >= self.measured_limit
    }

    fn judge(&self, exchange: &Exchange) -> Option<ErrorClass> {
        // A service says by its status that a hop behind it has failed.
        let is_wrong = match self.expected_status {
            Some(status) => status != exchange.status,
            None => self.cycles.is_some() && exchange.status >= 400,
        };
        if is_wrong {
            return Some(ErrorClass::Status);
        }
        if self.expected_content.is_some_and(|octets| octets != exchange.bytes_in) {
            return Some(ErrorClass::Length);
        }
        exchange.wrong_content.then_some(ErrorClass::Content)
    }

    #[cold]
    fn note_outcome(&mut self, exchange: &Exchange, failed: bool) {
        self.counters.errors += u64::from(failed);
        if exchange.first_byte_ns != 0 {
            self.has_response = true;
            self.shared.note_response();
        } else if failed {
            self.shared.note_failure();
        }
    }

    /// Measured requests that were asked for by number and never started.
    #[must_use]
    pub fn not_started(&self) -> u64 {
        if self.measured_limit == u64::MAX { 0 } else { self.measured_limit - self.measured }
    }

    /// Counts the slots that were due before `now_ns` and never started. To be called once, at the end.
    pub fn count_missed_slots(&mut self, now_ns: u64) -> u64 {
        let end_ns = self.deadline_ns.min(now_ns);
        let room = self.measured_limit.saturating_sub(self.measured);
        let mut missed = 0;
        while missed < room
            && let Some(offset_ns) = self.pacer.next_slot_ns()
            && self.started_ns + offset_ns < end_ns
        {
            missed += 1;
            self.pacer.advance();
        }
        missed
    }
}

impl Caller for Driver {
    #[inline]
    fn totals(&mut self) -> &mut Totals {
        &mut self.totals
    }

    /// The next request, if one may start at `now_ns`; it is in flight from now on, and must be handed back by
    /// [`Driver::finish`].
    #[inline]
    fn next_request(&mut self, now_ns: u64) -> Option<Exchange> {
        if self.held || !self.may_start(now_ns) || now_ns < self.not_before_ns {
            return None;
        }
        let mut intended_ns = 0;
        if let Some(offset_ns) = self.pacer.next_slot_ns() {
            intended_ns = self.started_ns + offset_ns;
            if intended_ns > now_ns || intended_ns >= self.deadline_ns {
                return None;
            }
        }
        let client = self.clients.take(self.place)?;
        self.pacer.advance();
        Some(self.start(client, intended_ns, now_ns))
    }

    #[inline]
    fn request(&mut self, exchange: &Exchange) -> Option<Request> {
        self.cycles.as_ref().map(|cycles| cycles.request(exchange))
    }

    #[inline]
    fn wants_fields(&self, _: &Exchange) -> bool {
        self.fields.wanted() || self.cycles.as_ref().is_some_and(|cycles| cycles.wanted_field().is_some())
    }

    fn field(&mut self, exchange: &Exchange, name: &[u8], value: &[u8]) {
        self.fields.see(name, value);
        if let Some(cycles) = &mut self.cycles
            && cycles.wanted_field().is_some_and(|wanted| name.eq_ignore_ascii_case(wanted.as_bytes()))
        {
            cycles.take(exchange.client, value);
        }
    }

    #[inline]
    fn content(&mut self, exchange: &mut Exchange, octets: &[u8]) {
        if self.verify_content && !exchange.wrong_content {
            exchange.wrong_content = !content::matches(exchange.bytes_in, octets);
        }
        if let Some(cycles) = &mut self.cycles {
            cycles.take(exchange.client, octets);
        }
    }

    /// Hands a request back. `done_ns`: when the last octet of its response came, 0 when it did not. A whole response is
    /// judged here: status, length, content; of a cycle the hops are kept.
    #[inline]
    fn finish(
        &mut self,
        exchange: &Exchange,
        handshake: &Handshake,
        stream: Option<u64>,
        done_ns: u64,
        error: Option<ErrorClass>,
    ) {
        self.in_flight -= 1;
        let client = self.clients.number(exchange.client);
        let mut error = error.or_else(|| self.judge(exchange));
        if let Some(cycles) = &mut self.cycles {
            error = cycles.finish(exchange, client, handshake, done_ns, error);
        }
        self.clients.give_back(exchange.client);
        if self.config.end_on_statuses.contains(&exchange.status) {
            self.turned_away = true;
            self.stopped = true;
        }
        if error.is_some() || !self.has_response {
            self.note_outcome(exchange, error.is_some());
        }
        self.counters.samples += 1;
        if !self.keeps_samples {
            return;
        }
        let connect = exchange.first_on_connection;
        self.samples.push(&Sample {
            connection: handshake.connection,
            client,
            stream,
            request: exchange.request,
            warmup: exchange.warmup,
            intended_ns: exchange.intended_ns,
            started_ns: exchange.started_ns,
            connect_start_ns: if connect { handshake.connect_start_ns } else { 0 },
            tcp_connected_ns: if connect { handshake.tcp_connected_ns } else { 0 },
            secured_ns: if connect { handshake.secured_ns } else { 0 },
            request_sent_ns: exchange.request_sent_ns,
            first_byte_ns: exchange.first_byte_ns,
            done_ns,
            protocol: handshake.protocol,
            tls_version: handshake.tls_version,
            cipher: handshake.cipher,
            resumed: handshake.resumed,
            zero_rtt: exchange.zero_rtt,
            status: exchange.status,
            bytes_out: exchange.bytes_out,
            bytes_in: exchange.bytes_in,
            header_bytes_in: exchange.header_bytes_in,
            error,
        });
    }

    /// A connection that was to be reused could not be opened: one failed row. It takes the slot of a request that is due.
    /// When no request is left to start, nobody needed the connection, and it is only counted.
    fn fail_attempt(&mut self, handshake: &Handshake, now_ns: u64, error: ErrorClass) {
        if !self.may_start(now_ns) {
            self.totals.connections_lost_idle += 1;
            return;
        }
        let due = self.next_request(now_ns);
        // Nothing is due in an open loop: the attempt still leaves its row, with its own start as the intended one.
        let open = matches!(self.config.load, Loop::Open { .. });
        let undue = |driver: &mut Self| {
            let client = driver.clients.take(driver.place)?;
            Some(driver.start(client, if open { handshake.connect_start_ns } else { 0 }, now_ns))
        };
        let Some(mut exchange) = due.or_else(|| undue(self)) else {
            self.totals.connections_lost_idle += 1;
            return;
        };
        exchange.started_ns = handshake.connect_start_ns;
        exchange.first_on_connection = true;
        self.finish(&exchange, handshake, None, 0, Some(error));
    }
}

#[cfg(test)]
pub(crate) mod tests;
