//! Responses: HEADERS and DATA within the windows, one after the other or by their priorities.

use super::stream::{Sending, Stream};
use super::{ErrorCode, H2, write};
use crate::answer::Plan;
use crate::config::Protocol;
use crate::context::{BATCH_OCTETS, Context, Fate, INLINE_OCTETS};
use crate::handler;
use crate::relay::META_FIELD;
use crate::summary::ServerFault;
use trifecta_wire::clock::now_ns;
use trifecta_wire::h2::FRAME_HEADER_OCTETS;
use trifecta_wire::hpack::encoder;

/// A DATA frame's content when the peer allows more: two frames a TLS record would gain nothing.
const MAX_DATA_OCTETS: usize = 64 * 1024;

impl H2 {
    /// Sends the head, and the content as far as it goes at once. The stream is not in the table.
    #[inline]
    pub(super) fn respond(&mut self, mut stream: Stream, plan: Plan, context: &mut Context<'_>) {
        let end = context.handler.octets_to_send(&plan);
        if context.plain.len() >= 2 * BATCH_OCTETS {
            // Behind what is there already; the head waits with the content.
            stream.plan = Some(plan);
            stream.sending = Some(Sending { content: crate::content::Content::Empty, next: 0, end: 0 });
            self.streams.push(stream);
            return;
        }
        self.write_headers(&stream, &plan, end == 0, context);
        self.count_response(plan.head.status, context);
        let fits = end <= INLINE_OCTETS && end as i64 <= self.send_window.min(stream.send_window);
        if fits && self.streams.sending() == 0 {
            let mut sending = Sending { content: plan.content, next: 0, end };
            while sending.next < end {
                if !self.write_data(&mut stream, &mut sending, usize::MAX, context) {
                    break;
                }
            }
            self.finished(&stream, context);
        } else if end > 0 {
            stream.sending = Some(Sending { content: plan.content, next: 0, end });
            self.streams.push(stream);
        } else {
            self.finished(&stream, context);
        }
    }

    #[inline]
    fn write_headers(&mut self, stream: &Stream, plan: &Plan, end_stream: bool, context: &mut Context<'_>) {
        let handler = &*context.handler;
        let block = self.heads.get(&plan.head, |head, out| {
            encoder::encode_status(head.status, out);
            handler.for_each_field(head, Protocol::H2, |name, value| {
                encoder::encode_field(name.as_bytes(), value, out);
            });
        });
        if !self.announce_empty_table && !handler.server_timing() && plan.meta.is_none() {
            write::headers(stream.id, block, end_stream, context.plain);
            return;
        }
        let whole = &mut *context.scratch;
        whole.clear();
        if std::mem::take(&mut self.announce_empty_table) {
            encoder::encode_table_size_update(0, whole);
        }
        whole.extend_from_slice(block);
        if handler.server_timing() {
            let mut value = String::new();
            handler::server_timing(now_ns().saturating_sub(stream.received_ns), &mut value);
            encoder::encode_field(b"server-timing", value.as_bytes(), whole);
        }
        if let Some(meta) = &plan.meta {
            encoder::encode_field(META_FIELD.as_bytes(), meta, whole);
        }
        write::headers(stream.id, whole, end_stream, context.plain);
    }

    /// Writes one DATA frame of at most `limit` octets; `false` when nothing more can be sent on the stream now.
    #[inline]
    fn write_data(
        &mut self,
        stream: &mut Stream,
        sending: &mut Sending,
        limit: usize,
        context: &mut Context<'_>,
    ) -> bool {
        let window = self.send_window.min(stream.send_window).max(0);
        let left = sending.end - sending.next;
        let most = self.peer_max_frame.min(MAX_DATA_OCTETS).min(limit).min(window as usize);
        let wanted = usize::try_from(left).unwrap_or(usize::MAX).min(most);
        if wanted == 0 {
            return false;
        }
        let piece = match sending.content.piece(sending.next, wanted, context.scratch) {
            Ok(piece) if !piece.is_empty() => piece,
            Ok(_) | Err(_) => {
                context.stats.error(ServerFault::File);
                write::rst_stream(stream.id, ErrorCode::INTERNAL_ERROR, context.plain);
                sending.next = sending.end;
                return false;
            }
        };
        let octets = piece.len();
        sending.next += octets as u64;
        write::data_header(stream.id, octets, sending.next == sending.end, context.plain);
        context.plain.extend_from_slice(piece);
        self.send_window -= octets as i64;
        stream.send_window -= octets as i64;
        context.stats.content_bytes_out += octets as u64;
        true
    }

    /// The response has been sent whole.
    #[inline]
    fn finished(&mut self, stream: &Stream, context: &mut Context<'_>) {
        if stream.receiving {
            // RFC 9113 8.1: the rest of the request is not wanted.
            write::rst_stream(stream.id, ErrorCode::NO_ERROR, context.plain);
            self.streams.remember_reset(stream.id);
        }
        let limit = context.handler.faults().close_after_requests;
        if limit > 0 && self.answered >= limit && self.streams.sending() == 0 {
            self.fate = Some(Fate::Drop);
        }
    }

    /// The place of the stream to serve next, if one can go on.
    #[inline]
    fn next_place(&self) -> Option<usize> {
        if self.by_priority { self.streams.most_urgent(self.send_window) } else { self.streams.first(self.send_window) }
    }

    /// Serves the streams until `limit` octets are made or none can go on: one after the other, as they are answered, or by their
    /// priorities.
    pub fn produce(&mut self, limit: usize, context: &mut Context<'_>) {
        let stop_at = context.plain.len() + limit;
        while self.fate.is_none() && self.streams.sending() > 0 && context.plain.len() < stop_at {
            let Some(place) = self.next_place() else { break };
            // Out of the table while it is served.
            let mut stream = self.streams.remove_at(place);
            if let Some(plan) = stream.plan.take() {
                stream.sending = None;
                self.respond_queued(stream, plan, place, context);
                continue;
            }
            let Some(mut sending) = stream.sending.take() else { continue };
            let room = stop_at - context.plain.len();
            self.write_data(&mut stream, &mut sending, room.max(FRAME_HEADER_OCTETS), context);
            if sending.next == sending.end {
                self.finished(&stream, context);
            } else {
                stream.sending = Some(sending);
                self.put_back(place, stream);
            }
        }
        self.close_at_end();
    }

    /// Puts a stream that has been served back into the table: to its place, or to the end, so that those of one priority take
    /// turns.
    fn put_back(&mut self, place: usize, stream: Stream) {
        if self.by_priority {
            self.streams.push(stream);
        } else {
            self.streams.insert(place, stream);
        }
    }

    /// Sends the head of an answer that had to wait for room; its content follows when it is served next.
    fn respond_queued(&mut self, mut stream: Stream, plan: Plan, place: usize, context: &mut Context<'_>) {
        let end = context.handler.octets_to_send(&plan);
        self.write_headers(&stream, &plan, end == 0, context);
        self.count_response(plan.head.status, context);
        if end == 0 {
            self.finished(&stream, context);
        } else {
            stream.sending = Some(Sending { content: plan.content, next: 0, end });
            self.put_back(place, stream);
        }
    }

    /// Whether [`H2::produce`] would make something now.
    pub fn has_more(&self) -> bool {
        self.fate.is_none() && self.streams.sending() > 0 && self.streams.can_send(self.send_window)
    }
}
