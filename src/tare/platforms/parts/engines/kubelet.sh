#!/bin/sh
# Start a kubelet in a mount namespace in which it finds its settings of the kernel done, and writes nowhere on the host
# but below TARE_HOME.
#   kubelet.sh HOME SETTINGS PROGRAM [ARG...]
# SETTINGS: a folder of plain files, each named after a setting (vm.overcommit_memory) with the value that a kubelet
# wants. The settings belong to no namespace: a kubelet would write them for the whole host, and never give them back.
set -eu
home=$1 settings=$2
shift 2
for file in "$settings"/*; do
    place=/proc/sys/$(basename "$file" | tr . /)
    [ ! -e "$place" ] || mount --bind "$file" "$place"
done
# A kubelet has /var/lib/kubelet and /var/log/containers, whatever it is told.
exec 3<"$home"
mount -t tmpfs -o mode=755 tare /var/lib
mount -t tmpfs -o mode=755 tare /var/log
mkdir -p "$home"
mount --no-canonicalize --rbind /proc/self/fd/3 "$home"
exec 3<&-
exec "$@"
