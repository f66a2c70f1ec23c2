"""What a runtime leaves running beside its container: started detached, started in the foreground, and by tare.

    scripts/own-host NAME .venv/bin/python bench/bench_detached.py [RUNTIME...]

Engines start runtimes detached. tare needs the streams of the agent inside, so `runc run` waits in the foreground: its
memory is no cost of a container, and `memory-footprint` has it as `idle-client`, in no other figure. Here the bundle of
`RUNTIME spec` runs `sleep` both ways, and tare starts an instance. Figures are PSS in MiB of what runs beside the
container's own processes; the last column is the headline. Goals: nothing beside a detached container; tare's client
within 2 MiB of the one in the foreground; the headline at most 0.5 MiB more than native's.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tare.campaign.host_session import HostSession, default_cpus
from tare.campaign.plan.campaign_request import DEFAULT_MEMORY
from tare.errors import TareError
from tare.host import cgroup, processes
from tare.host.facts import memory
from tare.image import image_build
from tare.model import Arm, Resources
from tare.platforms import platform_registry
from tare.platforms.crun import surroundings

RUNTIMES = ("runc", "crun")
MIB = 2**20
#: Until a runtime that has started its container has freed what it needed for that.
SETTLE_S = 0.5


def main() -> None:
    """Print a row a runtime."""
    image = image_build.ensure(image_build.agent_path(), progress=lambda _: None)
    print(
        "| runtime | beside it, detached | beside it, in the foreground | tare's `idle-client` | `idle-own`, native's |"
    )
    print("| --- | --- | --- | --- | --- |")
    with HostSession() as host:
        launcher, _ = host.prepare(image, Resources(default_cpus(), DEFAULT_MEMORY))
        native = usage(launcher, "native")
        for name in sys.argv[1:] or RUNTIMES:
            detached, attached = (beside(name, image.root, detached=way) for way in (True, False))
            ours = usage(launcher, name)
            if ours.client is None:
                raise TareError(f"tare waits for no client of {name}")
            print(
                f"| {name} | {detached / MIB:.2f} | {attached / MIB:.2f} | {ours.client / MIB:.2f}"
                f" | {ours.own / MIB:.2f}, {native.own / MIB:.2f} |",
                flush=True,
            )


def usage(launcher, name):
    """What an idle instance of tare's takes."""
    [platform] = platform_registry.choose([name])
    platform.prepare(launcher.image)
    running = launcher.start(platform, Arm(name), measured=False)
    try:
        running.session.execute(["sleep", "0.3"])
        return running.measure_memory()
    finally:
        running.stop()
        platform.close()


def beside(runtime, root, *, detached) -> int:
    """PSS in bytes of the runtime's processes that still run while a container of its `sleep`s."""
    within = surroundings(cgroup.hierarchies()) if runtime == "crun" else ()
    label = f"tare-bench-{secrets.token_hex(4)}"
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        processes.run([runtime, "spec"], cwd=folder).require()
        config = json.loads((folder / "config.json").read_text())
        config["process"].update(terminal=False, args=["/bin/sleep", "60"], rlimits=[])
        config["root"] = {"path": str(root), "readonly": True}
        (folder / "config.json").write_text(json.dumps(config))
        own = [*within, runtime, "--root", str(folder / "state")]
        pid_file = folder / "pid"
        argv = [*own, "run", *(["-d"] if detached else []), "--pid-file", str(pid_file), "-b", text, label]
        started = subprocess.Popen(
            argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )
        try:
            wait_for(pid_file, started)
            time.sleep(SETTLE_S)
            container = int(pid_file.read_text())
            session = [pid for pid in session_of(started.pid) if pid != container]
            return memory.resident(session).pss
        finally:
            processes.run([*own, "delete", "--force", label])
            started.wait(30)


def wait_for(pid_file, started) -> None:
    """Wait until the container has a process. Raises `TareError` if the runtime fails before."""
    until = time.monotonic() + 30
    while not (pid_file.exists() and pid_file.read_text().strip()):
        if started.poll() or time.monotonic() > until:
            started.kill()
            raise TareError(f"no container: {started.communicate()[1].decode(errors='replace')[-500:]}")
        time.sleep(0.01)


def session_of(leader) -> list[int]:
    """The processes of a session of the host's that run, by proc(5)'s ``stat``."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # It has ended meanwhile.
            continue
        if int(fields[3]) == leader and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


if __name__ == "__main__":
    main()
