"""What names this machine and its people: for a file to be shared without it."""

from __future__ import annotations

import os
import pwd
import socket

#: Users of the system's own have lower numbers (Debian Policy, 9.2.2), and name nobody.
_FIRST_PERSON, _NOBODY = 1000, 65534


def hosts() -> set[str]:
    """The host's name, short and as a whole."""
    names = {socket.gethostname(), os.uname().nodename}
    return names | {name.partition(".")[0] for name in names}


def users() -> set[str]:
    """Names of the people who have an account here, and of the user who runs tare."""
    people = {account.pw_name for account in pwd.getpwall() if _FIRST_PERSON <= account.pw_uid < _NOBODY}
    return people | {name for key in ("SUDO_USER", "LOGNAME", "USER") if (name := os.environ.get(key))}
