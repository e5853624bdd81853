//! The process around the workers: sockets, TLS, threads, the ready line, the end and the summary.

use crate::config::{Config, ConfigError, Protocol};
use crate::folder::Folder;
use crate::h3;
use crate::handler::{Handler, Sources};
use crate::relay::{Prepared, Relay};
use crate::replay::Archive;
use crate::stats::Stats;
use crate::summary::{Ready, RelayReady, Summary};
use crate::worker::{self, Parts};
use rustls::ServerConfig;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::JoinHandle;
use trifecta_wire::clock::now_ns;
use trifecta_wire::process::{self, Usage, exit};
use trifecta_wire::tcp::{TcpOptions, TcpSocket};
use trifecta_wire::tls::{self, ServerOptions, TlsVersion};

const BACKLOG: i32 = 4096;
/// Octets of 0-RTT data accepted on TCP: a request or a few.
const EARLY_DATA_OCTETS: u32 = 16 * 1024;
/// What the kernel may take before it has sent it, where responses have priorities: it sends them in the order in which it got
/// them. Left alone it takes another congestion window.
const PAGE_UNSENT_OCTETS: u32 = 32 * 1024;
/// How often the end is looked for besides the events that announce it.
const LOOK_MS: libc::c_int = 200;

/// Why the origin cannot run.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The exit code of the process.
    pub code: i32,
    /// The field of the configuration, or what else is at fault.
    pub field: String,
    /// What is wrong and how to mend it.
    pub message: String,
}

impl Failure {
    fn cannot(field: &str, message: impl ToString) -> Self {
        Self { code: exit::CANNOT, field: field.into(), message: message.to_string() }
    }

    fn input(field: &str, message: impl ToString) -> Self {
        Self { code: exit::BAD_INPUT, field: field.into(), message: message.to_string() }
    }
}

/// Serves until a signal or the end of standard input, with the ready line before and the summary after it.
pub(crate) fn serve(config: Config) -> Result<(), Failure> {
    process::prepare().map_err(|error| Failure::cannot("process", error))?;
    raise_descriptor_limit();
    let usage_before = Usage::now();
    let started_ns = now_ns();
    let origin = Origin::start(config)?;
    process::write_ready(&origin.describe()).map_err(|error| Failure::cannot("stdout", error))?;
    origin.crew.wait_for_end();
    let faults = origin.config.faults;
    let stats = origin.finish()?;
    let usage = Usage::now().since(usage_before);
    let summary = Summary {
        counts: stats.counts(),
        started_ns,
        ended_ns: now_ns(),
        cpu_user_ns: usage.cpu_user_ns,
        cpu_system_ns: usage.cpu_system_ns,
        max_rss_bytes: usage.max_rss_bytes,
        faults,
    };
    process::write_summary(&summary).map_err(|error| Failure::cannot("stdout", error))
}

/// A running origin inside this process.
pub struct Origin {
    config: Arc<Config>,
    address: SocketAddr,
    congestion_control: Option<String>,
    nodelay: Option<bool>,
    /// Where the services were found that this one calls.
    relay: Option<RelayReady>,
    crew: Crew,
}

impl Origin {
    /// Binds the sockets and starts the workers; it can be used when this returns.
    ///
    /// # Errors
    /// Names what cannot be used.
    pub fn start(config: Config) -> Result<Self, Failure> {
        // RFC 7301 3.2: the server prefers, and a client that offers both wants the newer.
        let tcp_protocols = [Protocol::H2, Protocol::H1].into_iter().filter(|&protocol| config.serves(protocol));
        let tcp_protocols: Vec<Protocol> = tcp_protocols.collect();
        let prepared =
            Prepared::new(&config).map_err(|ConfigError { field, message }| Failure::cannot(&field, message))?;
        let archive = config.replay.as_deref().map(Archive::read).transpose();
        let archive = archive.map_err(|message| Failure::input("replay", message))?.map(Arc::new);
        let tcp_tls = tls_config(&config, &tcp_protocols)?;
        let Bound { listeners, quic_servers, address } = Bound::new(&config, !tcp_protocols.is_empty())?;
        let congestion_control = listeners.first().and_then(|listener| listener.congestion_control().ok());
        let nodelay = listeners.first().and_then(|listener| listener.nodelay().ok());
        let config = Arc::new(config);
        let sources = (archive.as_ref(), prepared.as_ref());
        let crew = Crew::start(&config, address.port(), &tcp_tls, listeners, quic_servers, sources)?;
        let relay = prepared.as_ref().map(Prepared::describe);
        Ok(Self { config, address, congestion_control, nodelay, relay, crew })
    }

