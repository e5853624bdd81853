//! Serves a folder over HTTP/1.1 and HTTP/2 (hyper) and HTTP/3 (quiche) on one port, in one thread.
//!
//! GET and HEAD answer with the file; POST, PUT and PATCH read the content and then answer with the file, or with
//! nothing where there is none; DELETE answers 204 and deletes nothing.

mod alarm;
mod h3;
mod peer;
mod quic;
mod site;
mod tcp;

use std::collections::HashMap;
use std::env;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};

use crate::site::Site;

const USAGE: &str = "quiche-server --address IP:PORT --folder FOLDER --certificate PEM --key PEM [--tls 1.2|1.3] \
                     [--streams N] [--no-delay true|false] [--congestion-control NAME] [--qlog FOLDER]";

/// What is asked for on the command line, by the names of the options.
struct Options(HashMap<String, String>);

impl Options {
    fn read() -> Result<Self, String> {
        let mut given = HashMap::new();
        let mut words =
            env::args_os().skip(1).map(|word| word.into_string().map_err(|word| format!("{word:?}: UTF-8")));
        while let Some(name) = words.next().transpose()? {
            let value = words.next().transpose()?;
            let (Some(name), Some(value)) = (name.strip_prefix("--"), value) else { return Err(USAGE.into()) };
            given.insert(name.to_owned(), value);
        }
        Ok(Self(given))
    }

    fn needed(&mut self, name: &str) -> Result<String, String> {
        self.0.remove(name).ok_or_else(|| format!("--{name} is missing; {USAGE}"))
    }

    fn or(&mut self, name: &str, default: &str) -> String {
        self.0.remove(name).unwrap_or_else(|| default.into())
    }
}

fn parsed<T: std::str::FromStr>(name: &str, value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("--{name} {value}; {USAGE}"))
}

fn main() -> ExitCode {
    if env::args_os().nth(1).is_some_and(|word| word == "--version") {
        let versions =
            [("quiche", env!("QUICHE_VERSION")), ("hyper", env!("HYPER_VERSION")), ("boring", env!("BORING_VERSION"))];
        println!("{}", versions.map(|(name, version)| format!("{name} {version}")).join(" "));
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    match runtime.map_err(|error| error.to_string()).and_then(|runtime| runtime.block_on(serve())) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("quiche-server: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn serve() -> Result<(), String> {
    let mut options = Options::read()?;
    let address: SocketAddr = parsed("address", &options.needed("address")?)?;
    let folder = options.needed("folder")?;
    let (certificate, key) = (options.needed("certificate")?, options.needed("key")?);
    let tls = tcp::tls(&certificate, &key, &options.or("tls", "1.3"))?;
    let streams: u32 = parsed("streams", &options.or("streams", "250"))?;
    let no_delay: bool = parsed("no-delay", &options.or("no-delay", "true"))?;
    let congestion_control = options.or("congestion-control", "cubic");
    let qlogs = options.0.remove("qlog").map(PathBuf::from);
    if let Some(unknown) = options.0.keys().next() {
        return Err(format!("--{unknown} is not known; {USAGE}"));
    }
    let site = Arc::new(Site::new(Path::new(&folder)).map_err(|error| format!("{folder}: {error}"))?);
    let config = quic::config(&certificate, &key, streams, &congestion_control)?;
    let bound = |error: std::io::Error| format!("{address}: {error}");
    let listener = TcpListener::bind(address).await.map_err(bound)?;
    let mut quic = quic::Server::bind(address, config, site.clone(), qlogs).map_err(bound)?;
    let mut asked = signal(SignalKind::terminate()).map_err(|error| error.to_string())?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(|error| error.to_string())?;
    println!("quiche-server is ready");
    std::io::stdout().flush().map_err(|error| error.to_string())?;
    tokio::spawn(tcp::serve(listener, tls, site, streams, no_delay));
    let ended = tokio::select! {
        ended = quic.run() => ended,
        _ = asked.recv() => Ok(()),
        _ = interrupted.recv() => Ok(()),
    };
    quic.close();
    ended.map_err(|error| format!("UDP: {error}"))
}
