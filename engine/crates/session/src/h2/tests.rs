//! The client's view of a connection, fed with damaged frames in pieces of any size.

use std::collections::VecDeque;

use trifecta_wire::h2::{ErrorCode, setting, write};
use trifecta_wire::hpack::encoder;

use super::frames::{Frames, WINDOWS};
use super::requests::hello;
use super::sending::write_bodies;
use super::streams::Stream;
use crate::caller::Caller;
use crate::testing::caller;
use trifecta_wire::{ErrorClass, Tuning};

/// What a server may send for streams 1, 3 and 5.
fn flight() -> Vec<u8> {
    let mut out = Vec::new();
    write::settings(&[(setting::MAX_CONCURRENT_STREAMS, 100), (setting::INITIAL_WINDOW_SIZE, 70_000)], &mut out);
    write::window_update(0, 1_000, &mut out);
    for id in [1u32, 3, 5] {
        let block = encoder::block([(&b":status"[..], &b"200"[..]), (b"content-length", b"4"), (b"x-field", b"value")]);
        write::headers(id, &block, false, &mut out);
        write::window_update(id, 9, &mut out);
        write::data_header(id, 4, true, &mut out);
        out.extend_from_slice(b"abcd");
        write::ping(*b"pingping", false, &mut out);
    }
    write::goaway(5, ErrorCode::NO_ERROR, b"bye", &mut out);
    out
}

type Ends = Vec<(u32, Option<ErrorClass>)>;

/// Reads all in pieces of `step`: how streams ended, and the code with which the connection has to be closed.
fn read(octets: &[u8], step: usize) -> (Ends, Result<(), ErrorCode>, Frames) {
    let mut caller = caller();
    let mut frames = Frames::new(3, Tuning::default().windows(WINDOWS));
    for id in [1, 3, 5] {
        let exchange = caller.next_request(2_000).unwrap();
        frames.streams.insert(Stream { id, exchange, send_window: 65_535, ..Stream::default() });
    }
    let mut result = Ok(());
    for (piece, now_ns) in octets.chunks(step).zip(1..) {
        result = frames.read(&mut caller, piece, now_ns, 7);
        if result.is_err() {
            break;
        }
    }
    (frames.finished.iter().map(|finished| (finished.id, finished.error)).collect(), result, frames)
}

#[test]
fn frames_are_the_same_in_pieces_of_any_size() {
    let octets = flight();
    for step in 1..=octets.len() {
        let (ends, result, mut frames) = read(&octets, step);
        assert_eq!((ends, result), (vec![(1, None), (3, None), (5, None)], Ok(())), "step {step}");
        assert!(frames.going_away && frames.streams.len() == 0 && frames.streams.get_mut(1).is_none());
        assert_eq!((frames.max_concurrent, frames.send_window), (100, 66_535));
        for finished in &frames.finished {
            assert_eq!((finished.exchange.status, finished.exchange.bytes_in), (200, 4));
            assert!(finished.exchange.first_byte_ns <= finished.done_ns && finished.exchange.first_byte_ns > 0);
        }
    }
}

#[test]
fn request_bodies_leave_one_after_the_other() {
    let (mut frames, mut uploads, mut unsent) =
        (Frames::new(3, Tuning::default().windows(WINDOWS)), VecDeque::new(), Vec::new());
    for (id, send_window) in [(1, 40_000), (3, 20_000), (5, 40_000)] {
        let exchange = caller().next_request(2_000).unwrap();
        let (body_octets, body_left) = (40_000, 40_000);
        frames.streams.insert(Stream { id, exchange, send_window, body_octets, body_left, ..Stream::default() });
        uploads.push_back(id);
    }
    frames.send_window = 1_000_000;
    write_bodies(&mut frames, &mut uploads, &mut unsent, 1_000_000);
    let mut sent: Vec<(u32, usize)> = Vec::new();
    let mut rest = &frames.reply[..];
    while !rest.is_empty() {
        let octets = usize::from(rest[1]) << 8 | usize::from(rest[2]);
        sent.push((u32::from_be_bytes(rest[5..9].try_into().unwrap()), octets));
        rest = &rest[9 + octets..];
    }
    // Frames of 16,384 octets; the window of stream 3 ends within its body, and it holds up nobody.
    let whole = |id| [(id, 16_384), (id, 16_384), (id, 7_232)];
    assert_eq!(sent, [&whole(1)[..], &[(3, 16_384), (3, 3_616)], &whole(5)[..]].concat());
    assert_eq!((unsent, uploads), (vec![1, 5], VecDeque::from([3])));
}

#[test]
fn the_first_frame_must_be_settings() {
    let mut octets = Vec::new();
    write::ping([0; 8], false, &mut octets);
    assert_eq!(read(&octets, 99).1, Err(ErrorCode::PROTOCOL_ERROR));
}

