//! What the sessions to other services are configured with.

use std::net::SocketAddr;

use trifecta_session::options::{ConnectionMode, Method, Options, Protocol};
use trifecta_wire::resolve::resolve;

use super::config::{RelayConfig, ServiceConfig};
use crate::config::{Config, ConfigError};

impl RelayConfig {
    /// What the sessions to a service are configured with. `config` is the whole document, since both directions of a service
    /// share the transports' settings.
    ///
    /// # Errors
    /// When the name does not resolve; to be told as [`crate::serve::Failure`] with exit code 3.
    pub(crate) fn options(&self, name: &str, service: &ServiceConfig, config: &Config) -> Result<Options, ConfigError> {
        let address = match service.address {
            Some(address) => address,
            None => {
                let found = resolve(&service.name, self.ip).map_err(|error| ConfigError {
                    field: format!("relay.services.{name}.name"),
                    message: format!("{} does not resolve: {error}", service.name),
                })?;
                found.address
            }
        };
        Ok(Options {
            trial: format!("relay-{}-{name}", self.service),
            protocol: service.protocol,
            address: SocketAddr::new(address, service.port),
            server_name: service.name.clone(),
            ca_file: self.ca_file.clone().unwrap_or_default(),
            connection_mode: service.connection_mode,
            streams: self.streams(service),
            // Each call is a request of its own; nothing is ever sent as described here.
            method: Method::Get,
            path: "/".into(),
            user_agent: None,
            request_body_bytes: 0,
            connect_timeout_ns: self.connect_timeout_ns,
            request_timeout_ns: self.request_timeout_ns,
            resumption: false,
            zero_rtt: false,
            congestion_control: Some(config.congestion_control.clone()),
            tcp_nodelay: config.tcp_nodelay,
            tls_version: self.tls_version.clone(),
            key_exchange: self.key_exchange.clone(),
            cipher: self.cipher.clone(),
            udp_receive_buffer_bytes: if config.udp_receive_buffer_bytes == 0 {
                UDP_RECEIVE_BUFFER_BYTES
            } else {
                config.udp_receive_buffer_bytes
            },
            max_udp_payload_bytes: config.max_udp_payload_bytes,
            tcp_receive_buffer_bytes: 0,
            keylog_file: config.keylog_file.clone(),
            qlog_dir: config.qlog_dir.clone(),
            quic_adaptations: config.quic_adaptations,
            tuning: config.tuning,
        })
    }

    fn streams(&self, service: &ServiceConfig) -> u32 {
        let single = service.protocol == Protocol::H1 || service.connection_mode == ConnectionMode::New;
        if single { 1 } else { service.streams }
    }
}

/// The load's default.
const UDP_RECEIVE_BUFFER_BYTES: usize = 4 << 20;
