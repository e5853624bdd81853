//! What crosses the link, for Wireshark: a pcapng file with both sides of the impairments as its interfaces.
//!
//! Interface 0 is the side of `a_device`, interface 1 that of `b_device`: what comes from a is there on 0 when it
//! arrives and on 1 when it leaves. Both packets have the same `epb_packetid`, which also names the row of the log.
//! The file ends with a statistics block of each interface, so that it says by itself what was left out.
//! Format: draft-ietf-opsawg-pcapng.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::JoinHandle;

use trifecta_wire::clock::{now_ns, realtime_offset};

use crate::buffer::LARGE_BYTES;
use crate::frame::{Layout, VNET_HEADER_BYTES};
use crate::segment::extract;

const BLOCK_BYTES: usize = 1 << 20;
/// Blocks that may wait for the disk: 512 MiB. Beyond that packets are left out, and counted.
const BLOCKS_WAITING: usize = 512;

const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const INTERFACE_STATISTICS: u32 = 5;
const ENHANCED_PACKET: u32 = 6;
const BYTE_ORDER_MAGIC: u32 = 0x1a2b_3c4d;
const ETHERNET: u16 = 1;
const OPTION_END: u16 = 0;
const OPTION_COMMENT: u16 = 1;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_RESOLUTION: u16 = 9;
const PACKET_FLAGS: u16 = 2;
const PACKET_ID: u16 = 5;
const RECEIVED: u16 = 4;
const DROPPED: u16 = 5;
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;
/// Block type and length, interface, time, two lengths, the length again; and the options of `push`.
const PACKET_OVERHEAD: usize = 32 + 8 + 12 + 4;

/// The number that the two sides of a packet share: direction, copy (0: the original), ordinal in the direction.
#[must_use]
pub fn packet_id(direction: usize, copy: u8, ordinal: u64) -> u64 {
    (direction as u64) << 63 | u64::from(copy) << 48 | ordinal & ((1 << 48) - 1)
}

/// Where a packet was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sighting {
    pub direction: usize,
    pub copy: u8,
    pub ordinal: u64,
    pub at_ns: u64,
    /// It left, on the other side than it arrived.
    pub left: bool,
}

/// How a capture ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Captured {
    pub packets: u64,
    /// Left out because the disk was too slow.
    pub missed: u64,
    /// Add this to a time of CLOCK_MONOTONIC to get the one in the file, which is CLOCK_REALTIME.
    pub realtime_offset_ns: i64,
}

/// Where a capture is written to.
trait Storage: Write + Send + 'static {
    /// Returns when what was written will last.
    fn settle(&mut self) -> io::Result<()>;
}

impl Storage for File {
    fn settle(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// The packets of an interface, and those of them that were left out.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    received: u64,
    dropped: u64,
}

/// Takes packets while the link runs; a thread of its own writes them.
pub struct Capture {
    block: Vec<u8>,
    in_block: [u64; 2],
    counted: [Counted; 2],
    to_writer: SyncSender<Vec<u8>>,
    writer: JoinHandle<Result<(), String>>,
    wire_packet: Box<[u8]>,
    /// Add this to a time of CLOCK_MONOTONIC.
    realtime_offset_ns: i64,
}

impl Capture {
    /// Creates the file and starts the thread that writes it.
    ///
    /// # Errors
    /// When the file cannot be created.
    pub fn create(path: &Path, devices: [&str; 2]) -> Result<Self, String> {
        let file = File::create(path).map_err(|error| error.to_string())?;
        Self::write_to(file, devices, BLOCKS_WAITING)
    }

    fn write_to(mut file: impl Storage, devices: [&str; 2], blocks_waiting: usize) -> Result<Self, String> {
        let realtime_offset_ns = realtime_offset().offset_ns;
        file.write_all(&head(devices, realtime_offset_ns)).map_err(|error| error.to_string())?;
        let (to_writer, blocks) = sync_channel::<Vec<u8>>(blocks_waiting);
        let write = move || {
            for block in blocks {
                file.write_all(&block).map_err(|error| error.to_string())?;
            }
            file.settle().map_err(|error| error.to_string())
        };
        let writer =
            std::thread::Builder::new().name("capture".into()).spawn(write).map_err(|error| error.to_string())?;
        Ok(Capture {
            block: Vec::with_capacity(BLOCK_BYTES),
            in_block: [0; 2],
            counted: [Counted::default(); 2],
            to_writer,
            writer,
            wire_packet: vec![0; LARGE_BYTES].into_boxed_slice(),
            realtime_offset_ns,
        })
    }

