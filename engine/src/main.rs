//! The command line of the engine: which part to run and the configuration it gets, nothing else.

use std::io::{BufRead, Read};
use std::path::Path;
use std::process::ExitCode;

use schemars::JsonSchema;
use serde::Serialize;

mod schemas;

const HELP: &str = "trifecta-engine: what sends, serves or carries a measured byte

Usage:
  trifecta-engine load   CONFIG   ask an HTTP/1.1, HTTP/2 or HTTP/3 server and record every request
  trifecta-engine origin CONFIG   answer over HTTP/1.1, HTTP/2 and HTTP/3 on one port
  trifecta-engine link   CONFIG   carry packets between two network devices through impairments
  trifecta-engine probe  CONFIG   measure what a path does to packets
  trifecta-engine schema FOLDER   write the JSON Schema of every configuration and line into a folder
  trifecta-engine --version       versions, as JSON
  trifecta-engine --help          this text

CONFIG is a file with one JSON document, or '-' for one JSON document on one line of standard input.
The fields are in docs/architecture.md, section 1. One line {\"ready\": ...} says that the part can be used,
one line {\"summary\": ...} ends it. It ends on SIGTERM, SIGINT, or when a piped standard input closes.

Exit codes: 0 done, 2 bad input, 3 cannot (no permission, port taken, disk full), 127 unsupported here.

Example:
  echo '{\"address\": \"127.0.0.1\", \"port\": 9009, \"role\": \"reflect\"}' > reflect.json
  trifecta-engine probe reflect.json
";

/// Exit code for input that the user has to mend.
const BAD_INPUT: u8 = 2;

/// A configuration document longer than this is refused.
const MAX_CONFIG_BYTES: u64 = 64 << 20;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [command, folder] = arguments.as_slice()
        && command == "schema"
    {
        return match schemas::write(Path::new(folder)) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => refuse(&format!("error: schema: '{folder}': {error}; name a folder that can be written")),
        };
    }
    let run: fn(&str) -> i32 = match arguments.first().map(String::as_str) {
        Some("load") => trifecta_load::run,
        Some("origin") => trifecta_origin::run,
        Some("link") => trifecta_link::run,
        Some("probe") => trifecta_probe::run,
        Some("--version" | "-V") => {
            println!("{}", serde_json::json!(version()));
            return ExitCode::SUCCESS;
        }
        Some("--help" | "-h" | "help") => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Some("schema") => return refuse("error: schema: name one folder, which the schemas are written to"),
        Some(other) => {
            return refuse(&format!("error: command: unknown '{other}'; use load, origin, link, probe or schema"));
        }
        None => return refuse("error: command: missing; use load, origin, link, probe or schema (see --help)"),
    };
    let [_, source] = arguments.as_slice() else {
        return refuse("error: config: name one file, or '-' for standard input");
    };
    if matches!(source.as_str(), "--help" | "-h") {
        print!("{HELP}");
        return ExitCode::SUCCESS;
    }
    match read_config(source) {
        Ok(text) => exit_code(run(&text)),
        Err(error) => refuse(&format!("error: config: cannot read '{source}': {error}; name a readable JSON file")),
    }
}

/// Reads the whole file, or one line of standard input so that the rest of the pipe can stay open.
fn read_config(source: &str) -> std::io::Result<String> {
    let mut text = String::new();
    let read = if source == "-" {
        std::io::stdin().lock().take(MAX_CONFIG_BYTES).read_line(&mut text)?
    } else {
        std::fs::File::open(source)?.take(MAX_CONFIG_BYTES).read_to_string(&mut text)?
    };
    if read as u64 == MAX_CONFIG_BYTES {
        return Err(std::io::Error::other("longer than 64 MiB"));
    }
    Ok(text)
}

/// What `--version` says.
#[derive(Serialize, JsonSchema)]
struct Version {
    engine: &'static str,
    rustls: Option<&'static str>,
    quinn_proto: Option<&'static str>,
    aws_lc_rs: Option<&'static str>,
    parquet: Option<&'static str>,
    architecture: &'static str,
    quic_adaptations: Vec<&'static str>,
}

fn version() -> Version {
    Version {
        engine: env!("CARGO_PKG_VERSION"),
        rustls: locked_version("rustls"),
        quinn_proto: locked_version("quinn-proto"),
        aws_lc_rs: locked_version("aws-lc-rs"),
        parquet: locked_version("parquet"),
        architecture: std::env::consts::ARCH,
        quic_adaptations: trifecta_wire::quic::Adaptations::NAMES.to_vec(),
    }
}

/// Version of a dependency as the lock file this binary was built with names it.
fn locked_version(package: &str) -> Option<&'static str> {
    const LOCK: &str = include_str!("../Cargo.lock");
    let entry = format!("name = \"{package}\"");
    let mut lines = LOCK.lines().skip_while(|line| *line != entry);
    lines.nth(1)?.strip_prefix("version = \"")?.strip_suffix('"')
}

fn refuse(message: &str) -> ExitCode {
    eprintln!("{message}");
    ExitCode::from(BAD_INPUT)
}

fn exit_code(code: i32) -> ExitCode {
    ExitCode::from(u8::try_from(code).unwrap_or(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_come_from_the_lock_file() {
        assert!(locked_version("rustls").is_some_and(|version| version.starts_with("0.23")));
        assert_eq!(locked_version("no-such-package"), None);
    }
}
