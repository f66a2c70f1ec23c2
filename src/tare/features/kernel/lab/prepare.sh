#!/bin/sh
# Makes a host of the machine that came up: what an init system would have done where it has none, and TARE_HOME out
# of the payload.
#   prepare.sh FLAVOUR
set -eu
flavour=$1

as_a_host() {
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mkdir -p /dev/pts /dev/shm
    mount -t devpts -o ptmxmode=666 devpts /dev/pts
    mount -t securityfs securityfs /sys/kernel/security || true
    mount -t debugfs debugfs /sys/kernel/debug
    [ ! -d /sys/kernel/tracing ] || mount -t tracefs tracefs /sys/kernel/tracing
    ln -sf /proc/self/fd /dev/fd
    for pair in 0:stdin 1:stdout 2:stderr; do # the locks of Xen's scripts spin without
        ln -sf "/proc/self/fd/${pair%%:*}" "/dev/${pair#*:}"
    done
    hostname "lab-$flavour"
    [ -s /etc/machine-id ] || tr -d - </proc/sys/kernel/random/uuid >/etc/machine-id
    ip link set lo up

    # In the kernel that counts its lines all is built in, KVM too.
    [ "$flavour" = lines ] || for module in overlay bridge veth tun loop; do
        modprobe "$module" || echo "no module $module" >&2
    done

    case $flavour in
    kvm)
        vendor=intel
        grep -qw svm /proc/cpuinfo && vendor=amd
        modprobe "kvm-$vendor" nested=1
        ;;
    xen)
        for module in xen-evtchn xen-gntdev xen-gntalloc xen-privcmd xenfs xen-blkback xen-netback; do
            modprobe "$module" || echo "no module $module" >&2
        done
        mount -t xenfs xenfs /proc/xen
        mkdir -p /run/lock /run/xen /var/log/xen/console /var/lib/xenstored
        bin=/usr/lib/xen-4.17/bin
        "$bin/xenstored" --pid-file /run/xen/xenstored.pid
        "$bin/xen-init-dom0"
        "$bin/xenconsoled" --pid-file=/run/xen/xenconsoled.pid --log=guest --log-dir=/var/log/xen/console
        mkdir -p /etc/libvirt /run/libvirt /var/lib/libvirt /var/log/libvirt
        # No polkit is there to ask, and no journal that takes what it says.
        printf 'auth_unix_rw = "none"\nlog_outputs = "3:file:/var/log/libvirt/libvirtd.log"\n' >/etc/libvirt/libvirtd.conf
        # Its other drivers want users and a D-Bus that are not there, and libvirtd ends when one of them does not start.
        find /usr/lib/*/libvirt/connection-driver -name '*.so' ! -name '*_libxl.so' -delete
        # An emulated processor has no virtual-8086 extensions, and libvirtd ends when no model that it knows fits.
        sed -i "/name='vme'/d" /usr/share/libvirt/cpu_map/x86_486.xml
        libvirtd --daemon || echo "no libvirtd" >&2
        ;;
    esac
}

[ -d /run/systemd/system ] || as_a_host

home=/var/lib/tare
mkdir -p -m 700 $home
for place in /payload/home/images/*; do
    mkdir -p "$home/images/$(basename "$place")"
    ln -s "$place"/* "$home/images/$(basename "$place")/"
done
for kind in bin guest; do
    mkdir -p "$home/$kind"
    ln -s /payload/home/$kind/* "$home/$kind/"
done

mkdir -p /lab/checkout /lab/files /lab/out
for file in /lab/files/*; do # what a user brings goes before what tare has built
    [ ! -e "$home/bin/${file##*/}" ] || ln -sf "$file" "$home/bin/"
done
tar -C /lab/checkout -xf /lab/checkout.tar
cat >/usr/local/bin/tare <<'END'
#!/usr/bin/python3
from tare.cli import main

main()
END
chmod 755 /usr/local/bin/tare
