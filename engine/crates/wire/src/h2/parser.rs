//! Reads frames out of whatever pieces a connection delivers.

use super::control::{FrameHeader, control_event, parse_header};
use super::{ErrorCode, FRAME_HEADER_OCTETS, H2Error, flag, kind};
use crate::priority::Priority;

/// What the peer may send, in octets.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Our SETTINGS_MAX_FRAME_SIZE.
    pub max_frame_octets: u32,
    /// Largest header block over HEADERS and CONTINUATIONs together; more is a connection error (ENHANCE_YOUR_CALM), as
    /// the compression state is lost with it.
    pub max_header_block_octets: usize,
}

/// What was read. Slices point into the input or, for frames that came in pieces, into the parser's buffer.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<'a> {
    /// Content of a DATA frame, perhaps one part of several.
    Data {
        stream: u32,
        content: &'a [u8],
        /// What this part takes from the flow-control windows: its content and the frame's padding (RFC 9113 6.9.1).
        flow_octets: u32,
        /// Set on the last part of a frame that bears END_STREAM.
        end_stream: bool,
    },
    /// A whole header block, CONTINUATIONs joined, padding and priority taken off.
    Headers {
        stream: u32,
        block: &'a [u8],
        end_stream: bool,
    },
    /// PRIORITY, which RFC 9113 5.3 deprecates.
    Priority {
        stream: u32,
    },
    /// PRIORITY_UPDATE (RFC 9218 7.1) of a stream that may not be open yet.
    PriorityUpdate {
        stream: u32,
        priority: Priority,
    },
    RstStream {
        stream: u32,
        code: ErrorCode,
    },
    /// The peer's SETTINGS, which the receiver must acknowledge; values were checked against RFC 9113 6.5.2.
    Settings(Settings<'a>),
    SettingsAck,
    Ping {
        data: [u8; 8],
        ack: bool,
    },
    GoAway {
        last_stream: u32,
        code: ErrorCode,
        debug_data: &'a [u8],
    },
    /// An increment of 1..=2^31-1 for a stream, or for the connection when `stream` is 0.
    WindowUpdate {
        stream: u32,
        increment: u32,
    },
    /// A frame type that is not known, to be ignored (RFC 9113 4.1).
    Unknown {
        kind: u8,
    },
}

/// The pairs of a SETTINGS frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings<'a>(pub(super) &'a [u8]);

impl Settings<'_> {
    /// (identifier, value) in the order sent.
    pub fn iter(&self) -> impl Iterator<Item = (u16, u32)> {
        let (pairs, _) = self.0.as_chunks::<6>();
        pairs.iter().map(|pair| {
            (u16::from_be_bytes([pair[0], pair[1]]), u32::from_be_bytes([pair[2], pair[3], pair[4], pair[5]]))
        })
    }
}

/// A DATA frame whose payload is being handed out in parts.
#[derive(Clone, Copy)]
struct OpenData {
    stream: u32,
    content_left: u32,
    padding_left: u32,
    /// Octets of padding to be charged with the next part: the pad length octet and the padding itself.
    uncharged: u32,
    end_stream: bool,
}

struct OpenBlock {
    stream: u32,
    end_stream: bool,
}

/// An incremental reader of frames; it holds at most one frame that is not DATA, and one header block.
pub struct Parser {
    limits: Limits,
    partial: Vec<u8>,
    /// The frame in `partial` was handed out and can be forgotten.
    partial_spent: bool,
    data: Option<OpenData>,
    block: Vec<u8>,
    open_block: Option<OpenBlock>,
}

impl Parser {
    /// A parser at a frame boundary (after the preface, for a server).
    pub fn new(limits: Limits) -> Self {
        Self { limits, partial: Vec::new(), partial_spent: false, data: None, block: Vec::new(), open_block: None }
    }

