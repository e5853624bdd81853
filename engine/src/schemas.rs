//! The JSON Schemas of every configuration that the engine reads and of every line that it writes, for those who are at the
//! other end. `engine/schemas` holds them; a test compares.

use std::io;
use std::path::Path;

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

use crate::Version;

/// Writes each schema to `FOLDER/NAME.json`.
///
/// # Errors
/// As open(2) and write(2).
pub fn write(folder: &Path) -> io::Result<()> {
    for (name, text) in texts() {
        std::fs::write(folder.join(format!("{name}.json")), text)?;
    }
    Ok(())
}

/// Name and text of each schema.
fn texts() -> Vec<(&'static str, String)> {
    let text = |(name, schema): (&'static str, Schema)| (name, format!("{:#}\n", schema.to_value()));
    all().into_iter().map(text).collect()
}

fn all() -> Vec<(&'static str, Schema)> {
    vec![
        ("load.config", read::<trifecta_load::config::Config>()),
        ("load.ready", written::<trifecta_load::summary::Ready>()),
        ("load.summary", written::<trifecta_load::summary::Summary>()),
        ("origin.config", read::<trifecta_origin::config::Config>()),
        ("origin.ready", written::<trifecta_origin::summary::Ready>()),
        ("origin.summary", written::<trifecta_origin::summary::Summary>()),
        ("link.config", read::<trifecta_link::config::Document>()),
        ("link.ready", written::<trifecta_link::summary::Ready>()),
        ("link.summary", written::<trifecta_link::summary::Summary>()),
        ("probe.config", read::<trifecta_probe::config::Config>()),
        ("probe.ready", written::<trifecta_probe::summary::Ready>()),
        ("probe.summary", written::<trifecta_probe::summary::Summary>()),
        ("version", written::<Version>()),
        ("error_class", written::<trifecta_wire::ErrorClass>()),
    ]
}

/// Of a document that is read: what may be left out is not required.
fn read<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_deserialize().into_generator().into_root_schema_for::<T>()
}

/// Of a line that is written: what is always there is required.
fn written<T: JsonSchema>() -> Schema {
    SchemaSettings::draft2020_12().for_serialize().into_generator().into_root_schema_for::<T>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_in_the_repository_are_those_of_this_engine() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        let mut files: Vec<String> = std::fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        let mut expected: Vec<String> = texts().iter().map(|(name, _)| format!("{name}.json")).collect();
        expected.sort();
        assert_eq!(files, expected, "run `trifecta-engine schema engine/schemas`");
        for (name, text) in texts() {
            let kept = std::fs::read_to_string(folder.join(format!("{name}.json"))).unwrap();
            assert_eq!(kept, text, "{name}: run `trifecta-engine schema engine/schemas`");
        }
    }
}
