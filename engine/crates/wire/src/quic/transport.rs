//! Transport configuration, the same for client and server so that what differs between two trials is the protocol.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    AckFrequencyConfig, EndpointConfig, IdleTimeout, MtuDiscoveryConfig, QlogStream, RandomConnectionIdGenerator,
    ServerConfig, TransportConfig, VarInt,
};

use super::adaptations::Adaptations;
use super::tls::ServerTls;
use super::unpaced::Unpaced;
use super::window_validation::ValidatedWindow;
use crate::Tuning;

/// Names of the congestion controls, as for TCP.
pub const CONGESTION_CONTROLS: [&str; 3] = ["cubic", "bbr", "reno"];

/// Full-size packets of the initial congestion window: what Linux gives TCP (RFC 6928), and what RFC 9002 section 7.2
/// comes to for datagrams of 1,472 octets or less.
pub const INITIAL_WINDOW_PACKETS: u64 = 10;

/// Packets that are acknowledged at once (RFC 9000 section 13.2.2).
const ACK_PACKETS: u16 = 2;

/// What a transport is set to.
#[derive(Clone)]
pub struct TransportOptions<'a> {
    /// One of [`CONGESTION_CONTROLS`].
    pub congestion_control: &'a str,
    /// Octets of UDP payload of a full-size packet, 1,200 to 65,527. Sent from the first packet on, without discovery,
    /// so that a path of 1,500 octets carries full packets as TCP does.
    pub max_udp_payload_bytes: u16,
    /// Searches for larger packets up to `max_udp_payload_bytes`, starting from 1,200 (RFC 9000 section 14.3), instead of
    /// using them from the start.
    pub mtu_discovery: bool,
    /// Idle timeout in ns; 0 is none.
    pub idle_timeout_ns: u64,
    /// Receive window of one stream in octets.
    pub stream_window_bytes: u64,
    /// Receive window of the connection in octets.
    pub connection_window_bytes: u64,
    /// Octets taken from the application and not yet acknowledged.
    pub send_window_bytes: u64,
    /// Bidirectional streams that the peer may have open.
    pub max_bidi_streams: u32,
    /// Without `settings` only what a study asks for is set: congestion control, idle timeout, streams of the peer, qlog, and
    /// the tuning.
    pub adaptations: Adaptations,
    /// What is set otherwise than above.
    pub tuning: Tuning,
    /// What the time is, for a window that restarts after a rest.
    pub now: fn() -> Instant,
    /// Where events of the connections with this configuration are written.
    pub qlog: Option<QlogStream>,
}

impl Default for TransportOptions<'_> {
    fn default() -> Self {
        Self {
            congestion_control: "cubic",
            max_udp_payload_bytes: 1452,
            mtu_discovery: false,
            idle_timeout_ns: 30_000_000_000,
            stream_window_bytes: 64 << 20,
            connection_window_bytes: 128 << 20,
            send_window_bytes: 16 << 20,
            max_bidi_streams: 0,
            adaptations: Adaptations::ALL,
            tuning: Tuning::default(),
            now: Instant::now,
            qlog: None,
        }
    }
}

/// Builds the transport configuration.
///
/// # Errors
/// A sentence that names what is out of range.
pub fn transport_config(options: &TransportOptions<'_>) -> Result<TransportConfig, String> {
    let payload = options.max_udp_payload_bytes;
    if payload < 1200 {
        return Err(format!(
            "max_udp_payload_bytes: {payload} is below the 1200 that QUIC needs (RFC 9000 section 14)"
        ));
    }
    let mut config = TransportConfig::default();
    config
        .max_concurrent_bidi_streams(options.max_bidi_streams.into())
        .max_idle_timeout(idle_timeout(options.idle_timeout_ns)?)
        .congestion_controller_factory(congestion(options)?)
        .qlog_stream(options.qlog.clone());
    if options.adaptations.settings {
        adapt(options, &mut config)?;
    }
    tune(&options.tuning, &mut config);
    Ok(config)
}

