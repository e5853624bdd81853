//! QUIC connections on one UDP socket: quiche says what to send and when, quinn-udp moves it in trains (GSO, GRO).

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, BufWriter, IoSliceMut};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use quiche::{ConnectionId, Header, RecvInfo, h3};
use quinn_udp::{RecvMeta, UdpSocketState};
use rustix::net::sockopt;
use tokio::io::Interest;
use tokio::net::UdpSocket;

use crate::alarm::Alarm;
use crate::h3::Shared;
use crate::peer::{Pause, Peer};
use crate::site::Site;

// What the engine's origin has (wire/src/quic/transport.rs), so that two servers differ in their code.
const DATAGRAM: usize = 1452;
const IDLE_MS: u64 = 30_000;
const STREAM_WINDOW: u64 = 64 << 20;
const CONNECTION_WINDOW: u64 = 128 << 20;
const INITIAL_WINDOW_PACKETS: usize = 10;
/// Control, QPACK encoder, QPACK decoder, and some of unknown types (RFC 9114, section 6.2).
const UNI_STREAMS: u64 = 16;

const SOCKET_BUFFER: usize = 4 << 20;
const NAME_OCTETS: usize = 8;
const TRAIN: usize = 65_507; // the most that one datagram, or one send, may have
const TRAINS: usize = 8; // received in one call
const ROUNDS: usize = 8; // calls before what has come is answered
const NO_ERROR: u64 = 0x0100; // H3_NO_ERROR

/// What quiche is told of every connection.
pub fn config(certificate: &str, key: &str, streams: u32, congestion_control: &str) -> Result<quiche::Config, String> {
    let failed = |what: &str| {
        let what = what.to_owned();
        move |error: quiche::Error| format!("{what}: {error}")
    };
    let mut config = quiche::Config::new(quiche::PROTOCOL_VERSION).map_err(failed("quiche"))?;
    config.load_cert_chain_from_pem_file(certificate).map_err(failed(certificate))?;
    config.load_priv_key_from_pem_file(key).map_err(failed(key))?;
    config.set_application_protos(h3::APPLICATION_PROTOCOL).map_err(failed("ALPN"))?;
    config.set_cc_algorithm_name(congestion_control).map_err(failed("--congestion-control"))?;
    config.set_initial_congestion_window_packets(INITIAL_WINDOW_PACKETS);
    config.set_max_idle_timeout(IDLE_MS);
    config.set_max_recv_udp_payload_size(DATAGRAM);
    config.set_max_send_udp_payload_size(DATAGRAM);
    config.set_initial_max_data(CONNECTION_WINDOW);
    config.set_max_connection_window(CONNECTION_WINDOW);
    config.set_initial_max_stream_data_bidi_local(STREAM_WINDOW);
    config.set_initial_max_stream_data_bidi_remote(STREAM_WINDOW);
    config.set_initial_max_stream_data_uni(STREAM_WINDOW);
    config.set_max_stream_window(STREAM_WINDOW);
    config.set_initial_max_streams_bidi(streams.into());
    config.set_initial_max_streams_uni(UNI_STREAMS);
    config.set_disable_active_migration(true);
    Ok(config)
}

/// The socket and all its connections.
pub struct Server {
    socket: UdpSocket,
    state: UdpSocketState,
    local: SocketAddr,
    config: quiche::Config,
    http: h3::Config,
    shared: Shared,
    qlogs: Option<PathBuf>,
    peers: HashMap<u64, Peer>,
    count: u64,
    /// By the identifier that a client chose first, and by the one that was given to it.
    names: HashMap<Vec<u8>, u64>,
    due: BTreeSet<(Instant, u64)>,
    alarm: Alarm,
    train: Vec<u8>,
    /// Connections whose train the socket did not take.
    blocked: Vec<u64>,
}

impl Server {
    pub fn bind(
        address: SocketAddr,
        config: quiche::Config,
        site: Arc<Site>,
        qlogs: Option<PathBuf>,
    ) -> io::Result<Self> {
        let socket = std::net::UdpSocket::bind(address)?;
        // Beyond net.core.rmem_max where that is allowed; as far as it goes elsewhere.
        sockopt::set_socket_recv_buffer_size_force(&socket, SOCKET_BUFFER)
            .or_else(|_| sockopt::set_socket_recv_buffer_size(&socket, SOCKET_BUFFER))?;
        sockopt::set_socket_send_buffer_size(&socket, SOCKET_BUFFER)?;
        let state = UdpSocketState::new((&socket).into())?;
        socket.set_nonblocking(true)?;
        let local = socket.local_addr()?;
        Ok(Self {
            socket: UdpSocket::from_std(socket)?,
            state,
            local,
            config,
            http: h3::Config::new().map_err(io::Error::other)?,
            shared: Shared::new(site),
            qlogs,
            peers: HashMap::new(),
            count: 0,
            names: HashMap::new(),
            due: BTreeSet::new(),
            alarm: Alarm::new()?,
            train: vec![0; TRAIN],
            blocked: Vec::new(),
        })
    }

