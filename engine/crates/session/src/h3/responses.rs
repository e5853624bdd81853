//! Reading responses and the peer's unidirectional streams.

use quinn_proto::{Connection, ReadError, StreamId, VarInt};
use trifecta_wire::h3::{Code, Error, MessageEvent};
use trifecta_wire::{qpack, quic};

use super::H3Session;
use super::flight::Flight;
use super::shared::MAX_FIELD_SECTION_BYTES;
use crate::State;
use crate::caller::Caller;
use trifecta_wire::ErrorClass;

/// How far a response has come.
enum Progress {
    Unfinished,
    /// The stream has ended and the response is complete, or failed in a way that concerns it alone.
    Ended(Option<ErrorClass>),
}

impl H3Session {
    /// Reads what there is of a response. An error is one of the connection.
    pub(super) fn read_response(
        &mut self,
        caller: &mut impl Caller,
        id: StreamId,
        received_ns: u64,
    ) -> Result<(), Error> {
        let number = VarInt::from(id).into_inner();
        // Streams that were given up are stopped, and quinn-proto throws away what still comes on them.
        let Some(flight) = self.flights.get_mut(number) else { return Ok(()) };
        match read(&mut self.connection, id, flight, caller, received_ns)? {
            Progress::Unfinished => {}
            Progress::Ended(error) => {
                if error == Some(ErrorClass::MalformedHttp3) || flight.body_left > 0 {
                    self.cancel(number);
                }
                if let Some(flight) = self.flights.remove(number) {
                    let done_ns = if error.is_none() { received_ns } else { 0 };
                    caller.finish(&flight.exchange, &self.handshake, Some(number), done_ns, error);
                }
            }
        }
        Ok(())
    }

    /// Reads what there is of a unidirectional stream of the peer.
    pub(super) fn read_uni_stream(&mut self, caller: &mut impl Caller, id: StreamId) -> Result<(), Error> {
        let goaway = quic::read_uni_stream(&mut self.connection, &mut self.control, id, |_, _| {})?;
        if let Some(first) = goaway {
            self.state = State::Draining;
            // Requests from this stream on were not and will not be handled (RFC 9114 section 5.2).
            for refused in self.flights.select(|stream, _| stream >= first) {
                if let Some(flight) = self.flights.remove(refused) {
                    self.cancel(refused);
                    caller.finish(&flight.exchange, &self.handshake, Some(refused), 0, Some(ErrorClass::Goaway));
                }
            }
        }
        Ok(())
    }
}

fn read(
    connection: &mut Connection,
    id: StreamId,
    flight: &mut Flight,
    caller: &mut impl Caller,
    received_ns: u64,
) -> Result<Progress, Error> {
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return Ok(Progress::Unfinished) };
    let progress = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => {
                match take(flight, caller, &chunk.bytes, received_ns) {
                    Ok(()) => {}
                    // A malformed message is an error of its stream (RFC 9114 section 4.1.2), all else of the connection.
                    Err(error) if error.code == Code::MessageError => {
                        break Progress::Ended(Some(ErrorClass::MalformedHttp3));
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(None) => break Progress::Ended(judge_end(flight)),
            Err(ReadError::Blocked) => break Progress::Unfinished,
            Err(ReadError::Reset(code)) => {
                // RFC 9114 section 4.1.1: H3_REQUEST_REJECTED says that nothing was processed.
                let rejected = code.into_inner() == Code::RequestRejected.value();
                break Progress::Ended(Some(if rejected { ErrorClass::Goaway } else { ErrorClass::Reset }));
            }
        }
    };
    let _ = chunks.finalize();
    Ok(progress)
}

/// Takes octets of a response that were received at `received_ns`.
fn take(flight: &mut Flight, caller: &mut impl Caller, octets: &[u8], received_ns: u64) -> Result<(), Error> {
    if flight.exchange.first_byte_ns == 0 {
        flight.exchange.first_byte_ns = received_ns;
    }
    let mut rest = octets;
    while let Some(event) = flight.reader.read(&mut rest)? {
        match event {
            MessageEvent::Content(piece) => flight.exchange.content(caller, piece),
            MessageEvent::Head(section) => {
                flight.exchange.header_bytes_in += section.len() as u64;
                let scan = qpack::scan_response(section)?;
                if scan.status >= 200 {
                    flight.exchange.status = scan.status;
                    flight.content_length = scan.content_length;
                    if caller.wants_fields(&flight.exchange) {
                        // The section was found sound above.
                        let _ = qpack::Decoder::new(MAX_FIELD_SECTION_BYTES as usize)
                            .decode(section, |name, value| caller.field(&flight.exchange, name, value));
                    }
                } else if scan.status == 101 {
                    // RFC 9114 section 4.5.
                    return Err(Error::new(Code::MessageError, "101 has no place in HTTP/3"));
                } else {
                    flight.reader.expect_another_head();
                    // The times of the row are those of the final response.
                    flight.exchange.first_byte_ns = if rest.is_empty() { 0 } else { received_ns };
                }
            }
            MessageEvent::Trailers(section) => flight.exchange.header_bytes_in += section.len() as u64,
        }
    }
    Ok(())
}

/// The stream has ended: whether a whole response came.
fn judge_end(flight: &Flight) -> Option<ErrorClass> {
    if let Err(error) = flight.reader.finish() {
        return Some(match (error.code, flight.exchange.status) {
            // A stream that ends without a head is a connection that ends without one in HTTP/1.1.
            (Code::RequestIncomplete, _) => ErrorClass::Closed,
            (_, 0) => ErrorClass::MalformedHttp3,
            // Cut off inside the content.
            _ => ErrorClass::Length,
        });
    }
    // RFC 9114 section 4.1.2; responses without content may name the length that they would have.
    let has_no_content = flight.exchange.to_head || matches!(flight.exchange.status, 204 | 304);
    match flight.content_length {
        Some(announced) if !has_no_content && announced != flight.exchange.bytes_in => Some(ErrorClass::Length),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use trifecta_wire::h3::{MessageReader, frame};
    use trifecta_wire::qpack::encoder;

    use super::*;
    use crate::caller::Exchange;
    use crate::content::Body;
    use crate::testing::caller;

    #[test]
    fn the_first_octet_of_the_final_response_counts() {
        let mut response = Vec::new();
        let mut interim = 0;
        for status in [&b"103"[..], b"200"] {
            frame::write_headers(&encoder::section([(&b":status"[..], status)]), &mut response);
            interim = if interim == 0 { response.len() as u64 } else { interim };
        }
        for (step, first_byte_ns) in [(1, interim + 1), (interim as usize, 2), (response.len(), 1)] {
            let mut flight = Flight {
                exchange: Exchange::default(),
                reader: MessageReader::new(),
                content_length: None,
                head: Bytes::new(),
                body: Body::Pattern,
                body_left: 0,
            };
            for (piece, received_ns) in response.chunks(step).zip(1..) {
                take(&mut flight, &mut caller(), piece, received_ns).unwrap();
            }
            assert_eq!((flight.exchange.status, flight.exchange.first_byte_ns), (200, first_byte_ns), "step {step}");
        }
    }
}
