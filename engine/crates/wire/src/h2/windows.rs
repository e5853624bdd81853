//! The flow-control windows that an endpoint gives its peer.

use super::{DEFAULT_WINDOW_OCTETS, write};

/// What the peer may send before it hears from us, in octets.
#[derive(Clone, Copy, Debug)]
pub struct Windows {
    /// On each stream, as SETTINGS_INITIAL_WINDOW_SIZE says.
    pub stream: u32,
    /// On the connection.
    pub connection: u32,
}

impl Windows {
    /// Announces that of the connection, which no setting does (RFC 9113 6.9.2).
    pub fn announce(self, out: &mut Vec<u8>) {
        // An increment of 0 is an error (RFC 9113 6.9).
        if self.connection > DEFAULT_WINDOW_OCTETS {
            write::window_update(0, self.connection - DEFAULT_WINDOW_OCTETS, out);
        }
    }
}
