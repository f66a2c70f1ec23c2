#!/bin/busybox sh
# PID 1 of a lab's host until its disk is mounted; the agent, from the disk with the payload, or the host's own init takes its place.
bb=/bin/busybox
$bb mount -t proc proc /proc
$bb mount -t sysfs sysfs /sys
$bb mount -t devtmpfs devtmpfs /dev

for module in $($bb cat /modules/order); do
    $bb insmod "/modules/$module.ko" || echo "no module $module" >/dev/console
done

# The devices come up in the background.
tries=0
until [ -b /dev/vda ] && [ -b /dev/vdb ] && [ -n "$port" ]; do
    for name in /sys/class/virtio-ports/*/name; do
        [ "$($bb cat "$name" 2>/dev/null)" = tare.0 ] && port=$($bb basename "$($bb dirname "$name")")
    done
    tries=$((tries + 1))
    [ $tries -lt 3000 ] || { echo "tare: the lab's devices do not come up" >/dev/console; $bb poweroff -f; }
    $bb usleep 10000
done

$bb mount -t ext4 /dev/vda /root || { echo "tare: the lab's disk cannot be mounted" >/dev/console; $bb poweroff -f; }
$bb mkdir -p /root/payload
$bb mount -t ext4 -o ro /dev/vdb /root/payload || { echo "tare: no payload in the lab" >/dev/console; $bb poweroff -f; }
for folder in proc sys dev; do $bb mount --move /$folder /root/$folder; done
# A stock host has an init of its own, which starts the agent.
[ ! -e /root/etc/systemd/system/tare-lab.service ] || exec $bb switch_root /root /sbin/init
exec $bb switch_root /root /payload/tare-agent serve --init <>"/root/dev/$port" >&0 2>/root/dev/console