    /// Where it listens, with the port that was taken.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// The value of the ready line.
    fn describe(&self) -> Ready {
        Ready {
            address: self.address.ip(),
            port: self.address.port(),
            protocols: self.config.protocols.clone(),
            workers: self.config.workers,
            tcp_congestion_control: self.congestion_control.clone(),
            tcp_nodelay: self.nodelay,
            faults: self.config.faults,
            relay: self.relay.clone(),
        }
    }

    /// Ends in good order, within about a second, and returns what was counted.
    ///
    /// # Errors
    /// When a worker has failed.
    pub fn finish(self) -> Result<Stats, Failure> {
        self.crew.finish()
    }
}

/// The sockets of all workers, on one port number.
struct Bound {
    listeners: Vec<TcpSocket>,
    quic_servers: Vec<h3::Server>,
    address: SocketAddr,
}

/// How many free TCP ports are asked for until one is free on UDP too.
const PORTS_TRIED: usize = 50;

impl Bound {
    fn new(config: &Config, tcp: bool) -> Result<Self, Failure> {
        // The kernel knows a free port of TCP, and a client's socket may have its number on UDP.
        let free = config.port == 0 && tcp && config.serves(Protocol::H3);
        for _ in 1..if free { PORTS_TRIED } else { 1 } {
            match Self::at_once(config, tcp) {
                Err(failure) if failure.field == "port" => {}
                other => return other,
            }
        }
        Self::at_once(config, tcp)
    }

    fn at_once(config: &Config, tcp: bool) -> Result<Self, Failure> {
        let listeners = listen(config, tcp)?;
        let mut address = config.socket_address();
        if let Some(listener) = listeners.first() {
            address = listener.local_address().map_err(|error| Failure::cannot("address", error))?;
        }
        let mut quic_servers = Vec::new();
        if config.serves(Protocol::H3) {
            let tls = tls_config(config, &[Protocol::H3])?;
            for _ in 0..config.workers {
                let server = h3::Server::bind(config, address, tls.clone())
                    .map_err(|ConfigError { field, message }| Failure::cannot(&field, message))?;
                // With port 0 and HTTP/3 alone the first socket decides.
                address = server.local_address().unwrap_or(address);
                quic_servers.push(server);
            }
        }
        Ok(Self { listeners, quic_servers, address })
    }
}

fn tls_config(config: &Config, protocols: &[Protocol]) -> Result<Arc<ServerConfig>, Failure> {
    let quic = protocols == [Protocol::H3];
    let alpn: Vec<&[u8]> = protocols.iter().map(|protocol| protocol.alpn()).collect();
    let versions: Vec<TlsVersion> = if quic {
        vec![TlsVersion::Tls13]
    } else {
        config.tls_versions.iter().filter_map(|name| TlsVersion::from_name(name)).collect()
    };
    let key_exchanges: Vec<&str> = config.key_exchanges.iter().map(String::as_str).collect();
    let early_data_bytes = match (config.zero_rtt, quic) {
        (false, _) => 0,
        (true, true) => u32::MAX,
        (true, false) => EARLY_DATA_OCTETS,
    };
    let options = ServerOptions {
        certificate_file: &config.certificate_file,
        key_file: &config.key_file,
        alpn: &alpn,
        versions: &versions,
        key_exchanges: &key_exchanges,
        resumption: true,
        early_data_bytes,
        extra_certificates: protocols.iter().map(|one| config.faults.over(*one).extra_certificates).max().unwrap_or(0),
        keylog_file: config.keylog_file.as_deref(),
    };
    let mut made = tls::server_config(&options).map_err(|error| Failure::input(error.field, error.message))?;
    made.max_fragment_size = if quic { None } else { tls::fragment_octets(config.tuning.tls_record_bytes) };
    Ok(Arc::new(made))
}

