//! SSLKEYLOGFILE: secrets in the NSS key log format, to a file named by the configuration.

use std::fmt::{self, Write as _};
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Mutex;

use rustls::KeyLog;

/// Appends each secret as one line; readable by the owner only.
pub struct KeyLogWriter {
    file: Mutex<File>,
}

impl KeyLogWriter {
    /// Opens `path` for appending.
    ///
    /// # Errors
    /// As open(2).
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
        Ok(Self { file: Mutex::new(file) })
    }
}

impl KeyLog for KeyLogWriter {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        let mut line = String::with_capacity(label.len() + 2 * (client_random.len() + secret.len()) + 3);
        line.push_str(label);
        for octets in [client_random, secret] {
            line.push(' ');
            for octet in octets {
                let _ = write!(line, "{octet:02x}");
            }
        }
        line.push('\n');
        // One write of a whole line on an O_APPEND file, so that processes may share it.
        let result = self.file.lock().map(|mut file| file.write_all(line.as_bytes()));
        if let Ok(Err(error)) = result {
            eprintln!("error: keylog_file: {error}");
        }
    }
}

impl fmt::Debug for KeyLogWriter {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("KeyLogWriter")
    }
}