    /// Adds one wire packet of a frame (virtio-net header first), as it is on the wire, with its final checksum.
    pub fn push(&mut self, frame: &[u8], layout: &Layout, segment: u32, seen: Sighting) {
        let length = extract(frame, layout, segment, &mut self.wire_packet);
        let octets = &self.wire_packet[VNET_HEADER_BYTES..length];
        // a to b: arrives on a (0), leaves on b (1); b to a the other way round.
        let interface = seen.direction ^ usize::from(seen.left);
        let at_ns = (seen.at_ns as i64 + self.realtime_offset_ns) as u64;
        let padded = octets.len().next_multiple_of(4);
        let total = (PACKET_OVERHEAD + padded) as u32;
        let block = &mut self.block;
        let words = [ENHANCED_PACKET, total, interface as u32, (at_ns >> 32) as u32, at_ns as u32];
        words.into_iter().for_each(|word| block.extend(word.to_ne_bytes()));
        [octets.len() as u32; 2].into_iter().for_each(|word| block.extend(word.to_ne_bytes()));
        block.extend_from_slice(octets);
        block.resize(block.len() + padded - octets.len(), 0);
        let flags = if seen.left { OUTBOUND } else { INBOUND };
        option(block, PACKET_FLAGS, &flags.to_ne_bytes());
        option(block, PACKET_ID, &packet_id(seen.direction, seen.copy, seen.ordinal).to_ne_bytes());
        option(block, OPTION_END, &[]);
        block.extend(total.to_ne_bytes());
        self.in_block[interface] += 1;
        if block.len() + LARGE_BYTES > BLOCK_BYTES {
            self.hand_over();
        }
    }

    fn hand_over(&mut self) {
        let block = std::mem::replace(&mut self.block, Vec::with_capacity(BLOCK_BYTES));
        let taken = self.to_writer.try_send(block).is_ok();
        for (counted, packets) in self.counted.iter_mut().zip(std::mem::take(&mut self.in_block)) {
            counted.received += packets;
            counted.dropped += if taken { 0 } else { packets };
        }
    }

    /// Writes what is left and closes the file.
    ///
    /// # Errors
    /// When the file could not be written.
    pub fn finish(self) -> Result<Captured, String> {
        let Capture { mut block, in_block, mut counted, to_writer, writer, realtime_offset_ns, .. } = self;
        for (counted, packets) in counted.iter_mut().zip(in_block) {
            counted.received += packets;
        }
        block.extend(statistics(&counted, (now_ns() as i64 + realtime_offset_ns) as u64));
        // The link has stopped: now waiting is allowed. A writer that has failed says so below.
        let _ = to_writer.send(block);
        drop(to_writer);
        writer.join().map_err(|_| "the writer of the capture panicked".to_owned())??;
        let missed = counted.iter().map(|one| one.dropped).sum();
        let packets = counted.iter().map(|one| one.received).sum::<u64>() - missed;
        Ok(Captured { packets, missed, realtime_offset_ns })
    }
}

/// The section header and the two interfaces.
fn head(devices: [&str; 2], realtime_offset_ns: i64) -> Vec<u8> {
    let mut head = vec![];
    let mut body = vec![];
    body.extend(BYTE_ORDER_MAGIC.to_ne_bytes());
    body.extend(1u16.to_ne_bytes());
    body.extend(0u16.to_ne_bytes());
    body.extend((-1i64).to_ne_bytes());
    let comment = format!("trifecta realtime_offset_ns={realtime_offset_ns}");
    option(&mut body, OPTION_COMMENT, comment.as_bytes());
    option(&mut body, OPTION_END, &[]);
    add_block(&mut head, SECTION_HEADER, &body);
    for (side, device) in ["a", "b"].into_iter().zip(devices) {
        let mut body = vec![];
        body.extend(ETHERNET.to_ne_bytes());
        body.extend([0; 2]);
        body.extend((LARGE_BYTES as u32).to_ne_bytes());
        option(&mut body, INTERFACE_NAME, format!("{side} {device}").as_bytes());
        option(&mut body, INTERFACE_RESOLUTION, &[9]);
        option(&mut body, OPTION_END, &[]);
        add_block(&mut head, INTERFACE_DESCRIPTION, &body);
    }
    head
}

/// A statistics block of each interface, with which the file ends.
fn statistics(counted: &[Counted; 2], at_ns: u64) -> Vec<u8> {
    let mut blocks = vec![];
    for (interface, counted) in counted.iter().enumerate() {
        let mut body = vec![];
        [interface as u32, (at_ns >> 32) as u32, at_ns as u32]
            .into_iter()
            .for_each(|word| body.extend(word.to_ne_bytes()));
        option(&mut body, RECEIVED, &counted.received.to_ne_bytes());
        option(&mut body, DROPPED, &counted.dropped.to_ne_bytes());
        option(&mut body, OPTION_END, &[]);
        add_block(&mut blocks, INTERFACE_STATISTICS, &body);
    }
    blocks
}

fn add_block(out: &mut Vec<u8>, kind: u32, body: &[u8]) {
    let total = (12 + body.len()) as u32;
    out.extend(kind.to_ne_bytes());
    out.extend(total.to_ne_bytes());
    out.extend_from_slice(body);
    out.extend(total.to_ne_bytes());
}

fn option(out: &mut Vec<u8>, code: u16, value: &[u8]) {
    out.extend(code.to_ne_bytes());
    out.extend((value.len() as u16).to_ne_bytes());
    out.extend_from_slice(value);
    out.resize(out.len() + value.len().next_multiple_of(4) - value.len(), 0);
}

#[cfg(test)]
#[path = "capture_tests.rs"]
mod tests;
