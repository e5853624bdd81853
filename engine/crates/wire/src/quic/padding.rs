//! Takes PADDING off the end of a packet before quinn-proto reads its frames.
//!
//! PADDING has no semantic value (RFC 9000 section 19.1), and quinn-proto reads it octet by octet, each as a frame of its
//! own. A sender that fills its last packet up to the size of a segmentation offload, as nginx does, so costs its peer ten
//! microseconds for nothing. Only the frames in front of the padding are walked; where that is not certain, as behind a
//! frame that reaches to the end of the packet, nothing is taken off.

use bytes::BytesMut;
use quinn_proto::crypto::{CryptoError, PacketKey};

use crate::h3::varint;

/// Fewer zeros at the end than this are not worth a walk.
const WORTH_OCTETS: usize = 16;

/// A key that decrypts packets and takes their padding off.
pub(super) struct WithoutPadding<K>(pub(super) K);

impl<K: PacketKey> PacketKey for WithoutPadding<K> {
    fn encrypt(&self, packet: u64, octets: &mut [u8], header_len: usize) {
        self.0.encrypt(packet, octets, header_len);
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.0.decrypt(packet, header, payload)?;
        payload.truncate(length_without_padding(payload));
        Ok(())
    }

    fn tag_len(&self) -> usize {
        self.0.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.0.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.0.integrity_limit()
    }
}

/// Octets of the frames of a packet in front of its padding; one octet of padding is left where there is nothing else, since a
/// packet without frames is an error (RFC 9000 section 12.4).
fn length_without_padding(payload: &[u8]) -> usize {
    let zeros = payload.iter().rev().take_while(|octet| **octet == 0).count();
    if zeros < WORTH_OCTETS {
        return payload.len();
    }
    let mut position = 0;
    // Everything from here on is zero, whatever it belongs to.
    let zeros_from = payload.len() - zeros;
    while position < zeros_from {
        match frame_octets(&payload[position..]) {
            Some(octets) => position += octets,
            None => return payload.len(),
        }
    }
    position.max(1).min(payload.len())
}

/// Length of the frame at the front (RFC 9000 section 19), `None` when it reaches to the end of the packet or is not
/// known.
fn frame_octets(frame: &[u8]) -> Option<usize> {
    let kind = *frame.first()?;
    let mut reader = Reader { frame, position: 1 };
    match kind {
        // PADDING between frames, PING, HANDSHAKE_DONE
        0x00 | 0x01 | 0x1e => {}
        // ACK
        0x02 | 0x03 => {
            reader.integers(2)?;
            let ranges = reader.integer()?;
            // The first range, then a gap and a length each, then three counts of ECN.
            reader.integers(1 + ranges.checked_mul(2)?.checked_add(if kind == 0x03 { 3 } else { 0 })?)?;
        }
        // CRYPTO
        0x06 => {
            reader.integers(1)?;
            reader.counted()?;
        }
        // STREAM with a length
        0x08..=0x0f if kind & 0x02 != 0 => {
            reader.integers(if kind & 0x04 != 0 { 2 } else { 1 })?;
            reader.counted()?;
        }
        // MAX_DATA, MAX_STREAMS, DATA_BLOCKED, STREAMS_BLOCKED, RETIRE_CONNECTION_ID
        0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => reader.integers(1)?,
        // MAX_STREAM_DATA, STREAM_DATA_BLOCKED, STOP_SENDING
        0x05 | 0x11 | 0x15 => reader.integers(2)?,
        // RESET_STREAM
        0x04 => reader.integers(3)?,
        // NEW_TOKEN
        0x07 => reader.counted()?,
        // NEW_CONNECTION_ID
        0x18 => {
            reader.integers(2)?;
            let octets = *frame.get(reader.position)?;
            reader.skip(1 + u64::from(octets) + 16)?;
        }
        // PATH_CHALLENGE, PATH_RESPONSE
        0x1a | 0x1b => reader.skip(8)?,
        _ => return None,
    }
    Some(reader.position)
}

/// Reads along a frame; `None` at its end.
struct Reader<'a> {
    frame: &'a [u8],
    position: usize,
}

impl Reader<'_> {
    fn integer(&mut self) -> Option<u64> {
        let (value, octets) = varint::read(self.frame.get(self.position..)?)?;
        self.position += octets;
        Some(value)
    }

    fn integers(&mut self, count: u64) -> Option<()> {
        for _ in 0..count {
            self.integer()?;
        }
        Some(())
    }

    fn skip(&mut self, octets: u64) -> Option<()> {
        self.position = self.position.checked_add(usize::try_from(octets).ok()?)?;
        (self.position <= self.frame.len()).then_some(())
    }

    /// A length and as many octets.
    fn counted(&mut self) -> Option<()> {
        let octets = self.integer()?;
        self.skip(octets)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PADDING: [u8; 900] = [0; 900];

    fn left(frames: &[&[u8]]) -> usize {
        let packet = frames.concat();
        let length = length_without_padding(&packet);
        assert!(packet[length..].iter().all(|octet| *octet == 0));
        length
    }

    #[test]
    fn padding_behind_frames_of_known_length_goes() {
        let ack = [0x02, 0x0a, 0x40, 0x80, 0x01, 0x03, 0x00, 0x02];
        let ack_ecn = [0x03, 0x0a, 0x19, 0x00, 0x03, 0x01, 0x02, 0x00];
        let stream = [0x0f, 0x04, 0x40, 0x64, 0x03, b'a', b'b', 0];
        let new_cid = [&[0x18, 0x01, 0x00, 0x08][..], &[7; 8], &[9; 16]].concat();
        for frame in [&ack[..], &ack_ecn, &stream, &new_cid, &[0x01], &[0x1e], &[0x10, 0x44, 0x00]] {
            assert_eq!(left(&[frame, &PADDING]), frame.len(), "{frame:02x?}");
            assert_eq!(left(&[frame, &PADDING[..4], frame, &PADDING]), 2 * frame.len() + 4, "{frame:02x?}");
            assert_eq!(left(&[frame]), frame.len());
        }
    }

    #[test]
    fn zeros_that_are_content_stay() {
        // Without a length the stream reaches to the end of the packet.
        assert_eq!(left(&[&[0x0c, 0x04, 0x00], &PADDING]), 903);
        // With one, it ends within the zeros.
        assert_eq!(left(&[&[0x0e, 0x04, 0x00, 0x40, 0x64], &PADDING]), 105);
        // Not known, or cut.
        assert_eq!(left(&[&[0x40, 0x31, 0x01], &PADDING]), 903);
        assert_eq!(left(&[&[0x0e, 0x04, 0x00, 0x7f, 0xff], &PADDING]), 905);
    }

    #[test]
    fn a_packet_of_padding_keeps_a_frame() {
        assert_eq!(left(&[&PADDING]), 1);
        assert_eq!(left(&[]), 0);
    }

    #[test]
    fn any_octets_lose_only_zeros() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..50_000 {
            let mut packet: Vec<u8> = (0..40)
                .map(|_| {
                    state ^= state << 13;
                    state ^= state >> 7;
                    state ^= state << 17;
                    (state >> 40) as u8 & if state & 1 == 0 { 0xff } else { 0x1f }
                })
                .collect();
            packet.extend_from_slice(&PADDING[..40]);
            left(&[&packet]);
        }
    }
}
