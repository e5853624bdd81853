//! What all HTTP/3 sessions of a worker share: configurations, the cached request block, receive and send buffers.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use quinn_proto::{
    ClientConfig, ConnectError, Connection, ConnectionHandle, Endpoint, EndpointConfig, NoneTokenStore, TransportConfig,
};
use trifecta_wire::h3::{control, frame};
use trifecta_wire::qpack::encoder;
use trifecta_wire::quic::{self, Adaptations, ClientTls, InstantClock, TransportOptions};
use trifecta_wire::tls::{self, ClientOptions, TlsVersion};
use trifecta_wire::udp::{ReceiveBatch, UdpOptions};

use crate::caller::Request;
use crate::options::{ConnectionMode, FieldError, Options, Protocol};
use trifecta_wire::{ErrorClass, Tuning};

/// Messages taken by one receive call, up to 64 kB each.
const MESSAGES_PER_RECEIVE: usize = 8;
/// Largest field section of a response that is taken, announced in SETTINGS.
pub(super) const MAX_FIELD_SECTION_BYTES: u64 = 64 * 1024;

/// What all HTTP/3 sessions of a worker share.
pub struct H3Shared {
    pub(super) peer: SocketAddr,
    pub(super) socket: UdpOptions,
    pub(super) clock: InstantClock,
    pub(super) batch: ReceiveBatch,
    /// Packets on their way to the socket.
    pub(super) packets: Vec<u8>,
    /// HEADERS frame of every request, and the header of its DATA frame when it has content.
    pub(super) request: Bytes,
    pub(super) request_body_bytes: u64,
    pub(super) control_stream: Bytes,
    pub(super) zero_rtt: bool,
    /// False once a connection waited for session tickets in vain: this server sends none.
    pub(super) tickets_come: bool,
    pub(super) congestion_control: String,
    pub(super) reused: bool,
    /// Requests that may be in flight on one connection.
    pub(super) streams: u32,
    pub(super) connect_timeout_ns: u64,
    pub(super) request_timeout_ns: u64,
    server_name: String,
    authority: String,
    endpoint: Arc<EndpointConfig>,
    client: ClientConfig,
    max_udp_payload_bytes: u16,
    pub(super) adaptations: Adaptations,
    tuning: Tuning,
    trial: String,
    qlog_dir: Option<PathBuf>,
}

impl H3Shared {
    pub(super) fn new(options: &Options) -> Result<Self, FieldError> {
        let tls = tls::client_config(&ClientOptions {
            ca_file: &options.ca_file,
            alpn: &[Protocol::H3.alpn()],
            version: TlsVersion::Tls13,
            key_exchange: &options.key_exchange,
            cipher: options.cipher.as_deref(),
            resumption: options.resumption,
            early_data: options.zero_rtt,
            keylog_file: options.keylog_file.as_deref(),
        })
        .map_err(|error| FieldError::new(error.field, error.message))?;
        let tls = ClientTls::new(Arc::new(tls), options.quic_adaptations).map_err(named)?;
        let mut client = ClientConfig::new(Arc::new(tls));
        if !options.resumption && options.quic_adaptations.settings {
            // Address validation tokens of earlier connections (RFC 9000 section 8.1.3) are a kind of resumption too.
            client.token_store(Arc::new(NoneTokenStore));
        }
        client.transport_config(Arc::new(transport(options, None)?));
        if let Some(folder) = &options.qlog_dir {
            std::fs::create_dir_all(folder)
                .map_err(|error| FieldError::new("qlog_dir", format!("{}: {error}", folder.display())))?;
        }
        Ok(Self {
            peer: options.address,
            socket: UdpOptions {
                receive_buffer_bytes: options.tuning.udp_buffer(options.udp_receive_buffer_bytes),
                ecn: !options.quic_adaptations.no_ecn,
                ..UdpOptions::default()
            },
            clock: InstantClock::new(),
            batch: ReceiveBatch::new(MESSAGES_PER_RECEIVE),
            packets: Vec::with_capacity(65_536),
            request: request_block(options),
            request_body_bytes: options.request_body_bytes,
            control_stream: control::opening(MAX_FIELD_SECTION_BYTES).into(),
            zero_rtt: options.zero_rtt,
            tickets_come: true,
            congestion_control: quic_control(options).to_owned(),
            reused: options.connection_mode == ConnectionMode::Reused,
            streams: options.streams,
            connect_timeout_ns: options.connect_timeout_ns,
            request_timeout_ns: options.request_timeout_ns,
            server_name: options.server_name.clone(),
            authority: options.authority(),
            endpoint: Arc::new(
                quic::client_endpoint_config(payload_of(options), options.quic_adaptations).map_err(named)?,
            ),
            client,
            max_udp_payload_bytes: payload_of(options),
            adaptations: options.quic_adaptations,
            tuning: options.tuning,
            trial: options.trial.clone(),
            qlog_dir: options.qlog_dir.clone(),
        })
    }