/// Sets what quinn-proto offers and has otherwise by itself.
fn adapt(options: &TransportOptions<'_>, config: &mut TransportConfig) -> Result<(), String> {
    let payload = options.max_udp_payload_bytes;
    let window = |name: &str, bytes: u64| {
        VarInt::from_u64(bytes).map_err(|_| format!("{name}: {bytes} does not fit a QUIC integer"))
    };
    config
        // Control, QPACK encoder, QPACK decoder, and some of unknown types (RFC 9114 section 6.2).
        .max_concurrent_uni_streams(16_u32.into())
        .stream_receive_window(window("stream_window_bytes", options.stream_window_bytes)?)
        .receive_window(window("connection_window_bytes", options.connection_window_bytes)?)
        .send_window(options.send_window_bytes)
        .initial_mtu(if options.mtu_discovery { 1200 } else { payload })
        .min_mtu(1200)
        .mtu_discovery_config(options.mtu_discovery.then(|| {
            let mut discovery = MtuDiscoveryConfig::default();
            discovery.upper_bound(payload);
            discovery
        }))
        .datagram_receive_buffer_size(None);
    Ok(())
}

/// Sets what a study exchanges, but for the congestion control.
fn tune(tuning: &Tuning, config: &mut TransportConfig) {
    if let Some(bytes) = tuning.stream_window_bytes {
        config.stream_receive_window(bytes.into());
    }
    if let Some(bytes) = tuning.connection_window_bytes {
        config.receive_window(bytes.into());
    }
    if let Some(on) = tuning.segmentation_offload {
        config.enable_segmentation_offload(on);
    }
    if tuning.ack_delay_ns.is_some() || tuning.ack_packets.is_some() {
        let mut asked = AckFrequencyConfig::default();
        asked
            .max_ack_delay(tuning.ack_delay_ns.map(Duration::from_nanos))
            // Of so many packets the last must be acknowledged at once.
            .ack_eliciting_threshold(u32::from(tuning.ack_packets.unwrap_or(ACK_PACKETS) - 1).into())
            // As without the extension: what comes out of order is acknowledged at once (RFC 9000 section 13.2.1).
            .reordering_threshold(1_u32.into());
        config.ack_frequency_config(Some(asked));
    }
    if let Some(packets) = tuning.packet_threshold {
        config.packet_threshold(packets.into());
    }
}

fn idle_timeout(timeout_ns: u64) -> Result<Option<IdleTimeout>, String> {
    if timeout_ns == 0 {
        return Ok(None);
    }
    // The transport parameter counts milliseconds, and 0 of them would mean no timeout at all (RFC 9000 section 18.2).
    let timeout = Duration::from_millis((timeout_ns / 1_000_000).max(1));
    IdleTimeout::try_from(timeout).map(Some).map_err(|_| format!("idle_timeout_ns: {timeout_ns} is too long"))
}

fn congestion(options: &TransportOptions<'_>) -> Result<Arc<dyn ControllerFactory + Send + Sync>, String> {
    let controller = controller(options)?;
    Ok(if options.tuning.pacing == Some(false) { Arc::new(Unpaced::new(controller)) } else { controller })
}

fn controller(options: &TransportOptions<'_>) -> Result<Arc<dyn ControllerFactory + Send + Sync>, String> {
    let settings = options.adaptations.settings;
    let packets = options.tuning.initial_window_packets.map(u64::from).or(settings.then_some(INITIAL_WINDOW_PACKETS));
    let window = packets.map(|packets| window_octets(packets, options.max_udp_payload_bytes));
    match options.congestion_control {
        "cubic" => {
            let mut config = CubicConfig::default();
            window.map(|window| config.initial_window(window));
            validated(config, options)
        }
        "bbr" if options.tuning.idle_window_restarts == Some(true) => {
            Err("tuning.idle_window_restarts: BBR keeps its window after a rest; use cubic or reno".into())
        }
        "bbr" => {
            let mut config = BbrConfig::default();
            window.map(|window| config.initial_window(window));
            Ok(Arc::new(config))
        }
        "reno" => {
            let mut config = NewRenoConfig::default();
            window.map(|window| config.initial_window(window));
            validated(config, options)
        }
        other => {
            let known = CONGESTION_CONTROLS.join(", ");
            Err(format!("congestion_control: QUIC has no '{other}'; one of {known}"))
        }
    }
}

