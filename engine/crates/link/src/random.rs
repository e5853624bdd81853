//! Random draws that can be looked up in any order: a SplitMix64 sequence (Steele, Lea, Flood 2014) entered at any point.
//!
//! Draw `k` for packet `n` is a function of (seed, direction, kind and occurrence of the impairment, n, k) and of
//! nothing else: taking one impairment out of a path never changes what another one draws for a packet, and the same
//! seed gives the same fates however the packets are timed.

const GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;
/// Draws set aside for each packet; no impairment needs more.
const DRAWS_PER_PACKET: u64 = 8;

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// Which packet a draw is for: its ordinal on the wire, and which duplicate of it (0: the original).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    pub ordinal: u64,
    pub copy: u8,
}

/// The draws of one impairment of one direction.
#[derive(Clone, Debug)]
pub struct Draws {
    key: u64,
}

impl Draws {
    /// `occurrence` counts the impairments of the same kind before this one in the same direction.
    #[must_use]
    pub fn new(seed: u64, direction: u8, kind: &str, occurrence: u64) -> Self {
        let name = kind.bytes().fold(0u64, |hash, byte| mix(hash.wrapping_add(GAMMA) ^ u64::from(byte)));
        let parts = [seed, u64::from(direction), name, occurrence];
        Draws {
            key: parts.into_iter().fold(0, |key, part| mix(key.wrapping_add(GAMMA) ^ mix(part.wrapping_add(GAMMA)))),
        }
    }

    /// 64 random bits: draw `k` (below 8) for this packet.
    #[must_use]
    pub fn bits(&self, packet: Identity, k: u64) -> u64 {
        debug_assert!(k < DRAWS_PER_PACKET);
        let position = packet.ordinal.wrapping_mul(DRAWS_PER_PACKET).wrapping_add(k) ^ (u64::from(packet.copy) << 56);
        mix(self.key.wrapping_add(position.wrapping_add(1).wrapping_mul(GAMMA)))
    }

    /// A number in [0, 1) with 53 random bits.
    #[must_use]
    pub fn unit(&self, packet: Identity, k: u64) -> f64 {
        (self.bits(packet, k) >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Whether an event of this probability happens to this packet: never at 0, always at 1.
    #[must_use]
    pub fn happens(&self, probability: f64, packet: Identity, k: u64) -> bool {
        self.unit(packet, k) < probability
    }

    /// A draw from the standard normal distribution (Box and Muller 1958); uses draws `k` and `k + 1`.
    #[must_use]
    pub fn normal(&self, packet: Identity, k: u64) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit(packet, k)).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit(packet, k + 1)).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(ordinal: u64) -> Identity {
        Identity { ordinal, copy: 0 }
    }

    #[test]
    fn first_draw_is_splitmix64() {
        // The published first output of SplitMix64 with state 0.
        assert_eq!(Draws { key: 0 }.bits(packet(0), 0), 0xE220_A839_7B1D_CDAF);
    }

    #[test]
    fn every_coordinate_matters() {
        let base = Draws::new(1, 0, "loss", 0).bits(packet(5), 0);
        assert_eq!(base, Draws::new(1, 0, "loss", 0).bits(packet(5), 0));
        for other in [Draws::new(2, 0, "loss", 0), Draws::new(1, 1, "loss", 0), Draws::new(1, 0, "lost", 0)] {
            assert_ne!(base, other.bits(packet(5), 0));
        }
        let loss = Draws::new(1, 0, "loss", 0);
        assert_ne!(base, Draws::new(1, 0, "loss", 1).bits(packet(5), 0));
        assert_ne!(base, loss.bits(packet(6), 0));
        assert_ne!(base, loss.bits(packet(5), 1));
        assert_ne!(base, loss.bits(Identity { ordinal: 5, copy: 1 }, 0));
    }

    #[test]
    fn units_are_uniform_and_normals_are_normal() {
        let draws = Draws::new(42, 0, "jitter", 0);
        let n = 200_000u64;
        let mut buckets = [0u32; 20];
        let (mut sum, mut squares) = (0.0, 0.0);
        for ordinal in 0..n {
            buckets[(draws.unit(packet(ordinal), 2) * 20.0) as usize] += 1;
            let z = draws.normal(packet(ordinal), 0);
            sum += z;
            squares += z * z;
        }
        let expected = n as f64 / 20.0;
        let chi_square: f64 = buckets.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        assert!(chi_square < 43.82, "chi-square {chi_square} is above the 99.9 % point of 19 degrees of freedom");
        let (mean, variance) = (sum / n as f64, squares / n as f64);
        assert!(mean.abs() < 3.29 / (n as f64).sqrt(), "mean {mean}");
        assert!((variance - 1.0).abs() < 3.29 * (2.0 / n as f64).sqrt(), "variance {variance}");
    }
}
