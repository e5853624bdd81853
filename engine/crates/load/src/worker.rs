//! One thread's event loop: opens connections, starts what is due, hands readiness and timers to the sessions.

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use trifecta_session::caller::{Caller, Handshake};
use trifecta_session::{NEVER_NS, Session, State};
use trifecta_wire::ErrorClass;
use trifecta_wire::alarm::Alarm;
use trifecta_wire::clock::{now_ns as clock_ns, thread_cpu_ns};
use trifecta_wire::epoll::{EDGE, Epoll, READABLE};
use trifecta_wire::process;
use trifecta_wire::ticker::Ticker;

use crate::config::{Config, ConnectionMode};
use crate::driver::{Driver, Shared};

/// After a failure the next attempt in its place starts no sooner than this after the failed one.
const RETRY_SPACING_NS: u64 = 10_000_000;
/// How long a wait may last, so that a stop asked of another thread is noticed, and a loop that stands still too.
const LONGEST_WAIT_NS: u64 = 50_000_000;
/// How often a receive that waits is interrupted.
const TICK_NS: u64 = LONGEST_WAIT_NS;
/// How often a worker that waits for the others looks for them.
const BARRIER_POLL_NS: u64 = 500_000;
const EVENTS: usize = 256;
const STDIN_TOKEN: u64 = u64::MAX;
const ALARM_TOKEN: u64 = u64::MAX - 1;
/// What is due sooner is the timeout of the wait itself (an open loop's next slot); anything later is left to the alarm.
const SOON_NS: u64 = 2_000_000;

/// Why a run ended. `status`: one of those after which no request begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    Requests,
    Duration,
    TotalTimeout,
    NoResponse,
    Status,
    Signal,
    Stdin,
}

/// What a worker hands back.
pub(crate) struct Outcome {
    pub(crate) driver: Driver,
    pub(crate) ended: Ended,
    pub(crate) started_ns: u64,
    pub(crate) ended_ns: u64,
    pub(crate) missed_slots: u64,
    pub(crate) thread_cpu_ns: u64,
    pub(crate) longest_gap_ns: u64,
}

/// A place for one connection at a time.
struct Place<S> {
    session: Option<S>,
    /// Counts the sessions of this place, so that an event of an earlier one is not taken for a later one's.
    generation: u32,
    opened_ns: u64,
    /// Not opened again before this time.
    not_before_ns: u64,
}

pub(crate) struct Worker<S: Session> {
    shared: S::Shared,
    driver: Driver,
    run: Arc<Shared>,
    epoll: Epoll,
    alarm: Alarm,
    /// Interrupts receives that wait; there once the first one may.
    ticker: Option<Ticker>,
    /// When epoll has to be asked again, although a receive could do the waiting.
    epoll_due_ns: u64,
    /// When the wait that goes on, or the last one, had to end.
    wait_until_ns: u64,
    /// The longest time from when the loop had to come round until it did, while requests were measured: the process was stopped,
    /// had no core, or was long at work.
    longest_gap_ns: u64,
    places: Vec<Place<S>>,
    /// Timeout of each place's session.
    timers_ns: Vec<u64>,
    /// Places without a session.
    vacant: Vec<u32>,
    /// Where the search for a free session begins, so that an open loop uses all in turn.
    turn: usize,
    index: u32,
    connections: u32,
    reused: bool,
    /// Ready to begin, as soon as the other workers are.
    arrived: bool,
    stdin_ended: bool,
}

impl<S: Session> Worker<S> {
    pub(crate) fn new(
        config: &Arc<Config>,
        run: Arc<Shared>,
        shared: S::Shared,
        index: u32,
        watches_stdin: bool,
    ) -> io::Result<Self> {
        let workers = u64::from(config.workers);
        let concurrency = config.concurrency();
        let places = concurrency / workers + u64::from(u64::from(index) < concurrency % workers);
        let epoll = Epoll::new(EVENTS)?;
        let alarm = Alarm::new()?;
        epoll.add(alarm.as_raw_fd(), READABLE | EDGE, ALARM_TOKEN)?;
        if watches_stdin {
            epoll.add(0, READABLE, STDIN_TOKEN)?;
        }
        Ok(Self {
            shared,
            driver: Driver::new(config.clone(), run.clone(), index),
            run,
            epoll,
            alarm,
            ticker: None,
            epoll_due_ns: 0,
            wait_until_ns: 0,
            longest_gap_ns: 0,
            places: (0..places)
                .map(|_| Place { session: None, generation: 0, opened_ns: 0, not_before_ns: 0 })
                .collect(),
            timers_ns: vec![NEVER_NS; places as usize],
            vacant: (0..places as u32).rev().collect(),
            turn: 0,
            index,
            connections: 0,
            reused: config.connection_mode == ConnectionMode::Reused,
            arrived: false,
            stdin_ended: false,
        })
    }

