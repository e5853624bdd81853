//! What the load generator, the origin server and the probe share to put bytes on a wire and to take them off again:
//! the clock, sockets, TLS, and the codecs of HTTP/1.1, HTTP/2 and HTTP/3. Nothing here does its own scheduling.

pub mod alarm;
pub mod clock;
pub mod epoll;
mod error_class;
pub mod h2;
pub mod h3;
mod h3_error;
pub mod hpack;
pub mod http1;
pub mod huffman;
#[doc(hidden)]
pub mod mutate;
pub mod priority;
pub mod process;
pub mod qpack;
pub mod quic;
pub mod resolve;
pub mod tcp;
pub mod ticker;
pub mod timestamp;
pub mod tls;
mod tuning;
pub mod udp;

pub use error_class::ErrorClass;
pub use tuning::Tuning;
