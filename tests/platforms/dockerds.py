"""Docker daemons of a test's own."""

import json
from pathlib import Path

from tare.host import own_daemon, processes, userns
from tare.host.kernel import process_table

#: For `userns-remap`: the account whose subordinate ids are taken, and its group, as every Debian has them.
REMAPPED = "nobody:nogroup"
#: Where such a daemon sees its data: the remapped root may go through all folders above.
_DATA = Path("/mnt")
#: What such a daemon alone sees: the account has ids, and where its data are. $1: the folder of the files and the data.
_REMAPPED = """
mount --bind "$1/subuid" /etc/subuid && mount --bind "$1/subgid" /etc/subgid && mount --bind "$1/data" "$2" || exit
shift 2
exec "$@"
"""


class Dockerd:
    """A daemon with these settings and its own image store, on no bridge, or on one that the test has made."""

    def __init__(self, folder, cleanup, settings=None, bridge=None):
        self.folder = folder
        self.host = f"unix://{folder}/sock"
        self._things = cleanup
        (folder / "config.json").write_text(json.dumps(settings or {}))
        self._bridge = bridge
        # In a network namespace: told of no bridge, it deletes the docker0 that another dockerd has.
        self._within = [] if bridge else ["unshare", "--net"]
        self._data = folder / "data"
        if settings and "userns-remap" in settings:
            self._data.mkdir()
            for kind in ("subuid", "subgid"):
                (folder / kind).write_text(f"{REMAPPED.partition(':')[0]}:{userns.FIRST}:{userns.COUNT}\n")
            self._within = ["unshare", "--net", "--mount", "sh", "-c", _REMAPPED, "sh", str(folder), str(_DATA)]
            self._data = _DATA
        self.start()

    def start(self):
        folder = self.folder
        places = {"data-root": self._data, "exec-root": folder / "exec", "pidfile": folder / "pid"}
        options = {
            **places,
            "host": self.host,
            "config-file": folder / "config.json",
            "bridge": self._bridge or "none",
            "iptables": "false",
            "ip-forward": "false",
        }
        (folder / "pid").unlink(missing_ok=True)  # its process id may be another's by now
        self.daemon = own_daemon.start(
            self._things,
            "dockerd",
            [*self._within, "dockerd", *(f"--{name}={value}" for name, value in options.items())],
            ready=lambda: processes.run(["docker", "--host", self.host, "version"]).code == 0,
            log=folder / "log",
        )

    def mounts(self):
        """What is mounted for its containers."""
        lines = Path("/proc/mounts").read_text().splitlines()
        return [line for line in lines if str(self.folder) in line and f" {self.folder}/data " not in line]

    def shims(self):
        running = process_table.command_lines().values()
        return [argv for argv in running if "shim" in argv[0] and str(self.folder) in " ".join(argv)]
