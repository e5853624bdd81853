//! TLS over TCP as the sessions of HTTP/1.1 and HTTP/2 use it: connect, handshake, receive, send, close.

use std::net::SocketAddr;
use std::os::fd::{AsRawFd, RawFd};
use std::path::Path;
use std::sync::Arc;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use trifecta_wire::clock::now_ns;
use trifecta_wire::epoll;
use trifecta_wire::tcp::{TcpOptions, TcpSocket};
use trifecta_wire::tls::{self, ClientOptions, ReceiveBuffer, TlsStream, TlsVersion};

use crate::caller::{Caller, Handshake};
use crate::handshakes::Arrivals;
use crate::options::{FieldError, Options, Protocol};
use trifecta_wire::ErrorClass;

/// Octets that one receive takes at most.
const RECEIVE_OCTETS: usize = 256 * 1024;

/// What all connections of a worker share.
pub(crate) struct TransportShared {
    address: SocketAddr,
    server_name: ServerName<'static>,
    tls: Arc<ClientConfig>,
    options: TcpOptions,
    protocol: Protocol,
    connect_timeout_ns: u64,
    /// How long TLS waits once TCP is connected; 0: not at all.
    tls_wait_ns: u64,
    zero_rtt: bool,
    /// False once a connection waited for session tickets in vain: this server sends none.
    tickets_come: bool,
    receive: ReceiveBuffer,
}

/// Longest wait for session tickets after a response that outran the handshake.
const LINGER_NS: u64 = 1_000_000_000;

/// The rustls configuration of a run, for TCP and QUIC.
///
/// # Errors
/// The field that cannot be used.
pub fn tls_config(options: &Options) -> Result<ClientConfig, FieldError> {
    let version = TlsVersion::from_name(&options.tls_version)
        .ok_or_else(|| FieldError::new("tls_version", "must be 1.2 or 1.3"))?;
    let mut config = tls::client_config(&ClientOptions {
        ca_file: &options.ca_file,
        alpn: &[options.protocol.alpn()],
        version,
        key_exchange: &options.key_exchange,
        cipher: options.cipher.as_deref(),
        resumption: options.resumption,
        early_data: options.zero_rtt,
        keylog_file: options.keylog_file.as_deref().map(Path::new),
    })
    .map_err(|error| FieldError::new(error.field, error.message))?;
    config.max_fragment_size = tls::fragment_octets(options.tuning.tls_record_bytes);
    Ok(config)
}

impl TransportShared {
    pub(crate) fn new(options: &Options) -> Result<Self, FieldError> {
        let server_name = ServerName::try_from(options.server_name.clone())
            .map_err(|error| FieldError::new("server_name", error.to_string()))?;
        Ok(Self {
            address: options.address,
            server_name,
            tls: Arc::new(tls_config(options)?),
            options: TcpOptions {
                nodelay: options.tcp_nodelay,
                congestion_control: options.congestion_control.clone(),
                receive_buffer_bytes: options.tcp_receive_buffer_bytes,
                paced: options.tuning.pacing == Some(true),
                ..TcpOptions::default()
            },
            protocol: options.protocol,
            connect_timeout_ns: options.connect_timeout_ns,
            tls_wait_ns: options.tuning.tls_wait_ns.unwrap_or(0),
            zero_rtt: options.zero_rtt,
            tickets_come: true,
            receive: ReceiveBuffer::new(RECEIVE_OCTETS),
        })
    }

    /// A connection waited for tickets to no avail.
    pub(crate) fn no_tickets(&mut self) {
        self.tickets_come = false;
    }
}

/// What a receive brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// Something, at that time; `more`: the socket may hold more.
    Octets { now_ns: u64, more: bool },
    /// Nothing is there now.
    Nothing,
    /// The peer ended the stream, perhaps behind some octets; with close_notify if `clean`.
    End { now_ns: u64, clean: bool },
}

/// One TLS connection over TCP.
pub(crate) struct Transport {
    socket: TcpSocket,
    tls: TlsStream,
    pub(crate) handshake: Handshake,
    arrivals: Arrivals,
    connected: bool,
    /// Until when TLS waits, while TCP is connected; 0: it does not wait.
    held_until_ns: u64,
    /// When the Client Hello was written.
    asked_ns: u64,
    secured: bool,
    /// Whether receives may wait: not tried yet, or what the kernel said.
    may_wait: Option<bool>,
    /// The next receive waits.
    waits: bool,
    pub(crate) connect_deadline_ns: u64,
    wire_octets_in: u64,
    wire_octets_out: u64,
}

