#!/bin/busybox sh
# PID 1 of a guest until the image is mounted; the agent takes its place. What the agent is to do comes after "--" on
# the kernel's command line, as arguments: where the host is too, if not at the virtio port named tare.0.
bb=/bin/busybox
channel=port disk=/dev/vd last=b outer=
$bb mount -t proc proc /proc
$bb mount -t sysfs sysfs /sys
$bb mount -t devtmpfs devtmpfs /dev
read -r began _ </proc/uptime

for word in $($bb cat /proc/cmdline); do
    case $word in
    tare.ip=*) address=${word#tare.ip=} ;;
    tare.gw=*) gateway=${word#tare.gw=} ;;
    tare.channel=*) channel=${word#tare.channel=} ;;
    tare.disk=*) disk=/dev/${word#tare.disk=} ;;
    tare.outer) outer=/init last=d ;; # a host of its own on the third disk runs the image; the fourth says how
    tare.probe) echo tare-guest-runs >/dev/console; $bb usleep 100000; $bb reboot -f ;;
    esac
done

for module in $($bb cat /modules/order); do
    $bb insmod "/modules/$module.ko" || echo "no module $module" >/dev/console
done

# Says why it goes no further, and ends the machine. Where a machine has no power switch it restarts, which ends it too.
give_up() {
    echo "tare: $1" >/dev/console
    $bb usleep 100000 # the line is slow
    [ "$channel" = vsock ] && $bb reboot -f
    $bb poweroff -f
}

# Whether the way to the host is there.
reachable() {
    case $channel in
    port)
        for name in /sys/class/virtio-ports/*/name; do
            [ "$($bb cat "$name" 2>/dev/null)" = tare.0 ] && port=$($bb basename "$($bb dirname "$name")")
        done
        [ -n "$port" ]
        ;;
    vsock) [ -n "$($bb find /sys/bus/virtio/drivers/vmw_vsock_virtio_transport -name 'virtio*')" ] ;;
    network) [ -d /sys/class/net/eth0 ] ;;
    esac
}

# The devices come up in the background.
tries=0
until [ -b "${disk}a" ] && [ -b "$disk$last" ] && [ -d /sys/class/net/eth0 ] && reachable; do
    tries=$((tries + 1))
    [ $tries -lt 1000 ] || give_up "the guest's devices do not come up"
    $bb usleep 10000
done

image=/root
if [ -n "$outer" ]; then
    $bb mount -t ext4 "${disk}c" /root || give_up "the outer system cannot be mounted"
    image=/root/image
fi
$bb mount -t ext4 "${disk}a" $image || give_up "the image cannot be mounted"
$bb mount -t ext4 "${disk}b" /root/data || echo "tare: the data volume cannot be mounted" >/dev/console
$bb ip link set lo up
$bb ip addr add "$address" dev eth0
$bb ip link set eth0 up
$bb ip route add default via "$gateway"
if [ "$channel" = network ]; then
    # What is sent before the other side is there is lost, and sent again after a second only.
    until [ "$($bb cat /sys/class/net/eth0/carrier)" = 1 ]; do $bb usleep 1000; done
fi
for folder in proc sys dev; do $bb mount --move /$folder /root/$folder; done
[ "$channel" = port ] && exec <>"/root/dev/$port" >&0
[ -n "$outer" ] && exec $bb switch_root /root $outer "${disk}d" "$began" 2>/root/dev/console
exec $bb switch_root /root /usr/local/bin/tare-agent "$@" --init --userspace-at "$began" 2>/root/dev/console