    /// Takes the next event off the front of `input`; `None` when all of it was taken and more is needed.
    ///
    /// After an error whose `stream` is set the parser goes on with the next frame; after any other it must not be used.
    #[inline]
    pub fn next<'p, 'i: 'p>(&'p mut self, input: &mut &'i [u8]) -> Result<Option<Event<'p>>, H2Error> {
        if self.partial_spent {
            self.partial.clear();
            self.partial_spent = false;
        }
        loop {
            if self.data.is_some() {
                match self.data_part(input) {
                    DataStep::Part { stream, content, flow_octets, end_stream } => {
                        return Ok(Some(Event::Data { stream, content, flow_octets, end_stream }));
                    }
                    DataStep::Ended => {}
                    DataStep::NeedsMore => return Ok(None),
                }
            }
            if self.partial.is_empty() {
                let Some((head, _)) = input.split_first_chunk::<FRAME_HEADER_OCTETS>() else {
                    self.partial.extend_from_slice(input);
                    *input = &[];
                    return Ok(None);
                };
                let header = self.frame_header(*head)?;
                if header.kind == kind::DATA && self.begins_here(header, input.len()) {
                    let taken = self.begin_data(header, input.get(FRAME_HEADER_OCTETS).copied())?;
                    *input = &input[taken..];
                    continue;
                }
                let total = FRAME_HEADER_OCTETS + header.length as usize;
                if header.kind != kind::DATA && input.len() >= total {
                    let (frame, rest) = input.split_at(total);
                    *input = rest;
                    if header.kind == kind::HEADERS || header.kind == kind::CONTINUATION {
                        match self.header_fragment(header, &frame[FRAME_HEADER_OCTETS..])? {
                            Fragment::Whole { stream, block, end_stream } => {
                                return Ok(Some(Event::Headers { stream, block, end_stream }));
                            }
                            Fragment::Joined { stream, end_stream } => {
                                return Ok(Some(Event::Headers { stream, block: &self.block, end_stream }));
                            }
                            Fragment::Open => continue,
                        }
                    }
                    return control_event(header, &frame[FRAME_HEADER_OCTETS..]).map(Some);
                }
            }
            if !self.collect(input)? {
                return Ok(None);
            }
            // A frame that came in pieces is whole.
            let Some((head, _)) = self.partial.split_first_chunk::<FRAME_HEADER_OCTETS>() else { continue };
            let header = parse_header(*head);
            if header.kind == kind::DATA {
                let pad_length = self.partial.get(FRAME_HEADER_OCTETS).copied();
                self.partial.clear();
                self.begin_data(header, pad_length)?;
                continue;
            }
            self.partial_spent = true;
            if header.kind == kind::HEADERS || header.kind == kind::CONTINUATION {
                let payload = std::mem::take(&mut self.partial);
                let fragment = self.header_fragment(header, &payload[FRAME_HEADER_OCTETS..]);
                let done = match fragment {
                    Ok(Fragment::Whole { stream, block, end_stream }) => {
                        self.block.clear();
                        self.block.extend_from_slice(block);
                        Ok(Some((stream, end_stream)))
                    }
                    Ok(Fragment::Joined { stream, end_stream }) => Ok(Some((stream, end_stream))),
                    Ok(Fragment::Open) => Ok(None),
                    Err(error) => Err(error),
                };
                self.partial = payload;
                self.partial.clear();
                self.partial_spent = false;
                match done? {
                    Some((stream, end_stream)) => {
                        return Ok(Some(Event::Headers { stream, block: &self.block, end_stream }));
                    }
                    None => continue,
                }
            }
            return control_event(header, &self.partial[FRAME_HEADER_OCTETS..]).map(Some);
        }
    }

    /// Moves input into `partial` until the frame there (for DATA: its header and pad length) is whole.
    fn collect(&mut self, input: &mut &[u8]) -> Result<bool, H2Error> {
        loop {
            let wanted = match self.partial.split_first_chunk::<FRAME_HEADER_OCTETS>() {
                None => FRAME_HEADER_OCTETS,
                Some((head, _)) => {
                    let header = self.frame_header(*head)?;
                    let payload = header.length as usize;
                    if header.kind != kind::DATA {
                        FRAME_HEADER_OCTETS + payload
                    } else {
                        FRAME_HEADER_OCTETS + usize::from(header.flags & flag::PADDED != 0).min(payload)
                    }
                }
            };
            let missing = wanted.saturating_sub(self.partial.len());
            if missing == 0 && self.partial.len() >= FRAME_HEADER_OCTETS {
                return Ok(true);
            }
            let (taken, rest) = input.split_at(missing.min(input.len()));
            self.partial.extend_from_slice(taken);
            *input = rest;
            if taken.len() < missing {
                return Ok(false);
            }
        }
    }

