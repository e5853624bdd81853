//! Client and server over a simulated network: handshakes, resumption, loss, failures.

mod network;
mod window_growth;

use std::path::Path;
use std::time::Duration;

use bytes::Bytes;
use quinn_proto::{Dir, VarInt};
use trifecta_testpki::TestPki;

use super::*;
use crate::Tuning;
use network::{CLEAR, Network, ROUGH, Weather, client_tls, read, server_tls};

#[test]
fn a_handshake_says_what_it_agreed_on() {
    for (group, cipher) in [("X25519", "TLS_AES_128_GCM_SHA256"), ("X25519MLKEM768", "TLS_AES_256_GCM_SHA384")] {
        let client = client_tls(|options| {
            options.key_exchange = group;
            options.cipher = Some(cipher);
        });
        let mut network = Network::new(CLEAR, 1, &client, &server_tls(|_| {}));
        network.connect();
        let handshake = network.handshake();
        assert_eq!(handshake.alpn.as_deref(), Some(&b"h3"[..]));
        assert_eq!((handshake.key_exchange, handshake.cipher), (Some(group), Some(cipher)));
        assert!(!handshake.resumed && handshake.error.is_none());
        network.run_until(|network| network.handshake().has_tickets);
        let server = Handshake::of(&network.server_connection.as_ref().unwrap().1).unwrap();
        assert_eq!(server.key_exchange, Some(group));
    }
}

#[test]
fn sessions_are_resumed_and_early_data_arrives_at_once() {
    let (client, server) = (client_tls(|_| {}), server_tls(|_| {}));
    let mut first = Network::new(CLEAR, 1, &client, &server);
    assert!(!first.client_connection.1.has_0rtt());
    first.connect();
    first.run_until(|network| network.handshake().has_tickets);
    let mut second = Network::new(CLEAR, 2, &client, &server);
    assert!(second.client_connection.1.has_0rtt());
    let start = second.now;
    let id = second.ask(b"early");
    let mut answer = Vec::new();
    second.run_until(|network| {
        let (octets, ended) = read(&mut network.client_connection.1, id);
        answer.extend(octets);
        ended
    });
    assert_eq!(answer, b"early");
    assert!(second.client_connection.1.accepted_0rtt() && second.handshake().resumed);
    assert!(second.now - start < Duration::from_millis(25), "one round trip, {:?}", second.now - start);
    // A server that has forgotten the sessions (another process) refuses, and the connection goes on without.
    let mut third = Network::new(CLEAR, 3, &client, &server_tls(|_| {}));
    assert!(third.client_connection.1.has_0rtt());
    third.ask(b"early");
    third.connect();
    assert!(!third.client_connection.1.accepted_0rtt() && !third.handshake().resumed);
}

#[test]
fn every_congestion_control_delivers_through_loss_and_reordering() {
    let (client, server) = (client_tls(|_| {}), server_tls(|_| {}));
    let octets: Vec<u8> = (0..300_000_u32).map(|index| (index % 251) as u8).collect();
    for (seed, congestion_control) in CONGESTION_CONTROLS.into_iter().cycle().take(12).enumerate() {
        let tuning = Tuning { pacing: (seed % 2 == 1).then_some(false), ..Tuning::default() };
        let options = TransportOptions { congestion_control, tuning, ..TransportOptions::default() };
        let mut network = Network::with(ROUGH, seed as u64, &client, &server, &options, "origin.lab");
        network.connect();
        let window = network.client_connection.1.congestion_state().initial_window();
        assert_eq!(window, 14_521, "ten packets");
        let ids: Vec<_> = (0..3).map(|_| network.ask(&octets)).collect();
        let mut answers = vec![(Vec::new(), false); ids.len()];
        network.run_until(|network| {
            for (id, (answer, ended)) in ids.iter().zip(&mut answers) {
                let (octets, now_ended) = read(&mut network.client_connection.1, *id);
                answer.extend(octets);
                *ended |= now_ended;
            }
            answers.iter().all(|(_, ended)| *ended)
        });
        assert!(answers.iter().all(|(answer, _)| *answer == octets), "{congestion_control}, seed {seed}");
        let path = network.client_connection.1.stats().path;
        assert!(path.lost_packets > 0 && path.current_mtu == 1452);
    }
}

