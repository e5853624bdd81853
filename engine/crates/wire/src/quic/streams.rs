//! What both ends do alike with streams.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use quinn_proto::{Connection, ReadError, StreamId, VarInt};

use crate::h3::{Code, ControlPlane, Error, UniEvent};
use crate::priority::Priority;

/// State by stream identifier. It allocates only while it grows.
pub type StreamMap<T> = HashMap<u64, T, BuildHasherDefault<StreamHasher>>;

/// Spreads stream identifiers, which count up by four. Peers cannot choose them freely, and limits bound how many are
/// open, so there is nothing to defend by a keyed hash.
#[derive(Clone, Copy, Debug, Default)]
pub struct StreamHasher(u64);

impl Hasher for StreamHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, octets: &[u8]) {
        for octet in octets {
            self.write_u64(self.0 ^ u64::from(*octet));
        }
    }

    fn write_u64(&mut self, id: u64) {
        // 2^64 / golden ratio (Knuth, The Art of Computer Programming 6.4), high bits folded down.
        let product = id.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = product ^ (product >> 32);
    }
}

/// Reads what there is of a unidirectional stream of the peer into `control`, which may change priorities of requests. Returns the
/// identifier of a GOAWAY.
///
/// # Errors
/// An error of the connection, to be closed with its code.
pub fn read_uni_stream(
    connection: &mut Connection,
    control: &mut ControlPlane,
    id: StreamId,
    mut on_priority: impl FnMut(u64, Priority),
) -> Result<Option<u64>, Error> {
    let number = VarInt::from(id).into_inner();
    let (mut unknown, mut ended, mut goaway) = (false, false, None);
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return Ok(None) };
    loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => control.on_data(number, &chunk.bytes, &mut |event| match event {
                UniEvent::GoAway(first) => goaway = Some(first),
                UniEvent::Unknown => unknown = true,
                UniEvent::Priority { stream, priority } => on_priority(stream, priority),
                UniEvent::Settings(_) => {}
            })?,
            Ok(None) | Err(ReadError::Reset(_)) => {
                ended = true;
                break;
            }
            Err(ReadError::Blocked) => break,
        }
    }
    // What it says is found again by the next `poll_transmit`.
    let _ = chunks.finalize();
    if ended {
        control.on_end(number)?;
    } else if unknown {
        let code = VarInt::from_u64(Code::StreamCreationError.value()).unwrap_or(VarInt::MAX);
        let _ = connection.recv_stream(id).stop(code);
    }
    Ok(goaway)
}