    /// Reads a frame header and refuses what is wrong whatever the payload (RFC 9113 4.2, 6.10).
    #[inline]
    fn frame_header(&self, head: [u8; FRAME_HEADER_OCTETS]) -> Result<FrameHeader, H2Error> {
        let header = parse_header(head);
        if header.length > self.limits.max_frame_octets {
            //= https://www.rfc-editor.org/rfc/rfc9113#section-4.2
            //# An endpoint MUST send an error code of FRAME_SIZE_ERROR if a frame exceeds the size defined in
            //# SETTINGS_MAX_FRAME_SIZE, exceeds any limit defined for the frame type, or is too small to contain
            //# mandatory frame data.
            return Err(H2Error::connection(ErrorCode::FRAME_SIZE_ERROR, "frame larger than SETTINGS_MAX_FRAME_SIZE"));
        }
        match &self.open_block {
            Some(open) if header.kind != kind::CONTINUATION || header.stream != open.stream => {
                Err(H2Error::connection(ErrorCode::PROTOCOL_ERROR, "header block interrupted by another frame"))
            }
            None if header.kind == kind::CONTINUATION => {
                Err(H2Error::connection(ErrorCode::PROTOCOL_ERROR, "CONTINUATION without HEADERS"))
            }
            _ => Ok(header),
        }
    }

    /// Whether all that is needed to begin with a DATA frame is in the input.
    fn begins_here(&self, header: FrameHeader, available: usize) -> bool {
        header.flags & flag::PADDED == 0 || header.length == 0 || available > FRAME_HEADER_OCTETS
    }

    /// Opens a DATA frame and returns how many octets its header and pad length took.
    fn begin_data(&mut self, header: FrameHeader, pad_length: Option<u8>) -> Result<usize, H2Error> {
        if header.stream == 0 {
            return Err(H2Error::connection(ErrorCode::PROTOCOL_ERROR, "DATA on stream 0"));
        }
        let mut taken = FRAME_HEADER_OCTETS;
        let mut content = header.length;
        let mut padding = 0;
        if header.flags & flag::PADDED != 0 {
            let pad_length = pad_length.filter(|_| header.length > 0);
            padding = u32::from(pad_length.ok_or(PADDED_WITHOUT_LENGTH)?);
            content = (content - 1).checked_sub(padding).ok_or(PADDING_TOO_LONG)?;
            taken += 1;
        }
        self.data = Some(OpenData {
            stream: header.stream,
            content_left: content,
            padding_left: padding,
            uncharged: header.length - content,
            end_stream: header.flags & flag::END_STREAM != 0,
        });
        Ok(taken)
    }

