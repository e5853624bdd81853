//! The messages that are sent into cycles: the client's own entry, and a body that is filler or the user's JSON.

use std::fs;
use std::io::Write;
use std::path::Path;

use serde_json::value::RawValue;
use trifecta_session::content;
use trifecta_session::options::FieldError;

use crate::config::{Config, MessageSource};

/// What a service takes at most.
pub(crate) const MAX_MESSAGE_OCTETS: u64 = 16_000_000;
/// More than the entries of the services take, ample for a dozen of them.
const ENTRY_OCTETS: u64 = 4096;

/// The messages of a run.
#[derive(Debug)]
pub(crate) struct Messages {
    /// All before the time of the call.
    before: Vec<u8>,
    /// What follows it, one for each body.
    after: Vec<Vec<u8>>,
}

impl Messages {
    /// The messages that a configuration asks for.
    ///
    /// # Errors
    /// As [`Messages::new`].
    pub(crate) fn of(config: &Config) -> Result<Option<Self>, FieldError> {
        let (Some(source), Some(to)) = (&config.message, &config.to) else { return Ok(None) };
        Self::new(source, &config.service, to, config.method.name(), &config.path).map(Some)
    }

    /// The messages of the calls of `service` to `to`.
    ///
    /// # Errors
    /// `message.body_bytes` or `message.folder`: too much for a message, no folder, no file in it, a file that is no JSON.
    fn new(source: &MessageSource, service: &str, to: &str, method: &str, path: &str) -> Result<Self, FieldError> {
        let bodies = match source {
            MessageSource::BodyBytes(body_bytes) => vec![filler(*body_bytes)?],
            MessageSource::Folder(folder) => read_folder(folder)?,
        };
        let text = |text: &str| serde_json::Value::from(text).to_string();
        let before = format!(
            r#"{{"message":{{"meta":[{{"service":{},"to":{},"method":{},"path":{},"forwarded_ns":"#,
            text(service),
            text(to),
            text(method),
            text(path),
        );
        let after = bodies.into_iter().map(|body| [br#"}],"body":"#, &body[..], b"}}"].concat()).collect();
        Ok(Self { before: before.into_bytes(), after })
    }

    /// The message of the `request`-th cycle, whose call began at `started_ns`.
    pub(crate) fn message(&self, request: u64, started_ns: u64) -> Vec<u8> {
        let after = &self.after[(request % self.after.len() as u64) as usize];
        let mut octets = Vec::with_capacity(self.before.len() + 20 + after.len());
        octets.extend_from_slice(&self.before);
        // Writing to a Vec cannot fail.
        let _ = write!(octets, "{started_ns}");
        octets.extend_from_slice(after);
        octets
    }
}

/// A text of the pattern, in its quotation marks.
fn filler(octets: u64) -> Result<Vec<u8>, FieldError> {
    if octets > MAX_MESSAGE_OCTETS - ENTRY_OCTETS {
        return Err(FieldError::new(
            "message.body_bytes",
            format!("{octets} is too much, a message has at most 16 MB"),
        ));
    }
    let mut text = Vec::with_capacity(octets as usize + 2);
    text.push(b'"');
    let mut offset = 0;
    while offset < octets {
        let piece = content::piece(offset, octets - offset);
        text.extend_from_slice(piece);
        offset += piece.len() as u64;
    }
    text.push(b'"');
    Ok(text)
}

/// The files `*.json` of a folder, in the order of their names.
fn read_folder(folder: &Path) -> Result<Vec<Vec<u8>>, FieldError> {
    let wrong = |path: &Path, what: &dyn std::fmt::Display| {
        FieldError::new("message.folder", format!("{}: {what}", path.display()))
    };
    let entries = fs::read_dir(folder).map_err(|error| wrong(folder, &error))?;
    let mut paths = entries
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong(folder, &error))?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
    paths.sort();
    if paths.is_empty() {
        return Err(wrong(folder, &"holds no file *.json; give at least one"));
    }
    paths
        .iter()
        .map(|path| {
            let size = fs::metadata(path).map_err(|error| wrong(path, &error))?.len();
            if size > MAX_MESSAGE_OCTETS - ENTRY_OCTETS {
                return Err(wrong(path, &"is too large, a message has at most 16 MB"));
            }
            let octets = fs::read(path).map_err(|error| wrong(path, &error))?;
            let value: &RawValue =
                serde_json::from_slice(&octets).map_err(|error| wrong(path, &format!("is no JSON ({error})")))?;
            Ok(value.get().as_bytes().to_vec())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    struct Folder(std::path::PathBuf);

    impl Folder {
        fn new(name: &str, files: &[(&str, &str)]) -> Self {
            let path = std::env::temp_dir().join(format!("trifecta-messages-{}-{name}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            files.iter().for_each(|(file, text)| fs::write(path.join(file), text).unwrap());
            Self(path)
        }

        fn messages(&self) -> Result<Messages, FieldError> {
            Messages::new(&MessageSource::Folder(self.0.clone()), "A", "B", "POST", "/chain")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    fn written(messages: &Messages, request: u64) -> Value {
        serde_json::from_slice(&messages.message(request, 1234)).unwrap()
    }

    #[test]
    fn a_message_has_the_clients_entry_and_filler() {
        let messages = Messages::new(&MessageSource::BodyBytes(30), "A", "B\"", "PUT", "/x").unwrap();
        let expected = json!({"message": {
            "meta": [{"service": "A", "to": "B\"", "method": "PUT", "path": "/x", "forwarded_ns": 1234}],
            "body": "abcdefghijklmnopqrstuvwxyzabcd"}});
        assert_eq!(written(&messages, 7), expected);
        let empty = Messages::new(&MessageSource::BodyBytes(0), "A", "B", "PUT", "/x").unwrap();
        assert_eq!(written(&empty, 0)["message"]["body"], json!(""));
        let long = Messages::new(&MessageSource::BodyBytes(100_000), "A", "B", "PUT", "/x").unwrap();
        assert_eq!(written(&long, 0)["message"]["body"].as_str().unwrap().len(), 100_000);
        let error = Messages::new(&MessageSource::BodyBytes(1 << 24), "A", "B", "PUT", "/x").unwrap_err();
        assert_eq!(error.field, "message.body_bytes");
    }

    #[test]
    fn files_are_used_in_turn_in_the_order_of_their_names() {
        let folder = Folder::new("turn", &[("b.json", " [1, 2]\n"), ("a.json", r#"{"k": "\u00e9"}"#), ("c.txt", "no")]);
        let messages = folder.messages().unwrap();
        let bodies: Vec<Value> = (0..4).map(|request| written(&messages, request)["message"]["body"].clone()).collect();
        assert_eq!(bodies, [json!({"k": "\u{e9}"}), json!([1, 2]), json!({"k": "\u{e9}"}), json!([1, 2])]);
    }

    #[test]
    fn files_that_cannot_be_sent_are_named() {
        let message = |folder: &Folder| {
            let error = folder.messages().unwrap_err();
            assert_eq!(error.field, "message.folder");
            error.message
        };
        let broken = Folder::new("broken", &[("a.json", "{}"), ("b.json", "{\"a\": }")]);
        assert!(message(&broken).contains("b.json: is no JSON (expected value at line 1"), "{}", message(&broken));
        let double = Folder::new("double", &[("a.json", "{} {}")]);
        assert!(message(&double).contains("is no JSON (trailing characters at line 1"), "{}", message(&double));
        assert!(message(&Folder::new("empty", &[("a.txt", "{}")])).contains("holds no file *.json"));
        let missing = Folder(std::env::temp_dir().join("trifecta-no-such-folder"));
        assert!(message(&missing).contains("No such file"));
    }
}
