//! The Huffman code of RFC 7541 Appendix B, shared by HPACK and QPACK (RFC 9204 4.1.2).
//!
//! Decoding walks a table of states in steps of four bits, built at compile time from the code itself.

/// Why a Huffman-coded string was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HuffmanError {
    /// The string holds EOS or ends with padding that is longer than 7 bits or not all ones (RFC 7541 5.2).
    Invalid,
    /// The decoded string is longer than the caller allows.
    TooLong,
}

/// Octets that `input` takes when Huffman-coded.
pub fn encoded_len(input: &[u8]) -> usize {
    let bits: usize = input.iter().map(|&octet| CODES[octet as usize].1 as usize).sum();
    bits.div_ceil(8)
}

/// Appends the Huffman code of `input` to `out`, padded with the most significant bits of EOS (RFC 7541 5.2).
pub fn encode(input: &[u8], out: &mut Vec<u8>) {
    let mut pending: u64 = 0;
    let mut pending_bits: u32 = 0;
    for &octet in input {
        let (code, length) = CODES[octet as usize];
        pending = pending << length | u64::from(code);
        pending_bits += u32::from(length);
        while pending_bits >= 8 {
            pending_bits -= 8;
            out.push((pending >> pending_bits) as u8);
        }
    }
    if pending_bits > 0 {
        let padding = 8 - pending_bits;
        out.push((pending << padding) as u8 | ((1u16 << padding) - 1) as u8);
    }
}

/// Hands every decoded octet of `input` to `sink`; what was handed over before an error is not to be used.
#[inline]
pub fn decode_with(input: &[u8], mut sink: impl FnMut(u8)) -> Result<(), HuffmanError> {
    let mut state = 0usize;
    let mut step = |nibble: u8| {
        let transition = TRANSITIONS[state][nibble as usize];
        if transition.flags & EMITS != 0 {
            sink(transition.octet);
        }
        state = transition.next as usize;
        transition.flags
    };
    let mut flags = ACCEPTS;
    for &octet in input {
        flags = step(octet >> 4) & FAILS;
        let low = step(octet & 15);
        flags |= low;
        if flags & FAILS != 0 {
            return Err(HuffmanError::Invalid);
        }
    }
    if flags & ACCEPTS != 0 { Ok(()) } else { Err(HuffmanError::Invalid) }
}

/// Appends the decoded octets of `input` to `out`, at most `limit` of them.
pub fn decode(input: &[u8], out: &mut Vec<u8>, limit: usize) -> Result<(), HuffmanError> {
    // The shortest code has 5 bits, so the result is at most 8/5 of the input: bounded before it is known to be valid.
    let start = out.len();
    let bound = limit.saturating_add(1);
    decode_with(input, |octet| {
        if out.len() - start < bound {
            out.push(octet);
        }
    })?;
    if out.len() - start > limit { Err(HuffmanError::TooLong) } else { Ok(()) }
}

/// Decodes `input` into `out` and returns how many octets it made; [`HuffmanError::TooLong`] when `out` is too short.
#[inline]
pub fn decode_to_slice(input: &[u8], out: &mut [u8]) -> Result<usize, HuffmanError> {
    let mut length = 0usize;
    decode_with(input, |octet| {
        if let Some(place) = out.get_mut(length) {
            *place = octet;
        }
        length += 1;
    })?;
    if length > out.len() { Err(HuffmanError::TooLong) } else { Ok(length) }
}

const EMITS: u8 = 1;
const ACCEPTS: u8 = 2;
const FAILS: u8 = 4;

/// What four bits do in a state: at most one octet comes out of them, since no code is shorter than 5 bits.
#[derive(Clone, Copy)]
struct Transition {
    next: u8,
    octet: u8,
    flags: u8,
}

/// A code of 257 leaves has 256 inner nodes; each is a state, the root is state 0.
const STATES: usize = 256;
const LEAF: u16 = 0x8000;
const EOS: u16 = 256;

static TRANSITIONS: [[Transition; 16]; STATES] = transitions();

