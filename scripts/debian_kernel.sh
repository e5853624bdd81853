#!/usr/bin/env bash
# Debian's kernel for virtual machines in which tests are run: FOLDER/vmlinuz, FOLDER/modules, FOLDER/initrd.gz.
# Nothing is installed: the package is unpacked. Its first program makes this machine's files the root of the virtual one,
# read only, with what is written there in memory, and starts the script that `script=` on the kernel's command line names.
set -euo pipefail
folder=$1
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
name=$(apt-cache depends linux-image-amd64 | awk '/Depends: linux-image/ { print $2; exit }')
[ -n "$name" ] || { echo "debian_kernel: no package linux-image-amd64; run: apt-get update" >&2; exit 1; }
(cd "$unpacked" && apt-get -q download "$name" >/dev/null 2>&1 && dpkg -x ./*.deb tree)
release=$(ls "$unpacked/tree/lib/modules")
depmod -b "$unpacked/tree" "$release"

# The files of these modules and of those that they need, in the order in which they are loaded.
files_of() {
    local module
    for module in "$@"; do
        modprobe -d "$unpacked/tree" -S "$release" --show-depends "$module" | awk '/^insmod/ { print $2 }'
    done | awk '!seen[$0]++'
}

start=$unpacked/start
mkdir -p "$start"/{bin,modules,proc,sys,dev,new,low,up}
cp "$(command -v busybox)" "$start/bin/busybox"
files_of virtio_pci 9pnet_virtio 9p overlay virtio_net | while read -r file; do
    cp "$file" "$start/modules/"
    echo "/modules/$(basename "$file")"
done >"$start/order"
cat >"$start/init" <<'END'
#!/bin/busybox sh
b=/bin/busybox
$b mount -t proc proc /proc; $b mount -t sysfs sys /sys; $b mount -t devtmpfs dev /dev
while read -r module; do $b insmod "$module"; done </order
shared="-t 9p -o trans=virtio,version=9p2000.L,ro,msize=262144,cache=loose"
$b mount $shared host /low || $b poweroff -f
$b mount -t tmpfs -o size=90% tmp /up; $b mkdir /up/written /up/work
$b mount -t overlay -o lowerdir=/low,upperdir=/up/written,workdir=/up/work over /new || $b poweroff -f
for each in proc sys dev; do $b mount --move /$each /new/$each; done
$b mkdir -p /new/lib/modules /new/dev/pts
$b mount -t tmpfs run /new/run
$b mount -t devpts pts /new/dev/pts
$b mount -t cgroup2 cgroup /new/sys/fs/cgroup
$b mount $shared modules /new/lib/modules || $b poweroff -f
script=$($b sed -n 's/.*script=\([^ ]*\).*/\1/p' /new/proc/cmdline)
exec $b switch_root /new /bin/sh "$script"
END
chmod 755 "$start/init"
rm -rf "$folder"
mkdir -p "$folder"
(cd "$start" && find . | cpio -o -H newc 2>/dev/null | gzip -1) >"$folder/initrd.gz"
cp "$unpacked"/tree/boot/vmlinuz-* "$folder/vmlinuz"
mkdir -p "$folder/modules/$release"
# What a host with a bridge, netem and queues needs, with what that needs itself.
files_of veth tun bridge sch_netem sch_tbf sch_codel sch_fq tcp_bbr | while read -r file; do
    into=$folder/modules/$release/${file#"$unpacked/tree/lib/modules/$release/"}
    mkdir -p "$(dirname "$into")"
    cp "$file" "$into"
done
cp "$unpacked/tree/lib/modules/$release"/modules.{order,builtin,builtin.modinfo} "$folder/modules/$release/"
mkdir -p "$unpacked/few/lib"
cp -r "$folder/modules" "$unpacked/few/lib/modules"
depmod -b "$unpacked/few" "$release"
cp "$unpacked/few/lib/modules/$release"/modules.* "$folder/modules/$release/"
echo "$release" >"$folder/release"
