//! What an HTTP/1.1 request looks like on the wire.

use super::H1Shared;
use crate::caller::Request;
use crate::content::Body;
use crate::options::{ConnectionMode, Options};
use crate::request_fields;

/// A body up to this size is kept with the head, so that both leave in one record.
pub(super) const WHOLE_REQUEST_OCTETS: u64 = 16 * 1024;
/// A request that is not the one of the options.
pub(super) struct Own {
    /// Head, with the body behind it if that is small.
    pub(super) octets: Vec<u8>,
    pub(super) body: Body,
    /// Octets of the body in `octets`.
    pub(super) body_in_request: u64,
    pub(super) body_octets: u64,
}

impl Own {
    pub(super) fn new(request: Request, shared: &H1Shared) -> Self {
        let mut head = format!("{} {} HTTP/1.1\r\nhost: {}\r\n", request.method.name(), request.path, shared.authority);
        request.for_each_field(|name, value| {
            for part in [name, ": ", value, "\r\n"] {
                head.push_str(part);
            }
        });
        if !shared.reused && !shared.zero_rtt {
            head.push_str(CLOSE);
        }
        head.push_str("\r\n");
        let body_octets = request.content_octets();
        let body_in_request = if body_octets <= WHOLE_REQUEST_OCTETS { body_octets } else { 0 };
        let mut octets = head.into_bytes();
        let body = Body::Octets(request.content);
        body.append(body_in_request, &mut octets);
        Self { octets, body, body_in_request, body_octets }
    }
}

/// RFC 9112 9.6: the last request on a connection says so. After one in 0-RTT the server would close before the client's
/// Finished, and without having sent the tickets for the next.
const CLOSE: &str = "connection: close\r\n";

/// The head of the request of the options.
pub(super) fn request_head(options: &Options) -> Vec<u8> {
    let mut head = format!("{} {} HTTP/1.1\r\nhost: {}\r\n", options.method.name(), options.path, options.authority());
    for (name, value) in request_fields(options) {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    if options.connection_mode == ConnectionMode::New && !options.zero_rtt {
        head.push_str(CLOSE);
    }
    head.push_str("\r\n");
    head.into_bytes()
}
