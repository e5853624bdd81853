//! Seeded mutations of byte strings, for the fuzz tests of every parser in the workspace. Not part of any measured path.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// SplitMix64 (Steele, Lea, Flood 2014): the same seed gives the same numbers everywhere.
#[derive(Clone, Debug)]
pub struct SplitMix(u64);

impl SplitMix {
    /// A generator that is determined by `seed`.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn draw(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which must not be 0.
    pub fn below(&mut self, bound: usize) -> usize {
        (self.draw() % bound as u64) as usize
    }
}

/// Octets that parsers give a meaning to.
const TELLING: [u8; 24] = [
    0, 1, 2, 3, 5, 8, 0x0a, 0x0d, 0x20, 0x2c, 0x30, 0x3a, 0x3b, 0x3f, 0x40, 0x41, 0x61, 0x7f, 0x80, 0x81, 0xbf, 0xc0,
    0xfe, 0xff,
];

/// `sample` with one to eight changes drawn from `seed`: bits flipped, octets set, parts cut out, doubled or moved.
pub fn mutated(sample: &[u8], seed: u64) -> Vec<u8> {
    let mut random = SplitMix::new(seed);
    let mut data = sample.to_vec();
    for _ in 0..=random.below(8) {
        if data.is_empty() {
            data.push(random.draw() as u8);
        }
        let place = random.below(data.len());
        let length = random.below((data.len() - place).min(32) + 1);
        match random.below(7) {
            0 => data[place] ^= 1 << random.below(8),
            1 => data[place] = TELLING[random.below(TELLING.len())],
            2 => data[place] = random.draw() as u8,
            3 => data.insert(place, TELLING[random.below(TELLING.len())]),
            4 => drop(data.drain(place..place + length)),
            5 => data.truncate(place),
            _ => {
                let part = data[place..place + length].to_vec();
                let target = random.below(data.len() + 1);
                data.splice(target..target, part);
            }
        }
    }
    data
}

/// Mutates `samples` and feeds them to `target`, until TRIFECTA_FUZZ_INPUTS inputs were read or TRIFECTA_FUZZ_SECONDS are
/// over, whichever is first (10 s when neither is set). Prints how many inputs it were and how long they took.
///
/// # Panics
///
/// When `target` does: the message names the seed, and TRIFECTA_FUZZ_SEED begins there.
pub fn fuzz(name: &str, samples: &[Vec<u8>], target: fn(&[u8])) {
    let set = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a whole number"));
    let (inputs, seconds) = (set("TRIFECTA_FUZZ_INPUTS"), set("TRIFECTA_FUZZ_SECONDS"));
    let limit = seconds.or(if inputs.is_none() { Some(10) } else { None }).map(Duration::from_secs);
    let first_seed = set("TRIFECTA_FUZZ_SEED").unwrap_or(0);
    let (began, mut seed) = (Instant::now(), first_seed);
    while inputs.is_none_or(|inputs| seed - first_seed < inputs) && limit.is_none_or(|limit| began.elapsed() < limit) {
        for _ in 0..256 {
            let data = drawn(samples, seed);
            let result = catch_unwind(AssertUnwindSafe(|| target(&data)));
            assert!(result.is_ok(), "{name}: seed {seed} (TRIFECTA_FUZZ_SEED={seed}), input {data:02x?}");
            seed += 1;
        }
    }
    println!("fuzz {name}: {} inputs in {:.0} s", seed - first_seed, began.elapsed().as_secs_f64());
}

/// One input: a sample with one to three mutations; now and then two of them in a row, or noise.
fn drawn(samples: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut random = SplitMix::new(seed ^ 0x5eed);
    let mut data = match random.below(16) {
        0 => (0..random.below(200)).map(|_| random.draw() as u8).collect(),
        1 => [&samples[random.below(samples.len())][..], &samples[random.below(samples.len())]].concat(),
        _ => samples[random.below(samples.len())].clone(),
    };
    for round in 0..=random.below(3) as u64 {
        data = mutated(&data, seed.wrapping_mul(4).wrapping_add(round));
    }
    data
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_mutation_and_others_differ() {
        let sample = b"GET / HTTP/1.1\r\n\r\n";
        assert_eq!(mutated(sample, 7), mutated(sample, 7));
        let different = (0..100).filter(|&seed| mutated(sample, seed) != sample).count();
        assert!(different > 80);
        assert!(mutated(b"", 1).len() < 64);
    }
}
