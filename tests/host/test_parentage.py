"""Orphans that this process adopts."""

import os
import signal
import subprocess
import time
from pathlib import Path

from tare.host.kernel import parentage


def _orphan():
    made = subprocess.run(["sh", "-c", "sleep 600 >&- & echo $!"], stdout=subprocess.PIPE, check=True)
    return int(made.stdout)


def test_an_adopted_process_is_gone_as_soon_as_it_has_ended():
    with parentage.adopting():
        pid = _orphan()
        with parentage.reaping([pid, 2**22 - 1]):  # the other one does not exist
            os.kill(pid, signal.SIGKILL)
            deadline = time.monotonic() + 30
            while Path(f"/proc/{pid}").exists():
                assert time.monotonic() < deadline, "nobody has waited for it"


def test_a_process_that_goes_on_is_left_alone():
    with parentage.adopting():
        pid = _orphan()
        with parentage.reaping([pid]):
            pass
        assert not parentage.gone(pid)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
