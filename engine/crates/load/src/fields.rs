//! Chosen fields of responses: which values came, and in how many fields each.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

/// Different values that are kept of a field; the others are counted.
const MOST_VALUES: usize = 64;
/// Octets that are kept of a value.
const MOST_OCTETS: usize = 512;

/// What the responses of a run had in one field. Responses of the warm-up count too.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct SeenField {
    /// How often each value came; one of more than 512 octets is cut, and octets that are no UTF-8 are replaced.
    pub values: BTreeMap<String, u64>,
    /// How often a value came when 64 others were kept already.
    pub others: u64,
}

/// The fields that are looked for, with what was seen. Without names nothing is asked of a response.
#[derive(Clone, Debug, Default)]
pub struct Fields {
    seen: BTreeMap<String, SeenField>,
}

impl Fields {
    /// Looks for fields of these names, which are in lower case.
    #[must_use]
    pub fn new(names: &[String]) -> Self {
        Self { seen: names.iter().map(|name| (name.clone(), SeenField::default())).collect() }
    }

    /// Whether any field is looked for.
    #[inline]
    #[must_use]
    pub fn wanted(&self) -> bool {
        !self.seen.is_empty()
    }

    /// Takes a field of a response, its name in any case.
    pub fn see(&mut self, name: &[u8], value: &[u8]) {
        let Some((_, seen)) = self.seen.iter_mut().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()))
        else {
            return;
        };
        let value = String::from_utf8_lossy(value.get(..MOST_OCTETS).unwrap_or(value)).trim().to_owned();
        if seen.values.len() < MOST_VALUES || seen.values.contains_key(&value) {
            *seen.values.entry(value).or_default() += 1;
        } else {
            seen.others += 1;
        }
    }

    /// Adds what another worker saw.
    pub fn merge(&mut self, other: &Self) {
        for (name, found) in &other.seen {
            let seen = self.seen.entry(name.clone()).or_default();
            seen.others += found.others;
            for (value, count) in &found.values {
                if seen.values.len() < MOST_VALUES || seen.values.contains_key(value) {
                    *seen.values.entry(value.clone()).or_default() += count;
                } else {
                    seen.others += count;
                }
            }
        }
    }

    /// The `response_fields` object of the summary: every name, also of a field that no response had.
    #[must_use]
    pub fn summary(&self) -> BTreeMap<String, SeenField> {
        self.seen.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields() -> Fields {
        Fields::new(&["age".to_owned(), "x-cache".to_owned()])
    }

    #[test]
    fn values_are_counted_under_their_name_whatever_its_case() {
        let mut fields = fields();
        for (name, value) in [("Age", " 3 "), ("age", "3"), ("age", "4"), ("server", "x"), (":status", "200")] {
            fields.see(name.as_bytes(), value.as_bytes());
        }
        let said = serde_json::to_value(fields.summary()).unwrap();
        let expected = serde_json::json!({
            "age": {"values": {"3": 2, "4": 1}, "others": 0}, "x-cache": {"values": {}, "others": 0}
        });
        assert_eq!(said, expected);
        assert!(fields.wanted() && !Fields::default().wanted());
    }

    #[test]
    fn what_a_server_says_takes_no_more_room_than_it_may() {
        let mut fields = fields();
        for number in 0..1000 {
            fields.see(b"age", number.to_string().as_bytes());
        }
        fields.see(b"x-cache", &[0xff; 10_000]);
        let (age, cache) = (&fields.summary()["age"], &fields.summary()["x-cache"]);
        assert_eq!((age.values.len(), age.others), (MOST_VALUES, 1000 - MOST_VALUES as u64));
        assert!(cache.values.keys().all(|value| value.chars().count() <= MOST_OCTETS));
    }

    #[test]
    fn workers_add_up() {
        let (mut one, mut other) = (fields(), fields());
        one.see(b"age", b"1");
        other.see(b"age", b"1");
        other.see(b"age", b"2");
        one.merge(&other);
        assert_eq!(one.summary()["age"].values, BTreeMap::from([("1".to_owned(), 2), ("2".to_owned(), 1)]));
        let mut full = fields();
        (0..MOST_VALUES).for_each(|number| full.see(b"age", format!("x{number}").as_bytes()));
        full.merge(&one);
        assert_eq!(full.summary()["age"].others, 3);
    }
}