    /// Runs until the end.
    ///
    /// # Errors
    /// When the kernel refuses to wait.
    pub(crate) fn run(mut self) -> io::Result<Outcome> {
        let (started_ns, cpu_ns) = (clock_ns(), thread_cpu_ns());
        let give_up_ns = started_ns + self.driver.config.total_timeout_ns;
        let mut now_ns = started_ns;
        let ended = loop {
            if let Some(ended) = self.is_over(now_ns, give_up_ns) {
                break ended;
            }
            self.release_when_ready(now_ns);
            self.open_vacant(now_ns);
            self.release_when_ready(now_ns);
            self.start_due(now_ns);
            let ready = self.wait(now_ns, give_up_ns)?;
            for index in 0..ready {
                let event = self.epoll.event(index);
                self.on_event(event.token, event.flags);
                // A batch of answers must not hold up what an open loop's schedule asks for meanwhile.
                if self.driver.next_due_ns() != 0 {
                    self.start_due(clock_ns());
                }
            }
            let before_ns = std::mem::replace(&mut now_ns, clock_ns());
            self.note_gap(before_ns, now_ns);
            self.fire_timers(now_ns);
        };
        let ended_ns = clock_ns();
        let missed_slots = self.driver.count_missed_slots(ended_ns);
        self.close_all(if ended == Ended::TotalTimeout { ErrorClass::Timeout } else { ErrorClass::Interrupted });
        let thread_cpu_ns = thread_cpu_ns() - cpu_ns;
        let longest_gap_ns = self.longest_gap_ns;
        Ok(Outcome { driver: self.driver, ended, started_ns, ended_ns, missed_slots, thread_cpu_ns, longest_gap_ns })
    }

    /// Takes in one pass of the loop. What the wait was allowed to last is no gap, so of a stop that falls into a wait up to
    /// [`LONGEST_WAIT_NS`] go unseen.
    fn note_gap(&mut self, before_ns: u64, now_ns: u64) {
        let measured_ns = self.driver.first_measured_ns();
        if measured_ns > 0 {
            let due_ns = before_ns.max(self.wait_until_ns).max(measured_ns);
            self.longest_gap_ns = self.longest_gap_ns.max(now_ns.saturating_sub(due_ns));
        }
    }

    fn is_over(&self, now_ns: u64, give_up_ns: u64) -> Option<Ended> {
        if process::stop_requested() {
            return Some(if self.stdin_ended { Ended::Stdin } else { Ended::Signal });
        }
        if self.driver.in_flight() == 0 && self.driver.was_turned_away() {
            return Some(Ended::Status);
        }
        if self.driver.in_flight() == 0 && !self.driver.may_start(now_ns) {
            return Some(if self.driver.reached_request_limit() { Ended::Requests } else { Ended::Duration });
        }
        if self.run.is_dead_path() {
            return Some(Ended::NoResponse);
        }
        (now_ns >= give_up_ns).then_some(Ended::TotalTimeout)
    }

