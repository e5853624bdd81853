#!/usr/bin/env bash
# Builds the engine as one static program: it needs no C library on a host by SSH, however old that is (docs/hosts.md).
# It has glibc in it, as the other has it beside it: another libc would measure otherwise.
# Usage: scripts/static.sh [FILE]    FILE: where it is put; by default where `trifecta` looks for it
set -euo pipefail
cd "$(dirname "$0")/.."
folder=${CARGO_TARGET_DIR:-engine/target}
made=${1:-$folder/static/trifecta-engine}

refuse() {
    printf 'static: %s\n' "$*" >&2
    exit 3
}

PATH=$PATH:$HOME/.cargo/bin
command -v cargo >/dev/null || refuse "needs Rust (cargo); run: make setup"
target=$(rustc -vV | sed -n 's/^host: //p')
[[ $target == *-linux-gnu ]] || refuse "builds for linux-gnu, and Rust here is of $target; use a Rust of linux-gnu"
try=$(mktemp -d)
trap 'rm -rf "$try"' EXIT
echo 'int main(void) { return 0; }' >"$try/try.c"
cc -static -o "$try/try" "$try/try.c" 2>/dev/null ||
    refuse "needs a C compiler and glibc to link statically; run: apt-get install build-essential"

# The target is named so that the flags are not those of build scripts and procedural macros too, which must be shared.
RUSTFLAGS="${RUSTFLAGS:-} -C target-feature=+crt-static" cargo rustc --quiet --release --locked \
    --manifest-path engine/Cargo.toml --target-dir "$folder" --target "$target" \
    --bin trifecta-engine -- -C strip=symbols
built=$folder/$target/release/trifecta-engine
headers=$(LC_ALL=C readelf -lW "$built")
[[ $headers != *INTERP* ]] || refuse "$built still asks for a shared C library; report this"
"$built" --version >/dev/null || refuse "$built does not start; report this"
mkdir -p "$(dirname "$made")"
cp "$built" "$made.new" # with the time of now: `trifecta` refuses one that is older than the engine beside it
mv -f "$made.new" "$made"
printf 'static: %s\n' "$made" >&2
