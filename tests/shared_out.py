"""How several hosts share the host tests (`scripts/test`): those that share instances stay on one host.

pytest-xdist's own way, ``--dist loadgroup``, puts a test's group into its node id, which pytest 9.2 keeps as it was.
"""

from xdist.scheduler import LoadScopeScheduling

from tare.contract.checks import CHECKS

CONTRACT = "tests/platforms/test_contract.py"
#: Platforms of one store of images, by what their names begin with: that one host has it import the image is enough.
FAMILIES = ("containerd", "docker", "podman")
#: What takes long, in about so many seconds; every other test is taken for one of `USUAL_S`.
LONG_S = {
    "blackbox": 25,
    "containerd": 60,
    "docker": 60,
    "libvirt-qemu-tcg": 60,
    "podman": 60,
    "qemu-tcg": 60,
    "qemu-user-tcg": 40,
    "runc-in-qemu-tcg": 40,
    "tests/campaign/test_host_disks.py": 60,
    "tests/campaign/test_host_left.py": 25,
    "tests/campaign/test_host_outages.py": 40,
    "tests/campaign/test_host_weather.py": 30,
    "tests/campaign/test_weather.py": 40,
    "tests/platforms/test_blackbox.py": 60,
    "tests/platforms/test_daemon_weather.py": 40,
    "tests/platforms/test_kill.py": 90,
    "tests/platforms/test_nested.py": 25,
    "tests/platforms/test_ssh.py": 60,
    "tests/platforms/test_vm_weather.py": 60,
    "uml": 50,
}
USUAL_S = 0.7


class ByPlatform(LoadScopeScheduling):
    """A platform's promises together, and otherwise a file's tests; what takes longest comes first."""

    def _split_scope(self, nodeid):
        return scope(nodeid)

    def _assign_work_unit(self, node):
        longest = max(self.workqueue, key=lambda name: seconds(name, len(self.workqueue[name])))
        self.workqueue.move_to_end(longest, last=False)
        super()._assign_work_unit(node)


def scope(nodeid):
    """What a test shares its instances with: its platform's other promises, those of its daemon's, or the file."""
    file, _, test = nodeid.partition("::")
    if file != CONTRACT or "[" not in test:
        return file
    words = test.partition("[")[2].removesuffix("]")
    check = max((check.name for check in CHECKS if words.endswith(f"-{check.name}")), key=len)
    platform = words.removesuffix(f"-{check}")
    return f"{file} {next((family for family in FAMILIES if platform.startswith(family)), platform)}"


def seconds(name, tests):
    """About how long a host is busy with so many tests that stay together."""
    return LONG_S.get(name.removeprefix(f"{CONTRACT} "), USUAL_S * tests)
