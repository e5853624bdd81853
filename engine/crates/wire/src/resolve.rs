//! Names to addresses, once, as any program does it: getaddrinfo(3), so /etc/hosts and /etc/resolv.conf count.

use std::io;
use std::net::{IpAddr, ToSocketAddrs};

use crate::clock::now_ns;

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Where to connect: the first IPv4 address, else the first of all.
    pub address: IpAddr,
    /// All addresses, in the order in which they were given.
    pub all: Vec<IpAddr>,
    /// How long it took.
    pub elapsed_ns: u64,
}

/// Resolves `name`; waits as long as the resolver does (resolv.conf(5): by default two attempts of 5 s for each server).
///
/// # Errors
/// When the name is unknown or no server answers; the message is the resolver's.
pub fn resolve(name: &str) -> io::Result<Resolved> {
    let started_ns = now_ns();
    // Any port will do, it is not looked up.
    let mut all: Vec<IpAddr> = Vec::new();
    for address in (name, 0).to_socket_addrs()? {
        if !all.contains(&address.ip()) {
            all.push(address.ip());
        }
    }
    let address = all.iter().find(|address| address.is_ipv4()).or(all.first()).copied();
    let address = address.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address"))?;
    Ok(Resolved { address, all, elapsed_ns: now_ns() - started_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_an_address_and_ipv4_goes_first() {
        let found = resolve("localhost").unwrap();
        assert!(found.address.is_loopback() && found.all.contains(&found.address), "{found:?}");
        assert!(found.address.is_ipv4() || found.all.iter().all(IpAddr::is_ipv6), "{found:?}");
        assert_eq!(resolve("::1").unwrap().address, "::1".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn an_unknown_name_is_an_error() {
        // An empty label: no server has to be asked.
        assert!(resolve("nobody..lab").is_err());
    }
}
