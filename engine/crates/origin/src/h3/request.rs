//! The head of a request out of a field section, by the rules that HTTP/2 has too (RFC 9114 4.2 and 4.3.1).

use trifecta_wire::h3::{Code, Error};
use trifecta_wire::qpack::Decoder;

use crate::h2::request::{Check, MAX_LIST_OCTETS, RequestHead};

/// Octets of a field section that is remembered: heads of load generators are short and always the same.
const REMEMBERED_OCTETS: usize = 1024;

/// Reads field sections of requests.
pub(super) struct RequestReader {
    decoder: Decoder,
    head: RequestHead,
    /// The section that `head` was read from. Without a dynamic table the same octets always mean the same fields.
    section: Vec<u8>,
}

impl RequestReader {
    pub fn new() -> Self {
        Self { decoder: Decoder::new(MAX_LIST_OCTETS), head: RequestHead::default(), section: Vec::new() }
    }

    /// The head in `section`. [`Code::MessageError`] and [`Code::ExcessiveLoad`] concern the stream alone, any other error
    /// the connection.
    #[inline]
    pub fn read(&mut self, section: &[u8]) -> Result<&RequestHead, Error> {
        if section == self.section && !section.is_empty() {
            return Ok(&self.head);
        }
        self.section.clear();
        self.head.clear();
        let (head, mut check) = (&mut self.head, Check::default());
        self.decoder.decode(section, |name, value| check.field(name, value, head))?;
        check.end(head).map_err(|_| Error::new(Code::MessageError, "the fields do not make a request"))?;
        if section.len() <= REMEMBERED_OCTETS {
            self.section.extend_from_slice(section);
        }
        Ok(&self.head)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trifecta_wire::qpack::encoder::section;

    fn read(reader: &mut RequestReader, fields: &[(&str, &str)]) -> Result<(Vec<u8>, Option<u64>), Code> {
        let octets = section(fields.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
        let head = reader.read(&octets).map_err(|error| error.code)?;
        let request = head.request(false);
        Ok(([request.method, b" ", request.target].concat(), request.content_length))
    }

    const GET: [(&str, &str); 4] =
        [(":method", "GET"), (":scheme", "https"), (":authority", "origin.lab"), (":path", "/bytes/10")];

    #[test]
    fn heads_are_read_and_a_remembered_one_is_the_same() {
        let mut reader = RequestReader::new();
        let post = [(":method", "POST"), GET[1], GET[2], (":path", "/x"), ("content-length", "7")];
        for _ in 0..2 {
            assert_eq!(read(&mut reader, &GET), Ok((b"GET /bytes/10".to_vec(), None)));
            assert_eq!(read(&mut reader, &GET), Ok((b"GET /bytes/10".to_vec(), None)));
            assert_eq!(read(&mut reader, &post), Ok((b"POST /x".to_vec(), Some(7))));
        }
    }

    #[test]
    fn a_refused_head_is_refused_again_and_leaves_nothing() {
        let mut reader = RequestReader::new();
        read(&mut reader, &GET).unwrap();
        let long = "v".repeat(MAX_LIST_OCTETS);
        for (more, code) in [
            (("Upper", "x"), Code::MessageError),
            ((":path", "/again"), Code::MessageError),
            (("connection", "close"), Code::MessageError),
            (("content-length", "ten"), Code::MessageError),
            (("x-long", long.as_str()), Code::ExcessiveLoad),
        ] {
            let fields = [&GET[..], &[more]].concat();
            assert_eq!(read(&mut reader, &fields), Err(code), "{}", more.0);
            assert_eq!(read(&mut reader, &fields), Err(code), "{}", more.0);
        }
        assert_eq!(read(&mut reader, &GET[1..]), Err(Code::MessageError));
        assert_eq!(read(&mut reader, &GET), Ok((b"GET /bytes/10".to_vec(), None)));
    }
}
