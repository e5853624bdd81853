//! What left, as it is counted.

/// Wire packets that left together.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    pub packets: u64,
    pub bytes: u64,
    pub ordinal: u64,
    pub copy: u8,
    pub back_to_back: bool,
    /// Sent ahead of packets before it, on purpose.
    pub ahead: bool,
    pub arrived_ns: u64,
    pub due_ns: u64,
    pub left_ns: u64,
}

/// One packet of 1000 octets, in time.
#[cfg(test)]
pub fn leaving(ordinal: u64, left_ns: u64, back_to_back: bool) -> Leaving {
    Leaving {
        packets: 1,
        bytes: 1000,
        ordinal,
        copy: 0,
        back_to_back,
        ahead: false,
        arrived_ns: 0,
        due_ns: left_ns,
        left_ns,
    }
}
