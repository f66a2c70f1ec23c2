"""A daemon has a session keyring of its own, whatever login tare was started in."""

import ctypes
import os
import sys

from tare.host import processes
from tare.host.daemons import keyring

_KEYCTL = keyring.CALLS[os.uname().machine][1]
_ID, _SESSION = 0, -3
_SHOW = f"import ctypes; print(ctypes.CDLL(None).syscall({_KEYCTL}, {_ID}, {_SESSION}, 0))"


def test_a_daemons_session_keyring_is_not_that_of_the_login():
    show = [sys.executable, "-P", "-c", _SHOW]
    here = ctypes.CDLL(None).syscall(_KEYCTL, _ID, _SESSION, 0)  # gives the process the user's where it has none
    assert here > 0
    assert int(processes.run(show).text) == here  # it is inherited
    assert int(processes.run(keyring.apart(show)).text) not in {here, -1}


def test_the_program_keeps_the_name_that_it_was_called_by():
    done = processes.run(keyring.apart(["sh", "-c", 'tr "\\0" " " </proc/$$/cmdline']))
    assert done.text.startswith("sh -c ")


def test_a_program_that_is_not_there_fails_as_without_a_keyring():
    assert keyring.apart(["tare-has-no-such-program", "x"]) == ["tare-has-no-such-program", "x"]