/// A listening socket for each worker, all on one port.
fn listen(config: &Config, wanted: bool) -> Result<Vec<TcpSocket>, Failure> {
    let options = TcpOptions {
        nodelay: config.tcp_nodelay,
        congestion_control: Some(config.congestion_control.clone()),
        paced: config.tuning.pacing == Some(true),
        unsent_bytes: if config.serves_pages() { PAGE_UNSENT_OCTETS } else { 0 },
        ..TcpOptions::default()
    };
    let mut address = config.socket_address();
    let open = |address: &SocketAddr, share: bool| {
        TcpSocket::listen(address, &options, share, BACKLOG).map_err(|error| listen_failure(config, &error))
    };
    if !wanted {
        return Ok(Vec::new());
    }
    if config.workers == 1 {
        return Ok(vec![open(&address, false)?]);
    }
    if address.port() != 0 {
        // SO_REUSEPORT would share the port with another server of this user instead of refusing it.
        drop(open(&address, false)?);
    }
    let mut listeners = Vec::new();
    for _ in 0..config.workers {
        let listener = open(&address, true)?;
        address = listener.local_address().map_err(|error| Failure::cannot("address", error))?;
        listeners.push(listener);
    }
    Ok(listeners)
}

fn listen_failure(config: &Config, error: &io::Error) -> Failure {
    match error.raw_os_error() {
        Some(libc::EADDRINUSE) => {
            Failure::cannot("port", format!("{} is taken; choose another or 0 for a free one", config.port))
        }
        Some(libc::EACCES) => {
            Failure::cannot("port", format!("{} needs privileges; choose one from 1024", config.port))
        }
        Some(libc::EADDRNOTAVAIL) => {
            Failure::cannot("address", format!("{} is not an address of this host", config.address))
        }
        Some(libc::ENOENT) => {
            let name = &config.congestion_control;
            Failure::cannot("congestion_control", format!("this kernel lacks {name} (ENOENT); modprobe tcp_{name}"))
        }
        Some(libc::EPERM) => {
            let remedy = "add it to net.ipv4.tcp_allowed_congestion_control";
            let name = &config.congestion_control;
            Failure::cannot("congestion_control", format!("this user may not set {name} (EPERM); {remedy}"))
        }
        _ => Failure::cannot("address", error),
    }
}

fn open_folder(field: &str, path: Option<&Path>) -> Result<Option<Folder>, Failure> {
    let open =
        |path: &Path| Folder::new(path).map_err(|error| Failure::input(field, format!("{}: {error}", path.display())));
    path.map(open).transpose()
}

/// The worker threads.
struct Crew {
    threads: Vec<JoinHandle<io::Result<Stats>>>,
    stops: Vec<OwnedFd>,
    /// Workers that are still running.
    running: Arc<AtomicUsize>,
}

