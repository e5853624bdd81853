//! A small HTTP/3 server on quinn-proto that does what a test tells it, and a relay that loses and reorders datagrams.

use std::collections::{HashMap, VecDeque};
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use quinn_proto::{
    Connection, ConnectionHandle, DatagramEvent, Dir, Endpoint, Event, ReadError, StreamEvent, StreamId,
};
use trifecta_testpki::TestPki;
use trifecta_wire::h3::frame;
use trifecta_wire::qpack::encoder;
use trifecta_wire::quic::{self, Adaptations, TransportOptions};

use super::{Random, pattern};

/// Answers a request: its content is in the third argument, its number on the connection in the fourth.
pub type Answer = Box<dyn FnMut(&mut Connection, StreamId, &[u8], usize) + Send>;

/// Serves until dropped.
pub struct Server {
    pub address: SocketAddr,
    pub pki: Arc<TestPki>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// What a server does besides answering.
#[derive(Clone, Copy)]
pub struct Conduct {
    /// What its control stream begins with (stream type included).
    pub control: &'static [u8],
    /// Requests that may be open at a time.
    pub streams: u32,
    /// So long after a connection's first answer it is closed with this code.
    pub breaks: Option<(Duration, u32)>,
}

impl Conduct {
    pub fn new(control: &'static [u8]) -> Self {
        Self { control, streams: 20, breaks: None }
    }
}

struct Served {
    connection: Connection,
    requests: usize,
    answered: Option<Instant>,
    bodies: HashMap<StreamId, Vec<u8>>,
}

impl Server {
    /// A server with a control stream that begins with `control` (stream type included).
    pub fn new(control: &'static [u8], answer: Answer) -> Self {
        Self::of(Conduct::new(control), answer)
    }

    pub fn of(conduct: Conduct, answer: Answer) -> Self {
        let pki = TestPki::new();
        let tls = super::tls_server(&pki, &[b"h3"], &[trifecta_wire::tls::TlsVersion::Tls13], u32::MAX);
        Self::start(pki, tls, conduct, answer)
    }

    pub fn with(pki: TestPki, tls: rustls::ServerConfig, control: &'static [u8], answer: Answer) -> Self {
        Self::start(pki, tls, Conduct::new(control), answer)
    }

    fn start(pki: TestPki, tls: rustls::ServerConfig, conduct: Conduct, answer: Answer) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        let options = TransportOptions { max_bidi_streams: conduct.streams, ..TransportOptions::default() };
        let config =
            quic::server_config(Arc::new(tls), quic::transport_config(&options).unwrap(), Adaptations::ALL).unwrap();
        let endpoint = quic::server_endpoint_config(1452, Adaptations::ALL).unwrap();
        let endpoint = Endpoint::new(Arc::new(endpoint), Some(Arc::new(config)), true, None);
        let (stop, address) = (Arc::new(AtomicBool::new(false)), socket.local_addr().unwrap());
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || serve(&socket, endpoint, conduct, answer, &stopped));
        Self { address, pki: Arc::new(pki), stop, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn serve(socket: &UdpSocket, mut endpoint: Endpoint, conduct: Conduct, mut answer: Answer, stop: &AtomicBool) {
    let mut served: HashMap<ConnectionHandle, Served> = HashMap::new();
    let (mut buffer, mut packets) = (vec![0; 65_536], Vec::new());
    while !stop.load(Ordering::SeqCst) {
        if let Ok((octets, from)) = socket.recv_from(&mut buffer) {
            packets.clear();
            let now = Instant::now();
            match endpoint.handle(now, from, None, None, BytesMut::from(&buffer[..octets]), &mut packets) {
                Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                    if let Some(served) = served.get_mut(&handle) {
                        served.connection.handle_event(event);
                    }
                }
                Some(DatagramEvent::NewConnection(incoming)) => {
                    match endpoint.accept(incoming, now, &mut packets, None) {
                        Ok((handle, connection)) => {
                            let bodies = HashMap::new();
                            served.insert(handle, Served { connection, requests: 0, answered: None, bodies });
                        }
                        Err(error) => {
                            let size = error.response.map_or(0, |transmit| transmit.size);
                            let _ = socket.send_to(&packets[..size], from);
                        }
                    }
                }
                Some(DatagramEvent::Response(transmit)) => drop(socket.send_to(&packets[..transmit.size], from)),
                None => {}
            }
        }
        served.retain(|handle, served| served.turn(*handle, socket, &mut endpoint, conduct, &mut answer));
    }
}

impl Served {
    fn turn(
        &mut self,
        handle: ConnectionHandle,
        socket: &UdpSocket,
        endpoint: &mut Endpoint,
        conduct: Conduct,
        answer: &mut Answer,
    ) -> bool {
        let now = Instant::now();
        self.connection.handle_timeout(now);
        if let (Some((after, code)), Some(answered)) = (conduct.breaks, self.answered)
            && now >= answered + after
        {
            self.answered = None;
            self.connection.close(now, quinn_proto::VarInt::from_u32(code), Bytes::new());
        }
        while let Some(event) = self.connection.poll_endpoint_events() {
            let over = event.is_drained();
            if let Some(event) = endpoint.handle_event(handle, event) {
                self.connection.handle_event(event);
            }
            if over {
                return false;
            }
        }
        let mut readable = Vec::new();
        while let Some(event) = self.connection.poll() {
            match event {
                Event::Connected if !conduct.control.is_empty() => {
                    let id = self.connection.streams().open(Dir::Uni).unwrap();
                    self.connection.send_stream(id).write(conduct.control).unwrap();
                }
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = self.connection.streams().accept(dir) {
                        readable.push(id);
                    }
                }
                Event::Stream(StreamEvent::Readable { id }) => readable.push(id),
                _ => {}
            }
        }
        for id in readable {
            self.read(id, answer);
        }
        let mut packets = Vec::new();
        while let Some(transmit) = self.connection.poll_transmit(now, 1, &mut packets) {
            let _ = socket.send_to(&packets[..transmit.size], transmit.destination);
            packets.clear();
        }
        true
    }

