//! HTTP/1.1 message syntax (RFC 9112) for both sides, strict about anything by which two parties could disagree where a
//! message ends.

mod chunked;
mod head;

pub use chunked::{ChunkedDecoder, ChunkedStep};
pub use head::{RequestHead, ResponseHead, each_response_field, parse_request_head, parse_response_head};

/// Header fields a head may have.
pub const MAX_FIELDS: usize = 96;

/// How the content of a message ends (RFC 9112 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no content.
    None,
    /// That many octets.
    Length(u64),
    /// The chunked transfer coding.
    Chunked,
    /// Until the connection is closed; responses only.
    UntilClose,
}

/// Why a message was refused; the words say what is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http1Error {
    /// The syntax is wrong (RFC 9112 2.2); 400.
    Syntax(&'static str),
    /// Content-Length and Transfer-Encoding contradict each other or themselves (RFC 9112 6.3); 400.
    Framing(&'static str),
    /// More than [`MAX_FIELDS`] fields; 431 (RFC 6585 5).
    TooManyFields,
    /// A transfer coding other than chunked; 501 (RFC 9112 6.1).
    TransferCoding,
    /// Not HTTP/1.x; 505 (RFC 9110 15.6.6).
    Version,
}

impl std::fmt::Display for Http1Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Syntax(what) | Self::Framing(what) => what,
            Self::TooManyFields => "too many header fields",
            Self::TransferCoding => "transfer coding other than chunked",
            Self::Version => "HTTP version is not 1.0 or 1.1",
        })
    }
}

impl std::error::Error for Http1Error {}

/// Feeds arbitrary octets to the parsers of this module; for fuzzing, it must return.
pub fn fuzz_one(data: &[u8]) {
    if let Ok(Some(head)) = parse_request_head(data) {
        assert!(head.head_octets <= data.len());
        fuzz_body(head.framing, &data[head.head_octets..]);
    }
    for head_method in [false, true] {
        if let Ok(Some(head)) = parse_response_head(data, head_method) {
            assert!(head.head_octets <= data.len() && (100..=999).contains(&head.status));
            fuzz_body(head.framing, &data[head.head_octets..]);
        }
    }
    fuzz_body(Framing::Chunked, data);
}

/// The chunked decoder must take the same content whole and octet by octet, and never more than there is.
fn fuzz_body(framing: Framing, body: &[u8]) {
    if framing != Framing::Chunked {
        return;
    }
    let read = |step: usize| -> (Vec<u8>, Result<bool, Http1Error>) {
        let mut decoder = ChunkedDecoder::new();
        let mut content = Vec::new();
        for mut piece in body.chunks(step) {
            loop {
                match decoder.next(&mut piece) {
                    Ok(ChunkedStep::Content(part)) => content.extend_from_slice(part),
                    Ok(ChunkedStep::NeedsMore) => break,
                    Ok(ChunkedStep::End) => return (content, Ok(true)),
                    Err(error) => return (content, Err(error)),
                }
            }
        }
        (content, Ok(false))
    };
    assert_eq!(read(body.len().max(1)), read(1));
}