impl Transport {
    /// Starts to connect.
    pub(crate) fn open(shared: &TransportShared, connection: u32, now_ns: u64) -> Result<Self, ErrorClass> {
        let tls = TlsStream::client(&shared.tls, &shared.server_name).map_err(|error| error.class)?;
        let socket =
            TcpSocket::connect(&shared.address, &shared.options).map_err(|error| ErrorClass::from_io(&error, true))?;
        Ok(Self {
            socket,
            tls,
            handshake: Handshake { connection, connect_start_ns: now_ns, ..Handshake::default() },
            arrivals: Arrivals::default(),
            connected: false,
            held_until_ns: 0,
            asked_ns: 0,
            secured: false,
            may_wait: None,
            waits: false,
            connect_deadline_ns: now_ns + shared.connect_timeout_ns,
            wire_octets_in: 0,
            wire_octets_out: 0,
        })
    }

    pub(crate) fn fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    pub(crate) fn is_connected(&self) -> bool {
        self.connected
    }

    /// Whether requests can be written.
    pub(crate) fn is_secured(&self) -> bool {
        self.secured
    }

    /// The socket became ready while connecting, or a wait is over: until when TLS is to wait, from TCP's handshake on and no
    /// longer than there is time to connect; `None`: it begins now, if TCP is connected at all.
    pub(crate) fn hold(&mut self, shared: &TransportShared, flags: u32) -> Option<u64> {
        if shared.tls_wait_ns == 0 || flags & epoll::CLOSING != 0 || flags & epoll::WRITABLE == 0 {
            return None;
        }
        let now_ns = now_ns();
        if self.held_until_ns == 0 {
            self.handshake.tcp_connected_ns = now_ns;
            self.held_until_ns = now_ns + shared.tls_wait_ns;
        }
        (now_ns < self.held_until_ns).then_some(self.held_until_ns.min(self.connect_deadline_ns))
    }

    /// Whether TLS waits until a timer is due, and begins then: there is still time to connect.
    pub(crate) fn is_held(&self, now_ns: u64) -> bool {
        self.held_until_ns > 0 && !self.connected && now_ns < self.connect_deadline_ns
    }

    /// The socket became ready while connecting. `early` goes out as 0-RTT data when a ticket allows it; returns whether it did.
    pub(crate) fn on_connected(
        &mut self,
        caller: &mut impl Caller,
        flags: u32,
        early: &[u8],
    ) -> Result<bool, ErrorClass> {
        if flags & epoll::CLOSING != 0 {
            self.socket.take_error().map_err(|error| ErrorClass::from_io(&error, true))?;
        }
        if flags & epoll::WRITABLE == 0 {
            return Ok(false);
        }
        self.connected = true;
        self.asked_ns = now_ns();
        if self.held_until_ns == 0 {
            self.handshake.tcp_connected_ns = self.asked_ns;
        }
        self.read_back(caller);
        let class = |error: tls::TlsError| error.class;
        self.tls.start().map_err(class)?;
        let sent_early = !early.is_empty() && self.tls.write_early(early).map_err(class)? > 0;
        self.flush()?;
        Ok(sent_early)
    }

    /// The first connection says what the kernel really set.
    fn read_back(&self, caller: &mut impl Caller) {
        if caller.totals().tcp.congestion_control.is_none() {
            caller.totals().tcp.congestion_control = self.socket.congestion_control().ok();
            caller.totals().tcp.nodelay = self.socket.nodelay().ok();
            caller.totals().tcp.paced = self.socket.paced().ok();
            let info = self.socket.info().ok();
            caller.totals().tcp.initial_window_bytes = info.map(|info| info.congestion_window_bytes);
            caller.totals().tcp.packet_threshold = info.map(|info| info.reordering);
        }
    }

    /// Receives once and decrypts; plaintext goes to `on_plaintext` with the time of the receive.
    #[inline]
    pub(crate) fn receive(
        &mut self,
        shared: &mut TransportShared,
        mut on_plaintext: impl FnMut(&[u8], u64),
    ) -> Result<Received, ErrorClass> {
        let room = self.tls.prepare(&mut shared.receive);
        let capacity = room.len();
        let received =
            if std::mem::take(&mut self.waits) { self.socket.receive_waiting(room) } else { self.socket.receive(room) };
        let octets = match received {
            Ok(Some(0)) => return Ok(Received::End { now_ns: now_ns(), clean: self.tls.peer_closed() }),
            Ok(Some(octets)) => octets,
            Ok(None) => return Ok(Received::Nothing),
            Err(error) => return Err(ErrorClass::from_io(&error, !self.secured)),
        };
        let now_ns = now_ns();
        if !self.secured {
            self.arrivals.note(self.asked_ns, now_ns);
        }
        self.wire_octets_in += octets as u64;
        let result = self.tls.process(&mut shared.receive, octets, &mut |plaintext, _| on_plaintext(plaintext, now_ns));
        if let Err(error) = result {
            // The alert is on its way to the peer; what happens to it changes nothing here.
            let _ = self.flush();
            return Err(error.class);
        }
        if self.tls.is_handshaking() {
            // A further flight of the handshake: TLS 1.2, or the answer to a HelloRetryRequest.
            self.flush()?;
        }
        if self.tls.peer_closed() {
            return Ok(Received::End { now_ns, clean: true });
        }
        Ok(Received::Octets { now_ns, more: octets == capacity })
    }

