#!/bin/busybox sh
# PID 1 of a machine whose instructions are counted: mounts what is in its memory, and runs what it was given there.
# In this order: the host's disk, the payload, what it is given (a tar), and where a tar of the results goes.
bb=/bin/busybox
$bb mount -t proc proc /proc
$bb mount -t sysfs sysfs /sys
$bb mount -t devtmpfs devtmpfs /dev
for module in $($bb cat /modules/order); do
    $bb insmod "/modules/$module.ko" || echo "no module $module" >/dev/console
done
tries=0
until [ -b /dev/pmem3 ]; do
    tries=$((tries + 1))
    [ $tries -lt 1000 ] || { echo "tare: the machine's memory has no disks in it" >/dev/console; $bb poweroff -f; }
    $bb usleep 10000
done
# Their numbers are not in their order, their addresses are.
set -- $(for disk in /sys/class/block/pmem?; do echo "$($bb cat $disk/device/resource) ${disk##*/}"; done | $bb sort | $bb cut -d' ' -f2)
given=$3 results=$4
$bb mount -t ext4 -o noatime "/dev/$1" /root || { echo "tare: the host's disk cannot be mounted" >/dev/console; $bb poweroff -f; }
$bb mkdir -p /root/payload
$bb mount -t ext4 -o ro "/dev/$2" /root/payload || { echo "tare: no payload" >/dev/console; $bb poweroff -f; }
for folder in proc sys dev; do $bb mount --move /$folder /root/$folder; done
$bb tar -C /root/lab -xf "/root/dev/$given"
exec $bb switch_root /root /bin/sh /lab/start.sh "/dev/$results" </root/dev/null >/root/dev/ttyS1 2>&1
