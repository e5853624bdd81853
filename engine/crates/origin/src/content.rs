//! Where the octets of a response come from. Nothing is copied until it meets a frame or a record.

use bytes::{Bytes, BytesMut};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// The content of a response.
#[derive(Clone, Debug)]
pub enum Content {
    /// No octets.
    Empty,
    /// That many octets of the pattern: octet i is `0x61 + i % 26`.
    Pattern { octets: u64 },
    /// Octets in memory.
    Memory(Bytes),
    /// That many octets of a file from `start` on, read piece by piece.
    File { file: Arc<File>, start: u64, octets: u64 },
}

/// The type of octets of unknown kind, also of the pattern.
pub const OCTET_STREAM: &str = "application/octet-stream";
/// Octets of the pattern that lie ready; a piece handed out is at most that long.
pub const PATTERN_OCTETS: usize = 26 * 2560;
/// Octets read from a file at once.
const FILE_PIECE_OCTETS: usize = 256 * 1024;

/// One period more than [`PATTERN_OCTETS`], so that a full piece can begin anywhere in the period.
static PATTERN: [u8; PATTERN_OCTETS + 26] = {
    let mut pattern = [0u8; PATTERN_OCTETS + 26];
    let mut place = 0;
    while place < pattern.len() {
        pattern[place] = 0x61 + (place % 26) as u8;
        place += 1;
    }
    pattern
};

/// Up to `limit` octets of the pattern from octet `offset` on.
#[inline]
fn pattern_piece(offset: u64, limit: usize) -> &'static [u8] {
    let start = (offset % 26) as usize;
    &PATTERN[start..start + limit.min(PATTERN_OCTETS)]
}

impl Content {
    /// How many octets there are.
    #[inline]
    pub fn octets(&self) -> u64 {
        match self {
            Self::Empty => 0,
            Self::Pattern { octets } | Self::File { octets, .. } => *octets,
            Self::Memory(bytes) => bytes.len() as u64,
        }
    }

    /// `octets` of it from `first` on, which must lie within. The pattern has no parts.
    pub fn part(self, first: u64, octets: u64) -> Self {
        match self {
            Self::Memory(bytes) => Self::Memory(bytes.slice(first as usize..(first + octets) as usize)),
            Self::File { file, start, .. } => Self::File { file, start: start + first, octets },
            whole => whole,
        }
    }

    /// A piece of 1 to `limit` octets from `offset` on, which must be below [`Content::octets`]; `scratch` may be used to
    /// hold it.
    ///
    /// # Errors
    /// When a file cannot be read, or has become shorter than it was.
    #[inline]
    pub fn piece<'a>(&'a self, offset: u64, limit: usize, scratch: &'a mut Vec<u8>) -> io::Result<&'a [u8]> {
        let limit = usize::try_from(self.octets().saturating_sub(offset)).unwrap_or(usize::MAX).min(limit);
        match self {
            Self::Empty => Ok(&[]),
            Self::Pattern { .. } => Ok(pattern_piece(offset, limit)),
            Self::Memory(bytes) => Ok(&bytes[offset as usize..offset as usize + limit]),
            Self::File { file, start, .. } => {
                scratch.resize(limit.min(FILE_PIECE_OCTETS), 0);
                file.read_exact_at(scratch, start + offset)?;
                Ok(scratch)
            }
        }
    }

    /// The same as a reference-counted piece, without a copy where there is memory to refer to.
    ///
    /// # Errors
    /// As [`Content::piece`].
    pub fn bytes(&self, offset: u64, limit: usize) -> io::Result<Bytes> {
        let limit = usize::try_from(self.octets().saturating_sub(offset)).unwrap_or(usize::MAX).min(limit);
        match self {
            Self::Empty => Ok(Bytes::new()),
            Self::Pattern { .. } => Ok(Bytes::from_static(pattern_piece(offset, limit))),
            Self::Memory(bytes) => Ok(bytes.slice(offset as usize..offset as usize + limit)),
            Self::File { file, start, .. } => {
                let mut piece = BytesMut::zeroed(limit.min(FILE_PIECE_OCTETS));
                file.read_exact_at(&mut piece, start + offset)?;
                Ok(piece.freeze())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(offset: u64, octets: usize) -> Vec<u8> {
        (offset..offset + octets as u64).map(|place| 0x61 + (place % 26) as u8).collect()
    }

    #[test]
    fn the_pattern_is_the_same_from_every_offset() {
        let content = Content::Pattern { octets: 1_000_000 };
        let mut scratch = Vec::new();
        for offset in [0, 1, 25, 26, 27, 65_535, 66_559, 66_560, 999_999] {
            let piece = content.piece(offset, usize::MAX, &mut scratch).unwrap();
            assert_eq!(piece.len() as u64, (1_000_000 - offset).min(PATTERN_OCTETS as u64));
            assert_eq!(piece, expected(offset, piece.len()));
            assert_eq!(content.bytes(offset, 100).unwrap(), expected(offset, 100.min(1_000_000 - offset as usize)));
        }
    }

    #[test]
    fn files_are_read_piece_by_piece_and_truncation_is_an_error() {
        let path = std::env::temp_dir().join(format!("trifecta-content-{}", std::process::id()));
        std::fs::write(&path, expected(0, 700_000)).unwrap();
        let file = Arc::new(File::open(&path).unwrap());
        let content = Content::File { file, start: 0, octets: 700_000 };
        let mut scratch = Vec::new();
        let mut offset = 0;
        while offset < content.octets() {
            let piece = content.piece(offset, 1 << 20, &mut scratch).unwrap();
            assert_eq!(piece, expected(offset, piece.len()));
            assert_eq!(content.bytes(offset, 10).unwrap(), piece[..10]);
            offset += piece.len() as u64;
        }
        std::fs::write(&path, b"short").unwrap();
        assert!(content.piece(0, 100, &mut scratch).is_err());
        std::fs::remove_file(&path).unwrap();
    }
}
