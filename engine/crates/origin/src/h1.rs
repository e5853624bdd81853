//! HTTP/1.1 (RFC 9112) as a server: one request after another, answered in order.

mod response;

use crate::answer::{Plan, Request};
use crate::content::Content;
use crate::context::{BATCH_OCTETS, Context, Delayed, Fate};
use crate::handler::{HeadCache, collect};
use crate::summary::ServerFault;
use response::{Extra, write_head};
use trifecta_wire::ErrorClass;
use trifecta_wire::clock::now_ns;
use trifecta_wire::http1::{ChunkedDecoder, ChunkedStep, Framing, Http1Error, RequestHead, parse_request_head};

/// Octets a request's head may have; more is answered with 431 (RFC 6585 5).
const MAX_HEAD_OCTETS: usize = 16 * 1024;
/// Input that is held while an answer is under way.
const MAX_PENDING_OCTETS: usize = 64 * 1024;

/// One connection.
#[derive(Default)]
pub struct H1 {
    state: State,
    /// Input that was not taken yet: part of a head, or what came behind a request that is still being answered.
    pending: Vec<u8>,
    pending_early: bool,
    heads: HeadCache,
    memo: Memo,
    answered: u64,
    input_ended: bool,
    shutting_down: bool,
    /// Whole requests may be pending because the batch was full.
    batch_was_full: bool,
    /// Content of the request, when a relay wants it.
    collected: Vec<u8>,
    fate: Option<Fate>,
}

#[derive(Default)]
enum State {
    /// Before or in a request's head.
    #[default]
    Head,
    /// In a request's content, which is thrown away.
    Content { left: Left, answer: Answer },
    /// The answer waits until its delay has passed, or until the relay has it.
    Delayed(Answer),
    /// The answer's content is being sent.
    Sending { content: Content, next: u64, end: u64, then: Option<Fate> },
    /// Nothing will be answered.
    Stalled,
}

enum Left {
    Octets(u64),
    Chunked(ChunkedDecoder),
}

/// A planned answer and what its head depends on besides.
struct Answer {
    plan: Plan,
    extra: Extra,
    received_ns: u64,
}

/// The last head without content and its answer: load generators send the same head again and again.
#[derive(Default)]
struct Memo {
    head: Vec<u8>,
    answer: Option<(Plan, Extra)>,
}

impl H1 {
    /// Takes plaintext in.
    pub fn receive(&mut self, data: &[u8], early: bool, context: &mut Context<'_>) {
        if self.fate.is_some() || matches!(self.state, State::Stalled) {
            return;
        }
        if self.pending.is_empty() {
            let taken = self.process(data, early, context);
            self.hold(&data[taken..], early);
        } else {
            self.hold(data, early);
            self.process_pending(context);
        }
    }

    fn hold(&mut self, data: &[u8], early: bool) {
        if self.fate.is_none() && !data.is_empty() {
            self.pending.extend_from_slice(data);
            self.pending_early |= early;
        }
    }

    fn process_pending(&mut self, context: &mut Context<'_>) {
        if self.pending.is_empty() {
            return;
        }
        let mut pending = std::mem::take(&mut self.pending);
        let early = self.pending_early;
        let taken = self.process(&pending, early, context);
        pending.drain(..taken);
        if self.fate.is_some() {
            pending.clear();
        }
        if pending.is_empty() {
            self.pending_early = false;
        }
        self.pending = pending;
    }

    /// Takes what can be taken from the front of `input` and returns how much that was.
    fn process(&mut self, input: &[u8], early: bool, context: &mut Context<'_>) -> usize {
        let mut rest = input;
        while self.fate.is_none() {
            match &mut self.state {
                State::Head => {
                    if rest.is_empty() {
                        break;
                    }
                    if context.plain.len() >= BATCH_OCTETS {
                        self.batch_was_full = true;
                        break;
                    }
                    match self.head(rest, early, context) {
                        Some(taken) => rest = &rest[taken..],
                        None => break,
                    }
                }
                State::Content { left, answer } => {
                    match take_content(left, answer, &mut self.collected, &mut rest, context) {
                        Ok(true) => {
                            if let State::Content { answer, .. } = std::mem::take(&mut self.state) {
                                self.answer(answer, context);
                            }
                        }
                        Ok(false) => break,
                        Err(_) => self.refuse(400, context),
                    }
                }
                State::Delayed(_) | State::Sending { .. } => break,
                State::Stalled => return input.len(),
            }
        }
        input.len() - rest.len()
    }

