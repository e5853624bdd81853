#!/usr/bin/env bash
# Makes of a wheel one for machines that the engine does not run on: the same without its program, so it reads and draws
# runs and measures nothing. Usage: scripts/reading_wheel.sh WHEEL FOLDER
set -euo pipefail
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT
PATH=$(cd "$(dirname "$0")/.." && pwd)/.venv/bin:$PATH
wheel unpack --dest "$made" "$1" >/dev/null
rm "$made"/trifecta-*/trifecta-*.data/scripts/trifecta-engine
rm -rf "$made"/trifecta-*/trifecta-*.dist-info/sboms # of what the engine is made of
sed -i -e 's/^Root-Is-Purelib: .*/Root-Is-Purelib: true/' -e 's/^Tag: .*/Tag: py3-none-any/' "$made"/trifecta-*/trifecta-*.dist-info/WHEEL
mkdir -p "$2"
wheel pack --dest-dir "$2" "$made"/trifecta-*