#[test]
fn windows_of_flow_control_are_as_large_as_asked_for() {
    let octets = [b'a'; 300_000];
    for (stream_window_bytes, connection_window_bytes, adaptations, expected) in [
        (None, None, Adaptations::ALL, 300_000),
        (Some(16_000), None, Adaptations::ALL, 16_000),
        (None, Some(70_000), Adaptations::ALL, 70_000),
        (Some(16_000), Some(70_000), Adaptations::NONE, 16_000),
    ] {
        let tuning = Tuning { stream_window_bytes, connection_window_bytes, ..Tuning::default() };
        let options = TransportOptions { tuning, adaptations, ..TransportOptions::default() };
        // Anew, because a resumed session would begin with the limits of the one before.
        let (client, server) = (client_tls(|_| {}), server_tls(|_| {}));
        let mut network = Network::with(CLEAR, 1, &client, &server, &options, "origin.lab");
        network.connect();
        network.rest(Duration::from_millis(100));
        let sender = &mut network.server_connection.as_mut().unwrap().1;
        let id = sender.streams().open(Dir::Uni).unwrap();
        assert_eq!(sender.send_stream(id).write(&octets), Ok(expected), "{tuning:?}");
    }
}

#[test]
fn what_was_overtaken_is_lost_only_where_the_threshold_is_small() {
    // Packets and acknowledgements come up to 20 ms late each, and time tells only after an eighth of 800 ms.
    let late = Weather { late: 300, delay: Duration::from_millis(400), ..CLEAR };
    let octets: Vec<u8> = (0..200_000_u32).map(|index| index as u8).collect();
    let [few, many] = [Some(1_000), None].map(|packet_threshold| {
        let tuning = Tuning { packet_threshold, ..Tuning::default() };
        let options = TransportOptions { tuning, ..TransportOptions::default() };
        let (client, server) = (client_tls(|_| {}), server_tls(|_| {}));
        let mut network = Network::with(late, 1, &client, &server, &options, "origin.lab");
        network.connect();
        // What overtakes the end of the handshake cannot be read, and is lost.
        network.rest(Duration::from_secs(2));
        let before = network.client_connection.1.stats().path.lost_packets;
        let id = network.ask(&octets);
        let mut answer = Vec::new();
        network.run_until(|network| {
            let (more, ended) = read(&mut network.client_connection.1, id);
            answer.extend(more);
            ended
        });
        assert_eq!(answer, octets);
        network.client_connection.1.stats().path.lost_packets - before
    });
    // Another threshold, of time, is left.
    assert!(4 * few < many, "{few} of {many}");
}

#[test]
fn datagrams_are_handed_over_in_trains_or_one_by_one() {
    let (client, server) = (client_tls(|_| {}), server_tls(|_| {}));
    for (segmentation_offload, in_trains) in [(None, true), (Some(true), true), (Some(false), false)] {
        let tuning = Tuning { segmentation_offload, ..Tuning::default() };
        let options = TransportOptions { tuning, ..TransportOptions::default() };
        let mut network = Network::with(CLEAR, 1, &client, &server, &options, "origin.lab");
        network.connect();
        let id = network.ask(&[b'a'; 20_000]);
        network.run_until(|network| read(&mut network.client_connection.1, id).1);
        assert_eq!(network.trains > 0, in_trains);
    }
}

#[test]
fn acknowledgements_come_as_late_and_as_seldom_as_asked_for() {
    let (client, server) = (client_tls(|_| {}), server_tls(|_| {}));
    for (ack_delay_ms, ack_packets, expected_ms) in
        [(None, None, 25), (Some(1), None, 1), (Some(10), Some(2), 10), (None, Some(1), 0), (Some(5), Some(9), 5)]
    {
        let ack_delay_ns = ack_delay_ms.map(|milliseconds: u64| milliseconds * 1_000_000);
        let tuning = Tuning { ack_delay_ns, ack_packets, ..Tuning::default() };
        let options = TransportOptions { tuning, ..TransportOptions::default() };
        let mut network = Network::with(CLEAR, 1, &client, &server, &options, "origin.lab");
        network.connect();
        network.rest(Duration::from_millis(500));
        let acks = |network: &Network| network.server_connection.as_ref().unwrap().1.stats().frame_rx.acks;
        let id = network.ask(b"one packet");
        network.run_until(|network| read(&mut network.client_connection.1, id).1);
        let (received, before) = (network.now, acks(&network));
        network.run_until(|network| acks(network) > before);
        let waited = network.now - received - CLEAR.delay;
        assert_eq!(waited.as_millis(), expected_ms, "{tuning:?}");
    }
    let sent = [40, 2].map(|packets| {
        let tuning = Tuning { ack_packets: Some(packets), ..Tuning::default() };
        let options = TransportOptions { tuning, ..TransportOptions::default() };
        let mut network = Network::with(CLEAR, 1, &client, &server, &options, "origin.lab");
        network.answer = Some(vec![b'a'; 400_000].into());
        network.connect();
        let id = network.ask(b"many packets");
        network.run_until(|network| read(&mut network.client_connection.1, id).1);
        network.client_connection.1.stats().frame_tx.acks
    });
    assert!(3 * sent[0] < sent[1], "{sent:?}");
}

