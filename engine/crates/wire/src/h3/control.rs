//! The peer's unidirectional streams: control, push, QPACK encoder and decoder, and unknown ones (RFC 9114 section 6.2).

use super::frame::{Frame, FrameReader, kind};
use super::varint;
use crate::h3_error::{Code, Error};
use crate::priority::Priority;
use crate::qpack::DecoderStreamCheck;

/// Stream types of RFC 9114 section 6.2 and RFC 9204 section 4.2.
pub mod stream_type {
    /// Control stream
    pub const CONTROL: u64 = 0x00;
    /// Push stream
    pub const PUSH: u64 = 0x01;
    /// QPACK encoder stream
    pub const QPACK_ENCODER: u64 = 0x02;
    /// QPACK decoder stream
    pub const QPACK_DECODER: u64 = 0x03;
}

/// Settings identifiers of RFC 9114 section 7.2.4.1 and RFC 9204 section 5.
pub mod setting {
    /// SETTINGS_QPACK_MAX_TABLE_CAPACITY
    pub const QPACK_MAX_TABLE_CAPACITY: u64 = 0x01;
    /// SETTINGS_MAX_FIELD_SECTION_SIZE
    pub const MAX_FIELD_SECTION_SIZE: u64 = 0x06;
    /// SETTINGS_QPACK_BLOCKED_STREAMS
    pub const QPACK_BLOCKED_STREAMS: u64 = 0x07;
    /// Identifiers of HTTP/2 that have no meaning here and are forbidden (RFC 9114 section 7.2.4.1).
    pub const FORBIDDEN: [u64; 4] = [0x02, 0x03, 0x04, 0x05];
}

/// Which end of the connection we are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// We send requests.
    Client,
    /// We answer requests.
    Server,
}

/// What the peer's SETTINGS say, as far as it concerns us. Our encoder never uses the dynamic table, whatever the peer
/// would allow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// SETTINGS_QPACK_MAX_TABLE_CAPACITY in octets.
    pub qpack_max_table_capacity: u64,
    /// SETTINGS_QPACK_BLOCKED_STREAMS.
    pub qpack_blocked_streams: u64,
    /// SETTINGS_MAX_FIELD_SECTION_SIZE in octets; `None` is unlimited.
    pub max_field_section_size: Option<u64>,
}

impl Settings {
    /// Reads the payload of a SETTINGS frame.
    pub fn parse(mut payload: &[u8]) -> Result<Self, Error> {
        let mut settings = Self::default();
        let mut seen: Vec<u64> = Vec::new();
        while !payload.is_empty() {
            let (id, value, used) = varint::read(payload)
                .and_then(|(id, a)| varint::read(&payload[a..]).map(|(value, b)| (id, value, a + b)))
                .ok_or(Error::new(Code::FrameError, "SETTINGS end inside a setting"))?;
            payload = &payload[used..];
            // RFC 9114 section 7.2.4: an identifier "MUST NOT occur more than once", and a receiver may refuse it.
            if seen.contains(&id) {
                return Err(Error::new(Code::SettingsError, "a setting is sent twice"));
            }
            // An unknown setting may be repeated without harm once there are more than any peer has reason to send.
            if seen.len() < 64 {
                seen.push(id);
            }
            match id {
                setting::QPACK_MAX_TABLE_CAPACITY => settings.qpack_max_table_capacity = value,
                setting::QPACK_BLOCKED_STREAMS => settings.qpack_blocked_streams = value,
                setting::MAX_FIELD_SECTION_SIZE => settings.max_field_section_size = Some(value),
                id if setting::FORBIDDEN.contains(&id) => {
                    return Err(Error::new(Code::SettingsError, "a setting of HTTP/2"));
                }
                _ => {}
            }
        }
        Ok(settings)
    }
}

/// What a unidirectional stream told us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UniEvent {
    /// The peer's settings.
    Settings(Settings),
    /// The peer ends the connection; requests from this stream identifier on are not handled (section 5.2).
    GoAway(u64),
    /// The client changes the priority of a request, which may not have come yet (RFC 9218 section 7.2).
    Priority {
        /// The request's stream.
        stream: u64,
        /// Its new priority.
        priority: Priority,
    },
    /// A stream of unknown type: its octets are of no use, it may be stopped (section 6.2).
    Unknown,
}

#[derive(Debug)]
enum Kind {
    /// The stream type is not complete yet.
    Opening(Vec<u8>),
    Control(FrameReader),
    Encoder,
    Decoder(DecoderStreamCheck),
    Ignored,
}

