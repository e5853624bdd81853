#!/usr/bin/env bash
# Sets Trifecta up in this checkout: system packages (as root), .venv, the engine. Does again only what has changed.
# Usage: scripts/setup.sh [run|dev|long]    run: what `trifecta race` needs; dev: what `make test` needs as well;
#   long: and `make test-long`
set -euo pipefail
cd "$(dirname "$0")/.."
kind=${1:-run}
long=no
[ "$kind" = long ] && kind=dev long=yes

say() { printf 'setup: %s\n' "$*" >&2; }
refuse() {
    say "$*"
    exit 3
}

find_python() {
    local name
    for name in python3 python3.14 python3.13 python3.12 python3.11; do
        if command -v "$name" >/dev/null && "$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            command -v "$name"
            return
        fi
    done
}

# System packages: `ip` raises the lab's networks, a C compiler builds the engine's cryptography.
packages=()
command -v ip >/dev/null || [ -x /usr/sbin/ip ] || [ -x /sbin/ip ] || packages+=(iproute2)
command -v cc >/dev/null || packages+=(build-essential)
python=$(find_python)
if [ -z "$python" ]; then
    packages+=(python3 python3-venv)
elif [ ! -x .venv/bin/python ] && ! "$python" -c 'import venv, ensurepip' 2>/dev/null; then
    packages+=("$(basename "$(readlink -f "$python")")-venv")
