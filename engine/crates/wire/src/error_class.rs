//! Why a request failed: the classes that stand in the column `error` of the samples.

use std::cmp::Ordering;
use std::fmt;
use std::io;

/// Makes an enum without fields whose variants each stand for a text: in JSON, in rows, in its schema and in its order.
#[macro_export]
macro_rules! text_enum {
    ($(#[$outer:meta])* pub enum $name:ident { $($(#[$inner:meta])* $variant:ident = $text:tt,)* }) => {
        $(#[$outer])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ::serde::Serialize, ::schemars::JsonSchema)]
        #[repr(u8)]
        pub enum $name { $($(#[$inner])* #[serde(rename = $text)] $variant,)* }

        impl $name {
            /// All of them, each at the place of its number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The text it stands for.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

text_enum! {
    /// Why a request failed. One class a row; a success has none.
    pub enum ErrorClass {
        ConnectRefused = "connect_refused",
        ConnectTimeout = "connect_timeout",
        ConnectReset = "connect_reset",
        Unreachable = "unreachable",
        /// No ephemeral port is left for this destination (EADDRNOTAVAIL).
        PortsExhausted = "ports_exhausted",
        /// Any other refusal of the kernel to give or connect a socket, where none of the following is the reason.
        Socket = "socket",
        SocketPermission = "socket:EPERM",
        SocketNoEntry = "socket:ENOENT",
        SocketAgain = "socket:EAGAIN",
        SocketNoMemory = "socket:ENOMEM",
        SocketInvalid = "socket:EINVAL",
        SocketFilesOfSystem = "socket:ENFILE",
        SocketFilesOfProcess = "socket:EMFILE",
        SocketMessageSize = "socket:EMSGSIZE",
        SocketNoOption = "socket:ENOPROTOOPT",
        SocketNoProtocol = "socket:EPROTONOSUPPORT",
        SocketNotSupported = "socket:EOPNOTSUPP",
        SocketNoFamily = "socket:EAFNOSUPPORT",
        SocketAddressInUse = "socket:EADDRINUSE",
        SocketNoBuffers = "socket:ENOBUFS",
        SocketProtocol = "socket:EPROTO",
        Tls = "tls",
        TlsCertificate = "tls:certificate",
        TlsAlpn = "tls:alpn",
        TlsVersion = "tls:version",
        TlsAlert = "tls:alert",
        TlsMalformed = "tls:malformed",
        Quic = "quic",
        QuicTransport = "quic:transport",
        QuicTimeout = "quic:timeout",
        QuicVersion = "quic:version",
        /// The connection or the stream was reset by the peer.
        Reset = "reset",
        /// The connection ended before the response did.
        Closed = "closed",
        /// No whole response within the time limit.
        Timeout = "timeout",
        MalformedHttp1 = "malformed:http1",
        MalformedHttp2 = "malformed:http2",
        /// HTTP/1 was answered although HTTP/2 had been negotiated.
        Http1OverHttp2 = "malformed:http1_over_http2",
        MalformedHttp3 = "malformed:http3",
        /// Not the expected status code.
        Status = "status",
        /// Not the expected number of content octets, or fewer than announced.
        Length = "length",
        /// Content octets differ from the pattern.
        Content = "content",
        /// The peer refused the request with GOAWAY or REFUSED_STREAM.
        Goaway = "goaway",
        /// The run was stopped from outside while the request was in flight.
        Interrupted = "interrupted",
    }
}

impl ErrorClass {
    /// The class of a system call's error; `connecting` says that the connection did not stand yet.
    #[must_use]
    pub fn from_io(error: &io::Error, connecting: bool) -> Self {
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
            Some(number) => Self::from_errno(number),
            None => Self::Socket,
        }
    }

    /// What socket(2), setsockopt(2), bind(2), connect(2) and send(2) refuse with.
    fn from_errno(number: i32) -> Self {
        match number {
            libc::EPERM => Self::SocketPermission,
            libc::ENOENT => Self::SocketNoEntry,
            libc::EAGAIN => Self::SocketAgain,
            libc::ENOMEM => Self::SocketNoMemory,
            libc::EINVAL => Self::SocketInvalid,
            libc::ENFILE => Self::SocketFilesOfSystem,
            libc::EMFILE => Self::SocketFilesOfProcess,
            libc::EMSGSIZE => Self::SocketMessageSize,
            libc::ENOPROTOOPT => Self::SocketNoOption,
            libc::EPROTONOSUPPORT => Self::SocketNoProtocol,
            libc::EOPNOTSUPP => Self::SocketNotSupported,
            libc::EAFNOSUPPORT => Self::SocketNoFamily,
            libc::EADDRINUSE => Self::SocketAddressInUse,
            libc::ENOBUFS => Self::SocketNoBuffers,
            libc::EPROTO => Self::SocketProtocol,
            _ => Self::Socket,
        }
    }
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// By text, so that counts by class stand in the order of the alphabet.
impl Ord for ErrorClass {
    fn cmp(&self, other: &Self) -> Ordering {
        self.as_str().cmp(other.as_str())
    }
}

impl PartialOrd for ErrorClass {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_refuses_keeps_its_name() {
        let class = |number| ErrorClass::from_io(&io::Error::from_raw_os_error(number), true).as_str();
        assert_eq!(class(libc::EPERM), "socket:EPERM");
        assert_eq!(class(libc::EMFILE), "socket:EMFILE");
        assert_eq!(class(libc::ECONNREFUSED), "connect_refused");
        assert_eq!(class(4095), "socket");
    }

    #[test]
    fn a_class_is_one_text_everywhere() {
        for (number, class) in ErrorClass::ALL.iter().enumerate() {
            assert_eq!(*class as usize, number);
            assert_eq!(serde_json::to_value(class).unwrap(), class.as_str());
        }
        let texts: std::collections::HashSet<&str> = ErrorClass::ALL.iter().map(|class| class.as_str()).collect();
        assert_eq!(texts.len(), ErrorClass::ALL.len());
    }
}
