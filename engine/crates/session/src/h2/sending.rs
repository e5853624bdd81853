//! What leaves a connection: frames, request bodies within the peer's windows, all of one turn in one send.

use trifecta_wire::clock::now_ns;
use trifecta_wire::h2::write;

use super::H2Session;
use trifecta_wire::ErrorClass;

/// Octets that may wait for the kernel before more of the bodies is written.
const SEND_AHEAD_OCTETS: usize = 256 * 1024;

impl H2Session {
    /// Encrypts what is to be said, hands the kernel what it takes, and goes on with bodies while it takes all.
    pub(super) fn send(&mut self) -> Result<(), ErrorClass> {
        loop {
            self.write_bodies();
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

    /// DATA frames of the request bodies, one frame a stream in turn, as far as the windows reach (RFC 9113 6.9).
    fn write_bodies(&mut self) {
        let mut blocked = 0;
        while blocked < self.uploads.len()
            && self.frames.send_window > 0
            && self.frames.reply.len() + self.transport.unsent() < SEND_AHEAD_OCTETS
        {
            let Some(id) = self.uploads.pop_front() else { return };
            let Some(stream) = self.frames.streams.get_mut(id) else { continue };
            let window = stream.send_window.min(self.frames.send_window).max(0) as u64;
            let length = window.min(u64::from(self.frames.peer_max_frame)).min(stream.body_left);
            if length == 0 {
                blocked += 1;
                self.uploads.push_back(id);
                continue;
            }
            blocked = 0;
            let offset = stream.body_octets - stream.body_left;
            stream.body_left -= length;
            stream.send_window -= length as i64;
            stream.exchange.bytes_out += length;
            self.frames.send_window -= length as i64;
            let last = stream.body_left == 0;
            write::data_header(id, length as usize, last, &mut self.frames.reply);
            let mut written = 0;
            while written < length {
                let piece = stream.body.piece(offset + written, length - written);
                self.frames.reply.extend_from_slice(piece);
                written += piece.len() as u64;
            }
            if last {
                // Its last octets go with this send; the time is set again then.
                self.unsent.push(id);
            } else {
                self.uploads.push_back(id);
            }
        }
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
