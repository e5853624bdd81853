//! Heads of requests and responses, on top of httparse.

use super::{Framing, Http1Error, MAX_FIELDS};
use httparse::{Header, Status};
use std::mem::MaybeUninit;

/// The head of a request; slices point into the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead<'a> {
    /// The method as sent; methods are case-sensitive (RFC 9110 9.1).
    pub method: &'a str,
    /// The request target as sent (RFC 9112 3.2).
    pub target: &'a str,
    /// 0 or 1: the minor version of HTTP/1.
    pub minor_version: u8,
    /// How the content ends; [`Framing::UntilClose`] does not occur.
    pub framing: Framing,
    /// Whether another request may follow on the connection (RFC 9112 9.3).
    pub keep_alive: bool,
    /// Whether the client waits for 100 (Continue) (RFC 9110 10.1.1).
    pub expect_continue: bool,
    /// The Host field; empty in HTTP/1.0 without one.
    pub host: &'a [u8],
    /// The Range field (RFC 9110 14.2).
    pub range: Option<&'a [u8]>,
    /// The If-Range field (RFC 9110 13.1.5).
    pub if_range: Option<&'a [u8]>,
    /// Octets of the head with its empty line.
    pub head_octets: usize,
}

/// The head of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ResponseHead {
    /// The status code, 100..=999.
    pub status: u16,
    /// How the content ends, the request's method and the status considered.
    pub framing: Framing,
    /// Content-Length as sent, also where there is no content (HEAD, 304).
    pub content_length: Option<u64>,
    /// Whether another request may be sent on the connection.
    pub keep_alive: bool,
    /// Octets of the head with its empty line.
    pub head_octets: usize,
}

impl ResponseHead {
    /// Whether this is an interim response (1xx) that a final one follows (RFC 9110 15.2). 101 is not: nobody here upgrades.
    pub fn interim(&self) -> bool {
        (100..200).contains(&self.status) && self.status != 101
    }
}

/// Reads a request head; `None` when `input` does not hold all of it yet. Bounding the input is the caller's part.
#[inline]
pub fn parse_request_head(input: &[u8]) -> Result<Option<RequestHead<'_>>, Http1Error> {
    let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX_FIELDS];
    let mut request = httparse::Request::new(&mut []);
    let head_octets = match request.parse_with_uninit_headers(input, &mut headers) {
        Ok(Status::Complete(octets)) => octets,
        Ok(Status::Partial) => return Ok(None),
        Err(error) => return Err(syntax(error)),
    };
    let mut fields = Fields::default();
    let mut hosts = 0;
    let mut expect_continue = false;
    let (mut host, mut range, mut if_range) = (&b""[..], None, None);
    for header in request.headers.iter() {
        match header.name.len() {
            4 if header.name.eq_ignore_ascii_case("host") => {
                hosts += 1;
                host = header.value;
            }
            5 if header.name.eq_ignore_ascii_case("range") => range = Some(header.value),
            8 if header.name.eq_ignore_ascii_case("if-range") => if_range = Some(header.value),
            6 if header.name.eq_ignore_ascii_case("expect") => {
                expect_continue = header.value.trim_ascii().eq_ignore_ascii_case(b"100-continue");
            }
            _ => fields.read(header)?,
        }
    }
    let minor_version = request.version.unwrap_or(0);
    // RFC 9112 3.2: exactly one Host field in HTTP/1.1.
    if hosts > 1 || (hosts == 0 && minor_version == 1) {
        return Err(Http1Error::Syntax("exactly one Host field expected"));
    }
    let framing = match (fields.chunked, fields.content_length) {
        // RFC 9112 6.1: HTTP/1.0 knows no transfer coding; 6.3: both at once is what smuggling is made of.
        (true, _) if minor_version == 0 => return Err(Http1Error::Framing("Transfer-Encoding in HTTP/1.0")),
        (true, Some(_)) => return Err(Http1Error::Framing("Content-Length together with Transfer-Encoding")),
        (true, None) => Framing::Chunked,
        // RFC 9112 6.3: a request that says nothing of its content has none.
        (false, Some(length)) if length > 0 => Framing::Length(length),
        (false, _) => Framing::None,
    };
    Ok(Some(RequestHead {
        method: request.method.unwrap_or(""),
        target: request.path.unwrap_or(""),
        minor_version,
        framing,
        keep_alive: fields.keep_alive(minor_version),
        // RFC 9110 10.1.1: of an HTTP/1.0 request the expectation is ignored.
        expect_continue: expect_continue && minor_version == 1,
        host,
        range,
        if_range,
        head_octets,
    }))
}

