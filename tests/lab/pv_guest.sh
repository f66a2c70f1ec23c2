#!/bin/sh
# In a lab that is a Xen dom0: a paravirtual guest comes up, says so and is gone.
set -eu
home=/var/lib/tare/guest
set -- "$home"/linux-image-*/boot/vmlinuz-*
kernel=$1
set -- "$home"/initramfs-*
cat >/tmp/guest.cfg <<END
name = "tarepv"
type = "pv"
kernel = "$kernel"
ramdisk = "$1"
extra = "console=hvc0 quiet panic=-1 tare.probe"
memory = 256
vcpus = 1
on_poweroff = "destroy"
on_reboot = "destroy"
END
xl create /tmp/guest.cfg
xl list
tries=0
while xl list tarepv >/dev/null 2>&1; do
    tries=$((tries + 1))
    [ $tries -lt 120 ] || { echo "the guest does not end"; exit 1; }
    sleep 1
done
cat /var/log/xen/console/guest-tarepv.log
grep -q tare-guest-runs /var/log/xen/console/guest-tarepv.log