    /// Reads a head off the front of `input` and returns its length; `None` when it is not whole.
    #[inline]
    fn head(&mut self, input: &[u8], early: bool, context: &mut Context<'_>) -> Option<usize> {
        if let Some((plan, extra)) = &self.memo.answer
            && !early
            && input.starts_with(&self.memo.head)
        {
            let answer = Answer { plan: plan.clone(), extra: *extra, received_ns: context.now_ns };
            let taken = self.memo.head.len();
            self.answer(answer, context);
            return Some(taken);
        }
        let window = &input[..input.len().min(MAX_HEAD_OCTETS)];
        let head = match parse_request_head(window) {
            Ok(Some(head)) => head,
            Ok(None) if window.len() == MAX_HEAD_OCTETS => {
                self.refuse(431, context);
                return None;
            }
            Ok(None) => return None,
            Err(error) => {
                self.refuse(status_of(error), context);
                return None;
            }
        };
        let taken = head.head_octets;
        self.request(&head, &input[..taken], early, input.len() == taken, context);
        Some(taken)
    }

    fn request(&mut self, head: &RequestHead<'_>, text: &[u8], early: bool, is_last: bool, context: &mut Context<'_>) {
        let content_length = match head.framing {
            Framing::Length(octets) => Some(octets),
            _ => None,
        };
        let request = Request {
            method: head.method.as_bytes(),
            target: head.target.as_bytes(),
            host: head.host,
            range: head.range,
            if_range: head.if_range,
            content_length,
            early,
        };
        context.stats.early_requests += u64::from(early);
        let plan = context.handler.plan(request);
        let has_content = head.framing != Framing::None;
        // A refusal that makes the content pointless ends the connection rather than read it (RFC 9110 10.1.1, 15.5.14).
        let pointless = has_content && matches!(plan.head.status, 405 | 413 | 425);
        let extra = Extra {
            close: !head.keep_alive || pointless,
            announce_keep_alive: head.keep_alive && head.minor_version == 0,
        };
        let answer = Answer { plan, extra, received_ns: context.now_ns };
        if pointless || !has_content {
            if !has_content && matches!(answer.plan.content, Content::Pattern { .. }) && !early && text.len() <= 1024 {
                self.memo.head.clear();
                self.memo.head.extend_from_slice(text);
                self.memo.answer = Some((answer.plan.clone(), extra));
            }
            self.answer(answer, context);
            return;
        }
        // RFC 9110 10.1.1: no need for it when the content is already coming.
        if head.expect_continue && is_last && !context.handler.faults().stall {
            context.plain.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
        }
        let left = match content_length {
            Some(octets) => Left::Octets(octets),
            None => Left::Chunked(ChunkedDecoder::new()),
        };
        self.state = State::Content { left, answer };
    }

    /// Answers, unless a fault has it wait or never come.
    #[inline]
    fn answer(&mut self, mut answer: Answer, context: &mut Context<'_>) {
        if let Some(relayed) = &mut answer.plan.relayed {
            relayed.arrived_ns = now_ns();
        }
        let faults = context.handler.faults().over(crate::config::Protocol::H1);
        if faults.stall {
            self.state = State::Stalled;
        } else if faults.delay_ns > 0 {
            let due_ns = context.now_ns + faults.delay_ns;
            context.delays.push_back(Delayed { due_ns, token: context.token, stream: 0 });
            self.state = State::Delayed(answer);
        } else {
            self.answer_now(answer, context);
        }
    }

    fn answer_now(&mut self, answer: Answer, context: &mut Context<'_>) {
        match answer.plan.relayed {
            Some(relayed) => {
                context.submit(0, relayed, std::mem::take(&mut self.collected));
                self.state = State::Delayed(answer);
            }
            None => self.respond(answer, context),
        }
    }

    /// Lets the delayed answer go: `plan` from the relay, or the one that waits. False when none does.
    pub fn release(&mut self, plan: Option<Plan>, context: &mut Context<'_>) -> bool {
        match std::mem::take(&mut self.state) {
            State::Delayed(mut answer) => {
                match plan {
                    Some(plan) => {
                        answer.plan = plan;
                        self.respond(answer, context);
                    }
                    None => self.answer_now(answer, context),
                }
                self.process_pending(context);
                true
            }
            other => {
                self.state = other;
                false
            }
        }
    }

    /// Whether the relay has yet to answer.
    pub fn is_relaying(&self) -> bool {
        matches!(&self.state, State::Delayed(answer) if answer.plan.relayed.is_some())
    }

    #[inline]
    fn respond(&mut self, answer: Answer, context: &mut Context<'_>) {
        let Answer { plan, mut extra, received_ns } = answer;
        self.answered += 1;
        let truncates = context.handler.truncates(&plan);
        extra.close |= self.shutting_down;
        context.stats.response(crate::config::Protocol::H1, plan.head.status);
        write_head(&mut self.heads, &plan, extra, received_ns, context);
        let end = context.handler.octets_to_send(&plan);
        let limit = context.handler.faults().close_after_requests;
        let then = if limit > 0 && self.answered >= limit {
            Some(Fate::Drop)
        } else {
            (extra.close || truncates).then_some(Fate::Close)
        };
        self.state = State::Sending { content: plan.content, next: 0, end, then };
        if end <= crate::context::INLINE_OCTETS {
            self.send_content(usize::MAX, context);
        }
    }