impl Crew {
    fn start(
        config: &Arc<Config>,
        port: u16,
        tls: &Arc<ServerConfig>,
        listeners: Vec<TcpSocket>,
        quic_servers: Vec<h3::Server>,
        (archive, prepared): (Option<&Arc<Archive>>, Option<&Prepared>),
    ) -> Result<Self, Failure> {
        let mut crew = Self { threads: Vec::new(), stops: Vec::new(), running: Arc::new(AtomicUsize::new(0)) };
        let mut listeners = listeners.into_iter();
        let mut quic_servers = quic_servers.into_iter();
        // Signals are for the main thread, which waits for them.
        mask_stop_signals(libc::SIG_BLOCK);
        for number in 0..config.workers {
            let sources = Sources {
                folder: open_folder("folder", config.folder.as_deref())?,
                archive: archive.cloned(),
                live: open_folder("live", config.live.as_deref())?,
                routes: prepared.map(|prepared| prepared.routes.clone()),
            };
            let stop = event_fd().map_err(|error| Failure::cannot("workers", error))?;
            crew.stops.push(stop.try_clone().map_err(|error| Failure::cannot("workers", error))?);
            let relay = prepared
                .map(Relay::new)
                .transpose()
                .map_err(|ConfigError { field, message }| Failure::input(&field, message))?;
            let parts = Parts {
                config: config.clone(),
                handler: Handler::new(config, port, sources),
                tls: tls.clone(),
                listener: listeners.next(),
                quic: quic_servers.next(),
                relay,
                stop,
            };
            let cpu = config.cpus.get(number % config.cpus.len().max(1)).copied();
            if let Some(cpu) = cpu {
                // The thread inherits it; pinned from here so that an error is told before the ready line.
                process::pin_to_cpu(cpu).map_err(|error| Failure::input("cpus", format!("{cpu}: {error}")))?;
            }
            let running = crew.running.clone();
            running.fetch_add(1, Ordering::Relaxed);
            let thread = std::thread::Builder::new()
                .name(format!("origin-{number}"))
                .spawn(move || {
                    let result = worker::run(parts);
                    running.fetch_sub(1, Ordering::Relaxed);
                    result
                })
                .map_err(|error| Failure::cannot("workers", error))?;
            crew.threads.push(thread);
        }
        mask_stop_signals(libc::SIG_UNBLOCK);
        Ok(crew)
    }

    /// Until a signal, the end of a watched standard input, or the end of a worker.
    fn wait_for_end(&self) {
        let watched = process::stdin_is_watched();
        while !process::stop_requested() && self.running.load(Ordering::Relaxed) == self.threads.len() {
            let mut poll = libc::pollfd { fd: if watched { 0 } else { -1 }, events: libc::POLLIN, revents: 0 };
            // SAFETY: one valid pollfd; a negative descriptor is ignored.
            let ready = unsafe { libc::poll(&raw mut poll, 1, LOOK_MS) };
            if ready > 0 && process::stdin_closed() {
                return;
            }
        }
    }

    fn finish(self) -> Result<Stats, Failure> {
        for stop in &self.stops {
            signal_event(stop.as_raw_fd());
        }
        let mut sum = Stats::default();
        for thread in self.threads {
            match thread.join() {
                Ok(Ok(stats)) => sum.add(&stats),
                Ok(Err(error)) => return Err(Failure::cannot("workers", error)),
                Err(_) => return Err(Failure::cannot("workers", "a worker panicked")),
            }
        }
        Ok(sum)
    }
}

fn event_fd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers; the result is checked before it is owned.
    let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor was just made and belongs to nobody else.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

fn signal_event(fd: RawFd) {
    let one = 1u64;
    // SAFETY: eight valid octets. It fails only when the counter is full, and then the event is there already.
    unsafe { libc::write(fd, (&raw const one).cast(), size_of::<u64>()) };
}

fn mask_stop_signals(how: libc::c_int) {
    // SAFETY: all-zero octets are a valid sigset_t, which the calls then fill; no old set is asked for.
    unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, libc::SIGTERM);
        libc::sigaddset(&raw mut set, libc::SIGINT);
        libc::pthread_sigmask(how, &raw const set, std::ptr::null_mut());
    }
}

/// A connection takes a descriptor; the soft limit is often 1024.
fn raise_descriptor_limit() {
    // SAFETY: all-zero octets are a valid rlimit, which lives over both calls.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0 && limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}
