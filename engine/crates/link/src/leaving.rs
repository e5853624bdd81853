//! What left, as it is counted.

/// Wire packets that left together.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    pub packets: u64,
    pub bytes: u64,
    pub ordinal: u64,
    pub copy: u8,
    pub back_to_back: bool,
    /// When the last of them left the last queue, as the impairments wanted it.
    pub dequeued_ns: u64,
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
        dequeued_ns: left_ns,
        arrived_ns: 0,
        due_ns: left_ns,
        left_ns,
    }
}
