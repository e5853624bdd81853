//! The streams that are open for longer than one frame.

use crate::answer::Plan;
use crate::content::Content;
use trifecta_wire::priority::Priority;

/// One stream.
pub(super) struct Stream {
    pub(super) id: u32,
    /// When its head came, on the engine's clock.
    pub(super) received_ns: u64,
    pub(super) priority: Priority,
    /// The client has not ended its content.
    pub(super) receiving: bool,
    /// The Content-Length announced.
    pub(super) expected: Option<u64>,
    pub(super) received: u64,
    pub(super) receive_window: i64,
    pub(super) send_window: i64,
    /// Content of the request, when a relay wants it.
    pub(super) collected: Vec<u8>,
    /// The answer, until its head is sent.
    pub(super) plan: Option<Plan>,
    /// The answer's content, once its head is sent.
    pub(super) sending: Option<Sending>,
}

/// Content on its way.
pub(super) struct Sending {
    pub(super) content: Content,
    pub(super) next: u64,
    pub(super) end: u64,
}

impl Stream {
    #[inline]
    pub(super) fn new(
        id: u32,
        (send_window, receive_window): (i64, i64),
        ended: bool,
        expected: Option<u64>,
        received_ns: u64,
    ) -> Self {
        Self {
            id,
            received_ns,
            priority: Priority::default(),
            receiving: !ended,
            expected,
            received: 0,
            receive_window,
            send_window,
            collected: Vec::new(),
            plan: None,
            sending: None,
        }
    }

    /// Whether there is something to send that the windows allow.
    #[inline]
    fn can_send(&self, connection_window: i64) -> bool {
        self.sending.is_some() && (self.plan.is_some() || self.send_window.min(connection_window) > 0)
    }
}

/// Priorities that came before their requests and are held; more are forgotten, oldest first.
const HELD_PRIORITIES: usize = 64;
/// Streams that we reset and that frames may still be on their way to.
const REMEMBERED_RESETS: usize = 64;

/// The open streams. There are at most some hundred, so a search through their numbers beats a hash.
#[derive(Default)]
pub(super) struct Streams {
    streams: Vec<Stream>,
    /// How many of them are sending.
    sending: usize,
    resets: Vec<u32>,
    next_reset: usize,
    /// Priorities of streams that are not open yet.
    priorities: Vec<(u32, Priority)>,
}

impl Streams {
    pub(super) fn len(&self) -> usize {
        self.streams.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.streams.is_empty()
    }

    /// How many streams have content to send.
    #[inline]
    pub(super) fn sending(&self) -> usize {
        self.sending
    }

    pub(super) fn push(&mut self, stream: Stream) {
        self.sending += usize::from(stream.sending.is_some());
        self.streams.push(stream);
    }

    /// Puts a stream at a place of at most [`Streams::len`], before those that are there and behind it.
    pub(super) fn insert(&mut self, place: usize, stream: Stream) {
        self.sending += usize::from(stream.sending.is_some());
        self.streams.insert(place, stream);
    }

    pub(super) fn get(&mut self, id: u32) -> Option<&mut Stream> {
        self.streams.iter_mut().find(|stream| stream.id == id)
    }

    pub(super) fn remove(&mut self, id: u32) -> Option<Stream> {
        let place = self.streams.iter().position(|stream| stream.id == id)?;
        Some(self.remove_at(place))
    }

    /// Removes the stream at a place and keeps the order of the others, which is the order of service.
    pub(super) fn remove_at(&mut self, place: usize) -> Stream {
        let stream = self.streams.remove(place);
        self.sending -= usize::from(stream.sending.is_some());
        stream
    }

    pub(super) fn any(&self, wanted: impl FnMut(&Stream) -> bool) -> bool {
        self.streams.iter().any(wanted)
    }

    pub(super) fn retain(&mut self, keep: impl FnMut(&Stream) -> bool) {
        self.streams.retain(keep);
        self.sending = self.streams.iter().filter(|stream| stream.sending.is_some()).count();
    }

    /// Adds to every send window; `false` when one would exceed 2^31-1.
    pub(super) fn change_send_windows(&mut self, change: i64) -> bool {
        self.streams.iter_mut().all(|stream| {
            stream.send_window += change;
            stream.send_window <= i64::from(super::MAX_WINDOW_OCTETS)
        })
    }

    pub(super) fn remember_reset(&mut self, id: u32) {
        if self.resets.len() < REMEMBERED_RESETS {
            self.resets.push(id);
        } else {
            self.resets[self.next_reset] = id;
            self.next_reset = (self.next_reset + 1) % REMEMBERED_RESETS;
        }
    }

    pub(super) fn was_reset(&self, id: u32) -> bool {
        self.resets.contains(&id)
    }

    /// The place of the stream that was answered first, of those that can go on.
    pub(super) fn first(&self, connection_window: i64) -> Option<usize> {
        self.streams.iter().position(|stream| stream.can_send(connection_window))
    }

    /// The place of the stream whose turn it is (RFC 9218 10): the most urgent first; of those, each that is not incremental whole,
    /// in the order of the requests, then the incremental ones in turn, a frame each.
    pub(super) fn most_urgent(&self, connection_window: i64) -> Option<usize> {
        let waiting = self.streams.iter().enumerate().filter(|(_, stream)| stream.can_send(connection_window));
        let first = waiting.min_by_key(|(_, stream)| {
            let Priority { urgency, incremental } = stream.priority;
            (urgency, incremental, if incremental { 0 } else { stream.id })
        });
        first.map(|(place, _)| place)
    }

    /// Keeps the priority of a stream that is not open yet.
    pub(super) fn hold_priority(&mut self, id: u32, priority: Priority) {
        self.priorities.retain(|(held, _)| *held != id);
        if self.priorities.len() == HELD_PRIORITIES {
            self.priorities.remove(0);
        }
        self.priorities.push((id, priority));
    }

    /// The priority that was kept for a stream. Those of streams before it are of no use any more.
    pub(super) fn take_priority(&mut self, id: u32) -> Option<Priority> {
        if self.priorities.is_empty() {
            return None;
        }
        let found = self.priorities.iter().find(|(held, _)| *held == id).map(|(_, priority)| *priority);
        self.priorities.retain(|(held, _)| *held > id);
        found
    }

    /// Whether a stream has something to send that the windows allow.
    pub(super) fn can_send(&self, connection_window: i64) -> bool {
        self.streams.iter().any(|stream| stream.can_send(connection_window))
    }

    /// Whether a stream will go on without further input: it has something to send, or its answer is delayed.
    pub(super) fn can_proceed(&self, connection_window: i64) -> bool {
        self.can_send(connection_window)
            || self.streams.iter().any(|stream| !stream.receiving && stream.plan.is_some() && stream.sending.is_none())
    }
}