    /// Opens connections: all of them in reused mode, one for each request that may start otherwise.
    fn open_vacant(&mut self, now_ns: u64) {
        if self.arrived && self.driver.is_held() {
            return;
        }
        let mut index = self.vacant.len();
        while index > 0 {
            index -= 1;
            let place = self.vacant[index];
            if self.places[place as usize].not_before_ns > now_ns {
                continue;
            }
            if !self.driver.may_start(now_ns) {
                return;
            }
            if self.driver.is_done(place as usize) {
                self.vacant.swap_remove(index);
                continue;
            }
            let now_ns = clock_ns();
            self.driver.set_place(place as usize);
            let request = if self.reused { None } else { self.driver.next_request(now_ns) };
            if request.is_none() && !self.reused {
                return;
            }
            let opened_ns = now_ns;
            let connection = self.connections * self.driver.config.workers + self.index;
            self.connections += 1;
            let slot = &mut self.places[place as usize];
            slot.generation = slot.generation.wrapping_add(1);
            slot.opened_ns = opened_ns;
            let opened = S::open(&mut self.shared, &mut self.driver, connection, request, opened_ns);
            let handshake = Handshake { connection, connect_start_ns: opened_ns, ..Handshake::default() };
            match opened {
                Ok(session) => {
                    let token = u64::from(slot.generation) << 32 | u64::from(place);
                    let watched = self.epoll.add(session.fd(), S::WATCHED, token);
                    self.timers_ns[place as usize] = session.next_timeout_ns();
                    slot.session = Some(session);
                    self.vacant.swap_remove(index);
                    if watched.is_err() {
                        self.close(place as usize, ErrorClass::Socket);
                    }
                }
                Err(error) => {
                    slot.not_before_ns = opened_ns + RETRY_SPACING_NS.max(self.driver.config.least_gap_ns());
                    match request {
                        Some(mut exchange) => {
                            exchange.first_on_connection = true;
                            self.driver.finish(&exchange, &handshake, None, 0, Some(error));
                        }
                        None => self.driver.fail_attempt(&handshake, opened_ns, error),
                    }
                }
            }
        }
    }

    /// Requests begin when all workers are ready: on reused connections when every one was opened or has failed once. With a
    /// connection for every request there is nothing to wait for, and with 0-RTT the first requests belong to the handshakes.
    fn release_when_ready(&mut self, now_ns: u64) {
        if !self.driver.is_held() {
            return;
        }
        if !self.arrived {
            let opening = |place: &Place<S>| {
                place.generation == 0 || place.session.as_ref().is_some_and(|session| session.state() == State::Opening)
            };
            if self.reused && !self.driver.config.zero_rtt && self.places.iter().any(opening) {
                return;
            }
            self.arrived = true;
            self.run.arrive(now_ns);
        }
        if self.run.begin_ns().is_none_or(|begin_ns| begin_ns > now_ns) {
            return;
        }
        self.driver.release(now_ns);
        for place in 0..self.places.len() {
            self.start_on(place);
        }
    }

    /// Starts the requests of an open loop that are due, on connections that have room, in turn.
    fn start_due(&mut self, now_ns: u64) {
        let due_ns = self.driver.next_due_ns();
        // A closed loop's requests follow their predecessors in the session itself.
        if !self.reused || due_ns == 0 || due_ns > now_ns {
            return;
        }
        let places = self.places.len();
        for _ in 0..places {
            self.turn = if self.turn + 1 >= places { 0 } else { self.turn + 1 };
            let place = self.turn;
            let has_room = self.places[place].session.as_ref().is_some_and(|session| session.free_slots() > 0);
            if has_room {
                self.start_on(place);
                if self.driver.next_due_ns() > now_ns {
                    return;
                }
            }
        }
    }

    fn start_on(&mut self, place: usize) {
        if let Some(session) = &mut self.places[place].session {
            self.driver.set_place(place);
            session.start_requests(&mut self.shared, &mut self.driver);
            self.after(place);
        }
    }

    fn on_event(&mut self, token: u64, flags: u32) {
        if token >= ALARM_TOKEN {
            if token == STDIN_TOKEN && process::stdin_closed() {
                self.stdin_ended = true;
                process::request_stop();
            }
            return;
        }
        let (place, generation) = ((token & 0xffff_ffff) as usize, (token >> 32) as u32);
        let slot = &mut self.places[place];
        if slot.generation == generation
            && let Some(session) = &mut slot.session
        {
            self.driver.set_place(place);
            session.on_ready(&mut self.shared, &mut self.driver, flags);
            self.after(place);
        }
    }

