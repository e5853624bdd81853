//! The TLS side of QUIC on rustls, for clients and servers.
//!
//! quinn-proto brings one of its own, but it tells neither the cipher suite nor the key exchange group nor whether the
//! session was resumed, and it reduces every failure to an alert. All of that belongs into sample rows and summaries.

use std::any::Any;
use std::sync::Arc;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use quinn_proto::crypto::{self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, UnsupportedVersion};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};
use rustls::HandshakeKind;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection, KeyChange, Secrets, ServerConnection, Suite, Version};

use super::adaptations::Adaptations;
use super::padding::WithoutPadding;
use crate::h3::varint;
use crate::tls::{CertificateChain, TlsError, cipher_name};

/// QUIC version 1.
const VERSION_1: u32 = 1;

/// What a handshake has agreed on, so far; from `Session::handshake_data`.
#[derive(Clone, Debug, Default)]
pub struct Handshake {
    /// The protocol that ALPN chose.
    pub alpn: Option<Vec<u8>>,
    /// IANA name of the cipher suite.
    pub cipher: Option<&'static str>,
    /// Name of the key exchange group.
    pub key_exchange: Option<&'static str>,
    /// A session ticket was used and accepted.
    pub resumed: bool,
    /// What the server showed; none where the session was resumed.
    pub chain: Option<CertificateChain>,
    /// TLS messages came after the handshake; a server sends session tickets only (RFC 9001 sections 4.4
    /// and 6 forbid CertificateRequest and KeyUpdate).
    pub has_tickets: bool,
    /// Why TLS failed on our side.
    pub error: Option<TlsError>,
}

impl Handshake {
    /// Reads it off a connection whose session was made by [`ClientTls`] or [`ServerTls`].
    pub fn of(connection: &quinn_proto::Connection) -> Option<Self> {
        connection.crypto_session().handshake_data()?.downcast::<Self>().ok().map(|boxed| *boxed)
    }
}

/// TLS configuration of QUIC clients.
pub struct ClientTls {
    config: Arc<rustls::ClientConfig>,
    initial: Suite,
    adaptations: Adaptations,
}

impl ClientTls {
    /// From the configuration that TCP uses too ([`crate::tls::client_config`], TLS 1.3).
    ///
    /// # Errors
    /// Says what the configuration lacks for QUIC.
    pub fn new(config: Arc<rustls::ClientConfig>, adaptations: Adaptations) -> Result<Self, String> {
        require_quic_suite(config.crypto_provider())?;
        Ok(Self { config, initial: initial_suite()?, adaptations })
    }
}

impl crypto::ClientConfig for ClientTls {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        parameters: &TransportParameters,
    ) -> Result<Box<dyn crypto::Session>, ConnectError> {
        if version != VERSION_1 {
            return Err(ConnectError::UnsupportedVersion);
        }
        let invalid = || ConnectError::InvalidServerName(server_name.into());
        let name = ServerName::try_from(server_name).map_err(|_| invalid())?.to_owned();
        let encoded = encode_parameters(parameters, self.adaptations);
        // Fails only for a configuration without TLS 1.3, which `new` refuses.
        let inner = ClientConnection::new(Arc::clone(&self.config), Version::V1, name, encoded)
            .map_err(|_| ConnectError::EndpointStopping)?;
        Ok(Box::new(TlsSession::new(Connection::Client(inner), self.initial, self.adaptations)))
    }
}

/// TLS configuration of QUIC servers.
pub struct ServerTls {
    config: Arc<rustls::ServerConfig>,
    initial: Suite,
    adaptations: Adaptations,
}