    /// Appends up to `limit` octets of the content that is being sent.
    fn send_content(&mut self, limit: usize, context: &mut Context<'_>) {
        let State::Sending { content, next, end, then } = &mut self.state else { return };
        let mut left = limit;
        while *next < *end && left > 0 {
            let wanted = usize::try_from(*end - *next).unwrap_or(usize::MAX).min(left);
            match content.piece(*next, wanted, context.scratch) {
                Ok(piece) if !piece.is_empty() => {
                    context.plain.extend_from_slice(piece);
                    context.stats.content_bytes_out += piece.len() as u64;
                    *next += piece.len() as u64;
                    left -= piece.len();
                }
                // The length is announced; nothing is left but to end early.
                Ok(_) | Err(_) => {
                    context.stats.error(ServerFault::File);
                    self.fate = Some(Fate::Drop);
                    return;
                }
            }
        }
        if *next == *end {
            self.fate = self.fate.or(*then);
            self.state = State::Head;
        }
    }

    /// Answers what cannot be understood and gives the connection up (RFC 9112 2.2, 6.3).
    #[cold]
    fn refuse(&mut self, status: u16, context: &mut Context<'_>) {
        context.stats.error(ErrorClass::MalformedHttp1);
        self.state = State::Head;
        if context.handler.faults().stall {
            self.state = State::Stalled;
            return;
        }
        let extra = Extra { close: true, announce_keep_alive: false };
        let answer = Answer { plan: Plan::status(status), extra, received_ns: context.now_ns };
        self.respond(answer, context);
    }

    /// Makes more of the answer, and takes requests that waited for its end.
    pub fn produce(&mut self, limit: usize, context: &mut Context<'_>) {
        if self.fate.is_some() {
            return;
        }
        self.send_content(limit, context);
        if matches!(self.state, State::Head) {
            self.batch_was_full = false;
            self.process_pending(context);
        }
        self.close_at_end();
    }

    /// Whether content is still to be sent, or a whole request may wait.
    pub fn has_more(&self) -> bool {
        self.fate.is_none() && (self.batch_was_full || matches!(self.state, State::Sending { .. }))
    }

    /// Whether more input is welcome.
    pub fn can_receive(&self) -> bool {
        self.pending.len() < MAX_PENDING_OCTETS
    }

    /// The peer sends no more.
    pub fn end_of_input(&mut self) {
        self.input_ended = true;
        self.close_at_end();
    }

    /// The server ends.
    pub fn shut_down(&mut self) {
        self.shutting_down = true;
        self.close_at_end();
    }

    fn close_at_end(&mut self) {
        let idle = match self.state {
            State::Head => self.input_ended || self.pending.is_empty(),
            State::Content { .. } => self.input_ended,
            State::Stalled => true,
            State::Delayed(_) | State::Sending { .. } => false,
        };
        if idle && (self.input_ended || self.shutting_down) {
            self.fate.get_or_insert(Fate::Close);
        }
    }

    /// What is to become of the connection.
    #[inline]
    pub fn fate(&self) -> Fate {
        self.fate.unwrap_or(Fate::Open)
    }
}

/// Takes content, for the relay or to throw it away; `true` when it has ended.
fn take_content(
    left: &mut Left,
    answer: &mut Answer,
    collected: &mut Vec<u8>,
    input: &mut &[u8],
    context: &mut Context<'_>,
) -> Result<bool, Http1Error> {
    match left {
        Left::Octets(octets) => {
            let taken = usize::try_from(*octets).unwrap_or(usize::MAX).min(input.len());
            collect(&mut answer.plan, collected, &input[..taken]);
            *input = &input[taken..];
            *octets -= taken as u64;
            context.stats.content_bytes_in += taken as u64;
            Ok(*octets == 0)
        }
        Left::Chunked(decoder) => loop {
            match decoder.next(input)? {
                ChunkedStep::Content(piece) => {
                    collect(&mut answer.plan, collected, piece);
                    context.stats.content_bytes_in += piece.len() as u64;
                }
                ChunkedStep::NeedsMore => return Ok(false),
                ChunkedStep::End => return Ok(true),
            }
        },
    }
}

fn status_of(error: Http1Error) -> u16 {
    match error {
        Http1Error::Syntax(_) | Http1Error::Framing(_) => 400,
        Http1Error::TooManyFields => 431,
        Http1Error::TransferCoding => 501,
        Http1Error::Version => 505,
    }
}
