//! The error classes of a failed request, as they stand in the `error` column.

/// Why a request failed. One class a row; a success has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    ConnectRefused,
    ConnectTimeout,
    ConnectReset,
    Unreachable,
    /// No ephemeral port is left for this destination (EADDRNOTAVAIL).
    PortsExhausted,
    /// Any other refusal of the kernel to give or connect a socket (descriptors, memory), where nothing says why.
    Socket,
    /// The same with the number that errno(3) had.
    SocketErrno(i32),
    Tls,
    TlsCertificate,
    TlsAlpn,
    TlsVersion,
    TlsAlert,
    TlsMalformed,
    Quic,
    QuicTransport,
    QuicTimeout,
    QuicVersion,
    /// The connection or the stream was reset by the peer.
    Reset,
    /// The connection ended before the response did.
    Closed,
    /// No whole response within the time limit.
    Timeout,
    Malformed,
    MalformedHttp1,
    MalformedHttp2,
    /// HTTP/1 was answered although HTTP/2 had been negotiated.
    Http1OverHttp2,
    MalformedHttp3,
    /// Not the expected status code.
    Status,
    /// Not the expected number of content octets, or fewer than announced.
    Length,
    /// Content octets differ from the pattern.
    Content,
    /// The peer refused the request with GOAWAY or REFUSED_STREAM.
    Goaway,
    /// The run was stopped from outside while the request was in flight.
    Interrupted,
}

impl ErrorClass {
    /// The name in the sample row.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConnectRefused => "connect_refused",
            Self::ConnectTimeout => "connect_timeout",
            Self::ConnectReset => "connect_reset",
            Self::Unreachable => "unreachable",
            Self::PortsExhausted => "ports_exhausted",
            Self::Socket => "socket",
            Self::SocketErrno(number) => socket_class(number),
            Self::Tls => "tls",
            Self::TlsCertificate => "tls:certificate",
            Self::TlsAlpn => "tls:alpn",
            Self::TlsVersion => "tls:version",
            Self::TlsAlert => "tls:alert",
            Self::TlsMalformed => "tls:malformed",
            Self::Quic => "quic",
            Self::QuicTransport => "quic:transport",
            Self::QuicTimeout => "quic:timeout",
            Self::QuicVersion => "quic:version",
            Self::Reset => "reset",
            Self::Closed => "closed",
            Self::Timeout => "timeout",
            Self::Malformed => "malformed",
            Self::MalformedHttp1 => "malformed:http1",
            Self::MalformedHttp2 => "malformed:http2",
            Self::Http1OverHttp2 => "malformed:http1_over_http2",
            Self::MalformedHttp3 => "malformed:http3",
            Self::Status => "status",
            Self::Length => "length",
            Self::Content => "content",
            Self::Goaway => "goaway",
            Self::Interrupted => "interrupted",
        }
    }

    /// From the class of a [`trifecta_wire::tls::TlsError`] or of [`trifecta_wire::tls::classify`].
    #[must_use]
    pub fn from_tls(class: &str) -> Self {
        match class {
            "tls:certificate" => Self::TlsCertificate,
            "tls:alpn" => Self::TlsAlpn,
            "tls:version" => Self::TlsVersion,
            "tls:alert" => Self::TlsAlert,
            "tls:malformed" => Self::TlsMalformed,
            _ => Self::Tls,
        }
    }

    /// The class of a system call's error; `connecting` says that the connection did not stand yet.
    #[must_use]
    pub fn from_io(error: &std::io::Error, connecting: bool) -> Self {
        match error.raw_os_error() {
            Some(libc::ECONNREFUSED) => Self::ConnectRefused,
            Some(libc::ETIMEDOUT) if connecting => Self::ConnectTimeout,
            Some(libc::ETIMEDOUT) => Self::Timeout,
            Some(libc::ECONNRESET | libc::EPIPE) if connecting => Self::ConnectReset,
            Some(libc::ECONNRESET | libc::EPIPE) => Self::Reset,
            Some(libc::ENETUNREACH | libc::EHOSTUNREACH | libc::ENETDOWN | libc::EHOSTDOWN | libc::EACCES) => {
                Self::Unreachable
            }
            Some(libc::EADDRNOTAVAIL) => Self::PortsExhausted,
            Some(number) => Self::SocketErrno(number),
            None => Self::Socket,
        }
    }
}

/// The class with the name of what socket(2), setsockopt(2), bind(2), connect(2) and send(2) refuse with.
fn socket_class(number: i32) -> &'static str {
    match number {
        libc::EPERM => "socket:EPERM",
        libc::ENOENT => "socket:ENOENT",
        libc::EAGAIN => "socket:EAGAIN",
        libc::ENOMEM => "socket:ENOMEM",
        libc::EINVAL => "socket:EINVAL",
        libc::ENFILE => "socket:ENFILE",
        libc::EMFILE => "socket:EMFILE",
        libc::EMSGSIZE => "socket:EMSGSIZE",
        libc::ENOPROTOOPT => "socket:ENOPROTOOPT",
        libc::EPROTONOSUPPORT => "socket:EPROTONOSUPPORT",
        libc::EOPNOTSUPP => "socket:EOPNOTSUPP",
        libc::EAFNOSUPPORT => "socket:EAFNOSUPPORT",
        libc::EADDRINUSE => "socket:EADDRINUSE",
        libc::ENOBUFS => "socket:ENOBUFS",
        libc::EPROTO => "socket:EPROTO",
        _ => "socket",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_refuses_keeps_its_number() {
        let class = |number| ErrorClass::from_io(&std::io::Error::from_raw_os_error(number), true).as_str();
        assert_eq!(class(libc::EPERM), "socket:EPERM");
        assert_eq!(class(libc::EMFILE), "socket:EMFILE");
        assert_eq!(class(libc::ECONNREFUSED), "connect_refused");
        assert_eq!(class(4095), "socket");
    }
}
