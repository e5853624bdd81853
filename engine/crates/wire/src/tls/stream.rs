//! The driver: octets from a socket in, plaintext out; plaintext in, octets for a socket out.

use std::io::{BufRead, Write};
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use rustls::{ClientConfig, ClientConnection, CommonState, HandshakeKind, ServerConfig};

use super::record_sizes::record_octets;
use super::records::{self, Output, Progress};
use super::{CertificateChain, TlsError, cipher_name, version_name};
use crate::ErrorClass;

/// A receive buffer that all connections of a thread share, so that it stays in the cache.
#[derive(Debug)]
pub struct ReceiveBuffer {
    octets: Vec<u8>,
}

impl ReceiveBuffer {
    /// A buffer that takes `octets` in one receive.
    #[must_use]
    pub fn new(octets: usize) -> Self {
        Self { octets: vec![0; octets.max(4096)] }
    }
}

enum Connection {
    Client(Box<UnbufferedClientConnection>),
    Server(Box<UnbufferedServerConnection>),
    /// The unbuffered API does not tell whether 0-RTT was accepted, so connections that try it use the buffered one.
    EarlyClient(Box<ClientConnection>),
}

/// TLS over a stream, without I/O of its own.
///
/// Receiving: [`TlsStream::prepare`], `recv` into what it returns, [`TlsStream::process`]. Sending: [`TlsStream::write`],
/// `send` from [`TlsStream::output`], [`TlsStream::consume_output`].
pub struct TlsStream {
    connection: Connection,
    /// Octets of a record that is not whole yet.
    pending: Vec<u8>,
    output: Output,
    /// Octets of plaintext in the largest record that is written.
    record_octets: usize,
    writable: bool,
    peer_closed: bool,
    /// Nothing can be processed or written any more.
    failed: bool,
}

impl TlsStream {
    /// The client's side. Its ClientHello is in [`TlsStream::output`] after the first [`TlsStream::start`].
    ///
    /// # Errors
    /// When the configuration cannot be used with that name.
    pub fn client(config: &Arc<ClientConfig>, name: &ServerName<'static>) -> Result<Self, TlsError> {
        let connection = if config.enable_early_data {
            let mut client = ClientConnection::new(config.clone(), name.clone())?;
            client.set_buffer_limit(None);
            Connection::EarlyClient(Box::new(client))
        } else {
            Connection::Client(Box::new(UnbufferedClientConnection::new(config.clone(), name.clone())?))
        };
        Ok(Self::new(connection, config.max_fragment_size))
    }

    /// The server's side.
    ///
    /// # Errors
    /// When the configuration cannot be used.
    pub fn server(config: &Arc<ServerConfig>) -> Result<Self, TlsError> {
        let connection = Connection::Server(Box::new(UnbufferedServerConnection::new(config.clone())?));
        Ok(Self::new(connection, config.max_fragment_size))
    }

    fn new(connection: Connection, fragment_octets: Option<usize>) -> Self {
        Self {
            connection,
            pending: Vec::new(),
            output: Output::default(),
            record_octets: record_octets(fragment_octets),
            writable: false,
            peer_closed: false,
            failed: false,
        }
    }

    /// Puts what can be sent without input (a ClientHello) into the output.
    ///
    /// # Errors
    /// As [`TlsStream::process`].
    pub fn start(&mut self) -> Result<(), TlsError> {
        self.feed(&mut [], &mut |_, _| {}).map(|_| ())
    }

