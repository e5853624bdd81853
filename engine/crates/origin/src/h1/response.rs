//! The head of a response.

use crate::answer::Plan;
use crate::config::Protocol;
use crate::context::Context;
use crate::handler::{self, HeadCache};
use crate::relay::META_FIELD;
use trifecta_wire::clock::now_ns;

/// What a head depends on besides its plan.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extra {
    /// The connection ends after this response (RFC 9112 9.6).
    pub(super) close: bool,
    /// The request was HTTP/1.0 with keep-alive, whose sender needs to be told (RFC 9112 C.2.2).
    pub(super) announce_keep_alive: bool,
}

/// Appends the head.
#[inline]
pub(super) fn write_head(
    heads: &mut HeadCache,
    plan: &Plan,
    extra: Extra,
    received_ns: u64,
    context: &mut Context<'_>,
) {
    let handler = &*context.handler;
    let encoded = heads.get(&plan.head, |head, out| {
        out.extend_from_slice(format!("HTTP/1.1 {} {}\r\n", head.status, reason(head.status)).as_bytes());
        handler.for_each_field(head, Protocol::H1, |name, value| {
            for part in [name.as_bytes(), b": ", value, b"\r\n"] {
                out.extend_from_slice(part);
            }
        });
    });
    context.plain.extend_from_slice(encoded);
    if extra.close {
        context.plain.extend_from_slice(b"connection: close\r\n");
    } else if extra.announce_keep_alive {
        context.plain.extend_from_slice(b"connection: keep-alive\r\n");
    }
    if handler.server_timing() {
        let mut value = String::new();
        handler::server_timing(now_ns().saturating_sub(received_ns), &mut value);
        context.plain.extend_from_slice(format!("server-timing: {value}\r\n").as_bytes());
    }
    if let Some(meta) = &plan.meta {
        for part in [META_FIELD.as_bytes(), b": ", meta, b"\r\n"] {
            context.plain.extend_from_slice(part);
        }
    }
    context.plain.extend_from_slice(b"\r\n");
}

/// The reason phrases of RFC 9110 15; none for other codes, which is allowed (RFC 9112 4).
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        205 => "Reset Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        302 => "Found",
        303 => "See Other",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        410 => "Gone",
        413 => "Content Too Large",
        416 => "Range Not Satisfiable",
        425 => "Too Early",
        429 => "Too Many Requests",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        502 => "Bad Gateway",
        503 => "Service Unavailable",
        504 => "Gateway Timeout",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}