#[test]
fn failures_have_their_classes() {
    let (client, server) = (client_tls(|_| {}), server_tls(|_| {}));
    let options = TransportOptions::default();
    let class = |network: &mut Network| network.lost_class();
    let mut wrong_name = Network::with(CLEAR, 1, &client, &server, &options, "other.lab");
    assert_eq!(class(&mut wrong_name), "tls:certificate");
    let other = TestPki::new();
    let other: &'static Path = Box::leak(other.certificate_file().into_boxed_path());
    let stranger = client_tls(|options| options.ca_file = other);
    assert_eq!(class(&mut Network::new(CLEAR, 1, &stranger, &server)), "tls:certificate");
    let other_protocol = client_tls(|options| options.alpn = &[b"hq-interop"]);
    assert_eq!(class(&mut Network::new(CLEAR, 1, &other_protocol, &server)), "tls:alpn");
    let other_group = server_tls(|options| options.key_exchanges = &["secp384r1"]);
    assert_eq!(class(&mut Network::new(CLEAR, 1, &client, &other_group)), "tls:alert");
    let nobody = Weather { lost: 1000, ..CLEAR };
    assert_eq!(class(&mut Network::new(nobody, 1, &client, &server)), "quic:timeout");
    for (code, expected) in [(0x100_u32, "closed"), (0x101, "reset")] {
        let mut network = Network::new(CLEAR, 1, &client, &server);
        network.connect();
        network.run_until(|network| network.server_connection.as_ref().is_some_and(|(_, c)| !c.is_handshaking()));
        let now = network.now;
        network.server_connection.as_mut().unwrap().1.close(now, VarInt::from_u32(code), Bytes::new());
        assert_eq!(class(&mut network), expected);
    }
}

#[test]
fn garbled_datagrams_never_panic() {
    let (client, server) = (client_tls(|_| {}), server_tls(|_| {}));
    for seed in 0..200 {
        let mut network = Network::new(CLEAR, seed, &client, &server);
        network.ask_later();
        for _ in 0..200 {
            if network.lost.is_some() {
                break;
            }
            let mut all: Vec<_> = network.flying.drain().collect();
            for flying in &mut all {
                if network.random.draw().is_multiple_of(4) {
                    flying.2 = crate::mutate::mutated(&flying.2, network.random.draw());
                }
            }
            network.flying.extend(all);
            if !network.step() {
                break;
            }
        }
    }
}

#[test]
fn options_out_of_range_are_named() {
    let refused = |change: fn(&mut TransportOptions<'_>)| {
        let mut options = TransportOptions::default();
        change(&mut options);
        transport_config(&options).err().unwrap()
    };
    assert!(refused(|options| options.congestion_control = "vegas").starts_with("congestion_control: "));
    assert!(refused(|options| options.max_udp_payload_bytes = 1199).starts_with("max_udp_payload_bytes: "));
    assert!(refused(|options| options.stream_window_bytes = 1 << 62).starts_with("stream_window_bytes: "));
    let bbr = refused(|options| {
        options.congestion_control = "bbr";
        options.tuning.idle_window_restarts = Some(true);
    });
    assert!(bbr.starts_with("tuning.idle_window_restarts: BBR keeps its window"));
    let stock = refused(|options| {
        options.adaptations = Adaptations::NONE;
        options.tuning.idle_window_restarts = Some(true);
    });
    assert!(stock.starts_with("tuning.idle_window_restarts: needs window-validation"));
    assert!(client_endpoint_config(100, Adaptations::ALL).err().unwrap().starts_with("max_udp_payload_bytes: "));
}
