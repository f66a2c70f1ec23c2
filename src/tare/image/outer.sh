#!/bin/sh
# PID 1 of a guest that is itself the host of a container platform: its stdin and stdout are the way to tare, its stderr
# is the console. The platform is started by the order on a disk; $began is the uptime at which userspace began.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
order=$1 began=$2
for folder in /run /tmp; do mount -t tmpfs -o nosuid,nodev tmpfs $folder; done
mount -t cgroup2 cgroup2 /sys/fs/cgroup
mkdir -p /dev/shm /dev/pts
mount -t devpts devpts /dev/pts
for module in $(cat /modules/order); do
    insmod "/modules/$module.ko" </dev/null >/dev/console || echo "no module $module" >/dev/console
done
cat "$order" >/run/order
. /run/order
code=$?
echo 1 >/proc/sys/kernel/printk # the last words are to be these
echo "tare: the platform inside has ended with $code" >/dev/console
sync
usleep 100000 # the console's line is slow
poweroff -f