    /// Hands out the next part of the open DATA frame. The last part is handed out when the padding is taken too, so that
    /// END_STREAM is seen when the frame has ended.
    fn data_part<'a>(&mut self, input: &mut &'a [u8]) -> DataStep<'a> {
        let Some(open) = &mut self.data else { return DataStep::Ended };
        let (content, rest) = input.split_at(input.len().min(open.content_left as usize));
        open.content_left -= content.len() as u32;
        *input = rest;
        if open.content_left > 0 {
            if content.is_empty() {
                return DataStep::NeedsMore;
            }
            let flow_octets = content.len() as u32 + std::mem::take(&mut open.uncharged);
            return DataStep::Part { stream: open.stream, content, flow_octets, end_stream: false };
        }
        let padding = input.len().min(open.padding_left as usize);
        open.padding_left -= padding as u32;
        *input = &input[padding..];
        let ended = open.padding_left == 0;
        if !ended && content.is_empty() {
            return DataStep::NeedsMore;
        }
        let flow_octets = content.len() as u32 + std::mem::take(&mut open.uncharged);
        let (stream, end_stream) = (open.stream, ended && open.end_stream);
        if ended {
            self.data = None;
        }
        if content.is_empty() && flow_octets == 0 && !end_stream {
            return DataStep::Ended;
        }
        DataStep::Part { stream, content, flow_octets, end_stream }
    }

    /// HEADERS (RFC 9113 6.2) and the CONTINUATIONs behind it (6.10), which end a block but never a stream.
    fn header_fragment<'a>(&mut self, header: FrameHeader, payload: &'a [u8]) -> Result<Fragment<'a>, H2Error> {
        let ends = header.flags & flag::END_HEADERS != 0;
        if header.kind == kind::CONTINUATION {
            // An endless row of empty CONTINUATIONs must cost its sender too.
            if payload.is_empty() && !ends {
                return Err(H2Error::connection(ErrorCode::ENHANCE_YOUR_CALM, "empty CONTINUATION"));
            }
            self.append_block(payload)?;
            if !ends {
                return Ok(Fragment::Open);
            }
            let open = self.open_block.take().expect("checked by frame_header");
            return Ok(Fragment::Joined { stream: open.stream, end_stream: open.end_stream });
        }
        if header.stream == 0 {
            return Err(H2Error::connection(ErrorCode::PROTOCOL_ERROR, "HEADERS on stream 0"));
        }
        let mut fragment = payload;
        if header.flags & flag::PADDED != 0 {
            let (&padding, rest) = fragment.split_first().ok_or(PADDED_WITHOUT_LENGTH)?;
            fragment = rest.get(..rest.len().checked_sub(padding as usize).ok_or(PADDING_TOO_LONG)?).unwrap_or(&[]);
        }
        if header.flags & flag::PRIORITY != 0 {
            // RFC 9113 5.3.2: the priority is read over.
            let too_short = H2Error::connection(ErrorCode::FRAME_SIZE_ERROR, "HEADERS too short for its priority");
            let (_, rest) = fragment.split_first_chunk::<5>().ok_or(too_short)?;
            fragment = rest;
        }
        if fragment.len() > self.limits.max_header_block_octets {
            return Err(BLOCK_TOO_LARGE);
        }
        let end_stream = header.flags & flag::END_STREAM != 0;
        if ends {
            return Ok(Fragment::Whole { stream: header.stream, block: fragment, end_stream });
        }
        self.block.clear();
        self.append_block(fragment)?;
        self.open_block = Some(OpenBlock { stream: header.stream, end_stream });
        Ok(Fragment::Open)
    }

    fn append_block(&mut self, fragment: &[u8]) -> Result<(), H2Error> {
        if self.block.len() + fragment.len() > self.limits.max_header_block_octets {
            return Err(BLOCK_TOO_LARGE);
        }
        self.block.extend_from_slice(fragment);
        Ok(())
    }
}

enum DataStep<'a> {
    Part { stream: u32, content: &'a [u8], flow_octets: u32, end_stream: bool },
    Ended,
    NeedsMore,
}

enum Fragment<'a> {
    Whole {
        stream: u32,
        block: &'a [u8],
        end_stream: bool,
    },
    /// The block is in the parser's buffer.
    Joined {
        stream: u32,
        end_stream: bool,
    },
    Open,
}

// RFC 9113 4.2: "too small to contain mandatory frame data".
const PADDED_WITHOUT_LENGTH: H2Error =
    H2Error::connection(ErrorCode::FRAME_SIZE_ERROR, "padded frame without pad length");
// RFC 9113 6.1, 6.2: padding that fills its frame or more is an error of the connection.
const PADDING_TOO_LONG: H2Error = H2Error::connection(ErrorCode::PROTOCOL_ERROR, "padding longer than the frame");
const BLOCK_TOO_LARGE: H2Error = H2Error::connection(ErrorCode::ENHANCE_YOUR_CALM, "header block too large");

impl Parser {
    /// Octets held until the rest of their frame or block comes.
    pub(super) fn held_octets(&self) -> usize {
        self.partial.len() + self.block.len()
    }
}

#[cfg(test)]
mod tests;