    fn read(&mut self, id: StreamId, answer: &mut Answer) {
        let body = self.bodies.entry(id).or_default();
        let mut stream = self.connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else { return };
        let ended = loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk.bytes),
                Ok(None) => break true,
                Err(ReadError::Blocked | ReadError::Reset(_)) => break false,
            }
        };
        let _ = chunks.finalize();
        if ended && id.dir() == Dir::Bi {
            let octets = std::mem::take(body);
            answer(&mut self.connection, id, &octets, self.requests);
            self.requests += 1;
            self.answered = Some(Instant::now());
        }
    }
}

/// HEADERS of a response.
pub fn headers(status: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let all = [&[(":status", status)], fields].concat();
    let section = encoder::section(all.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())));
    let mut out = Vec::new();
    frame::write_headers(&section, &mut out);
    out
}

/// A DATA frame that announces `announced` octets and holds `content`.
pub fn data(announced: u64, content: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    frame::write_header(frame::kind::DATA, announced, &mut out);
    out.extend_from_slice(content);
    out
}

/// A whole response with `length` octets of the pattern.
pub fn response(length: usize) -> Vec<u8> {
    [headers("200", &[("content-length", &length.to_string())]), data(length as u64, &pattern(length))].concat()
}

/// Answers every request with these octets and ends the stream.
pub fn always(octets: Vec<u8>) -> Answer {
    Box::new(move |connection, id, _, _| {
        let mut stream = connection.send_stream(id);
        assert_eq!(stream.write_chunks(&mut [Bytes::from(octets.clone())]).unwrap().bytes, octets.len());
        stream.finish().unwrap();
    })
}

/// Carries datagrams both ways between one client at a time and `server`, and by seed loses some, holds some back and doubles
/// some. Returns its address; it ends when `stop` is dropped.
pub fn rough_relay(server: SocketAddr, seed: u64, stop: std::sync::mpsc::Receiver<()>) -> SocketAddr {
    let mut random = Random(seed);
    relay(server, stop, move || {
        let copies = usize::from(random.below(50) == 0) + usize::from(random.below(20) != 0);
        let late = |random: &mut Random| if random.below(10) == 0 { random.below(8) as u64 } else { 0 };
        (0..copies).map(|_| Duration::from_millis(late(&mut random))).collect()
    })
}

/// The same, and all that it does is to hold each datagram back for so long.
pub fn slow_relay(server: SocketAddr, delay: Duration, stop: std::sync::mpsc::Receiver<()>) -> SocketAddr {
    relay(server, stop, move || vec![delay])
}

/// `fate`: how long each copy of a datagram is held back.
fn relay(
    server: SocketAddr,
    stop: std::sync::mpsc::Receiver<()>,
    mut fate: impl FnMut() -> Vec<Duration> + Send + 'static,
) -> SocketAddr {
    let (outside, inside) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
    inside.connect(server).unwrap();
    for socket in [&outside, &inside] {
        socket.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    }
    let address = outside.local_addr().unwrap();
    std::thread::spawn(move || {
        let (mut client, mut held) = (None, VecDeque::new());
        let mut buffer = vec![0; 65_536];
        while stop.try_recv() == Err(std::sync::mpsc::TryRecvError::Empty) {
            for to_server in [true, false] {
                let octets = if to_server {
                    outside.recv_from(&mut buffer).ok().map(|(octets, from)| {
                        client = Some(from);
                        octets
                    })
                } else {
                    inside.recv(&mut buffer).ok()
                };
                let Some(octets) = octets else { continue };
                for late in fate() {
                    held.push_back((Instant::now() + late, to_server, buffer[..octets].to_vec()));
                }
            }
            let now = Instant::now();
            held.retain(|(due, to_server, datagram)| {
                if *due > now {
                    return true;
                }
                let _ = match (to_server, client) {
                    (true, _) => inside.send(datagram),
                    (false, Some(client)) => outside.send_to(datagram, client),
                    (false, None) => Ok(0),
                };
                false
            });
        }
    });
    address
}