impl ServerTls {
    /// From the configuration that TCP uses too ([`crate::tls::server_config`], with TLS 1.3).
    ///
    /// # Errors
    /// Says what the configuration lacks for QUIC.
    pub fn new(config: Arc<rustls::ServerConfig>, adaptations: Adaptations) -> Result<Self, String> {
        require_quic_suite(config.crypto_provider())?;
        let server = Self { config, initial: initial_suite()?, adaptations };
        // `start_session` cannot fail, so what could fail there is tried here.
        server.connection(Vec::new()).map_err(|error| format!("tls_versions: {error}"))?;
        Ok(server)
    }

    fn connection(&self, parameters: Vec<u8>) -> Result<ServerConnection, rustls::Error> {
        ServerConnection::new(Arc::clone(&self.config), Version::V1, parameters)
    }
}

impl crypto::ServerConfig for ServerTls {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        if version != VERSION_1 {
            return Err(UnsupportedVersion);
        }
        Ok(boxed(self.initial.keys(dst_cid, rustls::Side::Server, Version::V1), self.adaptations))
    }

    fn retry_tag(&self, _version: u32, original_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        retry_tag(original_dst_cid, packet).expect("sealing nothing with a valid key and nonce succeeds")
    }

    fn start_session(self: Arc<Self>, _version: u32, parameters: &TransportParameters) -> Box<dyn crypto::Session> {
        let encoded = encode_parameters(parameters, self.adaptations);
        let inner = self.connection(encoded).expect("`new` has tried this configuration");
        Box::new(TlsSession::new(Connection::Server(inner), self.initial, self.adaptations))
    }
}

/// The transport parameters as they stand in the handshake: in the order of their identifiers and without a reserved one.
///
/// quinn-proto shuffles them and adds a reserved one of random identifier and length (greasing, RFC 9000 section 18.1).
/// That makes handshakes differ in size for no reason of the experiment, and nginx (1.30.6) refuses one in some
/// thousand of them ("failed to parse transport param", alert 109), which would be counted as failures of the server.
fn encode_parameters(parameters: &TransportParameters, adaptations: Adaptations) -> Vec<u8> {
    let mut shuffled = Vec::with_capacity(128);
    parameters.write(&mut shuffled);
    if adaptations.parameters_in_order { in_order_without_reserved(&shuffled) } else { shuffled }
}

fn in_order_without_reserved(mut shuffled: &[u8]) -> Vec<u8> {
    let mut list: Vec<(u64, &[u8])> = Vec::with_capacity(20);
    while let Some((id, id_bytes)) = varint::read(shuffled) {
        let Some((length, length_bytes)) = varint::read(&shuffled[id_bytes..]) else { break };
        let end = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(id_bytes + length_bytes);
        let Some((parameter, rest)) = shuffled.split_at_checked(end) else { break };
        // RFC 9000 section 18.1: reserved are 31 * N + 27.
        if id % 31 != 27 {
            list.push((id, parameter));
        }
        shuffled = rest;
    }
    list.sort_unstable_by_key(|(id, _)| *id);
    list.into_iter().flat_map(|(_, parameter)| parameter).copied().collect()
}

fn require_quic_suite(provider: &rustls::crypto::CryptoProvider) -> Result<(), String> {
    if provider.cipher_suites.iter().any(|suite| suite.tls13().is_some_and(|suite| suite.quic_suite().is_some())) {
        return Ok(());
    }
    Err("tls_version: QUIC needs a cipher suite of TLS 1.3 (RFC 9001 section 4.2)".to_owned())
}

struct TlsSession {
    inner: Connection,
    initial: Suite,
    adaptations: Adaptations,
    next_secrets: Option<Secrets>,
    reported_handshake_data: bool,
    has_tickets: bool,
    error: Option<TlsError>,
}

impl TlsSession {
    fn new(inner: Connection, initial: Suite, adaptations: Adaptations) -> Self {
        Self {
            inner,
            initial,
            adaptations,
            next_secrets: None,
            reported_handshake_data: false,
            has_tickets: false,
            error: None,
        }
    }

    fn side(&self) -> Side {
        match self.inner {
            Connection::Client(_) => Side::Client,
            Connection::Server(_) => Side::Server,
        }
    }
}

