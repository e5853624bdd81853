//! ECN codepoints between quinn-proto and the sockets, which leave them out unless [`super::Adaptations::no_ecn`] is off.

use quinn_proto::EcnCodepoint;

use crate::udp::Ecn;

/// The codepoint that quinn-proto wants on a packet.
#[must_use]
pub fn to_socket(codepoint: Option<EcnCodepoint>) -> Ecn {
    codepoint.map_or(Ecn::NotCapable, |codepoint| Ecn::from_traffic_class(codepoint as u8))
}

/// What came with a packet, for quinn-proto.
#[must_use]
pub fn from_socket(ecn: Ecn) -> Option<EcnCodepoint> {
    EcnCodepoint::from_bits(ecn as u8)
}
