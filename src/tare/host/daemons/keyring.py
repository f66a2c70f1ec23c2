"""Session keyring of its own for a daemon, as systemd gives each service.

A daemon with tare's keyring would have the keys of the login that started tare, and so would the programs that `lxc
exec` starts in a container (keyrings(7): a process inherits its parent's session keyring, also into a user namespace).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from tare.host import processes

#: Numbers of add_key(2) and keyctl(2), for which the C library has no functions.
CALLS = {"x86_64": (248, 250), "aarch64": (217, 219)}
_JOIN_SESSION_KEYRING = 1
#: On a kernel without keys, there is no keyring to hide.
_PROGRAM = """\
import ctypes, os, sys
ctypes.CDLL(None).syscall(int(sys.argv[1]), {join}, None)
os.execv(sys.argv[2], sys.argv[3:])
"""


def apart(argv: Sequence[str]) -> list[str]:
    """Return the command with a new, empty session keyring; unchanged on machines whose call numbers are unknown."""
    numbers = CALLS.get(os.uname().machine)
    program = processes.find(argv[0])
    if numbers is None or program is None:
        return list(argv)
    code = _PROGRAM.format(join=_JOIN_SESSION_KEYRING)
    return [sys.executable, "-I", "-S", "-c", code, str(numbers[1]), program, *argv]
