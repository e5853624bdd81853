#!/usr/bin/env bash
# Builds the OCI image of this checkout and tries it: its version, `trifecta stat` against its own origin, a short race.
# Usage: scripts/image.sh [NAME]        NAME: trifecta, unless given
#   BASE=scratch    make the base out of Debian's packages (debootstrap, as root) instead of taking it from a registry
#   EXTRAS=[...]    extras of the package, such as [capture]
# Where no Docker Engine answers, root starts one for this, which is gone afterwards.
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:-trifecta}
suite=bookworm python=3.11
tmp=$(mktemp -d)
daemon=""

say() { printf 'image: %s\n' "$*" >&2; }
finish() {
    [ -z "$daemon" ] || { kill "$daemon" && wait "$daemon"; } || true
    umount "$tmp"/exec/netns/* 2>/dev/null || true # the engine leaves its namespaces mounted
    rm -rf "$tmp"
}
trap finish EXIT

if ! docker info >/dev/null 2>&1; then
    [ "$(id -u)" -eq 0 ] || { say "no Docker Engine answers; start one, or run this as root"; exit 3; }
    say "starting a Docker Engine"
    export DOCKER_HOST=unix://$tmp/docker.sock
    echo '{}' >"$tmp/daemon.json"
    # With `container` set it loads no AppArmor profile into the kernel.
    PATH=$PATH:/usr/sbin:/sbin container=trifecta dockerd --exec-opt native.cgroupdriver=cgroupfs --config-file "$tmp/daemon.json" --data-root "$tmp/data" --exec-root "$tmp/exec" \
        --pidfile "$tmp/pid" --host "$DOCKER_HOST" --bridge none --iptables=false --ip-forward=false \
        --log-level warn >"$tmp/dockerd.log" 2>&1 &
    daemon=$!
    for _ in $(seq 100); do docker info >/dev/null 2>&1 && break; sleep 0.3; done
    docker info >/dev/null || { tail -5 "$tmp/dockerd.log" >&2; exit 3; }
fi

say "gathering wheels"
rm -rf dist/image && mkdir -p dist/image
.venv/bin/maturin build --quiet --release --target-dir engine/target --out dist/image
.venv/bin/python -m pip download -q --dest dist/image --constraint requirements.lock --only-binary :all: \
    --python-version $python --platform manylinux_2_36_x86_64 --platform manylinux_2_34_x86_64 \
    --platform manylinux_2_28_x86_64 --platform manylinux_2_17_x86_64 --platform manylinux2014_x86_64 \
    "$(ls "$PWD"/dist/image/trifecta-*.whl)${EXTRAS:-}"

base=${BASE:-docker.io/library/debian:$suite-slim}
if [ "$base" = scratch ]; then
    say "making the base out of Debian's packages"
    debootstrap --variant=minbase --include=iproute2,python3,python3-venv $suite "$tmp/root" >"$tmp/debootstrap.log" ||
        { tail -5 "$tmp/debootstrap.log" >&2; exit 3; }
    (cd "$tmp/root" && rm -rf var/cache/apt var/lib/apt/lists)
    base=trifecta-base:$suite
    tar -C "$tmp/root" -c . | docker import - "$base" >/dev/null
    rm -rf "$tmp/root"
fi
say "building $name"
docker build --network host --file Containerfile --build-arg BASE="$base" --build-arg EXTRAS="${EXTRAS:-}" --tag "$name" .
docker image inspect --format 'image: {{.Size}} octets' "$name" >&2

say "trying it"
docker run --rm --network none "$name" --version
# The lab makes network, mount and process namespaces of its own, and its link runs in real time. (`--privileged` gives
# all of that and more, but not where the host itself lacks a capability.)
lab=(--cap-add SYS_ADMIN --cap-add NET_ADMIN --cap-add SYS_NICE --cap-add IPC_LOCK)
lab+=(--security-opt seccomp=unconfined --security-opt apparmor=unconfined --security-opt systempaths=unconfined)
docker run --rm --network none "${lab[@]}" "$name" race --set path=clean --set connection=reused --server origin \
    --blocks 3 --out run && code=0 || code=$?
[ "$code" -le 1 ] || exit "$code" # 1: three blocks need not decide anything
