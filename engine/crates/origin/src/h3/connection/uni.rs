//! The client's unidirectional streams: settings, and priorities of requests.

use quinn_proto::{Dir, StreamId, VarInt};
use trifecta_wire::h3::Error;
use trifecta_wire::quic;

use super::super::{Shared, priority};
use super::H3Connection;

impl H3Connection {
    /// Takes in what the client's unidirectional streams say before the requests that came with it: a PRIORITY_UPDATE may precede
    /// its request (RFC 9218 section 7), and quinn-proto sorts a response in where its priority was when it was begun.
    pub(super) fn read_priorities(&mut self, shared: &Shared) -> Result<(), Error> {
        while let Some(id) = self.quic.streams().accept(Dir::Uni) {
            self.note_uni_stream(id);
        }
        for place in 0..self.uni_streams.len() {
            self.read_uni_stream(self.uni_streams[place], shared)?;
        }
        Ok(())
    }

    pub(super) fn note_uni_stream(&mut self, id: StreamId) {
        // The control stream is among the first; streams of unknown types may come and go without end.
        if self.uni_streams.len() < 16 {
            self.uni_streams.push(id);
        }
    }

    pub(super) fn read_uni_stream(&mut self, id: StreamId, shared: &Shared) -> Result<(), Error> {
        let mut changed = Vec::new();
        // A GOAWAY of a client is about pushes, of which there are none.
        quic::read_uni_stream(&mut self.quic, &mut self.control, id, |stream, update| changed.push((stream, update)))?;
        for (stream, update) in changed.into_iter().filter(|_| shared.by_priority) {
            if let Ok(stream) = VarInt::from_u64(stream) {
                priority::set(&mut self.quic, stream.into(), update);
            }
        }
        Ok(())
    }
}
