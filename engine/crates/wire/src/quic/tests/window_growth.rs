//! How the congestion window grows with requests and responses, on a path of 80 ms without loss and limit of rate.

use std::time::{Duration, Instant};

use bytes::Bytes;
use quinn_proto::{Connection, StreamId};

use super::network::{CLEAR, Network, Weather, client_tls, read, server_tls, simulated_now};
use crate::Tuning;
use crate::quic::*;

const ROUND_TRIP: Duration = Duration::from_millis(80);
const FAR: Weather = Weather { delay: Duration::from_millis(40), ..CLEAR };

/// A request of 100 octets is answered with 10 kB, one of 10 kB by itself.
const SMALL: [u8; 100] = [b'a'; 100];
const LARGE: [u8; 10_000] = [b'a'; 10_000];
static HUGE: [u8; 200_000] = [b'a'; 200_000];

fn far_network(congestion_control: &str) -> Network {
    network_with(&TransportOptions { congestion_control, ..TransportOptions::default() }, &LARGE)
}

fn network_with(options: &TransportOptions<'_>, answer: &'static [u8]) -> Network {
    let mut network = Network::with(FAR, 1, &client_tls(|_| {}), &server_tls(|_| {}), options, "origin.lab");
    network.answer = Some(Bytes::from_static(answer));
    network.connect();
    network
}

/// When the server sends packets of full size to answer a request after a rest, counted from the first of them.
fn flight(network: &mut Network, rest: Duration) -> Vec<Duration> {
    network.rest(rest);
    network.full.clear();
    let id = network.ask(&SMALL);
    network.run_until(|network| read(&mut network.client_connection.1, id).1);
    network.full.iter().map(|sent| *sent - network.full[0]).collect()
}

/// Octets of packets on their way from the server.
fn flying(network: &Network) -> u64 {
    network.flying.iter().filter(|flying| !flying.1).map(|flying| flying.2.len() as u64).sum()
}

/// How many packets of full size the server sends before it hears from the client.
fn first_flight(network: &mut Network, rest: Duration) -> usize {
    flight(network, rest).iter().filter(|since| **since < ROUND_TRIP).count()
}

/// Asks ten times at once and waits for the ten answers. Returns how long that took.
fn batch(network: &mut Network, request: &[u8]) -> Duration {
    let start: Instant = network.now;
    let mut open: Vec<StreamId> = (0..10).map(|_| network.ask(request)).collect();
    network.run_until(|network| {
        open.retain(|id| !read(&mut network.client_connection.1, *id).1);
        open.is_empty()
    });
    network.now - start
}

fn window(connection: &Connection) -> u64 {
    connection.congestion_state().window()
}

fn server_window(network: &Network) -> u64 {
    window(&network.server_connection.as_ref().unwrap().1)
}

#[test]
fn the_third_batch_of_responses_takes_one_round_trip() {
    for congestion_control in CONGESTION_CONTROLS {
        let mut network = far_network(congestion_control);
        let took: Vec<_> = (0..3).map(|_| batch(&mut network, &SMALL)).collect();
        assert!(took[0] > 2 * ROUND_TRIP, "ten packets at first, {took:?}");
        // What is above one round trip is the pacer: ten packets at once, the others at 1.25 windows a round trip.
        assert!(took[2] >= ROUND_TRIP && took[2] < ROUND_TRIP * 3 / 2, "{congestion_control}: {took:?}");
        assert_eq!(network.client_connection.1.stats().path.lost_packets, 0);
    }
}

#[test]
fn the_third_batch_of_uploads_takes_one_round_trip() {
    for congestion_control in CONGESTION_CONTROLS {
        let mut network = far_network(congestion_control);
        network.answer = Some(Bytes::from_static(b"done"));
        let took: Vec<_> = (0..3).map(|_| batch(&mut network, &LARGE)).collect();
        assert!(took[2] >= ROUND_TRIP && took[2] < ROUND_TRIP * 3 / 2, "{congestion_control}: {took:?}");
    }
}

#[test]
fn an_underutilized_window_does_not_grow() {
    for congestion_control in ["cubic", "reno"] {
        let mut network = far_network(congestion_control);
        let initial = network.client_connection.1.congestion_state().initial_window();
        for _ in 0..20 {
            batch(&mut network, &SMALL);
        }
        // The client has never had more than ten requests in flight, the server never more than ten responses.
        assert_eq!(window(&network.client_connection.1), initial, "{congestion_control}");
        let content = 10 * LARGE.len() as u64;
        let grown = server_window(&network);
        assert!(grown > 3 * content / 2 && grown < 9 * content / 4, "{congestion_control}: {grown}");
        for _ in 0..20 {
            batch(&mut network, &SMALL);
        }
        assert_eq!(server_window(&network), grown, "{congestion_control}");
    }
}

