"""How several hosts share the host tests (`scripts/test`): those that share instances stay on one host.

pytest-xdist's own way, ``--dist loadgroup``, puts a test's group into its node id, which pytest 9.2 keeps as it was.
"""

from xdist.scheduler import LoadScopeScheduling

from tare.contract.checks import CHECKS

CONTRACT = "tests/platforms/test_contract.py"


class ByPlatform(LoadScopeScheduling):
    """A platform's promises together, and otherwise a file's tests."""

    def _split_scope(self, nodeid):
        return scope(nodeid)


def scope(nodeid):
    """What a test shares its instances with: its platform's other promises, or the file."""
    file, _, test = nodeid.partition("::")
    if file != CONTRACT or "[" not in test:
        return file
    words = test.partition("[")[2].removesuffix("]")
    check = max((check.name for check in CHECKS if words.endswith(f"-{check.name}")), key=len)
    return f"{file} {words.removesuffix(f'-{check}')}"
