//! HTTP/3 framing for both ends (RFC 9114), without I/O.
//!
//! [`frame`] reads and writes frames, [`message`] checks the order of frames of a request or response, [`control`] holds
//! what a connection learns from the peer's unidirectional streams. Nothing here panics on what a peer sends.

pub mod control;
pub mod frame;
pub mod message;
pub mod varint;

pub use crate::h3_error::{Code, Error};
pub use control::{ControlPlane, Role, Settings, UniEvent};
pub use frame::{Frame, FrameReader};
pub use message::{MessageEvent, MessageReader};

/// Feeds arbitrary octets to every reader of this module; for fuzzing. Must never panic nor grow without bound.
pub fn fuzz_one(data: &[u8]) {
    let Some((&selector, input)) = data.split_first() else { return };
    let step = usize::from(selector >> 3) + 1;
    if selector & 1 == 0 {
        let mut reader = MessageReader::new();
        for chunk in input.chunks(step) {
            let mut rest = chunk;
            loop {
                match reader.read(&mut rest) {
                    Ok(Some(MessageEvent::Head(section))) => {
                        crate::qpack::fuzz_one(section);
                        if selector & 2 == 0 {
                            reader.expect_another_head();
                        }
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => break,
                    Err(_) => return,
                }
            }
            assert!(rest.is_empty(), "a reader consumes all it is given");
        }
        let _ = reader.finish();
    } else {
        let role = if selector & 2 == 0 { Role::Client } else { Role::Server };
        let mut plane = ControlPlane::new(role);
        for (index, chunk) in input.chunks(step).enumerate() {
            let stream = if selector & 4 == 0 { 0 } else { index as u64 % 4 };
            if plane.on_data(stream, chunk, &mut |_| {}).is_err() {
                return;
            }
        }
        let _ = plane.on_end(0);
    }
}

#[cfg(test)]
mod tests {
    use super::frame::{kind, write_goaway, write_header, write_headers};
    use crate::mutate::mutated;
    use crate::qpack::encoder::section;

    #[test]
    fn mutated_messages_and_control_streams_never_panic() {
        let fields: [(&[u8], &[u8]); 4] =
            [(b":status", b"200"), (b"content-length", b"1000"), (b"server", b"nginx"), (b"x-long-name", b"Value")];
        for selector in 0..=255_u8 {
            let mut sample = vec![selector];
            if selector & 1 == 0 {
                write_headers(&section(fields), &mut sample);
                write_header(kind::DATA, 40, &mut sample);
                sample.extend_from_slice(&[b'a'; 40]);
                write_header(0x21, 3, &mut sample);
                sample.extend_from_slice(&[0; 3]);
                write_headers(&section([(&b"grpc-status"[..], &b"0"[..])]), &mut sample);
            } else {
                sample.extend_from_slice(&super::control::opening(65_536));
                write_goaway(4, &mut sample);
                sample.extend_from_slice(&[0x0d, 0x01, 0x05]);
            }
            super::fuzz_one(&sample);
            for seed in 0..200 {
                super::fuzz_one(&mutated(&sample, seed << 8 | u64::from(selector)));
            }
        }
    }
}