/// State of the peer's unidirectional streams.
#[derive(Debug)]
pub struct ControlPlane {
    role: Role,
    /// A handful at most, so a list beats a map.
    streams: Vec<(u64, Kind)>,
    settings: Option<Settings>,
    goaway: Option<u64>,
}

/// The octets that open our own control stream: its type and SETTINGS with nothing but a limit of the field section; QPACK
/// capacity and blocked streams stay 0, their default (RFC 9204 section 5).
pub fn opening(max_field_section_size: u64) -> Vec<u8> {
    let mut out = Vec::new();
    varint::write(stream_type::CONTROL, &mut out);
    let payload = 1 + varint::encoded_len(max_field_section_size);
    super::frame::write_header(kind::SETTINGS, payload as u64, &mut out);
    varint::write(setting::MAX_FIELD_SECTION_SIZE, &mut out);
    varint::write(max_field_section_size, &mut out);
    out
}

impl ControlPlane {
    /// The state of a new connection.
    pub fn new(role: Role) -> Self {
        Self { role, streams: Vec::new(), settings: None, goaway: None }
    }

    /// Octets of the peer's unidirectional stream `id`.
    pub fn on_data(&mut self, id: u64, mut input: &[u8], on_event: &mut impl FnMut(UniEvent)) -> Result<(), Error> {
        let index = match self.streams.iter().position(|(known, _)| *known == id) {
            Some(index) => index,
            None => {
                self.streams.push((id, Kind::Opening(Vec::new())));
                self.streams.len() - 1
            }
        };
        if let Kind::Opening(partial) = &mut self.streams[index].1 {
            let Some(kind) = read_type(partial, &mut input) else { return Ok(()) };
            let opened = self.open(kind)?;
            if matches!(opened, Kind::Ignored) {
                on_event(UniEvent::Unknown);
            }
            self.streams[index].1 = opened;
        }
        match &mut self.streams[index].1 {
            Kind::Control(reader) => {
                while let Some(frame) = reader.read(&mut input)? {
                    let event = on_control_frame(self.role, &mut self.settings, &mut self.goaway, frame)?;
                    if let Some(event) = event {
                        on_event(event);
                    }
                }
                Ok(())
            }
            Kind::Encoder => crate::qpack::check_encoder_stream(input),
            Kind::Decoder(check) => check.check(input),
            Kind::Opening(_) | Kind::Ignored => Ok(()),
        }
    }

    /// The peer ended (or reset) its unidirectional stream `id`. Of those of QPACK RFC 9204 section 4.2 says the same.
    pub fn on_end(&mut self, id: u64) -> Result<(), Error> {
        let Some(index) = self.streams.iter().position(|(known, _)| *known == id) else { return Ok(()) };
        match self.streams[index].1 {
            Kind::Control(_) | Kind::Encoder | Kind::Decoder(_) => {
                //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
                //# If either control stream is closed at any point, this MUST be treated as a connection error of
                //# type H3_CLOSED_CRITICAL_STREAM.
                Err(Error::new(Code::ClosedCriticalStream, "a control or QPACK stream was closed"))
            }
            Kind::Opening(_) | Kind::Ignored => {
                self.streams.swap_remove(index);
                Ok(())
            }
        }
    }

    /// A stream of type `kind` was opened: at most one of each critical type, and no push.
    fn open(&self, kind: u64) -> Result<Kind, Error> {
        let opened = match kind {
            stream_type::CONTROL => Kind::Control(FrameReader::new()),
            stream_type::QPACK_ENCODER => Kind::Encoder,
            stream_type::QPACK_DECODER => Kind::Decoder(DecoderStreamCheck::default()),
            // RFC 9114 section 6.2.2: only servers can push; 4.6: without MAX_PUSH_ID no push has a valid identifier.
            stream_type::PUSH if self.role == Role::Server => {
                return Err(Error::new(Code::StreamCreationError, "a client opened a push stream"));
            }
            stream_type::PUSH => {
                return Err(Error::new(Code::IdError, "a push stream although push was not allowed"));
            }
            _ => return Ok(Kind::Ignored),
        };
        let same = std::mem::discriminant(&opened);
        if self.streams.iter().any(|(_, known)| std::mem::discriminant(known) == same) {
            //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
            //# Only one control stream per peer is permitted; receipt of a second stream claiming to be a control
            //# stream MUST be treated as a connection error of type H3_STREAM_CREATION_ERROR.
            // RFC 9204 section 4.2: so of a second encoder or decoder stream.
            return Err(Error::new(Code::StreamCreationError, "a second stream of a type that exists once"));
        }
        Ok(opened)
    }
}

