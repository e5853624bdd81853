//! HTTP/3 and QPACK error codes (RFC 9114 section 8.1, RFC 9204 section 6).

use std::fmt;

/// An application error code of HTTP/3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Code {
    /// H3_NO_ERROR
    NoError = 0x100,
    /// H3_GENERAL_PROTOCOL_ERROR
    GeneralProtocolError = 0x101,
    /// H3_INTERNAL_ERROR
    InternalError = 0x102,
    /// H3_STREAM_CREATION_ERROR
    StreamCreationError = 0x103,
    /// H3_CLOSED_CRITICAL_STREAM
    ClosedCriticalStream = 0x104,
    /// H3_FRAME_UNEXPECTED
    FrameUnexpected = 0x105,
    /// H3_FRAME_ERROR
    FrameError = 0x106,
    /// H3_EXCESSIVE_LOAD
    ExcessiveLoad = 0x107,
    /// H3_ID_ERROR
    IdError = 0x108,
    /// H3_SETTINGS_ERROR
    SettingsError = 0x109,
    /// H3_MISSING_SETTINGS
    MissingSettings = 0x10a,
    /// H3_REQUEST_REJECTED
    RequestRejected = 0x10b,
    /// H3_REQUEST_CANCELLED
    RequestCancelled = 0x10c,
    /// H3_REQUEST_INCOMPLETE
    RequestIncomplete = 0x10d,
    /// H3_MESSAGE_ERROR
    MessageError = 0x10e,
    /// QPACK_DECOMPRESSION_FAILED
    DecompressionFailed = 0x200,
    /// QPACK_ENCODER_STREAM_ERROR
    EncoderStreamError = 0x201,
    /// QPACK_DECODER_STREAM_ERROR
    DecoderStreamError = 0x202,
}

impl Code {
    /// The number on the wire.
    pub fn value(self) -> u64 {
        self as u64
    }
}

/// What a peer did wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Error {
    /// The code to close the connection (or stop the stream) with.
    pub code: Code,
    /// What was wrong, for logs.
    pub reason: &'static str,
}

impl Error {
    /// An error with its reason.
    pub const fn new(code: Code, reason: &'static str) -> Self {
        Self { code, reason }
    }

    /// Whether the peer only used too much of something, rather than breaking the protocol.
    pub fn is_excess(&self) -> bool {
        self.code == Code::ExcessiveLoad
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?}, 0x{:x})", self.reason, self.code, self.code.value())
    }
}

impl std::error::Error for Error {}
