"""What root in a sandbox on the host's own kernel may not: written down as data, and tried on real ones."""

import pytest

from tare.model import Arm
from tare.platforms import platform_registry
from tare.platforms.parts.common import root_rights

#: Those that share the host's kernel and have a root inside.
SHARED = (
    "bubblewrap", "bubblewrap-userns", "crun", "crun-userns", "docker", "libvirt-lxc", "lxc", "lxd", "nspawn", "podman",
    "runc", "runc-none", "runc-userns",
)  # fmt: skip
#: By these the host's root runs a program or stops. Opening one for writing is all that is done.
WRITTEN = (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/proc/sys/vm/drop_caches",
    "/proc/sysrq-trigger",
    "/proc/irq/default_smp_affinity",
    "/sys/kernel/uevent_helper",
    "/sys/kernel/mm/transparent_hugepage/enabled",
)
#: What a root with more rights would open the doors by.
KEYS = (
    "mount -o remount,rw /proc/sys; mount -o remount,rw /proc; mount -o remount,rw /sys; umount -l /proc/sys; "
    "umount -l /proc/irq; mkdir /tmp/p; mount -t proc none /tmp/p; mount -o bind /proc /tmp/p"
)
TRY = f"""\
{{ {KEYS}; }} >/dev/null 2>&1
for door in {" ".join(WRITTEN)} /tmp/p/sys/kernel/core_pattern; do
    (: >>"$door") 2>/dev/null && echo "$door"
done
unshare --user --map-root-user --mount --pid --fork --mount-proc sh -c \
    '(: >>/proc/sys/kernel/core_pattern) && echo "core_pattern, in a user namespace"' 2>/dev/null
for secret; do
    [ -d "$secret" ] && [ -n "$(ls -A "$secret" 2>/dev/null)" ] && echo "$secret"
    [ -f "$secret" ] && [ -n "$(head -c 1 "$secret" 2>/dev/null | tr '\\0' 0)" ] && echo "$secret"
done
true
"""


def test_every_capability_that_is_given_has_its_reason_and_none_is_a_way_out():
    assert all(root_rights.REASONS.values())
    out = {"SYS_ADMIN", "DAC_READ_SEARCH", "SYS_MODULE", "SYS_RAWIO", "SYS_PTRACE", "BPF", "SYS_BOOT", "NET_ADMIN"}
    assert not {f"CAP_{name}" for name in out} & set(root_rights.CAPABILITIES)


#: These have lists of their own versions; this one came later.
_LATER = {"docker": {"/proc/interrupts"}, "podman": {"/proc/interrupts"}}


@pytest.mark.host
@pytest.mark.own_host
@pytest.mark.parametrize("name", SHARED)
def test_root_inside_opens_no_door_of_the_hosts_kernel(launcher, name):
    platform = platform_registry.choose([name])[0]
    try:
        answer = platform.detect()
        assert answer.available, answer.reason
        platform.prepare(launcher.image)
        running = launcher.start(platform, Arm(name), measured=False)
        try:
            secrets = sorted(set(root_rights.MASKED) - _LATER.get(name, set()))
            tried = running.session.execute(["/bin/sh", "-c", TRY, "sh", *secrets])
        finally:
            running.stop()
    finally:
        platform.close()
    assert tried.code == 0
    assert tried.stdout.decode().split() == []
