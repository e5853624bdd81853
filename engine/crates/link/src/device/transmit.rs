//! Sending frames in batches.

use std::os::fd::RawFd;

use super::BATCH;
use crate::buffer::Frames;
use crate::frame::MAX_HEADER_BYTES;
use crate::segment::run_headers;

/// Wire packets `first..end` of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    pub frame: u32,
    pub first: u32,
    pub end: u32,
}

/// Sends one whole frame, virtio-net header first; whether the device took it.
pub fn send_one(fd: RawFd, frame: &[u8]) -> bool {
    // SAFETY: `frame` is valid for its length and only read.
    let sent = unsafe { libc::send(fd, frame.as_ptr().cast(), frame.len(), libc::MSG_DONTWAIT) };
    usize::try_from(sent) == Ok(frame.len())
}

/// What sending needs, kept between calls.
pub struct Transmitter {
    headers: Box<[[u8; MAX_HEADER_BYTES]; BATCH]>,
    iovecs: Box<[[libc::iovec; 2]; BATCH]>,
    messages: Box<[libc::mmsghdr; BATCH]>,
}

impl Default for Transmitter {
    fn default() -> Self {
        // SAFETY: all-zero octets are valid iovecs (null, length 0) and message headers without buffers.
        let (iovecs, messages) = unsafe { (Box::new(std::mem::zeroed()), Box::new(std::mem::zeroed())) };
        Transmitter { headers: Box::new([[0; MAX_HEADER_BYTES]; BATCH]), iovecs, messages }
    }
}

impl Transmitter {
    /// Sends at most one batch of runs; sets in `sent` which of them the device took. Nothing is sent twice.
    pub fn send(&mut self, fd: RawFd, frames: &Frames, runs: &[Run], sent: &mut [bool; BATCH]) {
        debug_assert!(runs.len() <= BATCH);
        for (index, run) in runs.iter().enumerate() {
            self.prepare(index, frames, *run);
        }
        let mut next = 0;
        while next < runs.len() {
            let rest = &mut self.messages[next..runs.len()];
            // SAFETY: every message points into frames and headers that outlive the call; sending only reads them.
            let count = unsafe { libc::sendmmsg(fd, rest.as_mut_ptr(), rest.len() as u32, libc::MSG_DONTWAIT) };
            let taken = usize::try_from(count).unwrap_or(0);
            sent[next..next + taken].fill(true);
            next += taken;
            if taken == 0 {
                // The first one of the rest failed: it is lost, the others go on.
                sent[next] = false;
                next += 1;
            }
        }
    }

    fn prepare(&mut self, index: usize, frames: &Frames, run: Run) {
        let frame = frames.get(run.frame);
        let header = &mut self.headers[index];
        let parts = run_headers(frame.bytes(), &frame.layout, run.first, run.end, header);
        let payload = &frame.bytes()[parts.payload];
        let payload = libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
        let iovecs = &mut self.iovecs[index];
        let message = &mut self.messages[index].msg_hdr;
        if parts.header_bytes == 0 {
            iovecs[0] = payload;
            message.msg_iovlen = 1;
        } else {
            *iovecs = [libc::iovec { iov_base: header.as_mut_ptr().cast(), iov_len: parts.header_bytes }, payload];
            message.msg_iovlen = 2;
        }
        message.msg_iov = iovecs.as_mut_ptr();
    }
}
