#!/bin/busybox sh
# PID 1 of a guest until the image is mounted; the agent takes its place. What the agent is to do comes after "--" on
# the kernel's command line, as arguments.
bb=/bin/busybox
$bb mount -t proc proc /proc
$bb mount -t sysfs sysfs /sys
$bb mount -t devtmpfs devtmpfs /dev
read -r began _ </proc/uptime

for word in $($bb cat /proc/cmdline); do
    case $word in
    tare.ip=*) address=${word#tare.ip=} ;;
    tare.gw=*) gateway=${word#tare.gw=} ;;
    tare.probe) echo tare-guest-runs >/dev/console; $bb poweroff -f ;;
    esac
done

for module in $($bb cat /modules/order); do
    $bb insmod "/modules/$module.ko" || echo "no module $module" >/dev/console
done

# The devices come up in the background.
tries=0
until [ -b /dev/vda ] && [ -b /dev/vdb ] && [ -d /sys/class/net/eth0 ] && [ -n "$port" ]; do
    for name in /sys/class/virtio-ports/*/name; do
        [ "$($bb cat "$name" 2>/dev/null)" = tare.0 ] && port=$($bb basename "$($bb dirname "$name")")
    done
    tries=$((tries + 1))
    [ $tries -lt 1000 ] || { echo "tare: the guest's devices do not come up" >/dev/console; $bb poweroff -f; }
    $bb usleep 10000
done

$bb mount -t ext4 /dev/vda /root || { echo "tare: the image cannot be mounted" >/dev/console; $bb poweroff -f; }
$bb mount -t ext4 /dev/vdb /root/data || echo "tare: the data volume cannot be mounted" >/dev/console
$bb ip link set lo up
$bb ip addr add "$address" dev eth0
$bb ip link set eth0 up
$bb ip route add default via "$gateway"
for folder in proc sys dev; do $bb mount --move /$folder /root/$folder; done
exec $bb switch_root /root /usr/local/bin/tare-agent "$@" --init --userspace-at "$began" <>"/root/dev/$port" >&0 2>/root/dev/console
