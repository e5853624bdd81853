//! Writing answers to streams.

use bytes::Bytes;
use quinn_proto::{Connection, StreamId, WriteError};
use trifecta_wire::h3::{Code, frame};
use trifecta_wire::qpack::encoder;

use super::varint;
use crate::answer::{Head, Plan};
use crate::config::Protocol;
use crate::content::Content;
use crate::handler::{self, Handler};
use crate::relay::META_FIELD;
use crate::summary::ServerFault;

/// Octets of content handed to quinn-proto at once.
const PIECE_OCTETS: usize = 64 * 1024;

/// An answer that is being sent.
pub(super) struct Sending {
    /// HEADERS frame and the header of the DATA frame, as far as they are still to be written.
    head: Bytes,
    content: Content,
    next: u64,
    end: u64,
}

/// What became of an attempt to write.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Written {
    /// All is handed over and the stream is finished.
    Whole,
    /// Windows are full; goes on when the stream is writable.
    Blocked,
    /// The peer does not want it, or the content cannot be read any more.
    Failed(ServerFault),
}

impl Sending {
    /// The first `octets` of the plan's content, behind `head`.
    pub fn new(head: Bytes, plan: &Plan, octets: u64) -> Self {
        Self { head, content: plan.content.clone(), next: 0, end: octets }
    }

    /// Hands over as much as windows allow. `sent` counts content octets.
    pub fn write(&mut self, connection: &mut Connection, id: StreamId, sent: &mut u64) -> Written {
        let mut stream = connection.send_stream(id);
        loop {
            let mut chunks = [std::mem::take(&mut self.head), Bytes::new()];
            let head_octets = chunks[0].len();
            if self.next < self.end {
                let limit = usize::try_from(self.end - self.next).unwrap_or(usize::MAX).min(PIECE_OCTETS);
                match self.content.bytes(self.next, limit) {
                    Ok(piece) if !piece.is_empty() => chunks[1] = piece,
                    _ => {
                        let _ = stream.reset(varint(Code::InternalError));
                        return Written::Failed(ServerFault::File);
                    }
                }
            } else if head_octets == 0 {
                // Fails only when the peer has stopped the stream, and then the answer is not wanted.
                let _ = stream.finish();
                return Written::Whole;
            }
            match stream.write_chunks(&mut chunks) {
                Ok(written) => {
                    // What was not taken of the head is left in its chunk.
                    self.head = std::mem::take(&mut chunks[0]);
                    let of_head = head_octets - self.head.len();
                    let of_content = (written.bytes - of_head) as u64;
                    self.next += of_content;
                    *sent += of_content;
                }
                Err(WriteError::Blocked) => {
                    self.head = std::mem::take(&mut chunks[0]);
                    return Written::Blocked;
                }
                Err(WriteError::Stopped(_) | WriteError::ClosedStream) => return Written::Failed(ServerFault::Stopped),
            }
        }
    }
}

/// Encoded heads by what they were made of; a study asks for few, so a handful of places is enough.
#[derive(Default)]
pub(super) struct HeadCache {
    entries: Vec<(Head, u64, Bytes)>,
    next: usize,
}

const CACHED_HEADS: usize = 16;

impl HeadCache {
    /// HEADERS frame of an answer and the header of its DATA frame of `octets`. `elapsed_ns`: for a Server-Timing field.
    pub fn get(&mut self, handler: &Handler, plan: &Plan, octets: u64, elapsed_ns: Option<u64>) -> Bytes {
        let head = &plan.head;
        if elapsed_ns.is_some() || plan.meta.is_some() {
            return encode(handler, plan, octets, elapsed_ns);
        }
        let known = self.entries.iter().find(|(known, length, _)| *length == octets && known == head);
        if let Some((_, _, encoded)) = known {
            return encoded.clone();
        }
        let encoded = encode(handler, plan, octets, None);
        let entry = (*head, octets, encoded.clone());
        if self.entries.len() < CACHED_HEADS {
            self.entries.push(entry);
        } else {
            self.entries[self.next] = entry;
            self.next = (self.next + 1) % CACHED_HEADS;
        }
        encoded
    }
}

fn encode(handler: &Handler, plan: &Plan, octets: u64, elapsed_ns: Option<u64>) -> Bytes {
    let head = &plan.head;
    let mut section = encoder::PREFIX.to_vec();
    encoder::encode_status(head.status, &mut section);
    handler.for_each_field(head, Protocol::H3, |name, value| {
        encoder::encode_field(name.as_bytes(), value, &mut section);
    });
    if let Some(elapsed_ns) = elapsed_ns {
        let mut value = String::new();
        handler::server_timing(elapsed_ns, &mut value);
        encoder::encode_field(b"server-timing", value.as_bytes(), &mut section);
    }
    if let Some(meta) = &plan.meta {
        encoder::encode_field(META_FIELD.as_bytes(), meta, &mut section);
    }
    let mut out = Vec::with_capacity(section.len() + 16);
    frame::write_headers(&section, &mut out);
    if octets > 0 {
        frame::write_header(frame::kind::DATA, octets, &mut out);
    }
    out.into()
}
