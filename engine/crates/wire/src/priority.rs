//! How urgent a response is to its client (RFC 9218), out of a Priority field or a PRIORITY_UPDATE frame.

/// The priority of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Priority {
    /// 0 (first) to 7 (background).
    pub urgency: u8,
    /// Parts are of use before the whole is there: responses of the same urgency are then sent in turn.
    pub incremental: bool,
}

impl Default for Priority {
    /// RFC 9218 4: urgency 3, not incremental.
    fn default() -> Self {
        Self { urgency: 3, incremental: false }
    }
}

impl Priority {
    /// Reads a dictionary (RFC 8941 3.2). Parameters that are unknown, of a wrong type or out of range are ignored, as RFC 9218 4
    /// asks; so is what is no dictionary at all.
    pub fn parse(value: &[u8]) -> Self {
        let mut priority = Self::default();
        for member in value.split(|&octet| octet == b',') {
            // Parameters of a member (`u=1;x`) mean nothing. A string may hold a comma; what is cut there is unknown anyway.
            let member = member.split(|&octet| octet == b';').next().unwrap_or_default().trim_ascii();
            match member {
                [b'u', b'=', digit @ b'0'..=b'7'] => priority.urgency = digit - b'0',
                b"i" | b"i=?1" => priority.incremental = true,
                b"i=?0" => priority.incremental = false,
                _ => {}
            }
        }
        priority
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_browsers_send_is_understood_and_the_rest_ignored() {
        let read = |value: &str| {
            let Priority { urgency, incremental } = Priority::parse(value.as_bytes());
            (urgency, incremental)
        };
        for (value, expected) in [
            ("", (3, false)),
            ("u=0, i", (0, true)),
            ("u=5,i=?1", (5, true)),
            ("i", (3, true)),
            ("i;x=1, u=7;y", (7, true)),
            ("u=1, u=4", (4, false)),
            ("i, i=?0", (3, false)),
            ("u=8, i=1", (3, false)),
            ("u=-1", (3, false)),
            ("U=1, I", (3, false)),
            ("u=\"1\", foo, \u{ff}", (3, false)),
        ] {
            assert_eq!(read(value), expected, "{value}");
        }
    }
}