/// A window that so many packets of full size go into. quinn-proto sends a packet only if that leaves less in flight than the
/// window, so that it takes an octet more for the last one.
//= https://www.rfc-editor.org/rfc/rfc9002#section-7
//# An endpoint MUST NOT send a packet if it would cause bytes_in_flight (see Appendix B.2) to be larger than the
//# congestion window, unless the packet is sent on a PTO timer expiration (see Section 6.2) or when entering recovery
//# (see Section 7.3.2).
fn window_octets(packets: u64, max_udp_payload_bytes: u16) -> u64 {
    packets * u64::from(max_udp_payload_bytes) + 1
}

fn validated<F: ControllerFactory + Send + Sync + 'static>(
    config: F,
    options: &TransportOptions<'_>,
) -> Result<Arc<dyn ControllerFactory + Send + Sync>, String> {
    let restarts = (options.tuning.idle_window_restarts == Some(true)).then_some(options.now);
    match (options.adaptations.window_validation, restarts) {
        (true, restarts) => Ok(Arc::new(ValidatedWindow::new(config, restarts))),
        (false, None) => Ok(Arc::new(config)),
        (false, Some(_)) => {
            Err("tuning.idle_window_restarts: needs window-validation among quic_adaptations, which does it".into())
        }
    }
}

/// The endpoint configuration of a client whose connections have a socket each: connection identifiers of length zero,
/// which spares octets in every packet received and the exchange of spare identifiers (RFC 9000 section 5.1).
///
/// # Errors
/// `max_udp_payload_bytes`, which is announced to the peer, is out of range.
pub fn client_endpoint_config(max_udp_payload_bytes: u16, adaptations: Adaptations) -> Result<EndpointConfig, String> {
    if !adaptations.settings {
        return Ok(EndpointConfig::default());
    }
    let mut config = endpoint_config(max_udp_payload_bytes)?;
    config.cid_generator(|| Box::new(RandomConnectionIdGenerator::new(0)));
    Ok(config)
}

/// The endpoint configuration of a server.
///
/// # Errors
/// `max_udp_payload_bytes`, which is announced to the peer, is out of range.
pub fn server_endpoint_config(max_udp_payload_bytes: u16, adaptations: Adaptations) -> Result<EndpointConfig, String> {
    if adaptations.settings { endpoint_config(max_udp_payload_bytes) } else { Ok(EndpointConfig::default()) }
}

fn endpoint_config(max_udp_payload_bytes: u16) -> Result<EndpointConfig, String> {
    let mut config = EndpointConfig::default();
    config
        .max_udp_payload_size(max_udp_payload_bytes)
        .map_err(|_| format!("max_udp_payload_bytes: {max_udp_payload_bytes} is not within 1200..=65527"))?;
    // Only version 1 (RFC 9000): drafts have no place in a comparison.
    config.supported_versions(vec![1]);
    Ok(config)
}

/// The server configuration, from the TLS configuration that TCP uses too.
///
/// # Errors
/// Says what the TLS configuration lacks for QUIC.
pub fn server_config(
    tls: Arc<rustls::ServerConfig>,
    transport: TransportConfig,
    adaptations: Adaptations,
) -> Result<ServerConfig, String> {
    let mut config = ServerConfig::with_crypto(Arc::new(ServerTls::new(tls, adaptations)?));
    config.transport_config(Arc::new(transport));
    if adaptations.settings {
        // Spare address validation tokens (RFC 9000 section 8.1.3) would add packets to each connection and save
        // nothing without Retry.
        config.validation_token.sent(0);
    }
    Ok(config)
}