const fn transitions() -> [[Transition; 16]; STATES] {
    let (tree, padding_ends) = tree();
    let mut table = [[Transition { next: 0, octet: 0, flags: 0 }; 16]; STATES];
    let mut state = 0;
    while state < STATES {
        let mut nibble = 0;
        while nibble < 16 {
            let mut node = state;
            let mut transition = Transition { next: 0, octet: 0, flags: 0 };
            let mut bit = 4;
            while bit > 0 {
                bit -= 1;
                let child = tree[node][(nibble >> bit) & 1];
                if child & LEAF != 0 {
                    let symbol = child & !LEAF;
                    if symbol == EOS {
                        transition.flags |= FAILS;
                    } else {
                        transition.octet = symbol as u8;
                        transition.flags |= EMITS;
                    }
                    node = 0;
                } else {
                    node = child as usize;
                }
            }
            transition.next = node as u8;
            if padding_ends[node] {
                transition.flags |= ACCEPTS;
            }
            table[state][nibble] = transition;
            nibble += 1;
        }
        state += 1;
    }
    table
}

/// The code as a binary tree, and which of its nodes are reached from the root by at most 7 bits of one (valid padding).
const fn tree() -> ([[u16; 2]; STATES], [bool; STATES]) {
    let mut tree = [[0u16; 2]; STATES];
    let mut used = 1usize;
    let mut symbol = 0;
    while symbol < CODES.len() {
        let (code, length) = CODES[symbol];
        let mut node = 0usize;
        let mut bit = length;
        while bit > 1 {
            bit -= 1;
            let side = ((code >> bit) & 1) as usize;
            if tree[node][side] == 0 {
                tree[node][side] = used as u16;
                used += 1;
            }
            node = tree[node][side] as usize;
        }
        tree[node][(code & 1) as usize] = LEAF | symbol as u16;
        symbol += 1;
    }
    assert!(used == STATES);
    let mut padding_ends = [false; STATES];
    let mut node = 0usize;
    let mut ones = 0;
    while ones <= 7 {
        padding_ends[node] = true;
        node = tree[node][1] as usize;
        ones += 1;
    }
    (tree, padding_ends)
}

