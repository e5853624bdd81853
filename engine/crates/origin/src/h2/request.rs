//! The head of a request out of a header block, checked as RFC 9113 8.2 and 8.3.1 ask.

use crate::answer::Request;
use trifecta_wire::hpack::{Decoder, HpackError};
use trifecta_wire::priority::Priority;

/// SETTINGS_MAX_HEADER_LIST_SIZE; more is answered with 431 (RFC 9113 10.5.1, RFC 9114 4.2.2).
pub(crate) const MAX_LIST_OCTETS: usize = 16 * 1024;
const TABLE_OCTETS: usize = 4096;

/// The head of a request; its text is in buffers that the next request reuses.
#[derive(Default)]
pub(crate) struct RequestHead {
    method: Vec<u8>,
    path: Vec<u8>,
    /// `:authority`, or else Host (RFC 9113 8.3.1).
    host: Vec<u8>,
    range: Option<Vec<u8>>,
    if_range: Option<Vec<u8>>,
    pub(crate) content_length: Option<u64>,
    /// The Priority field (RFC 9218 5).
    pub(crate) priority: Option<Priority>,
}

impl RequestHead {
    /// Forgets the last request and keeps its buffers.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.method.clear();
        self.path.clear();
        self.host.clear();
        self.range = None;
        self.if_range = None;
        self.content_length = None;
        self.priority = None;
    }

    /// As the handler wants it.
    #[inline]
    pub(crate) fn request(&self, early: bool) -> Request<'_> {
        Request {
            method: &self.method,
            target: &self.path,
            host: &self.host,
            range: self.range.as_deref(),
            if_range: self.if_range.as_deref(),
            content_length: self.content_length,
            early,
        }
    }
}

/// Reads header blocks of requests.
pub(super) struct RequestReader {
    decoder: Decoder,
    head: RequestHead,
}

impl RequestReader {
    pub(super) fn new() -> Self {
        Self { decoder: Decoder::new(TABLE_OCTETS, MAX_LIST_OCTETS), head: RequestHead::default() }
    }

    /// The head in `block`. [`HpackError::Malformed`] and [`HpackError::ListTooLarge`] concern the stream alone.
    #[inline]
    pub(super) fn read(&mut self, block: &[u8]) -> Result<&RequestHead, HpackError> {
        let head = &mut self.head;
        head.clear();
        let mut check = Check::default();
        self.decoder.decode(block, |name, value| check.field(name, value, head))?;
        check.end(head)?;
        Ok(&self.head)
    }

    /// Reads a block for the sake of the table.
    pub(super) fn skip(&mut self, block: &[u8]) -> Result<(), HpackError> {
        match self.decoder.decode(block, |_, _| {}) {
            Err(HpackError::ListTooLarge) => Ok(()),
            other => other,
        }
    }
}

/// The rules for the fields of a request; HTTP/3 has the same (RFC 9114 4.2 and 4.3.1).
#[derive(Default)]
pub(crate) struct Check {
    method: bool,
    path: bool,
    scheme: bool,
    authority: bool,
    host: bool,
    regular: bool,
    fault: Option<&'static str>,
}

impl Check {
    /// Takes a field in.
    #[inline]
    pub(crate) fn field(&mut self, name: &[u8], value: &[u8], head: &mut RequestHead) {
        if name.first() == Some(&b':') {
            return self.pseudo(name, value, head);
        }
        self.regular = true;
        // RFC 9113 8.2.1.
        if name.is_empty() || !name.iter().all(|&octet| is_field_name_octet(octet)) {
            self.fault = Some("malformed field name");
        }
        if value.iter().any(|&octet| matches!(octet, 0 | b'\r' | b'\n'))
            || [value.first(), value.last()].into_iter().flatten().any(|octet| matches!(octet, b' ' | b'\t'))
        {
            self.fault = Some("malformed field value");
        }
        match name {
            b"content-length" => {
                let valid = !value.is_empty() && value.len() <= 18 && value.iter().all(u8::is_ascii_digit);
                let octets =
                    value.iter().fold(0u64, |n, d| n.wrapping_mul(10).wrapping_add(u64::from(d.wrapping_sub(b'0'))));
                if !valid || head.content_length.is_some_and(|other| other != octets) {
                    self.fault = Some("malformed content-length");
                }
                head.content_length = Some(octets);
            }
            b"host" => {
                let first = !std::mem::replace(&mut self.host, true);
                head.host.extend_from_slice(if first && !self.authority { value } else { b"" });
            }
            b"range" => head.range = Some(value.to_vec()),
            b"if-range" => head.if_range = Some(value.to_vec()),
            b"priority" => head.priority = Some(Priority::parse(value)),
            // RFC 9113 8.2.2.
            b"connection" | b"keep-alive" | b"proxy-connection" | b"transfer-encoding" | b"upgrade" => {
                self.fault = Some("field that belongs to HTTP/1.1");
            }
            b"te" if value != b"trailers" => self.fault = Some("te other than trailers"),
            _ => {}
        }
    }

    /// RFC 9113 8.3: before all other fields, each once, and none but those of a request.
    fn pseudo(&mut self, name: &[u8], value: &[u8], head: &mut RequestHead) {
        if self.regular {
            self.fault = Some("pseudo-field after other fields");
        }
        let seen = match name {
            b":method" => {
                head.method.clear();
                head.method.extend_from_slice(value);
                &mut self.method
            }
            b":path" => {
                head.path.clear();
                head.path.extend_from_slice(value);
                &mut self.path
            }
            b":scheme" => &mut self.scheme,
            b":authority" => {
                head.host.clear();
                head.host.extend_from_slice(value);
                &mut self.authority
            }
            _ => {
                self.fault = Some("pseudo-field that no request has");
                return;
            }
        };
        if std::mem::replace(seen, true) {
            self.fault = Some("pseudo-field twice");
        }
    }

    /// RFC 9113 8.3.1. CONNECT, which has neither scheme nor path (8.5), passes and is answered with 405.
    pub(crate) fn end(&self, head: &RequestHead) -> Result<(), HpackError> {
        if let Some(fault) = self.fault {
            return Err(HpackError::Malformed(fault));
        }
        if !self.method || head.method.is_empty() {
            return Err(HpackError::Malformed("request without :method"));
        }
        if head.method == b"CONNECT" {
            return Ok(());
        }
        if !self.scheme || !self.path || head.path.is_empty() {
            return Err(HpackError::Malformed("request without :scheme or :path"));
        }
        if !self.authority && !self.host {
            return Err(HpackError::Malformed("request without :authority or host"));
        }
        if head.path[0] != b'/' && head.path != b"*" {
            return Err(HpackError::Malformed(":path does not begin with a slash"));
        }
        Ok(())
    }
}

/// RFC 9110 5.6.2 without uppercase (RFC 9113 8.2.1).
#[inline]
fn is_field_name_octet(octet: u8) -> bool {
    matches!(octet, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.')
        || matches!(octet, b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'^' | b'`' | b'|' | b'~')
}
