//! Messages one after the other on the streams of a connection, in quinn-proto's terms: streams of a higher level first,
//! equal ones in turn.
//!
//! What was lost of an earlier message goes before what is new of a later one (RFC 9000 section 13.3), as it does over TCP.
//! Streams of one level would have it behind all that wait, for quinn-proto queues a stream again when it has lost something.

use quinn_proto::{Connection, StreamId};

/// Levels of one urgency.
pub const LEVELS: u64 = 1 << 24;

/// The level, among those of one urgency, of a message that is sent whole, with so many before it.
#[must_use]
pub fn whole(before: u64) -> u64 {
    (LEVELS - 1).saturating_sub(before).max(2)
}

/// Puts the message of a stream behind the `before` ones that were begun earlier.
pub fn set_in_order(connection: &mut Connection, id: StreamId, before: u64) {
    // Fails when the stream is over.
    let _ = connection.send_stream(id).set_priority(whole(before) as i32);
}

/// Puts a control stream before all messages: a peer may wait for its SETTINGS.
pub fn set_control(connection: &mut Connection, id: StreamId) {
    let _ = connection.send_stream(id).set_priority(i32::MAX);
}