/// RFC 7541 Appendix B: the code, right-aligned, and its length in bits; the last is EOS.
#[rustfmt::skip]
const CODES: [(u32, u8); 257] = [
    (0x1ff8, 13), (0x7fffd8, 23), (0xfffffe2, 28), (0xfffffe3, 28), (0xfffffe4, 28), (0xfffffe5, 28),
    (0xfffffe6, 28), (0xfffffe7, 28), (0xfffffe8, 28), (0xffffea, 24), (0x3ffffffc, 30), (0xfffffe9, 28),
    (0xfffffea, 28), (0x3ffffffd, 30), (0xfffffeb, 28), (0xfffffec, 28), (0xfffffed, 28), (0xfffffee, 28),
    (0xfffffef, 28), (0xffffff0, 28), (0xffffff1, 28), (0xffffff2, 28), (0x3ffffffe, 30), (0xffffff3, 28),
    (0xffffff4, 28), (0xffffff5, 28), (0xffffff6, 28), (0xffffff7, 28), (0xffffff8, 28), (0xffffff9, 28),
    (0xffffffa, 28), (0xffffffb, 28), (0x14, 6), (0x3f8, 10), (0x3f9, 10), (0xffa, 12),
    (0x1ff9, 13), (0x15, 6), (0xf8, 8), (0x7fa, 11), (0x3fa, 10), (0x3fb, 10),
    (0xf9, 8), (0x7fb, 11), (0xfa, 8), (0x16, 6), (0x17, 6), (0x18, 6),
    (0x0, 5), (0x1, 5), (0x2, 5), (0x19, 6), (0x1a, 6), (0x1b, 6),
    (0x1c, 6), (0x1d, 6), (0x1e, 6), (0x1f, 6), (0x5c, 7), (0xfb, 8),
    (0x7ffc, 15), (0x20, 6), (0xffb, 12), (0x3fc, 10), (0x1ffa, 13), (0x21, 6),
    (0x5d, 7), (0x5e, 7), (0x5f, 7), (0x60, 7), (0x61, 7), (0x62, 7),
    (0x63, 7), (0x64, 7), (0x65, 7), (0x66, 7), (0x67, 7), (0x68, 7),
    (0x69, 7), (0x6a, 7), (0x6b, 7), (0x6c, 7), (0x6d, 7), (0x6e, 7),
    (0x6f, 7), (0x70, 7), (0x71, 7), (0x72, 7), (0xfc, 8), (0x73, 7),
    (0xfd, 8), (0x1ffb, 13), (0x7fff0, 19), (0x1ffc, 13), (0x3ffc, 14), (0x22, 6),
    (0x7ffd, 15), (0x3, 5), (0x23, 6), (0x4, 5), (0x24, 6), (0x5, 5),
    (0x25, 6), (0x26, 6), (0x27, 6), (0x6, 5), (0x74, 7), (0x75, 7),
    (0x28, 6), (0x29, 6), (0x2a, 6), (0x7, 5), (0x2b, 6), (0x76, 7),
    (0x2c, 6), (0x8, 5), (0x9, 5), (0x2d, 6), (0x77, 7), (0x78, 7),
    (0x79, 7), (0x7a, 7), (0x7b, 7), (0x7ffe, 15), (0x7fc, 11), (0x3ffd, 14),
    (0x1ffd, 13), (0xffffffc, 28), (0xfffe6, 20), (0x3fffd2, 22), (0xfffe7, 20), (0xfffe8, 20),
    (0x3fffd3, 22), (0x3fffd4, 22), (0x3fffd5, 22), (0x7fffd9, 23), (0x3fffd6, 22), (0x7fffda, 23),
    (0x7fffdb, 23), (0x7fffdc, 23), (0x7fffdd, 23), (0x7fffde, 23), (0xffffeb, 24), (0x7fffdf, 23),
    (0xffffec, 24), (0xffffed, 24), (0x3fffd7, 22), (0x7fffe0, 23), (0xffffee, 24), (0x7fffe1, 23),
    (0x7fffe2, 23), (0x7fffe3, 23), (0x7fffe4, 23), (0x1fffdc, 21), (0x3fffd8, 22), (0x7fffe5, 23),
    (0x3fffd9, 22), (0x7fffe6, 23), (0x7fffe7, 23), (0xffffef, 24), (0x3fffda, 22), (0x1fffdd, 21),
    (0xfffe9, 20), (0x3fffdb, 22), (0x3fffdc, 22), (0x7fffe8, 23), (0x7fffe9, 23), (0x1fffde, 21),
    (0x7fffea, 23), (0x3fffdd, 22), (0x3fffde, 22), (0xfffff0, 24), (0x1fffdf, 21), (0x3fffdf, 22),
    (0x7fffeb, 23), (0x7fffec, 23), (0x1fffe0, 21), (0x1fffe1, 21), (0x3fffe0, 22), (0x1fffe2, 21),
    (0x7fffed, 23), (0x3fffe1, 22), (0x7fffee, 23), (0x7fffef, 23), (0xfffea, 20), (0x3fffe2, 22),
    (0x3fffe3, 22), (0x3fffe4, 22), (0x7ffff0, 23), (0x3fffe5, 22), (0x3fffe6, 22), (0x7ffff1, 23),
    (0x3ffffe0, 26), (0x3ffffe1, 26), (0xfffeb, 20), (0x7fff1, 19), (0x3fffe7, 22), (0x7ffff2, 23),
    (0x3fffe8, 22), (0x1ffffec, 25), (0x3ffffe2, 26), (0x3ffffe3, 26), (0x3ffffe4, 26), (0x7ffffde, 27),
    (0x7ffffdf, 27), (0x3ffffe5, 26), (0xfffff1, 24), (0x1ffffed, 25), (0x7fff2, 19), (0x1fffe3, 21),
    (0x3ffffe6, 26), (0x7ffffe0, 27), (0x7ffffe1, 27), (0x3ffffe7, 26), (0x7ffffe2, 27), (0xfffff2, 24),
    (0x1fffe4, 21), (0x1fffe5, 21), (0x3ffffe8, 26), (0x3ffffe9, 26), (0xffffffd, 28), (0x7ffffe3, 27),
    (0x7ffffe4, 27), (0x7ffffe5, 27), (0xfffec, 20), (0xfffff3, 24), (0xfffed, 20), (0x1fffe6, 21),
    (0x3fffe9, 22), (0x1fffe7, 21), (0x1fffe8, 21), (0x7ffff3, 23), (0x3fffea, 22), (0x3fffeb, 22),
    (0x1ffffee, 25), (0x1ffffef, 25), (0xfffff4, 24), (0xfffff5, 24), (0x3ffffea, 26), (0x7ffff4, 23),
    (0x3ffffeb, 26), (0x7ffffe6, 27), (0x3ffffec, 26), (0x3ffffed, 26), (0x7ffffe7, 27), (0x7ffffe8, 27),
    (0x7ffffe9, 27), (0x7ffffea, 27), (0x7ffffeb, 27), (0xffffffe, 28), (0x7ffffec, 27), (0x7ffffed, 27),
    (0x7ffffee, 27), (0x7ffffef, 27), (0x7fffff0, 27), (0x3ffffee, 26), (0x3fffffff, 30),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
        digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
    }

    #[test]
    fn strings_of_rfc_7541_appendix_c() {
        for (text, code) in [
            ("www.example.com", "f1e3 c2e5 f23a 6ba0 ab90 f4ff"),
            ("no-cache", "a8eb 1064 9cbf"),
            ("custom-value", "25a8 49e9 5bb8 e8b4 bf"),
            ("302", "6402"),
            ("Mon, 21 Oct 2013 20:13:21 GMT", "d07a be94 1054 d444 a820 0595 040b 8166 e082 a62d 1bff"),
        ] {
            let mut coded = Vec::new();
            encode(text.as_bytes(), &mut coded);
            assert_eq!(coded, hex(code));
            assert_eq!(encoded_len(text.as_bytes()), coded.len());
            let mut plain = Vec::new();
            decode(&coded, &mut plain, 100).unwrap();
            assert_eq!(plain, text.as_bytes());
        }
    }

    #[test]
    fn every_octet_survives_at_every_alignment() {
        for octet in 0..=255u8 {
            for lead in 0..8 {
                let mut plain = vec![b'0'; lead];
                plain.extend_from_slice(&[octet, b'a', octet]);
                let mut coded = Vec::new();
                encode(&plain, &mut coded);
                let mut back = Vec::new();
                decode(&coded, &mut back, plain.len()).unwrap();
                assert_eq!(back, plain);
                let mut slice = [0u8; 16];
                assert_eq!(decode_to_slice(&coded, &mut slice), Ok(plain.len()));
                assert_eq!(&slice[..plain.len()], &plain[..]);
            }
        }
    }

    #[test]
    fn refuses_eos_and_wrong_padding() {
        let mut out = Vec::new();
        assert_eq!(decode(&[], &mut out, 10), Ok(()));
        assert_eq!(decode(&hex("ffff ffff"), &mut out, 10), Err(HuffmanError::Invalid), "EOS");
        assert_eq!(decode(&hex("ff"), &mut out, 10), Err(HuffmanError::Invalid), "8 bits of padding");
        assert_eq!(decode(&hex("1fff"), &mut out, 10), Err(HuffmanError::Invalid), "'a' and 11 bits of padding");
        assert_eq!(decode(&hex("1f"), &mut out, 10), Ok(()), "'a' and 3 bits of padding");
        assert_eq!(decode(&hex("18"), &mut out, 10), Err(HuffmanError::Invalid), "padding of zeroes");
        assert!(out.starts_with(b"a"));
    }

    #[test]
    fn refuses_more_than_the_limit() {
        let mut coded = Vec::new();
        encode(b"abcdef", &mut coded);
        let mut out = Vec::new();
        assert_eq!(decode(&coded, &mut out, 5), Err(HuffmanError::TooLong));
        assert_eq!(decode_to_slice(&coded, &mut [0; 5]), Err(HuffmanError::TooLong));
        assert_eq!(decode_to_slice(&coded, &mut [0; 6]), Ok(6));
    }
}