    /// Serves until the socket fails.
    pub async fn run(&mut self) -> io::Result<()> {
        let mut room: [Vec<u8>; TRAINS] = std::array::from_fn(|_| vec![0; TRAIN]);
        let mut touched = BTreeSet::new();
        loop {
            self.alarm.set(self.due.first().map(|(due, _)| *due))?;
            let waits =
                if self.blocked.is_empty() { Interest::READABLE } else { Interest::READABLE | Interest::WRITABLE };
            tokio::select! {
                ready = self.socket.ready(waits) => drop(ready?),
                rung = self.alarm.rings() => rung?,
            }
            touched.extend(self.blocked.drain(..));
            let all = self.receive(&mut room, &mut touched)?;
            let now = Instant::now();
            touched.extend(self.due.iter().take_while(|(due, _)| *due <= now).map(|(_, peer)| *peer));
            while let Some(peer) = touched.pop_first() {
                self.serve(peer);
            }
            if !all {
                tokio::task::yield_now().await; // TCP has its turn
            }
        }
    }

    /// Tells every client that this is the end.
    pub fn close(&mut self) {
        for (_, mut peer) in self.peers.drain() {
            let _ = peer.quic.close(true, NO_ERROR, b"");
            peer.forget();
            let _ = peer.send(&self.socket, &self.state, &mut self.train); // or it finds out
        }
    }

    /// Reads what has come. Whether that was all.
    fn receive(&mut self, room: &mut [Vec<u8>; TRAINS], touched: &mut BTreeSet<u64>) -> io::Result<bool> {
        for _ in 0..ROUNDS {
            let mut told = [RecvMeta::default(); TRAINS];
            let read = self.socket.try_io(Interest::READABLE, || {
                let mut slices = room.each_mut().map(|one| IoSliceMut::new(one));
                self.state.recv((&self.socket).into(), &mut slices, &mut told)
            });
            let trains = match read {
                Ok(trains) => trains,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(true),
                Err(error) => return Err(error),
            };
            for (octets, meta) in room.iter_mut().zip(&told).take(trains) {
                for packet in octets[..meta.len].chunks_mut(meta.stride.max(1)) {
                    touched.extend(self.take(packet, meta.addr));
                }
            }
        }
        Ok(false)
    }

    /// Gives a datagram to its connection.
    fn take(&mut self, packet: &mut [u8], from: SocketAddr) -> Option<u64> {
        let header = Header::from_slice(packet, NAME_OCTETS).ok()?;
        let id = match self.names.get(&header.dcid[..]) {
            Some(id) => *id,
            None => self.accept(&header, from)?,
        };
        let to = RecvInfo { from, to: self.local };
        // An error here is of the connection, and is told to the client with what is sent next.
        let _ = self.peers.get_mut(&id)?.quic.recv(packet, to);
        Some(id)
    }

    /// Begins a connection. Without Retry, as no other server here asks for an address to be shown.
    fn accept(&mut self, header: &Header, from: SocketAddr) -> Option<u64> {
        if header.ty != quiche::Type::Initial {
            return None;
        }
        if !quiche::version_is_supported(header.version) {
            let written = quiche::negotiate_version(&header.scid, &header.dcid, &mut self.train).ok()?;
            let _ = self.socket.try_send_to(&self.train[..written], from); // lost, as any datagram may be
            return None;
        }
        let mut name = vec![0; NAME_OCTETS];
        rustix::rand::getrandom(&mut name[..], rustix::rand::GetRandomFlags::empty()).ok()?;
        let own = ConnectionId::from_ref(&name);
        let mut quic = quiche::accept(&own, None, self.local, from, &mut self.config).ok()?;
        if let Some(folder) = &self.qlogs {
            let path = folder.join(format!("{}.sqlog", quic.trace_id()));
            match File::create(&path) {
                Ok(file) => quic.set_qlog(Box::new(BufWriter::new(file)), "quiche-server".into(), String::new()),
                Err(error) => eprintln!("quiche-server: {}: {error}", path.display()),
            }
        }
        self.count += 1;
        let names = [header.dcid.to_vec(), name];
        for name in &names {
            self.names.insert(name.clone(), self.count);
        }
        self.peers.insert(self.count, Peer::new(quic, names));
        Some(self.count)
    }

    /// Does for a connection what is to be done now.
    fn serve(&mut self, id: u64) {
        let Some(peer) = self.peers.get_mut(&id) else { return };
        if peer.quic.timeout_instant().is_some_and(|due| due <= Instant::now()) {
            peer.quic.on_timeout();
        }
        peer.read(&self.http, &mut self.shared);
        let pause = loop {
            let pause = peer.send(&self.socket, &self.state, &mut self.train);
            // What was sent may have made room for more of a response.
            if !matches!(pause, Pause::Done) || !peer.write(&mut self.shared) {
                break pause;
            }
        };
        let timeout = peer.quic.timeout_instant();
        let due = match pause {
            Pause::Done => timeout,
            Pause::Until(at) => Some(timeout.map_or(at, |timeout| timeout.min(at))),
            Pause::Blocked => {
                self.blocked.push(id);
                timeout
            }
        };
        let due = due.filter(|_| !peer.quic.is_closed());
        if let Some(before) = std::mem::replace(&mut peer.due, due) {
            self.due.remove(&(before, id));
        }
        self.due.extend(due.map(|due| (due, id)));
        if peer.quic.is_closed() {
            for name in &peer.names {
                self.names.remove(name);
            }
            self.peers.remove(&id);
        }
    }
}
