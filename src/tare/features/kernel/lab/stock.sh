# Finishes the root of a stock host: what an installer and a user would have done, and how tare's commands get in.
#   host=NAME, in front of this; $1: the root's folder
set -eu
root=$1

echo "$host" >"$root/etc/hostname"
printf '127.0.0.1 localhost\n127.0.1.1 %s\n' "$host" >"$root/etc/hosts"
echo '/dev/vda / ext4 errors=remount-ro 0 1' >"$root/etc/fstab"
: >"$root/etc/machine-id"
if [ -d "$root/etc/network" ]; then
    printf 'auto lo\niface lo inet loopback\n\nallow-hotplug enp0s1\niface enp0s1 inet dhcp\n' >"$root/etc/network/interfaces"
fi
chroot "$root" useradd --create-home --shell /bin/bash user

# A login session of its own, as a user's command has one: pam_systemd makes it where that is installed.
printf 'account required pam_permit.so\n@include common-session\n' >"$root/etc/pam.d/tare-lab"
cat >"$root/etc/systemd/system/tare-lab.service" <<'END'
[Unit]
Description=What the lab's commands are run by: the agent, on a virtio-serial port
After=multi-user.target
RequiresMountsFor=/payload

[Service]
User=root
PAMName=tare-lab
ExecStart=/bin/sh -c 'exec /payload/tare-agent serve <>/dev/virtio-ports/tare.0 >&0'
StandardError=journal

[Install]
WantedBy=graphical.target
END
chroot "$root" systemctl --quiet enable tare-lab.service