#[test]
fn an_initial_window_of_ten_packets_holds_ten() {
    for congestion_control in CONGESTION_CONTROLS {
        let options = TransportOptions { congestion_control, ..TransportOptions::default() };
        let mut network = network_with(&options, &HUGE);
        assert_eq!(first_flight(&mut network, 5 * ROUND_TRIP), 10, "{congestion_control}");
    }
}

#[test]
fn an_initial_window_is_as_many_packets_as_asked_for() {
    for (packets, adaptations) in [(2, Adaptations::ALL), (32, Adaptations::ALL), (3, Adaptations::NONE)] {
        let tuning = Tuning { initial_window_packets: Some(packets), ..Tuning::default() };
        let options = TransportOptions { tuning, adaptations, ..TransportOptions::default() };
        let network = network_with(&options, &HUGE);
        let initial = network.client_connection.1.congestion_state().initial_window();
        assert_eq!(initial, u64::from(packets) * 1_452 + 1);
        if adaptations == Adaptations::ALL {
            // More than ten packets leave at the pacer's pace.
            assert_eq!(first_flight(&mut { network }, 5 * ROUND_TRIP), usize::from(packets));
        }
    }
}

#[test]
fn without_a_pacer_what_the_window_lets_go_leaves_at_once() {
    for (congestion_control, pacing) in [("cubic", None), ("cubic", Some(false)), ("reno", Some(false))] {
        let tuning = Tuning { pacing, ..Tuning::default() };
        let mut network =
            network_with(&TransportOptions { congestion_control, tuning, ..TransportOptions::default() }, &HUGE);
        let first = flight(&mut network, ROUND_TRIP);
        assert!(first.last() > Some(&ROUND_TRIP), "it takes more than a window");
        flight(&mut network, ROUND_TRIP);
        let spread = *flight(&mut network, ROUND_TRIP).last().unwrap();
        if pacing.is_none() {
            assert!(spread > ROUND_TRIP / 4, "{spread:?}");
        } else {
            assert_eq!(spread, Duration::ZERO, "{congestion_control}");
        }
    }
}

#[test]
fn without_a_pacer_no_more_is_in_flight_than_the_window_has() {
    for congestion_control in ["cubic", "reno"] {
        let tuning = Tuning { pacing: Some(false), ..Tuning::default() };
        let mut network =
            network_with(&TransportOptions { congestion_control, tuning, ..TransportOptions::default() }, &HUGE);
        for _ in 0..4 {
            let id = network.ask(&SMALL);
            network.run_until(|network| {
                let connection = &network.server_connection.as_ref().unwrap().1;
                let window = connection.congestion_state().metrics().congestion_window;
                // Packets of acknowledgements alone count on the way, and not in flight.
                assert!(flying(network) <= window + 300, "{congestion_control}: {} of {window}", flying(network));
                read(&mut network.client_connection.1, id).1
            });
        }
    }
}

#[test]
fn a_window_restarts_after_a_rest_only_where_asked_for() {
    for (congestion_control, idle_window_restarts) in [("cubic", None), ("cubic", Some(true)), ("reno", Some(true))] {
        // Without a pacer, so that what leaves at once is the window.
        let tuning = Tuning { idle_window_restarts, pacing: Some(false), ..Tuning::default() };
        let options =
            TransportOptions { congestion_control, tuning, now: simulated_now, ..TransportOptions::default() };
        let mut network = network_with(&options, &HUGE);
        let whole = 200_000 / 1_452;
        for _ in 0..2 {
            first_flight(&mut network, ROUND_TRIP);
        }
        assert!(first_flight(&mut network, ROUND_TRIP) >= whole, "{congestion_control}");
        // A little more than a second is three timeouts of 280 ms and a part: three halvings.
        let after =
            [first_flight(&mut network, Duration::from_secs(1)), first_flight(&mut network, Duration::from_secs(20))];
        if idle_window_restarts.is_none() {
            assert!(after.iter().all(|packets| *packets >= whole), "{after:?}");
        } else {
            assert!((11..whole / 3).contains(&after[0]), "{congestion_control}: {after:?}");
            assert_eq!(after[1], 10, "{congestion_control}");
        }
        // It has grown again meanwhile.
        assert!(first_flight(&mut network, ROUND_TRIP) >= whole, "{congestion_control}");
        assert_eq!(network.client_connection.1.stats().path.lost_packets, 0);
    }
}
