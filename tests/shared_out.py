"""How several hosts share the host tests (`scripts/test`): those that share instances stay on one host.

pytest-xdist's own way, ``--dist loadgroup``, puts a test's group into its node id, which pytest 9.2 keeps as it was.
"""

from xdist.scheduler import LoadScopeScheduling

from tare.contract.promises import CHECKS

CONTRACT = "tests/platforms/test_contract.py"
#: What needs the image in an engine's store, which one host is to fill: platforms by what their names begin with, and
#: files with tests of some of them. An import takes a daemon ten seconds of a core.
STORES = {
    "containerd": ("containerd",),
    "docker and podman": (
        "docker",
        "podman",
        "tests/campaign/test_host_disks.py",
        "tests/campaign/test_host_firewalls.py",
        "tests/campaign/test_mtu.py",
        "tests/campaign/test_out_of_memory.py",
        "tests/campaign/test_storage_host.py",
        "tests/campaign/test_weather.py",
        "tests/cli/test_interrupt.py",
        "tests/cli/test_unused_images_removed.py",
        "tests/platforms/test_guards.py",
        "tests/platforms/test_kill.py",
        "tests/platforms/test_resolv_conf.py",
        "tests/platforms/test_unpinged.py",
    ),
}
#: What takes long, in about so many seconds; every other test is taken for one of `USUAL_S`.
LONG_S = {
    "blackbox": 20,
    "containerd": 60,
    "docker and podman": 330,
    "libvirt-qemu-tcg": 60,
    "qemu-tcg": 50,
    "qemu-user-tcg": 40,
    "runc-in-qemu-tcg": 40,
    "tests/campaign/test_calibrate_again.py": 40,
    "tests/campaign/test_host_left.py": 25,
    "tests/campaign/test_host_outages.py": 60,
    "tests/campaign/test_host_weather.py": 30,
    "tests/campaign/test_sigkill.py": 150,
    "tests/host/test_fence.py": 60,
    "tests/platforms/test_blackbox.py": 60,
    "tests/platforms/test_containerd.py": 30,
    "tests/platforms/test_daemon_weather.py": 40,
    "tests/platforms/test_docker_settings.py": 60,
    "tests/platforms/test_hostile_tree.py": 45,
    "tests/platforms/test_machines_helper.py": 30,
    "tests/platforms/test_ssh.py": 60,
    "tests/platforms/test_start_from_nothing.py": 60,
    "tests/platforms/test_vm_memory.py": 40,
    "tests/platforms/test_vm_weather.py": 60,
    "uml": 50,
}
USUAL_S = 0.7


class ByPlatform(LoadScopeScheduling):
    """What stays together (`scope`) on one host; what takes longest comes first."""

    def _split_scope(self, nodeid):
        return scope(nodeid)

    def _assign_work_unit(self, node):
        longest = max(self.workqueue, key=lambda name: seconds(name, len(self.workqueue[name])))
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)


def scope(nodeid):
    """What a test shares its instances with, its platform's other promises or the file; or a store of images."""
    file, _, test = nodeid.partition("::")
    subject = file
    if file == CONTRACT and "[" in test:
        words = test.partition("[")[2].removesuffix("]")
        check = max((check.name for check in CHECKS if words.endswith(f"-{check.name}")), key=len)
        subject = words.removesuffix(f"-{check}")
    return next((store for store, begins in STORES.items() if subject.startswith(begins)), subject)


def seconds(name, tests):
    """About how long a host is busy with so many tests that stay together."""
    return LONG_S.get(name, USUAL_S * tests)