    /// Starts a connection; its first packets are ready to be taken.
    pub(super) fn connect(
        &self,
        number: u32,
        now_ns: u64,
    ) -> Result<(Endpoint, ConnectionHandle, Connection), ErrorClass> {
        let now = self.clock.instant(now_ns);
        let mut client = self.client.clone();
        if let Some(folder) = &self.qlog_dir {
            // One file a connection, as qlog viewers expect; a process counter keeps workers and attempts apart.
            static FILES: AtomicU64 = AtomicU64::new(0);
            let name = format!("{}-{number}-{}.sqlog", self.trial, FILES.fetch_add(1, Ordering::Relaxed));
            let stream = quic::qlog_stream(&folder.join(name), &self.trial, now).map_err(|_| ErrorClass::Socket)?;
            let options = TransportOptions { qlog: Some(stream), ..self.options() };
            let transport = quic::transport_config(&options).map_err(|_| ErrorClass::Quic)?;
            client.transport_config(Arc::new(transport));
        }
        let mut endpoint = Endpoint::new(Arc::clone(&self.endpoint), None, true, None);
        let (handle, connection) =
            endpoint.connect(now, client, self.peer, &self.server_name).map_err(|error| match error {
                ConnectError::UnsupportedVersion => ErrorClass::QuicVersion,
                ConnectError::InvalidRemoteAddress(_) => ErrorClass::Unreachable,
                _ => ErrorClass::Quic,
            })?;
        Ok((endpoint, handle, connection))
    }

    /// HEADERS frame, and header of the DATA frame, of a request that is not the one of the options.
    pub(super) fn block(&self, request: &Request) -> Bytes {
        let octets = request.content_octets();
        block(request.method.name(), &self.authority, &request.path, octets, |field| request.for_each_field(field))
    }

    /// Whether requests are sent one after the other, as they are begun, and not in turn.
    pub(super) fn in_order(&self) -> bool {
        self.adaptations.settings
    }

    fn options(&self) -> TransportOptions<'_> {
        TransportOptions {
            congestion_control: &self.congestion_control,
            max_udp_payload_bytes: self.max_udp_payload_bytes,
            adaptations: self.adaptations,
            tuning: self.tuning,
            ..TransportOptions::default()
        }
    }
}

/// The largest UDP payload, as it is tuned.
fn payload_of(options: &Options) -> u16 {
    options.tuning.udp_payload(options.max_udp_payload_bytes)
}

/// QUIC has no kernel that would choose one.
fn quic_control(options: &Options) -> &str {
    options.congestion_control.as_deref().unwrap_or("cubic")
}

fn transport(options: &Options, qlog: Option<quinn_proto::QlogStream>) -> Result<TransportConfig, FieldError> {
    quic::transport_config(&TransportOptions {
        congestion_control: quic_control(options),
        max_udp_payload_bytes: payload_of(options),
        adaptations: options.quic_adaptations,
        tuning: options.tuning,
        qlog,
        ..TransportOptions::default()
    })
    .map_err(named)
}

/// Splits `field: what is wrong`, the form of the configuration errors of `trifecta_wire::quic`.
fn named(message: String) -> FieldError {
    match message.split_once(": ") {
        Some((field, rest)) => FieldError::new(field, rest),
        None => FieldError::new("config", message),
    }
}

/// The HEADERS frame of the request of the options, and the header of its DATA frame when it has content.
fn request_block(options: &Options) -> Bytes {
    let octets = options.request_body_bytes;
    block(options.method.name(), &options.authority(), &options.path, octets, |field| {
        if let Some(agent) = &options.user_agent {
            field("user-agent", agent);
        }
        if options.method.has_content() {
            field("content-length", &octets.to_string());
        }
    })
}

fn block(
    method: &str,
    authority: &str,
    path: &str,
    content_octets: u64,
    fields: impl FnOnce(&mut dyn FnMut(&str, &str)),
) -> Bytes {
    let mut section = encoder::PREFIX.to_vec();
    let mut field = |name: &str, value: &str| encoder::encode_field(name.as_bytes(), value.as_bytes(), &mut section);
    field(":method", method);
    field(":scheme", "https");
    field(":authority", authority);
    field(":path", path);
    fields(&mut field);
    let mut block = Vec::with_capacity(section.len() + 16);
    frame::write_headers(&section, &mut block);
    if content_octets > 0 {
        frame::write_header(frame::kind::DATA, content_octets, &mut block);
    }
    block.into()
}
