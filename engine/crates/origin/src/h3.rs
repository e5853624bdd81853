//! HTTP/3 over QUIC, driven by the worker's event loop through this interface.
//!
//! The worker calls, with the same handler and stats that HTTP/1.1 and HTTP/2 use: [`Server::on_readable`] and
//! [`Server::on_writable`] when [`Server::fd`] is (level-triggered; writability only while [`Server::wants_write`]),
//! [`Server::on_timer`] when [`Server::next_timeout_ns`] has passed, and [`Server::close`] once at the end, after which it
//! goes on until [`Server::is_drained`] or a short time has passed.

use crate::config::{Config, ConfigError};
use crate::handler::Handler;
use crate::stats::Stats;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::sync::Arc;

/// All QUIC connections of one worker, behind one UDP socket.
pub struct Server {}

impl Server {
    /// Binds the UDP socket (SO_REUSEPORT when there are several workers). `tls` offers `h3` alone.
    ///
    /// # Errors
    /// Names the field that cannot be used; the exit code is then 3.
    pub fn bind(_config: &Config, _address: SocketAddr, _tls: Arc<rustls::ServerConfig>) -> Result<Self, ConfigError> {
        Err(ConfigError { field: "protocols".into(), message: "h3 is not built yet; leave it out".into() })
    }

    /// The UDP socket.
    pub fn fd(&self) -> RawFd {
        -1
    }

    /// The address the socket is bound to.
    pub fn local_address(&self) -> Option<SocketAddr> {
        None
    }

    /// Takes datagrams in and answers.
    pub fn on_readable(&mut self, _handler: &mut Handler, _stats: &mut Stats, _now_ns: u64) {}

    /// Sends what the socket did not take before.
    pub fn on_writable(&mut self, _handler: &mut Handler, _stats: &mut Stats, _now_ns: u64) {}

    /// Whether the socket refused datagrams that are still to be sent.
    pub fn wants_write(&self) -> bool {
        false
    }

    /// When [`Server::on_timer`] is to be called, on the engine's clock.
    pub fn next_timeout_ns(&self) -> Option<u64> {
        None
    }

    /// Lets timers expire: loss detection, pacing, idle connections, delayed answers.
    pub fn on_timer(&mut self, _handler: &mut Handler, _stats: &mut Stats, _now_ns: u64) {}

    /// Begins the end: GOAWAY and CONNECTION_CLOSE on every connection.
    pub fn close(&mut self, _handler: &mut Handler, _stats: &mut Stats, _now_ns: u64) {}

    /// Whether nothing is left to be sent after [`Server::close`].
    pub fn is_drained(&self) -> bool {
        true
    }
}