    /// The part of `shared` to receive into; octets of an unfinished record are put in front of it.
    pub fn prepare<'b>(&self, shared: &'b mut ReceiveBuffer) -> &'b mut [u8] {
        let kept = self.pending.len();
        if shared.octets.len() < kept + 4096 {
            shared.octets.resize(kept + 65_536, 0);
        }
        shared.octets[..kept].copy_from_slice(&self.pending);
        &mut shared.octets[kept..]
    }

    /// Decrypts the `received` octets that came into what [`TlsStream::prepare`] returned. Each piece of plaintext goes to
    /// `on_plaintext`, with whether it came as 0-RTT data. The output may have grown.
    ///
    /// # Errors
    /// The class of the failure; the alert for the peer is in the output then.
    pub fn process(
        &mut self,
        shared: &mut ReceiveBuffer,
        received: usize,
        on_plaintext: &mut dyn FnMut(&[u8], bool),
    ) -> Result<(), TlsError> {
        let filled = (self.pending.len() + received).min(shared.octets.len());
        let input = &mut shared.octets[..filled];
        let consumed = self.feed(input, on_plaintext)?;
        let rest = &input[consumed..];
        self.pending.clear();
        self.pending.extend_from_slice(rest);
        Ok(())
    }

    fn feed(&mut self, input: &mut [u8], on_plaintext: &mut dyn FnMut(&[u8], bool)) -> Result<usize, TlsError> {
        self.usable()?;
        let output = &mut self.output;
        let result = match &mut self.connection {
            Connection::Client(client) => records::process(&mut **client, input, output, on_plaintext),
            Connection::Server(server) => records::process(&mut **server, input, output, on_plaintext),
            Connection::EarlyClient(client) => process_buffered(client, input, output, on_plaintext),
        };
        let progress = result.inspect_err(|_| {
            self.failed = true;
            self.writable = false;
        })?;
        self.writable = progress.writable;
        self.peer_closed |= progress.peer_closed;
        Ok(progress.consumed)
    }

    /// Encrypts `plaintext` into the output, in records of at most 2^14 octets, or as many as the configuration says.
    ///
    /// # Errors
    /// Before [`TlsStream::can_write`], after [`TlsStream::close_notify`], or when the keys are used up.
    pub fn write(&mut self, plaintext: &[u8]) -> Result<(), TlsError> {
        self.usable()?;
        // Header, content type and tag of each record (RFC 8446 5.2), with room for a key update.
        let room = plaintext.len() + (plaintext.len() / self.record_octets + 1) * 40 + 64;
        let (pending, output) = (&mut self.pending[..], &mut self.output);
        match &mut self.connection {
            Connection::Client(client) => {
                records::write_traffic(&mut **client, pending, output, room, |w, b| w.encrypt(plaintext, b))
            }
            Connection::Server(server) => {
                records::write_traffic(&mut **server, pending, output, room, |w, b| w.encrypt(plaintext, b))
            }
            Connection::EarlyClient(client) => {
                client.writer().write_all(plaintext).map_err(buffered_error)?;
                take_buffered_output(client, output)
            }
        }
    }

    /// Writes 0-RTT data and returns how many octets were taken: 0 without a ticket that allows it. What was taken must be
    /// written again after the handshake when [`TlsStream::early_data_accepted`] is false then.
    ///
    /// # Errors
    /// As [`TlsStream::write`].
    pub fn write_early(&mut self, plaintext: &[u8]) -> Result<usize, TlsError> {
        self.usable()?;
        let Connection::EarlyClient(client) = &mut self.connection else { return Ok(0) };
        let Some(mut early) = client.early_data() else { return Ok(0) };
        // Half a request would help nobody.
        if early.bytes_left() < plaintext.len() {
            return Ok(0);
        }
        early.write_all(plaintext).map_err(buffered_error)?;
        take_buffered_output(client, &mut self.output)?;
        Ok(plaintext.len())
    }

    /// Puts a close_notify alert into the output (RFC 8446 6.1).
    ///
    /// # Errors
    /// As [`TlsStream::write`].
    pub fn close_notify(&mut self) -> Result<(), TlsError> {
        self.usable()?;
        let (pending, output) = (&mut self.pending[..], &mut self.output);
        match &mut self.connection {
            Connection::Client(client) => {
                records::write_traffic(&mut **client, pending, output, 64, |w, b| w.queue_close_notify(b))
            }
            Connection::Server(server) => {
                records::write_traffic(&mut **server, pending, output, 64, |w, b| w.queue_close_notify(b))
            }
            Connection::EarlyClient(client) => {
                client.send_close_notify();
                take_buffered_output(client, output)
            }
        }
    }

    fn usable(&self) -> Result<(), TlsError> {
        if self.failed {
            return Err(TlsError { class: ErrorClass::Tls, detail: "the connection has failed before".into() });
        }
        Ok(())
    }

    /// Octets for the socket.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        self.output.pending()
    }

    /// Forgets the first `octets` of the output: they were sent.
    pub fn consume_output(&mut self, octets: usize) {
        self.output.consume(octets);
    }

    /// Whether application data may be written: the handshake is done, or a server may send 0.5-RTT data.
    #[must_use]
    pub fn can_write(&self) -> bool {
        self.writable
    }

    /// Whether the handshake is still going on.
    #[must_use]
    pub fn is_handshaking(&self) -> bool {
        self.common().is_handshaking()
    }

    /// Whether the peer sent close_notify: the end of the stream is not a truncation.
    #[must_use]
    pub fn peer_closed(&self) -> bool {
        self.peer_closed
    }

    /// The ALPN identifier that was agreed on, if any.
    #[must_use]
    pub fn alpn(&self) -> Option<&[u8]> {
        self.common().alpn_protocol()
    }

    /// `1.2` or `1.3`, once known.
    #[must_use]
    pub fn version(&self) -> Option<&'static str> {
        self.common().protocol_version().map(version_name)
    }

    /// IANA name of the cipher suite, once known.
    #[must_use]
    pub fn cipher(&self) -> Option<&'static str> {
        self.common().negotiated_cipher_suite().map(|suite| cipher_name(suite.suite()))
    }

    /// Name of the key exchange group, once known.
    #[must_use]
    pub fn key_exchange(&self) -> Option<&'static str> {
        self.common().negotiated_key_exchange_group().and_then(|group| group.name().as_str())
    }

    /// Whether the session was resumed.
    #[must_use]
    pub fn resumed(&self) -> bool {
        self.common().handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// The certificates that the server showed, once the handshake is done.
    #[must_use]
    pub fn chain(&self) -> Option<CertificateChain> {
        CertificateChain::shown_to(self.common())
    }

    /// Whether the server accepted 0-RTT data; to be asked when the handshake is done.
    #[must_use]
    pub fn early_data_accepted(&self) -> bool {
        matches!(&self.connection, Connection::EarlyClient(client) if client.is_early_data_accepted())
    }

    /// Session tickets that a client has received on this connection (TLS 1.3).
    #[must_use]
    pub fn tickets_received(&self) -> u32 {
        match &self.connection {
            Connection::Client(client) => client.tls13_tickets_received(),
            Connection::EarlyClient(client) => client.tls13_tickets_received(),
            Connection::Server(_) => 0,
        }
    }

    fn common(&self) -> &CommonState {
        match &self.connection {
            Connection::Client(client) => client,
            Connection::Server(server) => server,
            Connection::EarlyClient(client) => client,
        }
    }
}

