//! Names to addresses, once, as any program does it: getaddrinfo(3), so /etc/hosts and /etc/resolv.conf count.
//! The static build has none (`addresses`), and needs none: it is told addresses.

use std::io;
use std::net::IpAddr;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::clock::now_ns;

/// A version of the Internet Protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
pub enum Ip {
    #[serde(rename = "IPv4")]
    V4,
    #[serde(rename = "IPv6")]
    V6,
}

impl Ip {
    fn name(self) -> &'static str {
        match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        }
    }

    fn has(self, address: IpAddr) -> bool {
        address.is_ipv6() == (self == Self::V6)
    }
}

/// What a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// Where to connect: the first address of the version asked for; where none is, the first of IPv4, else of all.
    pub address: IpAddr,
    /// All addresses, in the order in which they were given.
    pub all: Vec<IpAddr>,
    /// How long it took.
    pub elapsed_ns: u64,
}

/// Resolves `name`; waits as long as the resolver does (resolv.conf(5): by default two attempts of 5 s for each server).
///
/// # Errors
/// When the name is unknown or no server answers (the resolver's words), or it has no address of the version `ip`.
pub fn resolve(name: &str, ip: Option<Ip>) -> io::Result<Resolved> {
    let started_ns = now_ns();
    let mut all: Vec<IpAddr> = Vec::new();
    for address in addresses(name)? {
        if !all.contains(&address) {
            all.push(address);
        }
    }
    let Some(address) = choose(&all, ip) else {
        let what = ip.map_or_else(|| "no address".to_owned(), |ip| format!("no {} address", ip.name()));
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("the name has {what}")));
    };
    Ok(Resolved { address, all, elapsed_ns: now_ns() - started_ns })
}

/// As getaddrinfo(3) has them.
#[cfg(not(all(target_env = "gnu", target_feature = "crt-static")))]
fn addresses(name: &str) -> io::Result<Vec<IpAddr>> {
    use std::net::ToSocketAddrs;

    // Any port will do, it is not looked up.
    Ok((name, 0).to_socket_addrs()?.map(|address| address.ip()).collect())
}

/// Of an address in writing alone. In a static program glibc's getaddrinfo loads the shared libraries that
/// nsswitch.conf(5) names, of whatever version they are there: with another one than it was built with it may crash.
#[cfg(all(target_env = "gnu", target_feature = "crt-static"))]
fn addresses(name: &str) -> io::Result<Vec<IpAddr>> {
    let what = "the static engine resolves no names; give an address, or use the engine of the wheel";
    name.parse::<IpAddr>().map(|address| vec![address]).map_err(|_| io::Error::new(io::ErrorKind::Unsupported, what))
}

fn choose(all: &[IpAddr], ip: Option<Ip>) -> Option<IpAddr> {
    let first = |ip: Ip| all.iter().copied().find(|address| ip.has(*address));
    match ip {
        Some(ip) => first(ip),
        None => first(Ip::V4).or(all.first().copied()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_becomes_an_address_and_ipv4_goes_first() {
        let found = resolve("localhost", None).unwrap();
        assert!(found.address.is_loopback() && found.all.contains(&found.address), "{found:?}");
        assert!(found.address.is_ipv4() || found.all.iter().all(IpAddr::is_ipv6), "{found:?}");
        assert_eq!(resolve("::1", None).unwrap().address, "::1".parse::<IpAddr>().unwrap());
    }

    #[test]
    fn the_version_that_is_asked_for_is_the_only_one_that_counts() {
        let [four, six, other]: [IpAddr; 3] = ["10.78.0.2", "fd78::2", "fd78::3"].map(|text| text.parse().unwrap());
        assert_eq!(choose(&[six, four, other], None), Some(four));
        assert_eq!(choose(&[six, other], None), Some(six));
        assert_eq!(choose(&[four, six, other], Some(Ip::V6)), Some(six));
        assert_eq!(choose(&[six, four], Some(Ip::V4)), Some(four));
        assert_eq!(choose(&[four], Some(Ip::V6)), None);
        assert_eq!(choose(&[], None), None);
        let error = resolve("127.0.0.1", Some(Ip::V6)).unwrap_err();
        assert_eq!(error.to_string(), "the name has no IPv6 address");
    }

    #[test]
    fn an_unknown_name_is_an_error() {
        // An empty label: no server has to be asked.
        assert!(resolve("nobody..lab", None).is_err());
    }
}
