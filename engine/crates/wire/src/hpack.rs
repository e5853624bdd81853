//! HPACK, the header compression of HTTP/2 (RFC 7541).
//!
//! * [`Decoder`] reads any header block, with a dynamic table and limits.
//! * [`encoder`] writes fields from the static table or as literals, never into the dynamic table, so that a block can be
//!   built once and sent many times.
//! * [`scan_response`] takes out of a response block just what a load generator needs, without allocating.

mod decoder;
pub mod encoder;
pub mod integer;
mod scan;
pub mod static_table;

pub use decoder::Decoder;
pub(crate) use scan::Scan;
pub use scan::{ResponseScan, scan_response};

use crate::huffman::HuffmanError;
use integer::IntegerError;

/// Octets an entry costs beyond its name and value (RFC 7541 4.1), also used for the size of header lists (RFC 9113 6.5.2).
pub const ENTRY_OVERHEAD: usize = 32;

/// Why a header block was refused; each is a COMPRESSION_ERROR of the connection, except [`HpackError::ListTooLarge`] and
/// [`HpackError::Malformed`], after which the decoder is still in step with the encoder and only the message is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HpackError {
    /// The block ends inside a field.
    Truncated,
    /// An integer is too large.
    Integer,
    /// A Huffman-coded string is invalid.
    Huffman,
    /// An index points at no entry.
    Index(u64),
    /// A table size update exceeds what was allowed, or stands after a field (RFC 7541 4.2).
    TableSize,
    /// The header list exceeds the limit; the block was read to its end all the same.
    ListTooLarge,
    /// The fields do not form a response (RFC 9113 8.3.2).
    Malformed(&'static str),
}

impl std::fmt::Display for HpackError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Truncated => f.write_str("header block ends inside a field"),
            Self::Integer => f.write_str("integer in header block is too large"),
            Self::Huffman => f.write_str("invalid Huffman code in header block"),
            Self::Index(index) => write!(f, "header block refers to missing table entry {index}"),
            Self::TableSize => f.write_str("dynamic table size update not allowed"),
            Self::ListTooLarge => f.write_str("header list too large"),
            Self::Malformed(what) => f.write_str(what),
        }
    }
}

impl std::error::Error for HpackError {}

impl From<IntegerError> for HpackError {
    fn from(error: IntegerError) -> Self {
        match error {
            IntegerError::Truncated => Self::Truncated,
            IntegerError::Overflow => Self::Integer,
        }
    }
}

impl From<HuffmanError> for HpackError {
    fn from(error: HuffmanError) -> Self {
        match error {
            HuffmanError::Invalid => Self::Huffman,
            HuffmanError::TooLong => Self::ListTooLarge,
        }
    }
}

/// A string literal as it stands in a block (RFC 7541 5.2).
#[derive(Clone, Copy)]
pub(crate) struct StringLiteral<'a> {
    pub(crate) huffman: bool,
    pub(crate) octets: &'a [u8],
}

/// Reads the string literal at `position` and moves past it.
#[inline]
pub(crate) fn read_string<'a>(block: &'a [u8], position: &mut usize) -> Result<StringLiteral<'a>, HpackError> {
    read_prefixed_string(block, position, 7)
}

/// Reads a string literal whose length has a prefix of `prefix_bits`, with the Huffman bit just above it; QPACK has such
/// strings (RFC 9204 4.1.2).
#[inline]
pub(crate) fn read_prefixed_string<'a>(
    block: &'a [u8],
    position: &mut usize,
    prefix_bits: u8,
) -> Result<StringLiteral<'a>, HpackError> {
    let huffman = *block.get(*position).ok_or(HpackError::Truncated)? & (1 << prefix_bits) != 0;
    let length = integer::decode(block, position, prefix_bits)?;
    let length = usize::try_from(length).map_err(|_| HpackError::Integer)?;
    let end = position.checked_add(length).ok_or(HpackError::Integer)?;
    let octets = block.get(*position..end).ok_or(HpackError::Truncated)?;
    *position = end;
    Ok(StringLiteral { huffman, octets })
}

/// Feeds arbitrary octets to both readers of this module; for fuzzing, it must return.
pub fn fuzz_one(data: &[u8]) {
    let _ = scan_response(data);
    let mut decoder = Decoder::new(4096, 16 * 1024);
    for part in data.chunks(64.max(data.len() / 3)) {
        let mut octets = 0;
        let _ = decoder.decode(part, |name, value| octets += name.len() + value.len());
        assert!(octets <= 16 * 1024 && decoder.table_octets() <= 4096);
    }
}
