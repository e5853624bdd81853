//! Frame headers, and the frames that are read whole: all but DATA, HEADERS and CONTINUATION.

use super::{
    DEFAULT_MAX_FRAME_OCTETS, ErrorCode, Event, FRAME_HEADER_OCTETS, H2Error, LARGEST_MAX_FRAME_OCTETS,
    MAX_WINDOW_OCTETS, Settings, flag, kind, setting,
};
use crate::priority::Priority;

/// The nine octets in front of every frame (RFC 9113 4.1).
#[derive(Clone, Copy)]
pub(super) struct FrameHeader {
    pub(super) length: u32,
    pub(super) kind: u8,
    pub(super) flags: u8,
    pub(super) stream: u32,
}

#[inline]
pub(super) fn parse_header(head: [u8; FRAME_HEADER_OCTETS]) -> FrameHeader {
    FrameHeader {
        length: u32::from_be_bytes([0, head[0], head[1], head[2]]),
        kind: head[3],
        flags: head[4],
        // RFC 9113 4.1: the reserved bit is ignored.
        stream: u32::from_be_bytes([head[5], head[6], head[7], head[8]]) & MAX_WINDOW_OCTETS,
    }
}

/// Frames other than DATA, HEADERS and CONTINUATION, whole. On which stream each may come, and how long: RFC 9113
/// 6.3 to 6.9.
pub(super) fn control_event(header: FrameHeader, payload: &[u8]) -> Result<Event<'_>, H2Error> {
    let size = |reason| H2Error::connection(ErrorCode::FRAME_SIZE_ERROR, reason);
    let protocol = |reason| H2Error::connection(ErrorCode::PROTOCOL_ERROR, reason);
    let stream = header.stream;
    let four = |reason| <[u8; 4]>::try_from(payload).map(u32::from_be_bytes).map_err(|_| size(reason));
    match header.kind {
        kind::PRIORITY if stream == 0 => Err(protocol("PRIORITY on stream 0")),
        kind::PRIORITY if payload.len() != 5 => {
            Err(H2Error::on_stream(stream, ErrorCode::FRAME_SIZE_ERROR, "PRIORITY is not 5 octets long"))
        }
        kind::PRIORITY => Ok(Event::Priority { stream }),
        kind::RST_STREAM if stream == 0 => Err(protocol("RST_STREAM on stream 0")),
        kind::RST_STREAM => Ok(Event::RstStream { stream, code: ErrorCode(four("RST_STREAM is not 4 octets long")?) }),
        kind::SETTINGS if stream != 0 => Err(protocol("SETTINGS on a stream")),
        kind::SETTINGS if header.flags & flag::ACK != 0 => {
            if payload.is_empty() {
                Ok(Event::SettingsAck)
            } else {
                Err(size("SETTINGS ACK with payload"))
            }
        }
        kind::SETTINGS if !payload.len().is_multiple_of(6) => Err(size("SETTINGS is not a multiple of 6 octets")),
        kind::SETTINGS => checked_settings(Settings(payload)).map(Event::Settings),
        // RFC 9113 8.4: a client may not push, and no client here allows it (ENABLE_PUSH 0).
        kind::PUSH_PROMISE => Err(protocol("PUSH_PROMISE although push is disabled")),
        kind::PING if stream != 0 => Err(protocol("PING on a stream")),
        kind::PING => {
            let data = payload.try_into().map_err(|_| size("PING is not 8 octets long"))?;
            Ok(Event::Ping { data, ack: header.flags & flag::ACK != 0 })
        }
        kind::GOAWAY if stream != 0 => Err(protocol("GOAWAY on a stream")),
        kind::GOAWAY => {
            let (fixed, debug_data) = payload.split_first_chunk::<8>().ok_or(size("GOAWAY shorter than 8 octets"))?;
            let last_stream = u32::from_be_bytes([fixed[0], fixed[1], fixed[2], fixed[3]]) & MAX_WINDOW_OCTETS;
            let code = ErrorCode(u32::from_be_bytes([fixed[4], fixed[5], fixed[6], fixed[7]]));
            Ok(Event::GoAway { last_stream, code, debug_data })
        }
        kind::WINDOW_UPDATE => {
            let increment = four("WINDOW_UPDATE is not 4 octets long")? & MAX_WINDOW_OCTETS;
            // RFC 9113 6.9: an increment of 0 is an error of its stream, on stream 0 one of the connection.
            match (increment, stream) {
                (0, 0) => Err(protocol("WINDOW_UPDATE by 0")),
                (0, _) => Err(H2Error::on_stream(stream, ErrorCode::PROTOCOL_ERROR, "WINDOW_UPDATE by 0")),
                _ => Ok(Event::WindowUpdate { stream, increment }),
            }
        }
        // RFC 9218 7.1: sent on stream 0; the stream that it speaks of is in its payload, and is not 0.
        kind::PRIORITY_UPDATE if stream != 0 => Err(protocol("PRIORITY_UPDATE on a stream")),
        kind::PRIORITY_UPDATE => {
            let (stream, value) = payload.split_first_chunk::<4>().ok_or(size("PRIORITY_UPDATE without a stream"))?;
            let stream = u32::from_be_bytes(*stream) & MAX_WINDOW_OCTETS;
            if stream == 0 {
                return Err(protocol("PRIORITY_UPDATE of stream 0"));
            }
            Ok(Event::PriorityUpdate { stream, priority: Priority::parse(value) })
        }
        unknown => Ok(Event::Unknown { kind: unknown }),
    }
}

/// RFC 9113 6.5.2: values that must be refused.
fn checked_settings(settings: Settings<'_>) -> Result<Settings<'_>, H2Error> {
    for (identifier, value) in settings.iter() {
        match identifier {
            setting::ENABLE_PUSH if value > 1 => {
                return Err(H2Error::connection(ErrorCode::PROTOCOL_ERROR, "SETTINGS_ENABLE_PUSH is neither 0 nor 1"));
            }
            setting::INITIAL_WINDOW_SIZE if value > MAX_WINDOW_OCTETS => {
                let reason = "SETTINGS_INITIAL_WINDOW_SIZE above 2^31-1";
                return Err(H2Error::connection(ErrorCode::FLOW_CONTROL_ERROR, reason));
            }
            setting::MAX_FRAME_SIZE if !(DEFAULT_MAX_FRAME_OCTETS..=LARGEST_MAX_FRAME_OCTETS).contains(&value) => {
                return Err(H2Error::connection(ErrorCode::PROTOCOL_ERROR, "SETTINGS_MAX_FRAME_SIZE out of range"));
            }
            _ => {}
        }
    }
    Ok(settings)
}
