//! A request on its way in.

use trifecta_wire::h3::{Code, Error, MessageEvent, MessageReader};
use trifecta_wire::priority::Priority;

use super::Shared;
use crate::answer::Plan;
use crate::handler::{Handler, collect};
use crate::stats::Stats;

/// A request that is still coming in.
#[derive(Default)]
pub(super) struct Receiving {
    reader: MessageReader,
    pub plan: Option<Plan>,
    /// Of the request's Priority field.
    pub priority: Priority,
    content_length: Option<u64>,
    content_octets: u64,
    /// Content, when a relay wants it.
    pub collected: Vec<u8>,
    /// When its head came.
    pub received_ns: u64,
}

impl Receiving {
    /// Takes octets of a request in.
    pub fn take(
        &mut self,
        octets: &[u8],
        shared: &mut Shared,
        handler: &mut Handler,
        stats: &mut Stats,
        early: bool,
        now_ns: u64,
    ) -> Result<(), Error> {
        let mut rest = octets;
        while let Some(event) = self.reader.read(&mut rest)? {
            match event {
                MessageEvent::Content(piece) => {
                    self.content_octets += piece.len() as u64;
                    stats.content_bytes_in += piece.len() as u64;
                    if let Some(plan) = &mut self.plan {
                        collect(plan, &mut self.collected, piece);
                    }
                }
                MessageEvent::Head(section) => {
                    self.received_ns = now_ns;
                    match shared.requests.read(section) {
                        Ok(head) => {
                            self.content_length = head.content_length;
                            self.priority = head.priority.unwrap_or_default();
                            self.plan = Some(handler.plan(head.request(early)));
                        }
                        Err(error) if error.code == Code::ExcessiveLoad => self.plan = Some(Plan::status(431)),
                        Err(error) => return Err(error),
                    }
                }
                MessageEvent::Trailers(_) => {}
            }
        }
        Ok(())
    }

    /// The stream has ended. RFC 9114 4.1.2: a content-length that is not the sum of the DATA is malformed.
    pub fn end(&self) -> Result<(), Error> {
        self.reader.finish()?;
        match self.content_length {
            Some(octets) if octets != self.content_octets => {
                Err(Error::new(Code::MessageError, "content differs in length from content-length"))
            }
            _ => Ok(()),
        }
    }
}