/// Reads a response head; `None` when `input` does not hold all of it yet. `to_head` says that the request was HEAD.
#[inline]
pub fn parse_response_head(input: &[u8], to_head: bool) -> Result<Option<ResponseHead>, Http1Error> {
    let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let parsed =
        httparse::ParserConfig::default().parse_response_with_uninit_headers(&mut response, input, &mut headers);
    let head_octets = match parsed {
        Ok(Status::Complete(octets)) => octets,
        Ok(Status::Partial) => return Ok(None),
        Err(error) => return Err(syntax(error)),
    };
    let status = response.code.unwrap_or(0);
    if !(100..=999).contains(&status) {
        return Err(Http1Error::Syntax("status code below 100"));
    }
    let mut fields = Fields::default();
    for header in response.headers.iter() {
        fields.read(header)?;
    }
    let minor_version = response.version.unwrap_or(0);
    // RFC 9112 6.1: no Transfer-Encoding with 1xx and 204, nor in HTTP/1.0, nor beside a Content-Length (6.3).
    if fields.chunked {
        if fields.content_length.is_some() {
            return Err(Http1Error::Framing("Content-Length together with Transfer-Encoding"));
        }
        if minor_version == 0 || status < 200 || status == 204 {
            return Err(Http1Error::Framing("Transfer-Encoding where it must not be"));
        }
    }
    // RFC 9112 6.3, in its order: the method and the status come before what the fields say.
    let framing = match (fields.chunked, fields.content_length) {
        _ if to_head || status < 200 || status == 204 || status == 304 => Framing::None,
        (true, _) => Framing::Chunked,
        (false, Some(0)) => Framing::None,
        (false, Some(length)) => Framing::Length(length),
        (false, None) => Framing::UntilClose,
    };
    let keep_alive = fields.keep_alive(minor_version) && framing != Framing::UntilClose;
    Ok(Some(ResponseHead { status, framing, content_length: fields.content_length, keep_alive, head_octets }))
}

/// Hands each field of a response head that [`parse_response_head`] has read to `on_field`: name and value as they were sent.
pub fn each_response_field(input: &[u8], mut on_field: impl FnMut(&[u8], &[u8])) {
    let mut headers = [const { MaybeUninit::<Header<'_>>::uninit() }; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let config = httparse::ParserConfig::default();
    if let Ok(Status::Complete(_)) = config.parse_response_with_uninit_headers(&mut response, input, &mut headers) {
        for header in response.headers.iter() {
            on_field(header.name.as_bytes(), header.value);
        }
    }
}

fn syntax(error: httparse::Error) -> Http1Error {
    match error {
        httparse::Error::TooManyHeaders => Http1Error::TooManyFields,
        httparse::Error::Version => Http1Error::Version,
        httparse::Error::HeaderName => Http1Error::Syntax("malformed field name"),
        httparse::Error::HeaderValue => Http1Error::Syntax("malformed field value"),
        httparse::Error::NewLine => Http1Error::Syntax("malformed line end"),
        httparse::Error::Status => Http1Error::Syntax("malformed status line"),
        httparse::Error::Token => Http1Error::Syntax("malformed request line"),
    }
}

/// What decides about framing and about the connection's life, on both sides.
#[derive(Default)]
struct Fields {
    content_length: Option<u64>,
    chunked: bool,
    close: bool,
    persist: bool,
}

impl Fields {
    #[inline]
    fn read(&mut self, header: &Header<'_>) -> Result<(), Http1Error> {
        // The length tells most fields apart without a comparison.
        match header.name.len() {
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                let length = content_length(header.value)?;
                if self.content_length.is_some_and(|other| other != length) {
                    return Err(Http1Error::Framing("conflicting Content-Length"));
                }
                self.content_length = Some(length);
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                if self.chunked {
                    return Err(Http1Error::Framing("Transfer-Encoding twice"));
                }
                if !header.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(Http1Error::TransferCoding);
                }
                self.chunked = true;
            }
            10 if header.name.eq_ignore_ascii_case("connection") => {
                // RFC 9110 7.6.1: a list of options, the same in any case.
                for option in header.value.split(|&octet| octet == b',') {
                    let option = option.trim_ascii();
                    self.close |= option.eq_ignore_ascii_case(b"close");
                    self.persist |= option.eq_ignore_ascii_case(b"keep-alive");
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// RFC 9112 9.3.
    fn keep_alive(&self, minor_version: u8) -> bool {
        !self.close && (minor_version >= 1 || self.persist)
    }
}

/// RFC 9110 8.6: digits only. A list of equal numbers, which it lets a recipient accept, is refused.
fn content_length(value: &[u8]) -> Result<u64, Http1Error> {
    let digits = value.trim_ascii();
    if digits.is_empty() || digits.len() > 18 || !digits.iter().all(u8::is_ascii_digit) {
        return Err(Http1Error::Framing("Content-Length is not a number"));
    }
    Ok(digits.iter().fold(0, |number, digit| number * 10 + u64::from(digit - b'0')))
}

#[cfg(test)]
mod tests;
