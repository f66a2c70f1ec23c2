import subprocess
import sys

import pytest

from tare.host.kernel.links import links

_IN_ANOTHER = "from tare.host.kernel.links import links; print(*links())"


def test_loopback_is_among_them():
    assert "lo" in links()


@pytest.mark.host
def test_they_are_those_of_the_own_namespace_whatever_sys_shows():
    """A bridge made in a namespace below a /sys of another one was taken for removed, and stayed."""
    script = f"ip link add tare-t0 type bridge && {sys.executable} -c '{_IN_ANOTHER}'"
    shown = subprocess.run(["unshare", "-n", "sh", "-c", script], capture_output=True, text=True, check=True).stdout
    assert set(shown.split()) == {"lo", "tare-t0"}
    assert "tare-t0" not in links()
