//! Buffers for frames, used again and again, and the frames in flight.

use crate::frame::{Layout, VNET_HEADER_BYTES};

/// Sizes of buffers: a wire packet at MTU 1500, a short super-packet, and the longest one with its headers.
pub const SMALL_BYTES: usize = 2048;
pub const MEDIUM_BYTES: usize = 16 * 1024;
pub const LARGE_BYTES: usize = 66 * 1024;

pub type Buffer = Box<[u8]>;

/// Buffers that are free, by size.
#[derive(Debug, Default)]
pub struct Pool {
    small: Vec<Buffer>,
    medium: Vec<Buffer>,
    large: Vec<Buffer>,
}

impl Pool {
    /// A buffer of at least `length` octets with undefined contents; at most `LARGE_BYTES`.
    pub fn take(&mut self, length: usize) -> Buffer {
        let (free, size) = if length <= SMALL_BYTES {
            (&mut self.small, SMALL_BYTES)
        } else if length <= MEDIUM_BYTES {
            (&mut self.medium, MEDIUM_BYTES)
        } else {
            (&mut self.large, LARGE_BYTES)
        };
        free.pop().unwrap_or_else(|| vec![0; size].into_boxed_slice())
    }

    pub fn give_back(&mut self, buffer: Buffer) {
        match buffer.len() {
            SMALL_BYTES => self.small.push(buffer),
            MEDIUM_BYTES => self.medium.push(buffer),
            _ => self.large.push(buffer),
        }
    }
}

/// A frame with wire packets still on their way.
#[derive(Debug)]
pub struct Frame {
    pub buffer: Buffer,
    pub layout: Layout,
    /// When the kernel got it from the device.
    pub arrived_ns: u64,
    /// Wire packets of it that are still in flight.
    uses: u32,
}

impl Frame {
    /// The octets, virtio-net header first.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.layout.end]
    }
}

/// Frames in flight by number; numbers are used again.
#[derive(Debug, Default)]
pub struct Frames {
    slots: Vec<Option<Frame>>,
    free: Vec<u32>,
    /// Octets of the buffers in flight.
    bytes: u64,
    pub pool: Pool,
}

impl Frames {
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps a frame until each of its wire packets is released.
    pub fn insert(&mut self, buffer: Buffer, layout: Layout, arrived_ns: u64) -> u32 {
        debug_assert!(layout.end > VNET_HEADER_BYTES && layout.end <= buffer.len());
        self.bytes += buffer.len() as u64;
        let frame = Some(Frame { buffer, layout, arrived_ns, uses: layout.segments });
        if let Some(number) = self.free.pop() {
            self.slots[number as usize] = frame;
            return number;
        }
        self.slots.push(frame);
        (self.slots.len() - 1) as u32
    }

    /// The frame of that number, which must be in flight.
    #[must_use]
    pub fn get(&self, number: u32) -> &Frame {
        self.slots[number as usize].as_ref().expect("a packet in flight keeps its frame")
    }

    /// One more wire packet uses the octets.
    pub fn retain(&mut self, number: u32) {
        self.slots[number as usize].as_mut().expect("a packet in flight keeps its frame").uses += 1;
    }

    /// This many wire packets of the frame are gone.
    pub fn release(&mut self, number: u32, packets: u32) {
        let slot = &mut self.slots[number as usize];
        let frame = slot.as_mut().expect("a packet in flight keeps its frame");
        frame.uses -= packets;
        if frame.uses == 0
            && let Some(frame) = slot.take()
        {
            self.bytes -= frame.buffer.len() as u64;
            self.pool.give_back(frame.buffer);
            self.free.push(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::parse;
    use crate::frame::tests::udp_frame;

    #[test]
    fn a_frame_lives_until_its_last_packet_is_gone_and_its_buffer_is_used_again() {
        let mut frames = Frames::default();
        let mut bytes = udp_frame(100);
        let mut buffer = frames.pool.take(bytes.len());
        let layout = parse(&mut bytes).unwrap();
        buffer[..bytes.len()].copy_from_slice(&bytes);
        let address = buffer.as_ptr();
        let number = frames.insert(buffer, layout, 5);
        frames.retain(number);
        frames.release(number, 1);
        assert_eq!(frames.get(number).bytes(), &bytes);
        assert_eq!(frames.bytes(), SMALL_BYTES as u64);
        frames.release(number, 1);
        assert_eq!(frames.bytes(), 0);
        let again = frames.pool.take(10);
        assert_eq!(again.as_ptr(), address);
    }
}
