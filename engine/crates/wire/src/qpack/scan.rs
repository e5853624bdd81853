//! Takes status and length out of a response's field section without allocating.

use super::{Line, from_hpack, walk};
use crate::h3_error::Error;
use crate::hpack::{ResponseScan, Scan, StringLiteral};

/// Reads the field section of a response.
///
/// As strict as [`crate::hpack::scan_response`], by the same rules (RFC 9114 sections 4.2 and 4.3.2): a malformed message
/// is H3_MESSAGE_ERROR, a broken field section QPACK_DECOMPRESSION_FAILED.
pub fn scan_response(section: &[u8]) -> Result<ResponseScan, Error> {
    let mut scan = Scan::default();
    walk(section, |line| {
        match line {
            Line::Indexed(name, value) => scan.field(name, StringLiteral { huffman: false, octets: value }),
            Line::NamedValue(name, value) => scan.field(name, value),
            Line::Literal(name, value) => scan.literal_field(name, value),
        }
        .map_err(from_hpack)
    })?;
    scan.finish().map_err(from_hpack)
}

#[cfg(test)]
mod tests {
    use super::super::encoder::section;
    use super::*;
    use crate::h3_error::Code;

    fn scan(fields: &[(&str, &str)]) -> Result<ResponseScan, Code> {
        let fields = fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        scan_response(&section(fields)).map_err(|error| error.code)
    }

    #[test]
    fn finds_status_and_length() {
        let found = scan(&[(":status", "200"), ("server", "nginx"), ("content-length", "1000"), ("x-odd", "Value")]);
        assert_eq!(found, Ok(ResponseScan { status: 200, content_length: Some(1000) }));
        assert_eq!(scan(&[(":status", "418")]), Ok(ResponseScan { status: 418, content_length: None }));
        assert_eq!(scan(&[(":status", "103")]).unwrap().status, 103);
        assert_eq!(scan(&[(":status", "200"), ("content-length", "0")]).unwrap().content_length, Some(0));
    }

    #[test]
    fn refuses_what_is_no_response() {
        for fields in [
            &[("server", "x")][..],
            &[("server", "x"), (":status", "200")],
            &[(":status", "200"), (":status", "200")],
            &[(":status", "20")],
            &[(":status", "200"), (":path", "/")],
            &[(":status", "200"), ("Server", "x")],
            &[(":status", "200"), ("content-length", "ten")],
            &[(":status", "200"), ("content-length", "1"), ("content-length", "2")],
        ] {
            assert_eq!(scan(fields), Err(Code::MessageError), "{fields:?}");
        }
    }
}
