"""gVisor, begun from a checkpoint: a warm start. The agent ran in a sandbox before, and goes on in a new one.

What is measured begins with ``runsc restore``. The sandbox that was checkpointed is made by the same launch, and is
gone by then: each instance has a checkpoint of its own, with its own address in it.
"""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

from tare.errors import PlatformError, UnsupportedError
from tare.host import instance_console, processes
from tare.host.filesystems import roots
from tare.host.network import bridge
from tare.host.resources import removers
from tare.host.resources.journal import CleanupStack
from tare.platforms.base import Instance, LaunchSpec, Life
from tare.platforms.gvisor import Gvisor, find_runsc
from tare.platforms.parts.bundles.oci_bundle import NULL_NETNS, Net, bundle_config, plugged
from tare.platforms.parts.common.pipes import TOOL, start
from tare.platforms.watchers.marks import EchoPing
from tare.timeouts import stretched, until

#: The agent says that it is there by one byte, and goes on by another (``--held``).
HERE, GO_ON = b".", b"\n"
CHECKPOINT_LIMIT_S = 60.0
FIX = "see the console kept in the campaign"


class GvisorRestored(Gvisor):
    """The bundle of `gvisor`, in the state that a checkpoint of it has."""

    def __init__(self) -> None:
        super().__init__("gvisor-restored")
        self.title = "gVisor (runsc, systrap), restored from a checkpoint: a warm start"
        self.by_default = False

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:
        """Start a sandbox up to the agent's first moment, checkpoint it, and restore it."""
        runsc = find_runsc()
        assert runsc is not None, "launch follows a successful detect"
        address = plugged(spec, cleanup, Net.OWN_STACK)
        assert address.host is not None
        root = roots.overlay_root(cleanup, spec.space, spec.image.root)
        folder, name = spec.space.folder, f"tare-{spec.id}"
        group, netns = f"{spec.group.inner}/box", bridge.namespace_path(spec.id)
        argv = spec.agent_argv("--held")
        config = bundle_config(argv, root, spec.space.data, spec.resources, group, netns)
        (folder / "config.json").write_text(json.dumps(config))
        state, image = folder / "state", folder / "checkpoint"
        container = removers.oci_container(runsc, state, name)
        cleanup.own(removers.mount(state / NULL_NETNS), container)
        cleanup.own(removers.control_group(f"{spec.group.inner}/tool"))
        command = [runsc, "--root", str(state), "--platform=systrap", "--network=sandbox"]
        within = roots.privileged_within(root)
        _checkpoint(spec, [*within, *command], name, image)
        # The first sandbox took the address over, from the namespace into its own stack.
        spec.network.give_address(spec.id, address.host)
        words = ["restore", f"--image-path={image}", "--bundle", str(folder), name]
        began = start(spec, [*command, *words], within)
        with contextlib.ExitStack() as on_failure:
            on_failure.callback(began.stream.close)
            on_failure.callback(began.first_byte.wait, 0)
            began.stream.send(GO_ON, until(spec.start_limit_s))
            on_failure.pop_all()
        ping = EchoPing(address.host) if spec.measured else None
        return Instance(spec, began.stream, began.at, address, began.first_byte, ping, client=TOOL)

    def life(self, spec: LaunchSpec, cleanup: CleanupStack, argv: Sequence[str]) -> Life:  # noqa: ARG002
        """Raise `UnsupportedError`: but for the start it is gvisor's."""
        raise UnsupportedError("its start is a restore, which startup measures; all else of its life is gvisor's")


def _checkpoint(spec: LaunchSpec, command: list[str], name: str, image: Path) -> None:
    """Run the bundle until its agent waits, then write what it is to the folder ``image``; it has ended by then.

    Raises `PlatformError`, `HostError`.
    """
    procs = spec.group.leaf("tool")
    pipe = subprocess.PIPE
    argv = [*command, "run", "--bundle", str(spec.space.folder), name]
    with instance_console.opened(spec.space.log) as log:
        first = processes.start(argv, stdin=pipe, stdout=pipe, stderr=log, cgroup_procs=procs)
    try:
        assert first.stdout is not None
        if first.stdout.read(1) != HERE:
            raise PlatformError("the sandbox that was to be checkpointed did not come up", fix=FIX)
        words = ["checkpoint", f"--image-path={image}", name]
        done = processes.run([*command, *words], time_limit_s=CHECKPOINT_LIMIT_S, cgroup_procs=procs)
        done.require(fix=FIX)
        first.wait(stretched(CHECKPOINT_LIMIT_S))
    except subprocess.TimeoutExpired as error:
        raise PlatformError("the sandbox still runs after its checkpoint", fix=FIX) from error
    finally:
        processes.end(first)


PLATFORMS = (GvisorRestored(),)