fi
if [ ${#packages[@]} -gt 0 ]; then
    install="apt-get install -y --no-install-recommends ${packages[*]}"
    command -v apt-get >/dev/null || refuse "needs ${packages[*]}; install them with this system's package manager"
    if [ "$(id -u)" -ne 0 ]; then
        refuse "needs ${packages[*]}; run: sudo $install"
    fi
    say "installing ${packages[*]}"
    DEBIAN_FRONTEND=noninteractive apt-get update -qq
    DEBIAN_FRONTEND=noninteractive $install -qq >/dev/null
    python=$(find_python)
    [ -n "$python" ] || refuse "needs Python 3.11 or newer; this system's is $(python3 --version 2>&1)"
fi

# The engine: cargo itself sees what has changed. It compiles while packages are fetched; the build of our own package,
# which is the last of them, waits for it and finds it built.
PATH=$PATH:$HOME/.cargo/bin
command -v cargo >/dev/null ||
    refuse "needs Rust 1.88 or newer (cargo); install it with rustup (rustup.rs): rustup toolchain install stable"
rust=$(rustc --version | awk '{ print $2 }')
printf '1.88\n%s\n' "$rust" | sort -CV || refuse "needs Rust 1.88 or newer, found $rust; run: rustup update stable"
[ -x engine/target/release/trifecta-engine ] || say "building the engine (some minutes the first time)"
# As maturin calls it for the wheel: with other flags each would build anew what the other has built.
cargo rustc --quiet --release --locked --manifest-path engine/Cargo.toml --target-dir engine/target \
    --bin trifecta-engine -- -C strip=symbols &
building=$! policy=""
ended() { # whatever ends this script, nothing of it goes on
    [ -z "$building" ] || kill "$building" 2>/dev/null || true
    [ -z "$policy" ] || rm -f "$policy"
}
trap ended EXIT
await_engine() {
    [ -n "$building" ] || return 0
    wait "$building" || { building="" && refuse "the engine was not built"; }
    building=""
}

# What only tests of browsers, videos, captures, hosts by SSH and load balancers need: they are skipped without.
extras=()
command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null ||
    extras+=(chromium)
command -v firefox-esr >/dev/null || command -v firefox >/dev/null || extras+=(firefox-esr)
command -v certutil >/dev/null || extras+=(libnss3-tools)
command -v ffmpeg >/dev/null || extras+=(ffmpeg)
command -v tshark >/dev/null || extras+=(tshark)
hint="for page loads, videos and captures: apt-get install -y --no-install-recommends ${extras[*]:-}"
if [ "$kind" = dev ]; then # the command needs neither
    command -v ssh-keygen >/dev/null || extras+=(openssh-client)
    [ -n "${TRIFECTA_TEST_SSHD:-}" ] || command -v sshd >/dev/null || [ -x /usr/sbin/sshd ] || extras+=(openssh-server)
    command -v nft >/dev/null || [ -x /usr/sbin/nft ] || extras+=(nftables)
    hint="for tests of page loads, videos, captures, hosts and load balancers: apt-get install -y --no-install-recommends ${extras[*]:-}"
fi
# Servers that exports are tested against, 35 MB; a system that has not all of them lacks nothing else.
stores=()
if [ "$kind" = dev ]; then
    command -v influxd >/dev/null || stores+=(influxdb)
    command -v mariadbd >/dev/null || [ -x /usr/sbin/mariadbd ] || stores+=(mariadb-server-core)
    command -v prometheus >/dev/null || stores+=(prometheus)
    command -v my_print_defaults >/dev/null || stores+=(mariadb-client-core) # which makes the server's tables
fi
# The engine that tests of containers start in the lab, 300 MB.
containers=()
if [ "$kind" = dev ]; then
    command -v dockerd >/dev/null || [ -x /usr/sbin/dockerd ] || containers+=(docker.io iptables)
fi
# Virtual machines as hosts, 110 MB; chronyd keeps their clocks. Debian's packages as the base of the image.
machines=()
if [ "$long" = yes ]; then
    command -v qemu-system-x86_64 >/dev/null || machines+=(qemu-system-x86)
    command -v busybox >/dev/null || machines+=(busybox-static)
    [ -x /usr/sbin/depmod ] || machines+=(kmod)
    command -v cpio >/dev/null || machines+=(cpio)
    command -v chronyd >/dev/null || [ -x /usr/sbin/chronyd ] || machines+=(chrony)
    command -v ethtool >/dev/null || [ -x /usr/sbin/ethtool ] || machines+=(ethtool)
    command -v debootstrap >/dev/null || [ -x /usr/sbin/debootstrap ] || machines+=(debootstrap)
fi
install_for_tests() {
    say "installing $*"
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends -qq "$@" >/dev/null ||
        say "not installed: $*; tests that need them will be skipped"
}
if [ "$kind" = dev ] && [ $((${#extras[@]} + ${#stores[@]} + ${#containers[@]} + ${#machines[@]})) -gt 0 ]; then
    if [ "$(id -u)" -eq 0 ] && command -v apt-get >/dev/null; then
        # The tests start servers of their own, in a network or on a port of their own: this machine gets no service.
        if [ ! -e /usr/sbin/policy-rc.d ]; then
            policy=/usr/sbin/policy-rc.d
            printf '#!/bin/sh\nexit 101\n' >"$policy"
            chmod 755 "$policy"
        fi
        DEBIAN_FRONTEND=noninteractive apt-get update -qq
        [ ${#extras[@]} -eq 0 ] || install_for_tests "${extras[@]}"
        [ ${#stores[@]} -eq 0 ] || install_for_tests "${stores[@]}"
        [ ${#containers[@]} -eq 0 ] || install_for_tests "${containers[@]}"
        [ ${#machines[@]} -eq 0 ] || install_for_tests "${machines[@]}"
        [ -z "$policy" ] || rm -f "$policy"
        # Nor at the next boot.
        if [[ " ${extras[*]:-} " == *" openssh-server "* ]]; then
            systemctl disable --quiet ssh.service ssh.socket 2>/dev/null || true
        fi
        if [[ " ${machines[*]:-} " == *" chrony "* ]]; then
            systemctl disable --quiet chrony.service 2>/dev/null || true
        fi
        if [[ " ${stores[*]:-} " == *" influxdb "* ]]; then
            systemctl disable --quiet influxdb.service 2>/dev/null || true
        fi
        if [[ " ${stores[*]:-} " == *" prometheus "* ]]; then
            systemctl disable --quiet prometheus.service 2>/dev/null || true
        fi
        if [ ${#containers[@]} -gt 0 ]; then
            systemctl disable --quiet docker.service docker.socket containerd.service 2>/dev/null || true
        fi
    else
        [ ${#extras[@]} -eq 0 ] || say "optional, $hint"
        [ ${#stores[@]} -eq 0 ] ||
            say "optional, for tests of exports: apt-get install -y --no-install-recommends ${stores[*]}"
        [ ${#containers[@]} -eq 0 ] ||
            say "optional, for tests of containers: apt-get install -y --no-install-recommends ${containers[*]}"
        [ ${#machines[@]} -eq 0 ] ||
            say "optional, for tests in virtual machines and of the image: apt-get install -y --no-install-recommends ${machines[*]}"
    fi
fi

# Python: versions are those of requirements.lock, in the project's own environment.
extra="[all]"
[ "$kind" = dev ] && extra="[dev]"
stamp=.venv/.set-up-$kind
wanted=$(cat pyproject.toml requirements.lock scripts/setup.sh engine/Cargo.toml | sha256sum)
up_to_date() { [ -f "$1" ] && [ "$(cat "$1")" = "$wanted" ] && [ -x .venv/bin/trifecta ]; }
if ! up_to_date "$stamp" && ! up_to_date .venv/.set-up-dev; then
    [ -x .venv/bin/python ] || "$python" -m venv .venv
    say "installing Python packages into .venv"
    rm -rf trifecta.egg-info # of setuptools, which built this before: it would go on telling the version of then
    # The constraint holds for the build of this package as well, so that nothing unpinned comes in.
    PIP_CONSTRAINT=$PWD/requirements.lock PIP_BUILD_CONSTRAINT=$PWD/requirements.lock PIP_DISABLE_PIP_VERSION_CHECK=1 \
        .venv/bin/python -m pip install -q -e ".$extra" || { await_engine && exit 1; }
    await_engine
    printf '%s' "$wanted" >"$stamp"
    [ "$kind" = dev ] || command -v dockerd >/dev/null || [ -x /usr/sbin/dockerd ] ||
        say "optional, for services in containers: apt-get install -y --no-install-recommends docker.io iptables"
    [ "$kind" = dev ] || [ ${#extras[@]} -eq 0 ] || say "optional, $hint"
fi
await_engine

# The player's library (npm, some 500 kB): without it the tests of players are skipped.
if [ "$kind" = dev ]; then
    .venv/bin/trifecta get hlsjs >/dev/null || say "not fetched: hlsjs; tests of players will be skipped"
fi

# A server of DynamoDB's protocol (npm, some MB, nothing of it is compiled): without it the tests of that export are skipped.
if [ "$kind" = dev ] && [ ! -f .cache/dynalite/node_modules/dynalite/cli.js ] && command -v npm >/dev/null; then
    say "installing dynalite"
    npm install --prefix .cache/dynalite --omit=optional --ignore-scripts --no-audit --no-fund dynalite@4.0.0 >/dev/null 2>&1 ||
        say "not installed: dynalite; tests that need it will be skipped"
fi

# Grafana's published types of a dashboard and what checks them, 30 MB: without them that test is skipped.
if [ "$long" = yes ] && [ ! -d .cache/grafana/node_modules/@grafana/schema ] && command -v npm >/dev/null; then
    say "installing Grafana's schema"
    npm install --prefix .cache/grafana --ignore-scripts --no-audit --no-fund @grafana/schema@11.6.0 typescript@5.8.3 >/dev/null 2>&1 ||
        say "not installed: Grafana's schema; the test that needs it will be skipped"
fi

# Debian's kernel for virtual machines, 11 MB of it; without it the tests of netem are skipped.
if [ "$long" = yes ] && [ ! -f .cache/vm/release ] && command -v qemu-system-x86_64 >/dev/null; then
    say "fetching Debian's kernel for virtual machines"
    PATH=$PATH:/usr/sbin:/sbin scripts/debian_kernel.sh .cache/vm >/dev/null 2>&1 ||
        say "not fetched: Debian's kernel; tests in virtual machines will be skipped"
fi

# Servers of S3's and Azure's protocols, a collector, Spark and another DuckDB, which take minutes and 900 MB, in folders of
# their own: no package needs them.
if [ "$long" = yes ]; then
    if [ ! -x .cache/bin/versitygw ] && command -v go >/dev/null; then
        say "building versitygw"
        GOBIN=$PWD/.cache/bin go install github.com/versity/versitygw/cmd/versitygw@v1.8.0 >/dev/null 2>&1 ||
            say "not built: versitygw; tests that need it will be skipped"
    fi
    if [ ! -x .cache/bin/otelcol ] && command -v go >/dev/null; then
        say "building OpenTelemetry's collector"
        { go run go.opentelemetry.io/collector/cmd/builder@v0.165.0 --config tests/store/otelcol.yaml &&
            install -D .cache/otelcol/otelcol .cache/bin/otelcol; } >/dev/null 2>&1 ||
            say "not built: otelcol; tests that need it will be skipped"
    fi
    if [ ! -d .cache/pyspark ] && command -v java >/dev/null; then
        say "installing pyspark"
        .venv/bin/python -m pip install -q --disable-pip-version-check --target .cache/pyspark pyspark==4.3.0 ||
            say "not installed: pyspark; tests that need it will be skipped"
    fi
    if [ ! -d .cache/s3a ] && command -v mvn >/dev/null; then
        say "fetching what Spark needs to read S3"
        mvn -q -f tests/store/s3a.xml dependency:copy-dependencies -DoutputDirectory="$PWD/.cache/s3a" >/dev/null 2>&1 ||
            say "not fetched: what Spark needs to read S3; tests that need it will be skipped"
    fi
    if [ ! -d .cache/azurite ] && command -v npm >/dev/null; then
        say "installing azurite"
        npm install --prefix .cache/azurite --ignore-scripts --no-audit --no-fund azurite@3.35.0 >/dev/null 2>&1 ||
            say "not installed: azurite; tests that need it will be skipped"
    fi
    if [ ! -d .cache/duckdb-httpfs ]; then
        say "installing DuckDB with its extension httpfs"
        .venv/bin/python -m pip install -q --disable-pip-version-check --no-deps --target .cache/duckdb-httpfs \
            duckdb==1.5.5 duckdb-extensions==1.5.5 duckdb-extension-httpfs==1.5.5 ||
            say "not installed: DuckDB's extension httpfs; tests that need it will be skipped"
    fi
fi
