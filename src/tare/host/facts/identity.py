"""Names of this machine and its people, to be removed from a file before it is shared."""

from __future__ import annotations

import os
import pwd
import socket

#: System users have lower numbers (Debian Policy, 9.2.2), and identify nobody.
_FIRST_PERSON, _NOBODY = 1000, 65534


def hosts() -> set[str]:
    """Return the host's name, short and in full."""
    names = {socket.gethostname(), os.uname().nodename}
    return names | {name.partition(".")[0] for name in names}


def users() -> set[str]:
    """Return the names of the people with an account here, and of the user who runs tare."""
    people = {account.pw_name for account in pwd.getpwall() if _FIRST_PERSON <= account.pw_uid < _NOBODY}
    return people | {name for key in ("SUDO_USER", "LOGNAME", "USER") if (name := os.environ.get(key))}
