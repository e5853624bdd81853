//! The clients of a worker: as many ask at the same time as there are connections times streams, and each has one request in
//! flight at most.

/// What a client has done.
#[derive(Clone, Copy, Debug)]
struct Client {
    /// Measured requests that it has yet to make.
    left: u64,
    started: bool,
}

/// The clients of one worker, by the place of their connection.
#[derive(Debug)]
pub(super) struct Clients {
    /// Clients of each place.
    streams: u32,
    worker: u32,
    workers: u32,
    clients: Vec<Client>,
    /// Of each place, those that may ask.
    free: Vec<Vec<u32>>,
    /// How many have begun, and when the first and the last of them did.
    begun: u32,
    first_begun_ns: u64,
    last_begun_ns: u64,
}

/// How the clients began: together, or with a spread that says how long the generator took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beginnings {
    pub(crate) clients: u32,
    pub(crate) first_ns: u64,
    pub(crate) last_ns: u64,
}

impl Beginnings {
    /// Adds those of another worker.
    pub(crate) fn merge(&mut self, other: Self) {
        if other.clients == 0 {
            return;
        }
        self.first_ns = if self.clients == 0 { other.first_ns } else { self.first_ns.min(other.first_ns) };
        self.last_ns = self.last_ns.max(other.last_ns);
        self.clients += other.clients;
    }
}

impl Clients {
    /// The clients of `worker` of `workers` with `places` connections of `streams` each; `quota`: how many measured requests each
    /// makes, 0: no limit.
    pub(super) fn new(worker: u32, workers: u32, places: u32, streams: u32, quota: u64) -> Self {
        let left = if quota == 0 { u64::MAX } else { quota };
        let clients = places as usize * streams as usize;
        // The lowest number is taken first.
        let free = (0..places).map(|place| (place * streams..(place + 1) * streams).rev().collect()).collect();
        Self {
            streams,
            worker,
            workers,
            clients: vec![Client { left, started: false }; clients],
            free,
            begun: 0,
            first_begun_ns: 0,
            last_begun_ns: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.clients.len()
    }

    /// A client of a place that may ask now.
    #[inline]
    pub(super) fn take(&mut self, place: usize) -> Option<u32> {
        self.free[place].pop()
    }

    /// The client asks at `now_ns`.
    #[inline]
    pub(super) fn start(&mut self, client: u32, warmup: bool, now_ns: u64) {
        let state = &mut self.clients[client as usize];
        state.left -= u64::from(!warmup);
        if !state.started {
            state.started = true;
            if self.begun == 0 {
                self.first_begun_ns = now_ns;
            }
            self.begun += 1;
            self.last_begun_ns = now_ns;
        }
    }

    /// The client's request has ended.
    #[inline]
    pub(super) fn give_back(&mut self, client: u32) {
        if self.clients[client as usize].left > 0 {
            self.free[(client / self.streams) as usize].push(client);
        }
    }

    /// Whether no client of a place will ask again, given that none of them has a request in flight.
    pub(super) fn is_done(&self, place: usize) -> bool {
        self.free[place].is_empty()
    }

    /// The number of a client in the run, the clients of a connection one behind the other.
    #[inline]
    pub(super) fn number(&self, client: u32) -> u32 {
        if self.workers == 1 {
            return client;
        }
        let (place, slot) = (client / self.streams, client % self.streams);
        (place * self.workers + self.worker) * self.streams + slot
    }

    pub(super) fn beginnings(&self) -> Beginnings {
        Beginnings { clients: self.begun, first_ns: self.first_begun_ns, last_ns: self.last_begun_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_client_of_all_workers_has_a_number_of_its_own() {
        let mut numbers: Vec<u32> = Vec::new();
        for worker in 0..3 {
            // Seven connections on three workers.
            let mut clients = Clients::new(worker, 3, if worker == 0 { 3 } else { 2 }, 4, 0);
            for place in 0..clients.len() / 4 {
                while let Some(client) = clients.take(place) {
                    numbers.push(clients.number(client));
                }
            }
        }
        numbers.sort_unstable();
        assert_eq!(numbers, (0..28).collect::<Vec<u32>>());
        let mut alone = Clients::new(0, 1, 2, 2, 0);
        assert_eq!([0, 0, 1, 1].map(|place| alone.take(place)), [0, 1, 2, 3].map(Some));
    }

    #[test]
    fn a_client_has_one_request_in_flight_and_no_more_than_its_quota() {
        let mut clients = Clients::new(0, 1, 1, 1, 2);
        for round in 0..3u64 {
            assert_eq!(clients.take(0), Some(0), "round {round}");
            assert_eq!(clients.take(0), None, "it is busy");
            // What warms up does not count.
            clients.start(0, round == 0, 10 * round + 5);
            clients.give_back(0);
        }
        assert!(clients.is_done(0) && clients.take(0).is_none());
        let mut all = Beginnings::default();
        all.merge(clients.beginnings());
        all.merge(Beginnings::default());
        all.merge(Beginnings { clients: 2, first_ns: 3, last_ns: 9 });
        assert_eq!(all, Beginnings { clients: 3, first_ns: 3, last_ns: 9 });
    }
}
