//! The order of responses (RFC 9218 section 10) in quinn-proto's terms: streams of a higher level first, equal ones in turn.

use quinn_proto::{Connection, StreamId, VarInt};
use trifecta_wire::priority::Priority;
use trifecta_wire::quic::send_order::{LEVELS, whole};

/// Sets the priority of a stream, which the client may not have opened yet.
pub(super) fn set(connection: &mut Connection, id: StreamId, priority: Priority) {
    // Fails when the stream is over, or beyond what the client may open.
    let _ = connection.send_stream(id).set_priority(level(VarInt::from(id).into_inner(), priority));
}

/// Sets the priority that came with the request, unless a PRIORITY_UPDATE came before it, which counts for more (section 7).
pub(super) fn set_first(connection: &mut Connection, id: StreamId, priority: Priority) {
    if connection.send_stream(id).priority() == Ok(0) {
        set(connection, id, priority);
    }
}

/// Of one urgency there is one level for all incremental responses, above it one for each other response.
///
/// More urgent ones first; of those, the ones that are not incremental whole, in the order of the requests, then the
/// incremental ones in turn. Never 0, the level of a stream without a priority.
fn level(stream: u64, priority: Priority) -> i32 {
    let within = if priority.incremental { 1 } else { whole(stream / 4) };
    (u64::from(7 - priority.urgency.min(7)) * LEVELS + within) as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_order_responses() {
        let at = |stream: u64, urgency, incremental| level(stream, Priority { urgency, incremental });
        let order =
            [at(0, 0, false), at(1 << 40, 0, false), at(8, 0, true), at(0, 3, false), at(4, 3, false), at(0, 7, true)];
        assert!(order.is_sorted_by(|before, after| before > after), "{order:?}");
        assert_eq!(at(0, 3, true), at(400, 3, true), "in turn");
        assert!(order[5] > 0);
    }
}
