"""A session keyring of its own for a daemon, as systemd gives one to each service.

A daemon that inherits tare's has the keys of the login that tare was started in, and so has what `lxc exec` starts in a
container (keyrings(7): a process inherits its parent's session keyring, also into a user namespace).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tare.host import processes

#: Numbers of add_key(2) and keyctl(2), for which the C library has no functions.
CALLS = {"x86_64": (248, 250), "aarch64": (217, 219)}
_JOIN_SESSION_KEYRING = 1
#: Where a kernel has no keys, there is none to be seen.
_PROGRAM = """\
import ctypes, os, sys
ctypes.CDLL(None).syscall(int(sys.argv[1]), {join}, None)
os.execv(sys.argv[2], sys.argv[3:])
"""


def apart(argv: Sequence[str]) -> list[str]:
    """The command with a new and empty session keyring; as it is on a machine whose calls for keys are not known."""
    numbers = CALLS.get(os.uname().machine)
    program = processes.find(argv[0])
    if numbers is None or program is None:
        return list(argv)
    code = _PROGRAM.format(join=_JOIN_SESSION_KEYRING)
    return [sys.executable, "-I", "-S", "-c", code, str(numbers[1]), program, *argv]
