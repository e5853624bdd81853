//! What a parser reads, as text: for fuzzing, to compare ways of feeding it.

use super::{Event, FRAME_HEADER_OCTETS, Limits, Parser};

/// All that is read from `data` fed in pieces of `step` octets, as text, with the parts of a DATA frame joined; the last
/// line is the error that ended it, if one did.
pub(super) fn transcript(data: &[u8], step: usize, limits: Limits) -> Vec<String> {
    let mut parser = Parser::new(limits);
    let mut lines = Vec::new();
    let mut open_data: Option<(u32, Vec<u8>, u32)> = None;
    'pieces: for piece in data.chunks(step) {
        let mut input = piece;
        loop {
            let buffered = parser.held_octets();
            assert!(
                buffered <= limits.max_frame_octets as usize + limits.max_header_block_octets + FRAME_HEADER_OCTETS
            );
            match parser.next(&mut input) {
                Ok(None) => break,
                Ok(Some(Event::Data { stream, content, flow_octets, end_stream })) => {
                    let (_, joined, flow) = open_data.get_or_insert((stream, Vec::new(), 0));
                    joined.extend_from_slice(content);
                    *flow += flow_octets;
                    if end_stream {
                        lines.push(format!("data {:?} end", open_data.take()));
                    }
                }
                Ok(Some(other)) => {
                    lines.extend(open_data.take().map(|data| format!("data {data:?}")));
                    lines.push(format!("{other:?}"));
                }
                Err(error) => {
                    lines.extend(open_data.take().map(|data| format!("data {data:?}")));
                    lines.push(error.to_string());
                    if error.stream.is_none() {
                        break 'pieces;
                    }
                }
            }
        }
    }
    lines.extend(open_data.take().map(|data| format!("data {data:?}")));
    lines
}