impl crypto::Session for TlsSession {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        let side = match side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        boxed(self.initial.keys(dst_cid, side, Version::V1), self.adaptations)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        Some(Box::new(Handshake {
            alpn: self.inner.alpn_protocol().map(<[u8]>::to_vec),
            cipher: self.inner.negotiated_cipher_suite().map(|suite| cipher_name(suite.suite())),
            key_exchange: self.inner.negotiated_key_exchange_group().and_then(|group| group.name().as_str()),
            resumed: self.inner.handshake_kind() == Some(HandshakeKind::Resumed),
            chain: CertificateChain::shown_to(&self.inner),
            has_tickets: self.has_tickets,
            error: self.error.clone(),
        }))
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let keys = self.inner.zero_rtt_keys()?;
        Some((Box::new(keys.header), Box::new(keys.packet)))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.inner {
            Connection::Client(client) => Some(client.is_early_data_accepted()),
            Connection::Server(_) => None,
        }
    }

    fn is_handshaking(&self) -> bool {
        self.inner.is_handshaking()
    }

    fn read_handshake(&mut self, octets: &[u8]) -> Result<bool, TransportError> {
        let was_complete = !self.inner.is_handshaking();
        if let Err(error) = self.inner.read_hs(octets) {
            // A failure without an alert of its own is reported as internal_error(80) (RFC 8446 section 6).
            let alert = self.inner.alert().map_or(80, u8::from);
            let reason = error.to_string();
            self.error = Some(TlsError::from(error));
            return Err(TransportError { code: TransportErrorCode::crypto(alert), frame: None, reason });
        }
        self.has_tickets |= was_complete;
        let known = self.inner.alpn_protocol().is_some() || !self.inner.is_handshaking();
        Ok(known && !std::mem::replace(&mut self.reported_handshake_data, known))
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        let Some(mut octets) = self.inner.quic_transport_parameters() else { return Ok(None) };
        Ok(Some(TransportParameters::read(self.side(), &mut octets)?))
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<Keys> {
        match self.inner.write_hs(out)? {
            KeyChange::Handshake { keys } => Some(boxed(keys, self.adaptations)),
            KeyChange::OneRtt { keys, next } => {
                self.next_secrets = Some(next);
                Some(boxed(keys, self.adaptations))
            }
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.next_secrets.as_mut()?.next_packet_keys();
        Some(KeyPair { local: Box::new(keys.local), remote: receiving(keys.remote, self.adaptations) })
    }

    fn is_valid_retry(&self, original_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        retry_tag_is_valid(original_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.inner.export_keying_material(output, label, Some(context)).map(drop).map_err(|_| ExportKeyingMaterialError)
    }
}

fn boxed(keys: rustls::quic::Keys, adaptations: Adaptations) -> Keys {
    Keys {
        header: KeyPair { local: Box::new(keys.local.header), remote: Box::new(keys.remote.header) },
        packet: KeyPair { local: Box::new(keys.local.packet), remote: receiving(keys.remote.packet, adaptations) },
    }
}

fn receiving(key: Box<dyn rustls::quic::PacketKey>, adaptations: Adaptations) -> Box<dyn PacketKey> {
    if adaptations.padding_cut { Box::new(WithoutPadding(key)) } else { Box::new(key) }
}

/// Key and nonce of Retry packets, which everyone knows (RFC 9001 section 5.8).
const RETRY_KEY: [u8; 16] =
    [0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e];
const RETRY_NONCE: [u8; 12] = [0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb];

fn retry_key() -> Option<LessSafeKey> {
    UnboundKey::new(&AES_128_GCM, &RETRY_KEY).ok().map(LessSafeKey::new)
}

/// What the tag of a Retry packet authenticates: the packet preceded by the original destination connection identifier
/// and its length (RFC 9001 section 5.8).
fn retry_pseudo_packet(original_dst_cid: &[u8], parts: &[&[u8]]) -> Option<Aad<Vec<u8>>> {
    let mut packet = vec![u8::try_from(original_dst_cid.len()).ok()?];
    packet.extend_from_slice(original_dst_cid);
    parts.iter().for_each(|part| packet.extend_from_slice(part));
    Some(Aad::from(packet))
}

fn retry_tag(original_dst_cid: &[u8], packet: &[u8]) -> Option<[u8; 16]> {
    let aad = retry_pseudo_packet(original_dst_cid, &[packet])?;
    let nonce = Nonce::assume_unique_for_key(RETRY_NONCE);
    let tag = retry_key()?.seal_in_place_separate_tag(nonce, aad, &mut []).ok()?;
    tag.as_ref().try_into().ok()
}

/// Checks the integrity tag at the end of a Retry packet.
fn retry_tag_is_valid(original_dst_cid: &[u8], header: &[u8], payload: &[u8]) -> bool {
    let Some((token, tag)) = payload.split_last_chunk::<16>() else { return false };
    let Some(aad) = retry_pseudo_packet(original_dst_cid, &[header, token]) else { return false };
    let nonce = Nonce::assume_unique_for_key(RETRY_NONCE);
    let mut sealed = *tag;
    retry_key().is_some_and(|key| key.open_in_place(nonce, aad, &mut sealed).is_ok())
}

/// The suite of Initial packets, fixed by RFC 9001 section 5.2 whatever is negotiated later.
fn initial_suite() -> Result<Suite, String> {
    rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256
        .tls13()
        .and_then(|suite| suite.quic_suite())
        .ok_or_else(|| "cipher: TLS_AES_128_GCM_SHA256 cannot be used for QUIC".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_ordered_and_reserved_ones_left_out() {
        // 0x3a is 31 + 27, 0xc0..1b is 27 in eight octets.
        let shuffled = [
            &[0x0f, 0x00][..],
            &[0x40, 0x3a, 0x02, 0xaa, 0xbb],
            &[0x04, 0x04, 0x80, 0x00, 0x10, 0x00],
            &[0x01, 0x01, 0x1e],
            &[0xc0, 0, 0, 0, 0, 0, 0, 0x1b, 0x00],
        ];
        let ordered = [&[0x01, 0x01, 0x1e][..], &[0x04, 0x04, 0x80, 0x00, 0x10, 0x00], &[0x0f, 0x00]];
        assert_eq!(in_order_without_reserved(&shuffled.concat()), ordered.concat());
        assert_eq!(in_order_without_reserved(&[0x01, 0x05, 0x00]), [0_u8; 0], "what is cut is left out");
    }

    /// RFC 9001 appendix A.4.
    #[test]
    fn retry_of_the_rfc() {
        let original_dst_cid = [0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08];
        let packet = [
            0xff, 0x00, 0x00, 0x00, 0x01, 0x00, 0x08, 0xf0, 0x67, 0xa5, 0x50, 0x2a, 0x42, 0x62, 0xb5, 0x74, 0x6f, 0x6b,
            0x65, 0x6e, 0x04, 0xa2, 0x65, 0xba, 0x2e, 0xff, 0x4d, 0x82, 0x90, 0x58, 0xfb, 0x3f, 0x0f, 0x24, 0x96, 0xba,
        ];
        let (header, payload) = packet.split_at(15);
        assert!(retry_tag_is_valid(&original_dst_cid, header, payload));
        assert_eq!(retry_tag(&original_dst_cid, &packet[..20]).unwrap(), packet[20..]);
        assert!(!retry_tag_is_valid(&original_dst_cid[1..], header, payload));
        let mut broken = packet;
        broken[16] ^= 1;
        assert!(!retry_tag_is_valid(&original_dst_cid, &broken[..15], &broken[15..]));
        assert!(!retry_tag_is_valid(&original_dst_cid, header, &payload[..15]));
    }
}