#[test]
fn http1_over_http2_is_told_from_damage() {
    for (octets, class) in [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec(), ErrorClass::Http1OverHttp2),
        (b"HTML/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_vec(), ErrorClass::MalformedHttp2),
    ] {
        for step in 1..=octets.len() {
            let (_, result, frames) = read(&octets, step);
            assert!(result.is_err(), "step {step}");
            assert_eq!(frames.malformed(), class, "step {step}");
        }
    }
}

#[test]
fn windows_that_overflow_are_refused() {
    let mut octets = Vec::new();
    write::settings(&[], &mut octets);
    write::window_update(3, 0x7fff_ffff, &mut octets);
    let (ends, result, _) = read(&octets, 99);
    assert_eq!((ends, result), (vec![(3, Some(ErrorClass::MalformedHttp2))], Ok(())), "an error of the stream");
    write::window_update(0, 0x7fff_ffff, &mut octets);
    assert_eq!(read(&octets, 99).1, Err(ErrorCode::FLOW_CONTROL_ERROR));
}

#[test]
fn a_changed_initial_window_moves_every_stream_even_below_zero() {
    let mut octets = Vec::new();
    write::settings(&[(setting::INITIAL_WINDOW_SIZE, 0)], &mut octets);
    let (_, result, mut frames) = read(&octets, 99);
    assert_eq!((result, frames.streams.get_mut(3).unwrap().send_window), (Ok(()), 0));
    let mut octets = Vec::new();
    write::settings(&[(setting::INITIAL_WINDOW_SIZE, 65_536)], &mut octets);
    let (_, _, mut frames) = read(&octets, 99);
    assert_eq!(frames.streams.get_mut(3).unwrap().send_window, 65_536);
}

#[test]
fn small_windows_are_announced_kept_to_and_given_back_by_halves() {
    let tuning =
        Tuning { stream_window_bytes: Some(2_000), connection_window_bytes: Some(65_535), ..Tuning::default() };
    let windows = tuning.windows(WINDOWS);
    let opening = hello(windows);
    assert!(
        opening.ends_with(&[0, 0x4, 0, 0, 0x07, 0xd0]),
        "SETTINGS_INITIAL_WINDOW_SIZE is last, and no WINDOW_UPDATE"
    );
    assert!(!hello(Tuning::default().windows(WINDOWS)).ends_with(&opening[opening.len() - 6..]));
    let mut octets = Vec::new();
    write::settings(&[], &mut octets);
    write::headers(1, &encoder::block([(&b":status"[..], &b"200"[..])]), false, &mut octets);
    for (sent, given_back, ended) in [(900, 0, false), (101, 1_001, false), (1_900, 1_900, false), (2_001, 0, true)] {
        let mut caller = caller();
        let mut frames = Frames::new(1, windows);
        let exchange = caller.next_request(2_000).unwrap();
        frames.streams.insert(Stream { id: 1, exchange, send_window: 65_535, ..Stream::default() });
        frames.read(&mut caller, &octets, 1, 3).unwrap();
        if sent == 101 {
            frames.read(&mut caller, &data(900), 1, 3).unwrap();
        }
        frames.reply.clear();
        frames.read(&mut caller, &data(sent), 1, 3).unwrap();
        let mut expected = Vec::new();
        if given_back > 0 {
            write::window_update(1, given_back, &mut expected);
        }
        assert_eq!(frames.finished.len(), usize::from(ended), "{sent}");
        assert!(ended || frames.reply == expected, "{sent}: {:?}", frames.reply);
    }
}

/// DATA of stream 1.
fn data(octets: u32) -> Vec<u8> {
    let mut out = Vec::new();
    write::data_header(1, octets as usize, false, &mut out);
    out.resize(out.len() + octets as usize, b'a');
    out
}

#[test]
fn damaged_frames_are_judged_alike_whatever_the_pieces() {
    let mut state = 0xf1a_7001u64;
    let mut random = move |limit: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 11) as usize % limit
    };
    let mut failures = 0;
    for _ in 0..10_000 {
        let mut octets = flight();
        for _ in 0..=random(3) {
            let position = random(octets.len());
            match random(4) {
                0 => octets.insert(position, random(256) as u8),
                1 if octets.len() > 1 => drop(octets.remove(position)),
                2 => octets.truncate(position + 1),
                _ => octets[position] ^= 1 << random(8),
            }
        }
        let (ends, result, frames) = read(&octets, octets.len());
        let (piecewise_ends, piecewise_result, _) = read(&octets, 1 + random(40));
        assert_eq!((&ends, result), (&piecewise_ends, piecewise_result));
        assert!(frames.reply.len() < 1_000, "answers stay in proportion");
        failures += usize::from(result.is_err() || ends.iter().any(|(_, error)| error.is_some()));
    }
    assert!(failures > 3_000, "{failures}");
}
