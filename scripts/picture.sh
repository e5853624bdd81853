#!/usr/bin/env bash
# Makes docs/images/report.png, the picture in the README, of a run's report with headless Chromium.
# Usage: scripts/picture.sh RUN
set -euo pipefail
cd "$(dirname "$0")/.."
run=${1:?usage: scripts/picture.sh RUN}
browser=$(command -v chromium || command -v chromium-browser || command -v google-chrome) || {
    echo "picture: needs Chromium; run: sudo apt-get install -y chromium" >&2
    exit 3
}
.venv/bin/trifecta report "$run" >/dev/null
mkdir -p docs/images
profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
# Chromium in a sandbox of its own cannot run as root; the file shown is our own.
unsandboxed=()
[ "$(id -u)" -ne 0 ] || unsandboxed=(--no-sandbox)
"$browser" --headless "${unsandboxed[@]}" --disable-gpu --no-first-run --disable-background-networking --hide-scrollbars \
    --user-data-dir="$profile" --force-device-scale-factor=1.5 --window-size=1200,1600 \
    --screenshot="$PWD/docs/images/report.png" "file://$(realpath "$run")/report.html" 2>/dev/null
echo "docs/images/report.png"
