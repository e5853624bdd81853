//! One row of the sample file, as the load generator hands it over.

use trifecta_wire::ErrorClass;

/// One request: when what happened, and how it ended. Times are nanoseconds on CLOCK_MONOTONIC; 0 means that it did not
/// happen and becomes null in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sample {
    /// Number of the connection in the run.
    pub connection: u32,
    /// Which of the clients that ask at the same time asked: one a connection and stream.
    pub client: u32,
    /// Stream identifier; `None` with HTTP/1.1.
    pub stream: Option<u64>,
    /// Ordinal of the request in the run.
    pub request: u64,
    pub warmup: bool,
    /// When an open loop wanted it to start.
    pub intended_ns: u64,
    pub started_ns: u64,
    pub connect_start_ns: u64,
    pub tcp_connected_ns: u64,
    pub secured_ns: u64,
    pub request_sent_ns: u64,
    pub first_byte_ns: u64,
    pub done_ns: u64,
    /// The negotiated protocol: `h1`, `h2`, `h3`.
    pub protocol: Option<&'static str>,
    pub tls_version: Option<&'static str>,
    pub cipher: Option<&'static str>,
    pub resumed: bool,
    pub zero_rtt: bool,
    /// 0: no response.
    pub status: u16,
    /// Content octets (RFC 9110 8.6).
    pub bytes_out: u64,
    pub bytes_in: u64,
    pub header_bytes_in: u64,
    pub error: Option<ErrorClass>,
}
