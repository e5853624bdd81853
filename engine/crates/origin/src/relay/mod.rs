//! A service of a chain: what comes in by a route is passed on by calls of other services, each in its turn, and answered
//! when they have answered. All in the worker's own event loop, by the sessions that the load generator uses.
//!
//! A worker hands [`Submission`]s in by [`Relay::submit`], passes events and timers on, and sends what
//! [`Relay::next_answer`] gives. Nothing is ever tried twice: a call that fails makes the answer 502, or 504 when it took
//! too long, with the meta so far.

pub mod config;
mod cycles;
mod message;
mod options;
mod pool;
mod stats;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use trifecta_session::NEVER_NS;
use trifecta_session::h1::H1Session;
use trifecta_session::h2::H2Session;
use trifecta_session::h3::H3Session;
use trifecta_session::options::{Options, Protocol};
use trifecta_wire::epoll::Epoll;

use crate::answer::Plan;
use crate::config::{Config, ConfigError};
use crate::summary::{FoundService, RelayReady};

pub(crate) use cycles::{META_FIELD, Routes};
pub use cycles::{Submission, Ticket};
pub(crate) use message::MAX_MESSAGE_OCTETS;
pub use stats::RelayStats;

use cycles::Cycles;
use pool::{Pool, TOKEN, Upstream, key_of};

/// What was found out of a configuration before the first worker starts.
pub(crate) struct Prepared {
    service: String,
    pub(crate) routes: Arc<Routes>,
    services: Vec<(String, Options, u32)>,
}

impl Prepared {
    /// Resolves the services' names.
    ///
    /// # Errors
    /// Names what cannot be reached; the exit code is then 3.
    pub(crate) fn new(config: &Config) -> Result<Option<Self>, ConfigError> {
        let Some(relay) = &config.relay else { return Ok(None) };
        let mut services = Vec::new();
        for (name, service) in &relay.services {
            services.push((name.clone(), relay.options(name, service, config)?, service.connections));
        }
        Ok(Some(Self { service: relay.service.clone(), routes: Arc::new(Routes::new(relay)), services }))
    }

    /// For the ready line: where the services were found.
    pub(crate) fn describe(&self) -> RelayReady {
        let found = |(name, options, _): &(String, Options, u32)| {
            let (address, port) = (options.address.ip(), options.address.port());
            (name.clone(), FoundService { address, port, protocol: options.protocol })
        };
        RelayReady { service: self.service.clone(), services: self.services.iter().map(found).collect() }
    }
}

/// The relay of one worker.
pub(crate) struct Relay {
    service: String,
    names: Vec<String>,
    upstreams: Vec<Box<dyn Upstream>>,
    cycles: Cycles,
    /// Cycles whose answer is due.
    ready: VecDeque<u32>,
    answers_dropped: u64,
}

impl Relay {
    /// # Errors
    /// The field that cannot be used.
    pub(crate) fn new(prepared: &Prepared) -> Result<Self, ConfigError> {
        let mut upstreams: Vec<Box<dyn Upstream>> = Vec::new();
        for (number, (_, options, connections)) in prepared.services.iter().enumerate() {
            let made: Result<Box<dyn Upstream>, _> = match options.protocol {
                Protocol::H1 => Pool::<H1Session>::new(number, options, *connections).map(|pool| Box::new(pool) as _),
                Protocol::H2 => Pool::<H2Session>::new(number, options, *connections).map(|pool| Box::new(pool) as _),
                Protocol::H3 => Pool::<H3Session>::new(number, options, *connections).map(|pool| Box::new(pool) as _),
            };
            let wrong = |error: trifecta_session::options::FieldError| ConfigError {
                field: format!("relay.{}", error.field),
                message: error.message,
            };
            upstreams.push(made.map_err(wrong)?);
        }
        Ok(Self {
            service: prepared.service.clone(),
            names: prepared.services.iter().map(|(name, _, _)| name.clone()).collect(),
            upstreams,
            cycles: Cycles::new(prepared.routes.clone()),
            ready: VecDeque::new(),
            answers_dropped: 0,
        })
    }

    /// Whether an epoll token is one of the relay's descriptors.
    #[inline]
    pub(crate) fn owns(token: u64) -> bool {
        token & TOKEN != 0
    }

    /// Begins a cycle.
    pub(crate) fn submit(&mut self, submission: Submission, epoll: &Epoll) {
        let id = self.cycles.add(submission);
        self.go_on(id, epoll);
        self.settle(epoll);
    }

    /// Makes the next call of a cycle, or has it answered.
    fn go_on(&mut self, id: u32, epoll: &Epoll) {
        match self.cycles.next_call(id) {
            Some(service) => self.upstreams[service].begin(id, &mut self.cycles, epoll),
            None => self.ready.push_back(id),
        }
    }

    fn settle(&mut self, epoll: &Epoll) {
        while let Some(id) = self.cycles.returned.pop_front() {
            self.go_on(id, epoll);
        }
    }

    /// A descriptor of ours is ready.
    pub(crate) fn on_event(&mut self, token: u64, flags: u32, epoll: &Epoll) {
        let (service, key) = key_of(token);
        if let Some(upstream) = self.upstreams.get_mut(service) {
            upstream.on_event(key, flags, &mut self.cycles, epoll);
            self.settle(epoll);
        }
    }

    /// When [`Relay::on_timer`] is to be called.
    pub(crate) fn next_timeout_ns(&mut self) -> Option<u64> {
        let cycles = &mut self.cycles;
        let due = self.upstreams.iter().map(|upstream| upstream.next_timeout_ns(cycles)).min();
        due.filter(|due_ns| *due_ns != NEVER_NS)
    }

    /// Time limits and the protocols' own timers.
    pub(crate) fn on_timer(&mut self, now_ns: u64, epoll: &Epoll) {
        for upstream in &mut self.upstreams {
            if upstream.next_timeout_ns(&mut self.cycles) <= now_ns {
                upstream.on_timer(now_ns, &mut self.cycles, epoll);
            }
        }
        self.settle(epoll);
    }

    /// The next answer, to be sent at once.
    #[inline]
    pub(crate) fn next_answer(&mut self) -> Option<(Ticket, Plan)> {
        let id = self.ready.pop_front()?;
        self.cycles.answer(id)
    }

    /// An answer found nobody.
    pub(crate) fn dropped(&mut self) {
        self.answers_dropped += 1;
    }

    /// Ends all connections; what was counted.
    pub(crate) fn finish(mut self) -> RelayStats {
        let unfinished = self.cycles.in_flight();
        let mut calls = BTreeMap::new();
        for (upstream, name) in self.upstreams.iter_mut().zip(&self.names) {
            upstream.close(&mut self.cycles);
            calls.insert(name.clone(), upstream.stats());
        }
        RelayStats { service: self.service, calls, answers_dropped: self.answers_dropped, unfinished }
    }
}
