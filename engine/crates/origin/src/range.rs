//! Range requests (RFC 9110 14) for one range; several at once are answered with the whole, which 14.2 allows.

use std::fmt;

/// The value of a Content-Range field (RFC 9110 14.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContentRange {
    /// Octets `first` to `last` of `total`.
    Part { first: u64, last: u64, total: u64 },
    /// What was asked for lies beyond the end; 416 (RFC 9110 15.5.17).
    Unsatisfied { total: u64 },
}

impl fmt::Display for ContentRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Part { first, last, total } => write!(f, "bytes {first}-{last}/{total}"),
            Self::Unsatisfied { total } => write!(f, "bytes */{total}"),
        }
    }
}

/// What a Range field asks of a content of `total` octets (RFC 9110 14.1.2); `None`: the field is to be ignored (14.2).
pub fn parse(field: &[u8], total: u64) -> Option<ContentRange> {
    let field = std::str::from_utf8(field).ok()?.trim_ascii();
    let (unit, spec) = field.split_once('=')?;
    let (first, last) = spec.split_once('-')?;
    if !unit.eq_ignore_ascii_case("bytes") {
        return None;
    }
    let unsatisfied = Some(ContentRange::Unsatisfied { total });
    if first.is_empty() {
        let suffix = number(last)?;
        // RFC 9110 14.1.2: a suffix is satisfiable if its length is "non-zero".
        if suffix == 0 || total == 0 {
            return unsatisfied;
        }
        return Some(ContentRange::Part { first: total.saturating_sub(suffix), last: total - 1, total });
    }
    let first = number(first)?;
    let last = if last.is_empty() { u64::MAX } else { number(last)? };
    // RFC 9110 14.1.1: such a range is invalid.
    if last < first {
        return None;
    }
    if first >= total {
        return unsatisfied;
    }
    Some(ContentRange::Part { first, last: last.min(total - 1), total })
}

fn number(digits: &str) -> Option<u64> {
    if digits.is_empty() || !digits.bytes().all(|octet| octet.is_ascii_digit()) {
        return None;
    }
    // More digits than fit lie beyond every end.
    Some(digits.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_range_is_read_and_anything_else_ignored() {
        let read = |field: &str| parse(field.as_bytes(), 1000).map(|range| range.to_string());
        let part = |text: &str| Some(format!("bytes {text}/1000"));
        for (field, expected) in [
            ("bytes=0-", part("0-999")),
            ("bytes=0-0", part("0-0")),
            ("Bytes=10-19", part("10-19")),
            ("bytes=990-5000", part("990-999")),
            ("bytes=-1", part("999-999")),
            ("bytes=-5000", part("0-999")),
            ("bytes=999-99999999999999999999999", part("999-999")),
            ("bytes=1000-", part("*")),
            ("bytes=99999999999999999999999-", part("*")),
            ("bytes=-0", part("*")),
            ("bytes=5-4", None),
            ("bytes=0-1,5-6", None),
            ("bytes=a-b", None),
            ("bytes=+1-2", None),
            ("bytes=", None),
            ("bytes=-", None),
            ("lines=0-1", None),
            ("0-1", None),
        ] {
            assert_eq!(read(field), expected, "{field}");
        }
        assert_eq!(parse(b"bytes=0-", 0), Some(ContentRange::Unsatisfied { total: 0 }));
        assert_eq!(parse(b"bytes=-1", 0), Some(ContentRange::Unsatisfied { total: 0 }));
        assert_eq!(parse(b"\xff", 10), None);
    }
}