fn buffered_error(error: std::io::Error) -> TlsError {
    TlsError { class: ErrorClass::Tls, detail: error.to_string() }
}

fn take_buffered_output(client: &mut ClientConnection, output: &mut Output) -> Result<(), TlsError> {
    while client.wants_write() {
        let mut room = output.room(17_000);
        let octets = client.write_tls(&mut room).map_err(buffered_error)?;
        output.filled(octets);
    }
    Ok(())
}

fn process_buffered(
    client: &mut ClientConnection,
    input: &[u8],
    output: &mut Output,
    on_plaintext: &mut dyn FnMut(&[u8], bool),
) -> Result<Progress, TlsError> {
    let mut rest = input;
    let mut peer_closed = false;
    loop {
        if !rest.is_empty() {
            client.read_tls(&mut rest).map_err(buffered_error)?;
        }
        let state = client.process_new_packets();
        take_buffered_output(client, output)?;
        let state = state?;
        peer_closed |= state.peer_has_closed();
        let mut plaintext = state.plaintext_bytes_to_read();
        while plaintext > 0 {
            let mut reader = client.reader();
            let octets = match reader.fill_buf() {
                Ok(chunk) => {
                    on_plaintext(chunk, false);
                    chunk.len()
                }
                Err(error) => return Err(buffered_error(error)),
            };
            reader.consume(octets);
            plaintext = plaintext.saturating_sub(octets.max(1));
        }
        if rest.is_empty() || peer_closed {
            let writable = !client.is_handshaking();
            return Ok(Progress { consumed: input.len(), writable, peer_closed });
        }
    }
}
