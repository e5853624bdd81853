//! What leaves a connection: frames, request bodies within the peer's windows, all of one turn in one send.

use std::collections::VecDeque;

use trifecta_wire::clock::now_ns;
use trifecta_wire::h2::write;

use super::H2Session;
use super::frames::Frames;
use trifecta_wire::ErrorClass;

/// Octets that may wait for the kernel before more of the bodies is written.
const SEND_AHEAD_OCTETS: usize = 256 * 1024;

impl H2Session {
    /// Encrypts what is to be said, hands the kernel what it takes, and goes on with bodies while it takes all.
    pub(super) fn send(&mut self) -> Result<(), ErrorClass> {
        loop {
            let room = SEND_AHEAD_OCTETS.saturating_sub(self.transport.unsent());
            write_bodies(&mut self.frames, &mut self.uploads, &mut self.unsent, room);
            if !self.frames.reply.is_empty() {
                self.transport.write(&self.frames.reply)?;
                self.frames.reply.clear();
            }
            if !self.transport.flush()? {
                return Ok(());
            }
            if !self.unsent.is_empty() {
                self.mark_sent();
            }
            if !self.can_upload() {
                return Ok(());
            }
        }
    }

    fn can_upload(&mut self) -> bool {
        if self.frames.send_window <= 0 || self.uploads.is_empty() {
            return false;
        }
        let streams = &mut self.frames.streams;
        self.uploads.retain(|id| streams.get_mut(*id).is_some_and(|stream| stream.body_left > 0));
        self.uploads.iter().any(|id| streams.get_mut(*id).is_some_and(|stream| stream.send_window > 0))
    }

    fn mark_sent(&mut self) {
        let now_ns = now_ns();
        for id in self.unsent.drain(..) {
            if let Some(stream) = self.frames.streams.get_mut(id)
                && stream.body_left == 0
            {
                stream.exchange.request_sent_ns = now_ns;
            }
        }
    }
}

/// DATA frames of the request bodies, one body after the other as over HTTP/3, as far as the windows reach (RFC 9113 6.9) and until
/// `room` octets wait. Those that are whole go from `uploads` to `unsent`.
pub(super) fn write_bodies(frames: &mut Frames, uploads: &mut VecDeque<u32>, unsent: &mut Vec<u32>, room: usize) {
    let mut place = 0;
    while place < uploads.len() && frames.send_window > 0 && frames.reply.len() < room {
        let id = uploads[place];
        let Some(stream) = frames.streams.get_mut(id) else {
            uploads.remove(place);
            continue;
        };
        let window = stream.send_window.min(frames.send_window).max(0) as u64;
        let length = window.min(u64::from(frames.peer_max_frame)).min(stream.body_left);
        if length == 0 {
            place += 1; // it holds up no other
            continue;
        }
        let offset = stream.body_octets - stream.body_left;
        stream.body_left -= length;
        stream.send_window -= length as i64;
        stream.exchange.bytes_out += length;
        frames.send_window -= length as i64;
        let last = stream.body_left == 0;
        write::data_header(id, length as usize, last, &mut frames.reply);
        let mut written = 0;
        while written < length {
            let piece = stream.body.piece(offset + written, length - written);
            frames.reply.extend_from_slice(piece);
            written += piece.len() as u64;
        }
        if last {
            // Its last octets go with this send; the time is set again then.
            unsent.push(id);
            uploads.remove(place);
        }
    }
}
