//! Tells the program the versions of the libraries whose behaviour is part of every result.

use std::path::Path;

fn main() {
    let lock = Path::new("../../Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = std::fs::read_to_string(lock).unwrap_or_default();
    for (package, variable) in [("rustls", "TRIFECTA_RUSTLS_VERSION"), ("quinn-proto", "TRIFECTA_QUINN_PROTO_VERSION")]
    {
        let heading = format!("name = \"{package}\"\nversion = \"");
        let version = text.split_once(&heading).and_then(|(_, rest)| rest.split('"').next()).unwrap_or("unknown");
        println!("cargo::rustc-env={variable}={version}");
    }
}
