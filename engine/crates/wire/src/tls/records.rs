//! One loop over the states of rustls' unbuffered API, for both sides.

use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, ReadEarlyData, UnbufferedStatus, WriteTraffic};

use super::TlsError;
use crate::ErrorClass;

/// Octets that are to be sent: a buffer that stays initialised, so that encryption writes straight into it.
#[derive(Debug, Default)]
pub(super) struct Output {
    buffer: Vec<u8>,
    start: usize,
    end: usize,
}

impl Output {
    pub(super) fn pending(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    pub(super) fn consume(&mut self, octets: usize) {
        self.start = (self.start + octets).min(self.end);
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Room for at least `octets` behind what is pending.
    pub(super) fn room(&mut self, octets: usize) -> &mut [u8] {
        if self.buffer.len() - self.end < octets {
            self.grow(octets);
        }
        &mut self.buffer[self.end..]
    }

    #[cold]
    fn grow(&mut self, octets: usize) {
        if self.start > 0 {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.buffer.len() - self.end < octets {
            let length = (self.end + octets).max(self.buffer.len() * 2).max(4096);
            self.buffer.resize(length, 0);
        }
    }

    pub(super) fn filled(&mut self, octets: usize) {
        self.end += octets;
    }
}

/// What the last pass over the states found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    /// Octets at the front of the input that are done with.
    pub(super) consumed: usize,
    /// Application data may be written.
    pub(super) writable: bool,
    /// The peer sent close_notify.
    pub(super) peer_closed: bool,
}

/// What differs between the two sides of the unbuffered API.
pub(super) trait Records {
    type Data;
    fn next_state<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data>;
    /// Whether a handshake message or an alert waits to be encoded.
    fn has_queued(&self) -> bool;
    fn early_data(
        state: ReadEarlyData<'_, '_, Self::Data>,
        on_plaintext: &mut dyn FnMut(&[u8], bool),
    ) -> Result<usize, TlsError>;
}

impl Records for UnbufferedClientConnection {
    type Data = ClientConnectionData;
    fn has_queued(&self) -> bool {
        self.wants_write()
    }
    fn next_state<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(input)
    }
    fn early_data(_: ReadEarlyData<'_, '_, Self::Data>, _: &mut dyn FnMut(&[u8], bool)) -> Result<usize, TlsError> {
        Err(TlsError { class: ErrorClass::TlsMalformed, detail: "early data from a server".into() })
    }
}

impl Records for UnbufferedServerConnection {
    type Data = ServerConnectionData;
    fn has_queued(&self) -> bool {
        self.wants_write()
    }
    fn next_state<'c, 'i>(&'c mut self, input: &'i mut [u8]) -> UnbufferedStatus<'c, 'i, Self::Data> {
        self.process_tls_records(input)
    }
    fn early_data(
        mut state: ReadEarlyData<'_, '_, Self::Data>,
        on_plaintext: &mut dyn FnMut(&[u8], bool),
    ) -> Result<usize, TlsError> {
        let mut discard = 0;
        while let Some(record) = state.next_record() {
            let record = record?;
            discard += record.discard;
            on_plaintext(record.payload, true);
        }
        Ok(discard)
    }
}

/// Processes `input` as far as it goes; decrypted octets go to `on_plaintext` with whether they came as 0-RTT.
pub(super) fn process<R: Records>(
    connection: &mut R,
    input: &mut [u8],
    output: &mut Output,
    on_plaintext: &mut dyn FnMut(&[u8], bool),
) -> Result<Progress, TlsError> {
    let mut progress = Progress::default();
    loop {
        let UnbufferedStatus { mut discard, state, .. } = connection.next_state(&mut input[progress.consumed..]);
        let state = match state {
            Ok(state) => state,
            Err(error) => {
                flush_alert(connection, output);
                return Err(error.into());
            }
        };
        let mut blocked = false;
        match state {
            ConnectionState::ReadTraffic(mut traffic) => {
                while let Some(record) = traffic.next_record() {
                    let record = record?;
                    discard += record.discard;
                    on_plaintext(record.payload, false);
                }
            }
            ConnectionState::ReadEarlyData(early) => discard += R::early_data(early, on_plaintext)?,
            ConnectionState::EncodeTlsData(mut encoder) => {
                encode(output, |room| encoder.encode(room))?;
            }
            ConnectionState::TransmitTlsData(transmit) => transmit.done(),
            ConnectionState::WriteTraffic(_) => {
                progress.writable = true;
                blocked = true;
            }
            ConnectionState::BlockedHandshake => blocked = true,
            // After close_notify the state comes once; what follows tells whether writing is still allowed.
            ConnectionState::PeerClosed => progress.peer_closed = true,
            ConnectionState::Closed => {
                progress.peer_closed = true;
                blocked = true;
            }
            _ => return Err(TlsError { class: ErrorClass::Tls, detail: "unknown state of the TLS library".into() }),
        }
        progress.consumed += discard;
        if blocked {
            return Ok(progress);
        }
    }
}

/// Takes out the alert that tells the peer what was wrong. Only as long as something is queued: any further step would look
/// at the input again, and a second fatal alert is an assertion of the library.
fn flush_alert<R: Records>(connection: &mut R, output: &mut Output) {
    while connection.has_queued() {
        match connection.next_state(&mut []).state {
            Ok(ConnectionState::EncodeTlsData(mut encoder)) => {
                if encode(output, |room| encoder.encode(room)).is_err() {
                    return;
                }
            }
            _ => return,
        }
    }
}

fn encode(
    output: &mut Output,
    mut encoder: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<(), TlsError> {
    let mut room = 0;
    loop {
        match encoder(output.room(room)) {
            Ok(octets) => {
                output.filled(octets);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(error)) => room = error.required_size,
            Err(error) => return Err(TlsError { class: ErrorClass::Tls, detail: error.to_string() }),
        }
    }
}

/// Runs `write` in the state in which application data may be encrypted. `pending` is what [`process`] left of its input.
pub(super) fn write_traffic<R: Records>(
    connection: &mut R,
    pending: &mut [u8],
    output: &mut Output,
    room: usize,
    mut write: impl FnMut(&mut WriteTraffic<'_, R::Data>, &mut [u8]) -> Result<usize, EncryptError>,
) -> Result<(), TlsError> {
    loop {
        match connection.next_state(pending).state? {
            ConnectionState::WriteTraffic(mut traffic) => {
                let mut room = room;
                loop {
                    match write(&mut traffic, output.room(room)) {
                        Ok(octets) => {
                            output.filled(octets);
                            return Ok(());
                        }
                        Err(EncryptError::InsufficientSize(error)) => room = error.required_size,
                        Err(error) => return Err(TlsError { class: ErrorClass::Tls, detail: error.to_string() }),
                    }
                }
            }
            ConnectionState::EncodeTlsData(mut encoder) => encode(output, |room| encoder.encode(room))?,
            ConnectionState::TransmitTlsData(transmit) => transmit.done(),
            _ => {
                return Err(TlsError {
                    class: ErrorClass::Tls,
                    detail: "application data cannot be written in this state".into(),
                });
            }
        }
    }
}