    /// Whether the handshake has just been completed; fills in what was negotiated. `now_ns`: when the octets that completed it
    /// were received.
    pub(crate) fn take_secured(
        &mut self,
        shared: &TransportShared,
        caller: &mut impl Caller,
        now_ns: u64,
    ) -> Result<bool, ErrorClass> {
        if self.secured || !self.tls.can_write() || self.tls.is_handshaking() {
            return Ok(false);
        }
        self.secured = true;
        caller.totals().connections_opened += 1;
        caller.totals().key_exchange = self.tls.key_exchange().or(caller.totals().key_exchange);
        caller.totals().handshakes.add(self.tls.chain(), self.arrivals);
        self.handshake.secured_ns = now_ns;
        self.handshake.tls_version = self.tls.version();
        self.handshake.cipher = self.tls.cipher();
        self.handshake.resumed = self.tls.resumed();
        let agreed = self.tls.alpn();
        if agreed == Some(shared.protocol.alpn()) {
            self.handshake.protocol = Some(shared.protocol.name());
            return Ok(true);
        }
        // A server that does not know ALPN speaks HTTP/1.1 (RFC 7301 3.1); the row says that nothing was negotiated.
        if agreed.is_none() && shared.protocol == Protocol::H1 { Ok(true) } else { Err(ErrorClass::TlsAlpn) }
    }

    /// Whether the server accepted the 0-RTT data.
    pub(crate) fn early_data_accepted(&self) -> bool {
        self.tls.early_data_accepted()
    }

    /// Until when to wait for session tickets before closing, if they are wanted and not there yet. A server sends them when it has
    /// the client's Finished, and the answer to a request in 0-RTT is there before that: closing at once would leave no ticket
    /// for the next connection. The wait is outside of what any row measures.
    pub(crate) fn linger_until_ns(&self, shared: &TransportShared) -> Option<u64> {
        let wanted = shared.zero_rtt && shared.tickets_come && self.secured && self.tls.version() == Some("1.3");
        (wanted && self.tls.tickets_received() == 0).then(|| now_ns() + LINGER_NS)
    }

    /// Lets the next receive wait, if nothing is left to send, so that nothing but octets of the peer can be waited for; whether
    /// it will.
    #[inline]
    pub(crate) fn wait_in_receive(&mut self) -> bool {
        if !self.secured || self.unsent() > 0 {
            return false;
        }
        self.waits = *self.may_wait.get_or_insert_with(|| self.socket.let_receives_wait().is_ok());
        self.waits
    }

    /// Encrypts plaintext for the next [`Transport::flush`].
    #[inline]
    pub(crate) fn write(&mut self, plaintext: &[u8]) -> Result<(), ErrorClass> {
        self.tls.write(plaintext).map_err(|error| error.class)
    }

    /// Octets that wait for the kernel to take them.
    pub(crate) fn unsent(&self) -> usize {
        self.tls.output().len()
    }

    /// Hands the kernel what it takes; whether it took all.
    #[inline]
    pub(crate) fn flush(&mut self) -> Result<bool, ErrorClass> {
        loop {
            let output = self.tls.output();
            if output.is_empty() {
                return Ok(true);
            }
            match self.socket.send(output) {
                Ok(Some(octets)) => {
                    self.wire_octets_out += octets as u64;
                    self.tls.consume_output(octets);
                }
                Ok(None) => return Ok(false),
                Err(error) => return Err(ErrorClass::from_io(&error, !self.secured)),
            }
        }
    }

    /// Ends the connection with close_notify, as far as the kernel takes it at once, and hands in its statistics. The
    /// FIN follows when the socket is dropped. The client then holds the TIME_WAIT state (RFC 9293 section 3.6), as
    /// clients do; a port that is in it can be used again after one second (tcp_tw_reuse), and running out of ports is
    /// an error class of its own. An abortive close would avoid that and show the server resets instead of ends, which
    /// is not the same work.
    pub(crate) fn close(&mut self, caller: &mut impl Caller) {
        if self.connected {
            if let Ok(info) = self.socket.info() {
                caller.totals().tcp.add(&info);
            }
            if self.secured && self.tls.close_notify().is_ok() {
                let _ = self.flush();
            }
        }
        caller.totals().wire_bytes_in += std::mem::take(&mut self.wire_octets_in);
        caller.totals().wire_bytes_out += std::mem::take(&mut self.wire_octets_out);
    }
}
