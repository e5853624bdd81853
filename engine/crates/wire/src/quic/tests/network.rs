//! Client and server in one process over a simulated network: deterministic for a seed, with loss, reordering and delay.

use std::cell::Cell;
use std::collections::BinaryHeap;
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    ClientConfig, Connection, ConnectionError, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, ReadError,
    StreamEvent, StreamId,
};

use crate::mutate::SplitMix;
use trifecta_testpki::TestPki;

use crate::quic::*;
use crate::tls::{self, ClientOptions, ServerOptions, TlsVersion};

/// Certificates for all tests of the process.
pub(super) fn pki() -> &'static TestPki {
    static PKI: OnceLock<TestPki> = OnceLock::new();
    PKI.get_or_init(TestPki::new)
}

pub(super) fn client_tls(change: impl FnOnce(&mut ClientOptions<'_>)) -> Arc<ClientTls> {
    let ca_file = pki().certificate_file();
    let mut options = ClientOptions {
        ca_file: &ca_file,
        alpn: &[b"h3"],
        version: TlsVersion::Tls13,
        key_exchange: "X25519",
        cipher: Some("TLS_AES_128_GCM_SHA256"),
        resumption: true,
        early_data: true,
        keylog_file: None,
    };
    change(&mut options);
    Arc::new(ClientTls::new(Arc::new(tls::client_config(&options).unwrap()), Adaptations::ALL).unwrap())
}

pub(super) fn server_tls(change: impl FnOnce(&mut ServerOptions<'_>)) -> Arc<rustls::ServerConfig> {
    let (certificate_file, key_file) = (pki().certificate_file(), pki().key_file());
    let mut options = ServerOptions {
        certificate_file: &certificate_file,
        key_file: &key_file,
        alpn: &[b"h3"],
        versions: &[TlsVersion::Tls13],
        key_exchanges: &["X25519", "X25519MLKEM768"],
        resumption: true,
        early_data_bytes: u32::MAX,
        extra_certificates: 0,
        keylog_file: None,
    };
    change(&mut options);
    Arc::new(tls::server_config(&options).unwrap())
}

/// What the network does to a datagram.
#[derive(Clone, Copy)]
pub(super) struct Weather {
    /// Of 1000 datagrams, how many are lost, and how many come 1 to 20 ms later than the others.
    pub(super) lost: u64,
    pub(super) late: u64,
    pub(super) delay: Duration,
}

pub(super) const CLEAR: Weather = Weather { lost: 0, late: 0, delay: Duration::from_millis(10) };
pub(super) const ROUGH: Weather = Weather { lost: 60, late: 100, delay: Duration::from_millis(10) };

#[derive(PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flying(std::cmp::Reverse<(Instant, u64)>, pub(super) bool, pub(super) Vec<u8>);

thread_local!(static NOW: Cell<Option<Instant>> = const { Cell::new(None) });

/// The time of the network of this thread, for [`TransportOptions::now`].
pub(super) fn simulated_now() -> Instant {
    NOW.get().unwrap_or_else(Instant::now)
}

/// One client and one server, each behind its endpoint.
pub(super) struct Network {
    pub(super) now: Instant,
    pub(super) weather: Weather,
    pub(super) random: SplitMix,
    pub(super) flying: BinaryHeap<Flying>,
    sent: u64,
    pub(super) client: Endpoint,
    pub(super) server: Endpoint,
    pub(super) client_connection: (ConnectionHandle, Connection),
    pub(super) server_connection: Option<(ConnectionHandle, Connection)>,
    /// Why the client's connection ended.
    pub(super) lost: Option<ConnectionError>,
    /// What the server answers to a whole request; without it, the octets of the request.
    pub(super) answer: Option<Bytes>,
    /// When the server sent a packet of full size.
    pub(super) full: Vec<Instant>,
    /// How often several datagrams were handed over at once.
    pub(super) trains: u64,
    full_bytes: usize,
}

pub(super) const CLIENT: &str = "10.0.0.1:50000";
pub(super) const SERVER: &str = "10.0.0.2:443";

impl Network {
    pub(super) fn new(
        weather: Weather,
        seed: u64,
        client: &Arc<ClientTls>,
        server: &Arc<rustls::ServerConfig>,
    ) -> Self {
        Self::with(weather, seed, client, server, &TransportOptions::default(), "origin.lab")
    }

    pub(super) fn with(
        weather: Weather,
        seed: u64,
        client: &Arc<ClientTls>,
        server: &Arc<rustls::ServerConfig>,
        options: &TransportOptions<'_>,
        name: &str,
    ) -> Self {
        let now = Instant::now();
        let (payload, adaptations) = (options.max_udp_payload_bytes, options.adaptations);
        let transport = TransportOptions { max_bidi_streams: 100, ..options.clone() };
        let server_config =
            server_config(Arc::clone(server), transport_config(&transport).unwrap(), adaptations).unwrap();
        let mut client_config = ClientConfig::new(Arc::clone(client) as _);
        client_config.transport_config(Arc::new(transport_config(options).unwrap()));
        let endpoint = client_endpoint_config(payload, adaptations).unwrap();
        let mut client = Endpoint::new(Arc::new(endpoint), None, true, Some([1; 32]));
        let endpoint = server_endpoint_config(payload, adaptations).unwrap();
        let server = Endpoint::new(Arc::new(endpoint), Some(Arc::new(server_config)), true, Some([2; 32]));
        let client_connection = client.connect(now, client_config, SERVER.parse().unwrap(), name).unwrap();
        Self {
            now,
            weather,
            random: SplitMix::new(seed),
            flying: BinaryHeap::new(),
            sent: 0,
            client,
            server,
            client_connection,
            server_connection: None,
            lost: None,
            answer: None,
            full: Vec::new(),
            trains: 0,
            full_bytes: usize::from(payload),
        }
    }

    pub(super) fn launch(&mut self, to_server: bool, packets: &[u8], segment: usize) {
        self.trains += u64::from(packets.len() > segment);
        for datagram in packets.chunks(segment) {
            self.sent += 1;
            if !to_server && datagram.len() == self.full_bytes {
                self.full.push(self.now);
            }
            if self.random.draw() % 1000 < self.weather.lost {
                continue;
            }
            let mut arrival = self.now + self.weather.delay;
            if self.random.draw() % 1000 < self.weather.late {
                arrival += Duration::from_millis(1 + self.random.draw() % 20);
            }
            self.flying.push(Flying(std::cmp::Reverse((arrival, self.sent)), to_server, datagram.to_vec()));
        }
    }

    /// Lets both ends send.
    fn send(&mut self) {
        NOW.set(Some(self.now));
        let mut packets = Vec::new();
        while let Some(transmit) = self.client_connection.1.poll_transmit(self.now, 10, &mut packets) {
            self.launch(true, &packets[..transmit.size], transmit.segment_size.unwrap_or(transmit.size));
            packets.clear();
        }
        while let Some(transmit) = self
            .server_connection
            .as_mut()
            .and_then(|(_, connection)| connection.poll_transmit(self.now, 10, &mut packets))
        {
            self.launch(false, &packets[..transmit.size], transmit.segment_size.unwrap_or(transmit.size));
            packets.clear();
        }
    }

    /// When something comes next: a datagram, or a timeout.
    fn next_event(&mut self) -> Option<Instant> {
        let arrival = self.flying.peek().map(|flying| flying.0.0.0);
        let timeouts = [
            self.client_connection.1.poll_timeout(),
            self.server_connection.as_mut().and_then(|(_, connection)| connection.poll_timeout()),
        ];
        timeouts.into_iter().flatten().chain(arrival).min()
    }

    /// Lets time pass in which nobody asks for anything.
    pub(super) fn rest(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            self.send();
            if self.next_event().is_none_or(|next| next > end) {
                break;
            }
            self.step();
        }
        self.now = end;
    }

    /// Lets both ends send and moves time to what comes next. False when nothing will ever come.
    pub(super) fn step(&mut self) -> bool {
        self.send();
        let Some(next) = self.next_event() else { return false };
        self.now = self.now.max(next);
        self.client_connection.1.handle_timeout(self.now);
        if let Some((_, connection)) = &mut self.server_connection {
            connection.handle_timeout(self.now);
        }
        while self.flying.peek().is_some_and(|flying| flying.0.0.0 <= self.now) {
            let Flying(_, to_server, datagram) = self.flying.pop().unwrap();
            if to_server { self.deliver_to_server(&datagram) } else { self.deliver_to_client(&datagram) }
        }
        let (handle, connection) = &mut self.client_connection;
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.client.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            if let Event::ConnectionLost { reason } = event {
                self.lost = Some(reason);
            }
        }
        self.serve();
        true
    }

    pub(super) fn deliver_to_server(&mut self, datagram: &[u8]) {
        let mut reply = Vec::new();
        let from: SocketAddr = CLIENT.parse().unwrap();
        match self.server.handle(self.now, from, None, None, BytesMut::from(datagram), &mut reply) {
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.server_connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                match self.server.accept(incoming, self.now, &mut reply, None) {
                    Ok(accepted) => self.server_connection = Some(accepted),
                    Err(error) => {
                        if let Some(transmit) = error.response {
                            let packet = reply[..transmit.size].to_vec();
                            self.launch(false, &packet, packet.len());
                        }
                    }
                }
            }
            Some(DatagramEvent::Response(transmit)) => {
                let packet = reply[..transmit.size].to_vec();
                self.launch(false, &packet, packet.len());
            }
            None => {}
        }
    }

    pub(super) fn deliver_to_client(&mut self, datagram: &[u8]) {
        let mut reply = Vec::new();
        let from: SocketAddr = SERVER.parse().unwrap();
        let event = self.client.handle(self.now, from, None, None, BytesMut::from(datagram), &mut reply);
        if let Some(DatagramEvent::ConnectionEvent(_, event)) = event {
            self.client_connection.1.handle_event(event);
        }
    }

    /// The server: sends the octets of each request stream back.
    pub(super) fn serve(&mut self) {
        let Some((handle, connection)) = &mut self.server_connection else { return };
        while let Some(event) = connection.poll_endpoint_events() {
            if let Some(event) = self.server.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        let mut readable = Vec::new();
        while let Some(event) = connection.poll() {
            match event {
                Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                    while let Some(id) = connection.streams().accept(Dir::Bi) {
                        readable.push(id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => readable.push(id),
                _ => {}
            }
        }
        for id in readable {
            let (octets, ended) = read(connection, id);
            let answer = match &self.answer {
                Some(answer) if ended => answer,
                Some(_) => &Bytes::new(),
                None => &Bytes::from(octets),
            };
            let mut stream = connection.send_stream(id);
            assert_eq!(stream.write(answer).unwrap_or(0), answer.len());
            if ended {
                stream.finish().unwrap();
            }
        }
    }

    pub(super) fn ask(&mut self, octets: &[u8]) -> StreamId {
        let connection = &mut self.client_connection.1;
        let id = connection.streams().open(Dir::Bi).unwrap();
        assert_eq!(
            connection.send_stream(id).write_chunks(&mut [Bytes::copy_from_slice(octets)]).unwrap().bytes,
            octets.len()
        );
        connection.send_stream(id).finish().unwrap();
        id
    }

    pub(super) fn run_until(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        for _ in 0..200_000 {
            if done(self) {
                return;
            }
            assert!(self.step(), "nothing more will happen");
        }
        panic!("the simulation does not end");
    }

    pub(super) fn connect(&mut self) {
        self.run_until(|network| network.lost.is_some() || !network.client_connection.1.is_handshaking());
    }

    pub(super) fn handshake(&self) -> Handshake {
        Handshake::of(&self.client_connection.1).unwrap()
    }

    pub(super) fn lost_class(&mut self) -> &'static str {
        self.run_until(|network| network.lost.is_some());
        classify(self.lost.as_ref().unwrap(), Some(&self.handshake())).as_str()
    }
}

pub(super) fn read(connection: &mut Connection, id: StreamId) -> (Vec<u8>, bool) {
    let mut octets = Vec::new();
    let mut stream = connection.recv_stream(id);
    let Ok(mut chunks) = stream.read(true) else { return (octets, false) };
    let ended = loop {
        match chunks.next(usize::MAX) {
            Ok(Some(chunk)) => octets.extend_from_slice(&chunk.bytes),
            Ok(None) => break true,
            Err(ReadError::Blocked | ReadError::Reset(_)) => break false,
        }
    };
    let _ = chunks.finalize();
    (octets, ended)
}

impl Network {
    pub(super) fn ask_later(&mut self) {
        if self.client_connection.1.has_0rtt() {
            self.ask(b"early");
        }
    }
}
