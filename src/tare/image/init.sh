#!/bin/busybox sh
# PID 1 of a guest until the image is mounted; the agent takes its place. What the agent is to do comes after "--" on
# the kernel's command line, as arguments: where the host is too, if not at the virtio port named tare.0.
# All of this is in the measured start: what the shell can do itself is not a process, and nothing sleeps for long.
export PATH=/bin
channel=port disk=/dev/vd last=b outer=
data="-t ext4 ${disk}b"
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
read -r began _ </proc/uptime
read -r words </proc/cmdline

for word in $words; do
    case $word in
    tare.ip=*) address=${word#tare.ip=} ;;
    tare.gw=*) gateway=${word#tare.gw=} ;;
    tare.channel=*) channel=${word#tare.channel=} ;;
    tare.disk=*) disk=/dev/${word#tare.disk=} data="-t ext4 ${disk}b" ;;
    tare.data=virtiofs) last=a data="-t virtiofs data" ;; # a folder of the host's
    tare.outer) outer=/init last=d ;; # a host of its own on the third disk runs the image; the fourth says how
    tare.probe) echo tare-guest-runs >/dev/console; usleep 100000; reboot -f ;;
    --) break ;;
    esac
done

while read -r module; do
    insmod "/modules/$module.ko" || echo "no module $module" >/dev/console
done </modules/order

# Says why it goes no further, and ends the machine. Where a machine has no power switch it restarts, which ends it too.
give_up() {
    echo "tare: $1" >/dev/console
    usleep 100000 # the line is slow
    [ "$channel" = vsock ] && reboot -f
    poweroff -f
}

# Whether the way to the host is there.
reachable() {
    case $channel in
    port)
        for file in /sys/class/virtio-ports/*/name; do
            name=
            { read -r name <"$file"; } 2>/dev/null
            [ "$name" = tare.0 ] && file=${file%/name} port=${file##*/} && return
        done
        return 1
        ;;
    vsock)
        for device in /sys/bus/virtio/drivers/vmw_vsock_virtio_transport/virtio*; do
            [ -e "$device" ] && return
        done
        return 1
        ;;
    network) [ -d /sys/class/net/eth0 ] ;;
    esac
}

# A millisecond without a process of its own: nobody writes to this pipe.
mkfifo /never
exec 9<>/never
pause() { read -r -t 0.001 -u 9 _; }

# The devices come up in the background.
tries=0
until [ -b "${disk}a" ] && [ -b "$disk$last" ] && [ -d /sys/class/net/eth0 ] && reachable; do
    tries=$((tries + 1))
    [ $tries -lt 10000 ] || give_up "the guest's devices do not come up"
    pause
done

image=/root
if [ -n "$outer" ]; then
    mount -t ext4 "${disk}c" /root || give_up "the outer system cannot be mounted"
    image=/root/image
fi
mount -t ext4 "${disk}a" $image || give_up "the image cannot be mounted"
mount $data /root/data || echo "tare: the data volume cannot be mounted" >/dev/console
ip link set lo up
ip addr add "$address" dev eth0
ip link set eth0 up
ip route add default via "$gateway"
if [ "$channel" = network ]; then
    # What is sent before the other side is there is lost, and sent again after a second only.
    until read -r carrier </sys/class/net/eth0/carrier && [ "$carrier" = 1 ]; do pause; done
fi
exec 9>&-
for folder in proc sys dev; do mount --move /$folder /root/$folder; done
[ "$channel" = port ] && exec <>"/root/dev/$port" >&0
[ -n "$outer" ] && exec switch_root /root $outer "${disk}d" "$began" 2>/root/dev/console
exec switch_root /root /usr/local/bin/tare-agent "$@" --init --userspace-at "$began" 2>/root/dev/console
