//! The link's loop: take in frames, let go what is due, wait.

use std::io;

use trifecta_wire::clock::now_ns;
use trifecta_wire::process;

use crate::config::Split;
use crate::device::receive::{Received, Receiver};
use crate::device::transmit::{Run, Transmitter, send_one};
use crate::device::{BATCH, Device};
use crate::summary::Ended;
use crate::traffic::{Departure, Left, Traffic};
use crate::wait::Waiter;

const CLOSING_STACK_BYTES: usize = 64 << 10;
const IN_A_CIRCLE: &str = "one sender is on this side and on that of the other device";

/// The running link.
pub struct Clockwork {
    devices: [Device; 2],
    receivers: [Receiver; 2],
    outboxes: [Outbox; 2],
    transmitter: Transmitter,
    split: Split,
    pub traffic: Traffic,
    received: Vec<Received>,
}

/// What leaves through one device with the next system call.
#[derive(Default)]
struct Outbox {
    runs: Vec<Run>,
    /// Due time, departure, and the run it went into.
    departures: Vec<(u64, Departure, usize)>,
}

impl Outbox {
    /// Adds packets; those that continue the last run of the same frame join it, unless they are to leave one by one.
    fn add(&mut self, due_ns: u64, departure: Departure, split: Split) {
        let run = departure.run;
        if split == Split::Real {
            for segment in run.first..run.end {
                let run = Run { first: segment, end: segment + 1, ..run };
                self.departures.push((
                    due_ns,
                    Departure {
                        run,
                        ordinal: departure.ordinal + u64::from(segment - departure.run.first),
                        ..departure
                    },
                    self.runs.len(),
                ));
                self.runs.push(run);
            }
            return;
        }
        match self.runs.last_mut() {
            Some(last) if last.frame == run.frame && last.end == run.first => last.end = run.end,
            _ => self.runs.push(run),
        }
        self.departures.push((due_ns, departure, self.runs.len() - 1));
    }
}

impl Clockwork {
    #[must_use]
    pub fn new(devices: [Device; 2], split: Split, mut traffic: Traffic) -> Self {
        let receivers = [Receiver::new(&mut traffic.frames.pool), Receiver::new(&mut traffic.frames.pool)];
        Clockwork {
            devices,
            receivers,
            outboxes: Default::default(),
            transmitter: Transmitter::default(),
            split,
            traffic,
            received: Vec::with_capacity(BATCH),
        }
    }

    #[must_use]
    pub fn devices(&self) -> &[Device; 2] {
        &self.devices
    }

    /// Closes both devices at once: for each of them the kernel waits until no packet can be on its way to it (10 ms).
    pub fn close(self) {
        let [first, second] = self.devices;
        let one = std::thread::Builder::new().stack_size(CLOSING_STACK_BYTES).spawn(move || drop(first));
        drop(second);
        if let Ok(one) = one {
            let _ = one.join();
        }
    }

    /// Frames too long for any buffer, and frames whose time of arrival had to be replaced, of a direction.
    #[must_use]
    pub fn receive_anomalies(&self, direction: usize) -> (u64, u64) {
        (self.receivers[direction].truncated, self.receivers[direction].timestamps_replaced)
    }

    /// Carries packets until the process is asked to stop or, whatever it was asked, until `end_ns`.
    ///
    /// # Errors
    /// The name of the device that failed and the error of recvmmsg(2), or that both devices are on one network.
    pub fn run(&mut self, spin_ns: u64, end_ns: Option<u64>) -> Result<Ended, (String, io::Error)> {
        let watch_stdin = process::stdin_is_watched();
        let least_delay_ns = self.traffic.directions.iter().map(|of| of.chain.least_delay_ns()).min().unwrap_or(0);
        let devices = [self.devices[0].fd(), self.devices[1].fd()];
        let mut waiter = Waiter::new(devices, watch_stdin, spin_ns, least_delay_ns);
        loop {
            let received = [self.receive(0)?, self.receive(1)?];
            let now = now_ns();
            if received != [0, 0] {
                waiter.arrived(now);
            }
            self.let_go(now);
            if end_ns.map_or_else(process::stop_requested, |end_ns| now >= end_ns) {
                return Ok(Ended::Signal);
            }
            let next_ns = self.traffic.schedule.next_ns().into_iter().chain(end_ns).min();
            // A full batch: there is probably more.
            if !received.contains(&BATCH) && waiter.wait(next_ns) && process::stdin_closed() {
                return Ok(Ended::Stdin);
            }
        }
    }

    fn receive(&mut self, direction: usize) -> Result<usize, (String, io::Error)> {
        let device = &self.devices[direction];
        let count = self.receivers[direction]
            .receive(device.fd(), &mut self.traffic.frames.pool, &mut self.received)
            .map_err(|error| (device.name().to_owned(), error))?;
        for Received { buffer, length, arrived_ns } in self.received.drain(..) {
            self.traffic.arrive(direction, buffer, length, arrived_ns);
        }
        self.pass(direction)?;
        Ok(count)
    }

    /// Sends what passes beside the impairments of a bridge.
    fn pass(&mut self, direction: usize) -> Result<(), (String, io::Error)> {
        let out = self.devices[1 - direction].fd();
        while let Some(passing) = self.traffic.neighbours.as_mut().and_then(|neighbours| neighbours.waiting.pop()) {
            let sent = send_one(out, &passing.buffer[..passing.length]);
            self.traffic.passed(passing, sent);
        }
        if self.traffic.in_a_circle() {
            return Err((self.devices[1].name().to_owned(), io::Error::other(IN_A_CIRCLE)));
        }
        Ok(())
    }

    /// Sends what is due.
    fn let_go(&mut self, now_ns: u64) {
        while let Some((due_ns, departure)) = self.traffic.next_departure(now_ns) {
            let outbox = &mut self.outboxes[departure.direction];
            outbox.add(due_ns, departure, self.split);
            if outbox.runs.len() >= BATCH {
                self.send(departure.direction);
            }
        }
        self.send(0);
        self.send(1);
    }

    fn send(&mut self, direction: usize) {
        let outbox = &mut self.outboxes[direction];
        if outbox.runs.is_empty() {
            return;
        }
        let fd = self.devices[1 - direction].fd();
        let mut departures = outbox.departures.iter().peekable();
        for (batch, runs) in outbox.runs.chunks(BATCH).enumerate() {
            let mut sent = [false; BATCH];
            let given_ns = now_ns();
            self.transmitter.send(fd, &self.traffic.frames, runs, &mut sent);
            let left = Left { given_ns, taken_ns: now_ns() };
            while let Some((due_ns, departure, run)) = departures.next_if(|(_, _, run)| run / BATCH == batch) {
                self.traffic.settle(*due_ns, *departure, left, sent[run % BATCH]);
            }
        }
        outbox.runs.clear();
        outbox.departures.clear();
    }
}
