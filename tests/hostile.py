"""What a hostile tenant does to its tree: nests folders without end, and exchanges names all the time."""

import ctypes
import os
import threading

#: rename(2)'s newer sister, to exchange two names in one step; Python has no name for it.
EXCHANGE = 2

#: Folders in each other, 1,500 in the data folder and in the root; set-user-ID copies, devices and pipes in both.
TREE = """\
set -e
for place in /data /var/tmp; do
    cd $place
    cp "$(command -v id)" id
    chmod 4755 id
    mknod null c 1 3 || [ "$1" = no-nodes ]
    mkfifo pipe
    ln -s /etc link
    nested=0
    while [ $nested -lt 1500 ]; do mkdir d; cd d; nested=$((nested + 1)); done
    echo deep >file
done
"""


def nest(folder, depth, name="d"):
    """Folders in each other, made as a guest makes them: by descriptor, so that no path is too long."""
    folder.mkdir(exist_ok=True)
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    return here


def exchange(first, second):
    done = ctypes.CDLL(None, use_errno=True).renameat2(-100, bytes(first), -100, bytes(second), EXCHANGE)
    return done == 0


class Exchanging:
    """A tenant that exchanges two names in its tree for as long as this lasts."""

    def __init__(self, first, second):
        self._end = threading.Event()
        self.turns = 0

        def work():
            while not self._end.is_set():
                self.turns += exchange(first, second)

        self._thread = threading.Thread(target=work)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()
