//! HTTP/2 framing (RFC 9113) for both sides: [`Parser`] reads frames incrementally, [`write`] appends frames to a buffer.
//!
//! Connection state (streams, flow control) belongs to the endpoints; what is checked here is what a frame alone, or its
//! place between CONTINUATIONs, can be wrong about.

mod control;
mod parser;
mod transcript;
mod windows;
pub mod write;

pub use parser::{Event, Limits, Parser, Settings};
pub use windows::Windows;

/// What a client sends first (RFC 9113 3.4), before its SETTINGS frame.
pub const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Octets of a frame header.
pub const FRAME_HEADER_OCTETS: usize = 9;
/// SETTINGS_MAX_FRAME_SIZE before any SETTINGS, and its smallest allowed value (RFC 9113 6.5.2).
pub const DEFAULT_MAX_FRAME_OCTETS: u32 = 16_384;
/// The largest SETTINGS_MAX_FRAME_SIZE.
pub const LARGEST_MAX_FRAME_OCTETS: u32 = (1 << 24) - 1;
/// Flow-control windows before any SETTINGS, in octets (RFC 9113 6.9.2).
pub const DEFAULT_WINDOW_OCTETS: u32 = 65_535;
/// The largest flow-control window and stream number, 2^31 - 1 (RFC 9113 6.9.1, 5.1.1).
pub const MAX_WINDOW_OCTETS: u32 = (1 << 31) - 1;

/// Frame types (RFC 9113 6).
pub mod kind {
    pub const DATA: u8 = 0x0;
    pub const HEADERS: u8 = 0x1;
    pub const PRIORITY: u8 = 0x2;
    pub const RST_STREAM: u8 = 0x3;
    pub const SETTINGS: u8 = 0x4;
    pub const PUSH_PROMISE: u8 = 0x5;
    pub const PING: u8 = 0x6;
    pub const GOAWAY: u8 = 0x7;
    pub const WINDOW_UPDATE: u8 = 0x8;
    pub const CONTINUATION: u8 = 0x9;
    /// RFC 9218 7.1.
    pub const PRIORITY_UPDATE: u8 = 0x10;
}

/// Frame flags; END_STREAM and ACK share a bit on different frames.
pub mod flag {
    pub const END_STREAM: u8 = 0x1;
    pub const ACK: u8 = 0x1;
    pub const END_HEADERS: u8 = 0x4;
    pub const PADDED: u8 = 0x8;
    pub const PRIORITY: u8 = 0x20;
}

/// Identifiers of SETTINGS (RFC 9113 6.5.2).
pub mod setting {
    pub const HEADER_TABLE_SIZE: u16 = 0x1;
    pub const ENABLE_PUSH: u16 = 0x2;
    pub const MAX_CONCURRENT_STREAMS: u16 = 0x3;
    pub const INITIAL_WINDOW_SIZE: u16 = 0x4;
    pub const MAX_FRAME_SIZE: u16 = 0x5;
    pub const MAX_HEADER_LIST_SIZE: u16 = 0x6;
    /// RFC 9218 2.1.
    pub const NO_RFC7540_PRIORITIES: u16 = 0x9;
}

/// An error code of RST_STREAM and GOAWAY (RFC 9113 7).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorCode(pub u32);

impl ErrorCode {
    pub const NO_ERROR: Self = Self(0x0);
    pub const PROTOCOL_ERROR: Self = Self(0x1);
    pub const INTERNAL_ERROR: Self = Self(0x2);
    pub const FLOW_CONTROL_ERROR: Self = Self(0x3);
    pub const SETTINGS_TIMEOUT: Self = Self(0x4);
    pub const STREAM_CLOSED: Self = Self(0x5);
    pub const FRAME_SIZE_ERROR: Self = Self(0x6);
    pub const REFUSED_STREAM: Self = Self(0x7);
    pub const CANCEL: Self = Self(0x8);
    pub const COMPRESSION_ERROR: Self = Self(0x9);
    pub const CONNECT_ERROR: Self = Self(0xa);
    pub const ENHANCE_YOUR_CALM: Self = Self(0xb);
    pub const INADEQUATE_SECURITY: Self = Self(0xc);
    pub const HTTP_1_1_REQUIRED: Self = Self(0xd);
}

impl std::fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = match *self {
            Self::NO_ERROR => "NO_ERROR",
            Self::PROTOCOL_ERROR => "PROTOCOL_ERROR",
            Self::INTERNAL_ERROR => "INTERNAL_ERROR",
            Self::FLOW_CONTROL_ERROR => "FLOW_CONTROL_ERROR",
            Self::SETTINGS_TIMEOUT => "SETTINGS_TIMEOUT",
            Self::STREAM_CLOSED => "STREAM_CLOSED",
            Self::FRAME_SIZE_ERROR => "FRAME_SIZE_ERROR",
            Self::REFUSED_STREAM => "REFUSED_STREAM",
            Self::CANCEL => "CANCEL",
            Self::COMPRESSION_ERROR => "COMPRESSION_ERROR",
            Self::CONNECT_ERROR => "CONNECT_ERROR",
            Self::ENHANCE_YOUR_CALM => "ENHANCE_YOUR_CALM",
            Self::INADEQUATE_SECURITY => "INADEQUATE_SECURITY",
            Self::HTTP_1_1_REQUIRED => "HTTP_1_1_REQUIRED",
            Self(code) => return write!(f, "error code {code:#x}"),
        };
        f.write_str(name)
    }
}

/// What is wrong with a frame, and how far it reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct H2Error {
    /// The stream that is to be reset, or `None` when the connection is to be closed with GOAWAY.
    pub stream: Option<u32>,
    /// The code to send.
    pub code: ErrorCode,
    /// What was wrong, in words.
    pub reason: &'static str,
}

impl H2Error {
    /// An error that ends the connection (RFC 9113 5.4.1).
    pub const fn connection(code: ErrorCode, reason: &'static str) -> Self {
        Self { stream: None, code, reason }
    }

    /// An error that ends one stream (RFC 9113 5.4.2).
    pub const fn on_stream(stream: u32, code: ErrorCode, reason: &'static str) -> Self {
        Self { stream: Some(stream), code, reason }
    }
}

impl std::fmt::Display for H2Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.stream {
            Some(stream) => write!(f, "{} on stream {stream}: {}", self.code, self.reason),
            None => write!(f, "{}: {}", self.code, self.reason),
        }
    }
}

impl std::error::Error for H2Error {}

/// Feeds arbitrary octets to the parser, whole and in pieces; for fuzzing. Both ways must see the same, and end.
pub fn fuzz_one(data: &[u8]) {
    let limits = Limits { max_frame_octets: DEFAULT_MAX_FRAME_OCTETS, max_header_block_octets: 4096 };
    let whole = transcript::transcript(data, data.len().max(1), limits);
    let step = 1 + data.first().map_or(0, |octet| *octet as usize % 13);
    let pieces = transcript::transcript(data, step, limits);
    assert_eq!(whole, pieces, "fed in pieces of {step}");
}
