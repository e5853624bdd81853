//! The examples of RFC 7541 Appendix C, whole, and the limits.

use super::super::encoder;
use super::*;

type Fields = Vec<(String, String)>;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, HpackError> {
    let mut fields = Vec::new();
    decoder.decode(block, |name, value| {
        fields.push((String::from_utf8(name.to_vec()).unwrap(), String::from_utf8(value.to_vec()).unwrap()));
    })?;
    Ok(fields)
}

fn expect(decoder: &mut Decoder, block: &str, fields: &[(&str, &str)], table_octets: usize) {
    let expected: Fields = fields.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
    assert_eq!(decode(decoder, &hex(block)), Ok(expected));
    assert_eq!(decoder.table_octets(), table_octets);
}

#[test]
fn c_2_single_fields() {
    let block = "400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572";
    expect(&mut Decoder::new(4096, 4096), block, &[("custom-key", "custom-header")], 55);
    expect(&mut Decoder::new(4096, 4096), "040c 2f73 616d 706c 652f 7061 7468", &[(":path", "/sample/path")], 0);
    expect(&mut Decoder::new(4096, 4096), "1008 7061 7373 776f 7264 0673 6563 7265 74", &[("password", "secret")], 0);
    expect(&mut Decoder::new(4096, 4096), "82", &[(":method", "GET")], 0);
}

const REQUEST_1: [(&str, &str); 4] =
    [(":method", "GET"), (":scheme", "http"), (":path", "/"), (":authority", "www.example.com")];
const REQUEST_2: [(&str, &str); 5] = [
    (":method", "GET"),
    (":scheme", "http"),
    (":path", "/"),
    (":authority", "www.example.com"),
    ("cache-control", "no-cache"),
];
const REQUEST_3: [(&str, &str); 5] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":path", "/index.html"),
    (":authority", "www.example.com"),
    ("custom-key", "custom-value"),
];

#[test]
fn c_3_requests_without_huffman() {
    let mut decoder = Decoder::new(4096, 4096);
    expect(&mut decoder, "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d", &REQUEST_1, 57);
    expect(&mut decoder, "8286 84be 5808 6e6f 2d63 6163 6865", &REQUEST_2, 110);
    let block = "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65";
    expect(&mut decoder, block, &REQUEST_3, 164);
}

#[test]
fn c_4_requests_with_huffman() {
    let mut decoder = Decoder::new(4096, 4096);
    expect(&mut decoder, "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", &REQUEST_1, 57);
    expect(&mut decoder, "8286 84be 5886 a8eb 1064 9cbf", &REQUEST_2, 110);
    expect(&mut decoder, "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf", &REQUEST_3, 164);
}

const DATE_1: &str = "Mon, 21 Oct 2013 20:13:21 GMT";
const DATE_2: &str = "Mon, 21 Oct 2013 20:13:22 GMT";
const LOCATION: (&str, &str) = ("location", "https://www.example.com");
const COOKIE: &str = "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1";

fn responses() -> [Vec<(&'static str, &'static str)>; 3] {
    let private = ("cache-control", "private");
    [
        vec![(":status", "302"), private, ("date", DATE_1), LOCATION],
        vec![(":status", "307"), private, ("date", DATE_1), LOCATION],
        vec![
            (":status", "200"),
            private,
            ("date", DATE_2),
            LOCATION,
            ("content-encoding", "gzip"),
            ("set-cookie", COOKIE),
        ],
    ]
}

#[test]
fn c_5_responses_without_huffman_and_with_eviction() {
    let mut decoder = Decoder::new(256, 4096);
    let [first, second, third] = responses();
    let block = "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 \
                 2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 \
                 6c65 2e63 6f6d";
    expect(&mut decoder, block, &first, 222);
    expect(&mut decoder, "4803 3330 37c1 c0bf", &second, 222);
    let block = "88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d \
                 54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049 \
                 5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e \
                 3d31";
    expect(&mut decoder, block, &third, 215);
}