/// Reads the stream type, octet by octet, off `input`.
fn read_type(partial: &mut Vec<u8>, input: &mut &[u8]) -> Option<u64> {
    while let Some((first, rest)) = input.split_first() {
        partial.push(*first);
        *input = rest;
        if let Some((kind, _)) = varint::read(partial) {
            return Some(kind);
        }
    }
    None
}

fn on_control_frame(
    role: Role,
    settings: &mut Option<Settings>,
    goaway: &mut Option<u64>,
    frame: Frame<'_>,
) -> Result<Option<UniEvent>, Error> {
    if let Frame::Settings(payload) = frame {
        if settings.is_some() {
            //= https://www.rfc-editor.org/rfc/rfc9114#section-7.2.4
            //# If an endpoint receives a second SETTINGS frame on the control stream, the endpoint MUST respond
            //# with a connection error of type H3_FRAME_UNEXPECTED.
            return Err(Error::new(Code::FrameUnexpected, "SETTINGS are sent twice"));
        }
        let parsed = Settings::parse(payload)?;
        *settings = Some(parsed);
        return Ok(Some(UniEvent::Settings(parsed)));
    }
    if settings.is_none() {
        //= https://www.rfc-editor.org/rfc/rfc9114#section-6.2.1
        //# If the first frame of the control stream is any other frame type, this MUST be treated as a connection
        //# error of type H3_MISSING_SETTINGS.
        return Err(Error::new(Code::MissingSettings, "the first frame of the control stream is not SETTINGS"));
    }
    match frame {
        Frame::Identifier { kind: kind::GOAWAY, id } => {
            // RFC 9114 section 7.2.6: a server names a request stream; a client names a push, whose number may be any.
            if role == Role::Client && id % 4 != 0 {
                return Err(Error::new(Code::IdError, "GOAWAY names something else than a request stream"));
            }
            // RFC 9114 section 5.2: "a larger identifier than previously received" is H3_ID_ERROR.
            if goaway.is_some_and(|last| id > last) {
                return Err(Error::new(Code::IdError, "GOAWAY takes back an earlier one"));
            }
            *goaway = Some(id);
            Ok(Some(UniEvent::GoAway(id)))
        }
        // RFC 9218 section 7.2: of a client's request stream, and from a client alone.
        Frame::PriorityUpdate { id, .. } if id % 4 != 0 => {
            Err(Error::new(Code::IdError, "PRIORITY_UPDATE of something else than a request stream"))
        }
        Frame::PriorityUpdate { id, priority } if role == Role::Server => {
            Ok(Some(UniEvent::Priority { stream: id, priority }))
        }
        // RFC 9114 section 7.2.7: from a client alone; nothing is pushed, whatever it allows.
        Frame::Identifier { kind: kind::MAX_PUSH_ID, .. } if role == Role::Server => Ok(None),
        // Cancelling a push that was never promised (section 7.2.3).
        Frame::Identifier { kind: kind::CANCEL_PUSH, .. } => {
            Err(Error::new(Code::IdError, "CANCEL_PUSH although there is no push"))
        }
        // DATA, HEADERS, PUSH_PROMISE and what HTTP/2 had (RFC 9114 sections 7.2.1, 7.2.2, 7.2.5, 7.2.8).
        _ => Err(Error::new(Code::FrameUnexpected, "a frame that has no place on the control stream")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame::{write_goaway, write_header, write_headers};
    use super::*;

    fn feed(role: Role, streams: &[(u64, Vec<u8>)], step: usize) -> Result<Vec<UniEvent>, Error> {
        let mut plane = ControlPlane::new(role);
        let mut events = Vec::new();
        for (id, octets) in streams {
            for chunk in octets.chunks(step) {
                plane.on_data(*id, chunk, &mut |event| events.push(event))?;
            }
        }
        Ok(events)
    }

    fn control(frames: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
        let mut out = opening(65_536);
        frames(&mut out);
        out
    }

    fn check(role: Role, streams: &[(u64, Vec<u8>)], want: Result<Vec<UniEvent>, Code>) {
        for step in [1, 2, 7, 4096] {
            assert_eq!(feed(role, streams, step).map_err(|error| error.code), want, "step {step}");
        }
    }

    const SETTINGS: UniEvent = UniEvent::Settings(Settings {
        qpack_max_table_capacity: 0,
        qpack_blocked_streams: 0,
        max_field_section_size: Some(65_536),
    });

    #[test]
    fn a_client_changes_priorities_of_its_requests() {
        let update = |payload: &[u8]| {
            control(|out| {
                write_header(kind::PRIORITY_UPDATE, payload.len() as u64, out);
                out.extend_from_slice(payload);
            })
        };
        let priority = Priority { urgency: 1, incremental: true };
        let event = UniEvent::Priority { stream: 64, priority };
        check(Role::Server, &[(2, update(b"\x40\x40u=1, i"))], Ok(vec![SETTINGS, event]));
        check(Role::Server, &[(2, update(b"\x02u=1"))], Err(Code::IdError));
        check(Role::Server, &[(2, update(b""))], Err(Code::FrameError));
        check(Role::Client, &[(3, update(b"\x00u=1"))], Err(Code::FrameUnexpected));
    }

    #[test]
    fn settings_goaway_and_unknown_streams() {
        let octets = control(|out| {
            write_header(0x21, 0, out);
            write_goaway(8, out);
            write_goaway(4, out);
        });
        let streams = [(3, octets), (7, vec![0x02]), (11, vec![0x03]), (15, vec![0x21, 1, 2, 3])];
        check(Role::Client, &streams, Ok(vec![SETTINGS, UniEvent::GoAway(8), UniEvent::GoAway(4), UniEvent::Unknown]));
    }

    #[test]
    fn broken_control_streams() {
        let goaway_first = {
            let mut out = vec![0x00];
            write_goaway(0, &mut out);
            out
        };
        check(Role::Client, &[(3, goaway_first)], Err(Code::MissingSettings));
        let twice = control(|out| write_header(kind::SETTINGS, 0, out));
        check(Role::Client, &[(3, twice)], Err(Code::FrameUnexpected));
        let rising = control(|out| {
            write_goaway(4, out);
            write_goaway(8, out);
        });
        check(Role::Client, &[(3, rising)], Err(Code::IdError));
        check(Role::Client, &[(3, control(|out| write_goaway(5, out)))], Err(Code::IdError));
        check(Role::Server, &[(3, control(|out| write_headers(&[0, 0], out)))], Err(Code::FrameUnexpected));
        let max_push = control(|out| out.extend_from_slice(&[0x0d, 0x01, 0x05]));
        check(Role::Server, &[(2, max_push.clone())], Ok(vec![SETTINGS]));
        check(Role::Client, &[(3, max_push)], Err(Code::FrameUnexpected));
        check(Role::Client, &[(3, opening(0)), (7, vec![0x00])], Err(Code::StreamCreationError));
        check(Role::Client, &[(3, vec![0x01, 0x00])], Err(Code::IdError));
        check(Role::Server, &[(2, vec![0x01, 0x00])], Err(Code::StreamCreationError));
    }

    #[test]
    fn qpack_streams_without_a_dynamic_table() {
        check(Role::Client, &[(3, vec![0x02, 0x20, 0x20])], Ok(vec![]));
        check(Role::Client, &[(3, vec![0x02, 0x3f, 0x01])], Err(Code::EncoderStreamError));
        check(Role::Server, &[(2, vec![0x03, 0x44, 0x7f, 0x80, 0x01, 0x40])], Ok(vec![]));
        check(Role::Server, &[(2, vec![0x03, 0x44, 0x80])], Err(Code::DecoderStreamError));
        check(Role::Server, &[(2, vec![0x03, 0x01])], Err(Code::DecoderStreamError));
    }

    #[test]
    fn broken_settings() {
        let mut http2 = vec![0x00];
        write_header(kind::SETTINGS, 2, &mut http2);
        http2.extend_from_slice(&[0x03, 0x01]);
        check(Role::Client, &[(3, http2)], Err(Code::SettingsError));
        let mut twice = vec![0x00];
        write_header(kind::SETTINGS, 4, &mut twice);
        twice.extend_from_slice(&[0x01, 0x01, 0x01, 0x01]);
        check(Role::Client, &[(3, twice)], Err(Code::SettingsError));
        let mut cut = vec![0x00];
        write_header(kind::SETTINGS, 1, &mut cut);
        cut.push(0x01);
        check(Role::Client, &[(3, cut)], Err(Code::FrameError));
    }

    #[test]
    fn critical_streams_stay_open() {
        let mut plane = ControlPlane::new(Role::Client);
        plane.on_data(3, &opening(0), &mut |_| {}).unwrap();
        plane.on_data(7, &[0x40, 0x7f], &mut |_| {}).unwrap();
        assert_eq!(plane.on_end(7), Ok(()));
        assert_eq!(plane.on_end(3).unwrap_err().code, Code::ClosedCriticalStream);
    }
}
