//! Reading frames in batches with the time at which the kernel got each from the device.

use std::io;
use std::os::fd::RawFd;

use trifecta_wire::timestamp::{CONTROL_WORDS, ClockPair, receive_timestamp_ns};

use super::BATCH;
use crate::buffer::{Buffer, LARGE_BYTES, MEDIUM_BYTES, Pool, SMALL_BYTES};

/// A frame, virtio-net header first.
#[derive(Debug)]
pub struct Received {
    pub buffer: Buffer,
    pub length: usize,
    pub arrived_ns: u64,
}

/// What receiving needs, kept between calls. Each frame is read into a small buffer, which is handed on without a copy
/// when it suffices, and beyond that into a large one.
pub struct Receiver {
    small: Vec<Buffer>,
    large: Vec<Buffer>,
    iovecs: Box<[[libc::iovec; 2]; BATCH]>,
    controls: Box<[[u64; CONTROL_WORDS]; BATCH]>,
    messages: Box<[libc::mmsghdr; BATCH]>,
    /// Frames longer than any buffer.
    pub truncated: u64,
    /// Frames whose timestamp was missing or impossible; they arrived when they were read.
    pub timestamps_replaced: u64,
}

impl Receiver {
    #[must_use]
    pub fn new(pool: &mut Pool) -> Self {
        // SAFETY: all-zero octets are valid iovecs (null, length 0) and message headers without buffers.
        let (iovecs, messages) = unsafe { (Box::new(std::mem::zeroed()), Box::new(std::mem::zeroed())) };
        let mut receiver = Receiver {
            small: (0..BATCH).map(|_| pool.take(SMALL_BYTES)).collect(),
            large: (0..BATCH).map(|_| pool.take(LARGE_BYTES)).collect(),
            iovecs,
            controls: Box::new([[0; CONTROL_WORDS]; BATCH]),
            messages,
            truncated: 0,
            timestamps_replaced: 0,
        };
        (0..BATCH).for_each(|index| receiver.prepare(index));
        receiver
    }

    /// Reads what is there, at most one batch, appends it to `out` and says how many frames were taken in.
    ///
    /// # Errors
    /// As recvmmsg(2), when the device is gone or down.
    pub fn receive(&mut self, fd: RawFd, pool: &mut Pool, out: &mut Vec<Received>) -> io::Result<usize> {
        // SAFETY: every message points into buffers, iovecs and control room owned by `self`, which outlive the call.
        let count = unsafe {
            libc::recvmmsg(fd, self.messages.as_mut_ptr(), BATCH as u32, libc::MSG_DONTWAIT, std::ptr::null_mut())
        };
        if count < 0 {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(0),
                _ => Err(error),
            };
        }
        let clocks = ClockPair::now();
        for index in 0..count as usize {
            let message = &self.messages[index];
            let length = message.msg_len as usize;
            if message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
                self.truncated += 1;
                self.prepare(index);
                continue;
            }
            // SAFETY: the kernel filled this message just now; its control room belongs to `self`.
            let timestamp_ns = unsafe { receive_timestamp_ns(&message.msg_hdr) };
            let arrived_ns = timestamp_ns.and_then(|time_ns| clocks.monotonic(time_ns));
            if arrived_ns.is_none() {
                self.timestamps_replaced += 1;
            }
            let buffer = self.hand_over(index, length, pool);
            self.prepare(index);
            out.push(Received { buffer, length, arrived_ns: arrived_ns.unwrap_or(clocks.monotonic_ns) });
        }
        Ok(count as usize)
    }

    /// Makes slot `index` ready for the next frame. The kernel leaves those alone that it did not fill.
    fn prepare(&mut self, index: usize) {
        let large = &mut self.large[index][SMALL_BYTES..];
        self.iovecs[index] = [
            libc::iovec { iov_base: self.small[index].as_mut_ptr().cast(), iov_len: SMALL_BYTES },
            libc::iovec { iov_base: large.as_mut_ptr().cast(), iov_len: large.len() },
        ];
        let header = &mut self.messages[index].msg_hdr;
        header.msg_iov = self.iovecs[index].as_mut_ptr();
        header.msg_iovlen = 2;
        header.msg_control = self.controls[index].as_mut_ptr().cast();
        header.msg_controllen = CONTROL_WORDS * size_of::<u64>();
        header.msg_flags = 0;
    }

    /// Gives away the frame in slot `index` in the smallest buffer and puts a fresh one in its place.
    fn hand_over(&mut self, index: usize, length: usize, pool: &mut Pool) -> Buffer {
        if length <= SMALL_BYTES {
            return std::mem::replace(&mut self.small[index], pool.take(SMALL_BYTES));
        }
        let (small, large) = (&self.small[index], &mut self.large[index]);
        large[..SMALL_BYTES].copy_from_slice(small);
        if length > MEDIUM_BYTES {
            return std::mem::replace(&mut self.large[index], pool.take(LARGE_BYTES));
        }
        let mut medium = pool.take(length);
        medium[..length].copy_from_slice(&large[..length]);
        medium
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_put_together_from_both_buffers() {
        let mut pool = Pool::default();
        let mut receiver = Receiver::new(&mut pool);
        for (length, size) in [(100, SMALL_BYTES), (9_000, MEDIUM_BYTES), (60_000, LARGE_BYTES)] {
            let whole: Vec<u8> = (0..length).map(|i| (i % 251) as u8).collect();
            let head = length.min(SMALL_BYTES);
            receiver.small[3][..head].copy_from_slice(&whole[..head]);
            if length > SMALL_BYTES {
                receiver.large[3][SMALL_BYTES..length].copy_from_slice(&whole[SMALL_BYTES..]);
            }
            let buffer = receiver.hand_over(3, length, &mut pool);
            assert_eq!((&buffer[..length], buffer.len()), (&whole[..], size));
        }
    }
}