#[test]
fn c_6_responses_with_huffman_and_with_eviction() {
    let mut decoder = Decoder::new(256, 4096);
    let [first, second, third] = responses();
    let block = "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 \
                 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3";
    expect(&mut decoder, block, &first, 222);
    expect(&mut decoder, "4883 640e ffc1 c0bf", &second, 222);
    let block = "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab \
                 77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f \
                 9587 3160 65c0 03ed 4ee5 b106 3d50 07";
    expect(&mut decoder, block, &third, 215);
}

#[test]
fn errors_are_named() {
    let mut decoder = Decoder::new(4096, 4096);
    assert_eq!(decode(&mut decoder, &[0x80]), Err(HpackError::Index(0)));
    assert_eq!(decode(&mut decoder, &[0x80 | 62]), Err(HpackError::Index(62)), "dynamic table is empty");
    assert_eq!(decode(&mut decoder, &[0x40]), Err(HpackError::Truncated));
    assert_eq!(decode(&mut decoder, &[0x40, 0x01, b'a', 0x05, b'b']), Err(HpackError::Truncated));
    assert_eq!(decode(&mut decoder, &[0xff; 12]), Err(HpackError::Integer));
    assert_eq!(decode(&mut decoder, &[0x40, 0x01, b'a', 0x81, 0x00]), Err(HpackError::Huffman));
    assert_eq!(decode(&mut decoder, &[0x82, 0x20]), Err(HpackError::TableSize), "update after a field");
    let mut update = Vec::new();
    encoder::encode_table_size_update(4097, &mut update);
    assert_eq!(decode(&mut decoder, &update), Err(HpackError::TableSize), "above what SETTINGS allow");
}

#[test]
fn size_updates_evict() {
    let mut decoder = Decoder::new(4096, 4096);
    decode(&mut decoder, &hex("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d")).unwrap();
    assert_eq!(decoder.table_octets(), 57);
    assert_eq!(decode(&mut decoder, &[0x20]), Ok(vec![]));
    assert_eq!(decoder.table_octets(), 0);
    decode(&mut decoder, &hex("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572")).unwrap();
    assert_eq!(decoder.table_octets(), 0, "the table has no room");
}

#[test]
fn a_list_too_large_keeps_the_table_in_step() {
    let mut decoder = Decoder::new(4096, 60);
    let block = hex("8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d");
    assert_eq!(decode(&mut decoder, &block), Err(HpackError::ListTooLarge));
    assert_eq!(decoder.table_octets(), 57);
    let mut small = Decoder::new(4096, 1000);
    assert!(decode(&mut small, &block).is_ok());
}

#[test]
fn a_thousand_insertions_stay_bounded_and_right() {
    let mut decoder = Decoder::new(300, 4096);
    for round in 0..1000u32 {
        let value = format!("value-{round}");
        let mut block = vec![0x40];
        encoder::encode_string(b"x-name", &mut block);
        encoder::encode_string(value.as_bytes(), &mut block);
        encoder::encode_indexed(62, &mut block);
        let fields = decode(&mut decoder, &block).unwrap();
        assert_eq!(fields[0], ("x-name".into(), value));
        assert_eq!(fields[1], fields[0]);
        if round >= 5 {
            let old = decode(&mut decoder, &[0x80 | 65]).unwrap();
            assert_eq!(old[0].1, format!("value-{}", round - 3));
        }
        assert!(decoder.table_octets() <= 300 && decoder.table.text.len() <= 1200);
    }
}

#[test]
fn mutated_blocks_never_panic() {
    let sample = hex(
        "3fe1 0182 8684 418c f1e3 c2e5 f23a 6ba0 ab90 f4ff 4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 \
         9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3 bebf c0c1 0f0d 0331 3030",
    );
    for seed in 0..20_000 {
        super::super::fuzz_one(&crate::mutate::mutated(&sample, seed));
    }
}
