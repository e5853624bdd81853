//! What was inside the handshakes of a run: certificates, and how many flights of the server brought them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;
use trifecta_wire::tls::CertificateChain;

/// Below this round-trip time flights cannot be told from the time that a server takes to sign.
const LEAST_RTT_NS: u64 = 2_000_000;

/// When octets of the server came while a handshake went on, as far as it takes to tell its flights apart.
#[derive(Clone, Copy, Debug, Default)]
pub struct Arrivals {
    /// From the client's first octets of the handshake to the server's.
    rtt_ns: u64,
    flight_ns: u64,
    flights: u64,
}

impl Arrivals {
    /// Takes in that octets were received at `now_ns`. `asked_ns`: when the client began to ask, of TCP when its Client Hello left.
    pub fn note(&mut self, asked_ns: u64, now_ns: u64) {
        if self.flights == 0 {
            self.rtt_ns = now_ns.saturating_sub(asked_ns);
        }
        // What the client had to answer first is a round trip later; what was only cut into packets follows on the heels.
        if self.flights == 0 || now_ns.saturating_sub(self.flight_ns) > self.rtt_ns / 4 * 3 {
            self.flights += 1;
            self.flight_ns = now_ns;
        }
    }

    fn flights(self) -> Option<u64> {
        (self.flights > 0 && self.rtt_ns >= LEAST_RTT_NS).then_some(self.flights)
    }
}

/// What the summary says of full handshakes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct HandshakesSummary {
    pub chains: Vec<ChainSummary>,
    /// In how many flights the server's part came, to connections; empty where the path is too short to tell.
    pub flights: BTreeMap<u64, u64>,
}

/// Connections whose server sent the same amount of certificates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ChainSummary {
    pub certificates: u64,
    /// In DER.
    pub octets: u64,
    pub connections: u64,
}

/// Counts of connections by what their handshake was.
#[derive(Clone, Debug, Default)]
pub struct Handshakes {
    chains: BTreeMap<CertificateChain, u64>,
    flights: BTreeMap<u64, u64>,
}

impl Handshakes {
    /// Adds a handshake that has been completed; one without certificates, which was resumed, counts for nothing.
    pub fn add(&mut self, chain: Option<CertificateChain>, arrivals: Arrivals) {
        let Some(chain) = chain else { return };
        *self.chains.entry(chain).or_default() += 1;
        if let Some(flights) = arrivals.flights() {
            *self.flights.entry(flights).or_default() += 1;
        }
    }

    /// Adds what another worker saw.
    pub fn merge(&mut self, other: &Self) {
        other.chains.iter().for_each(|(chain, count)| *self.chains.entry(*chain).or_default() += count);
        other.flights.iter().for_each(|(flights, count)| *self.flights.entry(*flights).or_default() += count);
    }

    /// The `handshakes` object of the summary.
    #[must_use]
    pub fn summary(&self) -> HandshakesSummary {
        let chain = |(chain, connections): (&CertificateChain, &u64)| ChainSummary {
            certificates: chain.certificates,
            octets: chain.octets,
            connections: *connections,
        };
        HandshakesSummary { chains: self.chains.iter().map(chain).collect(), flights: self.flights.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flights(milliseconds: &[u64]) -> Option<u64> {
        let mut arrivals = Arrivals::default();
        milliseconds.iter().for_each(|at| arrivals.note(1_000_000_000, 1_000_000_000 + at * 1_000_000));
        arrivals.flights()
    }

    #[test]
    fn a_flight_is_what_comes_without_being_asked_again() {
        assert_eq!(flights(&[]), None);
        assert_eq!(flights(&[40, 40, 45]), Some(1));
        assert_eq!(flights(&[40, 41, 80, 81]), Some(2));
        assert_eq!(flights(&[41, 80, 120]), Some(3));
        assert_eq!(flights(&[1, 3]), None, "too short to tell");
    }

    #[test]
    fn handshakes_with_certificates_are_counted() {
        let chain = CertificateChain { certificates: 2, octets: 900 };
        let mut arrivals = Arrivals::default();
        arrivals.note(0, 50_000_000);
        let (mut one, mut other) = (Handshakes::default(), Handshakes::default());
        one.add(Some(chain), arrivals);
        one.add(None, arrivals);
        other.add(Some(chain), arrivals);
        one.merge(&other);
        assert_eq!(
            serde_json::to_string(&one.summary()).unwrap(),
            r#"{"chains":[{"certificates":2,"octets":900,"connections":2}],"flights":{"1":2}}"#
        );
    }
}
