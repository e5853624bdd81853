//! What the engine does otherwise than a program that takes quinn-proto as it comes. Each can be switched off, so that
//! what it does to a result can be measured.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which adaptations are on. In documents a list of their names; all of them where it is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(try_from = "Vec<String>", into = "Vec<String>")]
pub struct Adaptations {
    /// Cubic and NewReno grow their window by Linux's rule for TCP (`window_validation`).
    pub window_validation: bool,
    /// Padding behind the frames of a received packet is cut off before it is read (`padding`).
    pub padding_cut: bool,
    /// Transport parameters stand in order, without a reserved one (greasing, RFC 9000 section 18.1).
    pub parameters_in_order: bool,
    /// Packets carry no ECN codepoint, as Linux's TCP asks for none by itself (`net.ipv4.tcp_ecn` = 2).
    pub no_ecn: bool,
    /// Settings that quinn-proto offers: packets of full size from the first on, an initial window of ten of them, receive
    /// windows that do not limit, short connection identifiers, no spare tokens, responses one after the other.
    pub settings: bool,
}

impl Adaptations {
    /// What the engine does by itself.
    pub const ALL: Self =
        Self { window_validation: true, padding_cut: true, parameters_in_order: true, no_ecn: true, settings: true };
    /// quinn-proto as it comes.
    pub const NONE: Self = Self {
        window_validation: false,
        padding_cut: false,
        parameters_in_order: false,
        no_ecn: false,
        settings: false,
    };
    /// In the order of the fields.
    pub const NAMES: [&str; 5] = ["window-validation", "padding-cut", "parameters-in-order", "no-ecn", "settings"];

    /// The names of those that are on.
    #[must_use]
    pub fn names(self) -> Vec<&'static str> {
        let on = [self.window_validation, self.padding_cut, self.parameters_in_order, self.no_ecn, self.settings];
        Self::NAMES.into_iter().zip(on).filter_map(|(name, on)| on.then_some(name)).collect()
    }
}

impl Default for Adaptations {
    fn default() -> Self {
        Self::ALL
    }
}

impl TryFrom<Vec<String>> for Adaptations {
    type Error = String;

    fn try_from(names: Vec<String>) -> Result<Self, String> {
        if let Some(unknown) = names.iter().find(|name| !Self::NAMES.contains(&name.as_str())) {
            let known = Self::NAMES.join(", ");
            return Err(format!("unknown field `quic_adaptations`: it has no '{unknown}'; known: {known}"));
        }
        let on = |name: &str| names.iter().any(|one| one == name);
        let [window_validation, padding_cut, parameters_in_order, no_ecn, settings] = Self::NAMES.map(on);
        Ok(Self { window_validation, padding_cut, parameters_in_order, no_ecn, settings })
    }
}

impl From<Adaptations> for Vec<String> {
    fn from(adaptations: Adaptations) -> Self {
        adaptations.names().into_iter().map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_switches_agree() {
        for (names, expected) in [
            (r"[]".to_owned(), Adaptations::NONE),
            (serde_json::to_string(&Adaptations::NAMES).unwrap(), Adaptations::ALL),
            (r#"["no-ecn"]"#.to_owned(), Adaptations { no_ecn: true, ..Adaptations::NONE }),
        ] {
            let read: Adaptations = serde_json::from_str(&names).unwrap();
            assert_eq!(read, expected);
            assert_eq!(serde_json::to_string(&read).unwrap(), names);
        }
        let wrong = serde_json::from_str::<Adaptations>(r#"["ecn"]"#).unwrap_err().to_string();
        assert!(wrong.contains("`quic_adaptations`") && wrong.contains("'ecn'"), "{wrong}");
    }
}
