//! Tells the program the versions of the libraries that it is about.

fn main() {
    println!("cargo::rerun-if-changed=Cargo.lock");
    let lock = std::fs::read_to_string("Cargo.lock").unwrap_or_default();
    for package in ["quiche", "hyper", "boring"] {
        let heading = format!("name = \"{package}\"\nversion = \"");
        let version = lock.split_once(&heading).and_then(|(_, rest)| rest.split('"').next()).unwrap_or("unknown");
        println!("cargo::rustc-env={}_VERSION={version}", package.to_uppercase());
    }
}