    fn fire_timers(&mut self, now_ns: u64) {
        for place in 0..self.timers_ns.len() {
            if self.timers_ns[place] <= now_ns
                && let Some(session) = &mut self.places[place].session
            {
                self.driver.set_place(place);
                session.on_timer(&mut self.shared, &mut self.driver, now_ns);
                self.after(place);
            }
        }
    }

    /// A session was called: its timeout may have changed, or it is over.
    #[inline]
    fn after(&mut self, place: usize) {
        let slot = &mut self.places[place];
        let Some(session) = &slot.session else { return };
        let State::Closed { failed } = session.state() else {
            self.timers_ns[place] = session.next_timeout_ns();
            return;
        };
        self.timers_ns[place] = NEVER_NS;
        // A least gap holds for attempts to connect as well: at somebody's door each one is a knock like any other.
        let gap_ns = self.driver.config.least_gap_ns();
        slot.not_before_ns = slot.opened_ns + if failed { RETRY_SPACING_NS.max(gap_ns) } else { gap_ns };
        slot.session = None;
        self.vacant.push(place as u32);
    }

    fn close(&mut self, place: usize, error: ErrorClass) {
        if let Some(session) = &mut self.places[place].session {
            self.driver.set_place(place);
            session.close(&mut self.shared, &mut self.driver, error);
            self.after(place);
        }
    }

    fn close_all(&mut self, error: ErrorClass) {
        self.driver.stop();
        for place in 0..self.places.len() {
            self.close(place, error);
        }
    }

    /// Waits until something is ready or due.
    fn wait(&mut self, now_ns: u64, give_up_ns: u64) -> io::Result<usize> {
        let until_ns = self.wait_until_ns(now_ns, give_up_ns);
        self.wait_until_ns = until_ns;
        if self.receive_waiting(now_ns, until_ns) {
            return Ok(0);
        }
        if until_ns < now_ns + SOON_NS {
            return self.epoll.wait(Some(until_ns.saturating_sub(now_ns)));
        }
        self.alarm.no_later_than(until_ns, now_ns)?;
        self.epoll.wait(None)
    }

    /// With one connection, and nothing else that could be due, its receive does the waiting. What epoll watches besides, the
    /// end of standard input, is looked at now and then.
    fn receive_waiting(&mut self, now_ns: u64, until_ns: u64) -> bool {
        self.driver.set_place(0);
        let [place] = &mut self.places[..] else { return false };
        let Some(session) = &mut place.session else { return false };
        let has_time = until_ns > now_ns + TICK_NS && now_ns < self.epoll_due_ns;
        if S::WAITS_IN_RECEIVE && self.ticker.is_none() && has_time && session.state() == State::Open {
            self.ticker = Ticker::new(TICK_NS).ok();
        }
        let may_wait = has_time && self.ticker.is_some() && self.driver.in_flight() > 0;
        if may_wait && session.receive_waiting(&mut self.shared, &mut self.driver) {
            self.after(0);
            return true;
        }
        self.epoll_due_ns = now_ns + LONGEST_WAIT_NS;
        false
    }

    fn wait_until_ns(&self, now_ns: u64, give_up_ns: u64) -> u64 {
        let mut until_ns = give_up_ns.min(now_ns + LONGEST_WAIT_NS);
        if self.arrived && self.driver.is_held() {
            return self.run.begin_ns().unwrap_or(now_ns + BARRIER_POLL_NS);
        }
        // Behind the deadline only what is in flight counts.
        if self.driver.deadline_ns() > now_ns {
            until_ns = until_ns.min(self.driver.deadline_ns());
        }
        for timer_ns in &self.timers_ns {
            until_ns = until_ns.min(*timer_ns);
        }
        if self.driver.may_start(now_ns) {
            for place in &self.vacant {
                let not_before_ns = self.places[*place as usize].not_before_ns;
                // A vacant place that could be opened now waits for the next slot of an open loop.
                if not_before_ns > now_ns {
                    until_ns = until_ns.min(not_before_ns);
                }
            }
            let due_ns = self.driver.next_due_ns();
            // What is due and could not be started has to wait for a connection to have room.
            if due_ns > now_ns {
                until_ns = until_ns.min(due_ns);
            }
        }
        until_ns
    }
}
