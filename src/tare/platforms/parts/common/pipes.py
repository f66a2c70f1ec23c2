"""The stream of a platform whose start command hands its stdin and stdout to the agent."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tare.host import instance_console, processes
from tare.platforms.base import Instant, LaunchSpec
from tare.platforms.watchers.marks import FirstByte
from tare.session.byte_streams import PipeStream

#: The leaf of an instance's control group that the platform's commands run in.
TOOL = "tool"


class ProcessStream(PipeStream):
    """Pipes to a process; closing them ends it, by force if it does not go by itself."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        super().__init__(os.dup(process.stdout.fileno()), os.dup(process.stdin.fileno()))
        process.stdin.close()
        process.stdout.close()
        self._process = process

    def close(self) -> None:
        """End the process: its stdin ends, and it has 5 s to follow."""
        super().close()
        processes.end(self._process, grace_s=5)


@dataclass(frozen=True, slots=True)
class AgentStart:
    """An agent on pipes: its stream, the start instant, and the watcher of its first byte."""

    stream: ProcessStream
    at: Instant
    first_byte: FirstByte


def start(
    spec: LaunchSpec,
    argv: Sequence[str],
    within: Sequence[str] = (),
    *,
    own: Callable[[int], None] | None = None,
) -> AgentStart:
    """Run a platform's start command inside the instance's control group; its stdin and stdout are the agent's.

    The start instant is that of the command itself: by then the process is in its groups and the stream is watched.
    ``within``: the command prefix that sets up namespaces and mounts before that instant (see
    `processes.start_held`). ``own``: called with the id of the process that becomes the command, before it does: to
    note what the command will leave under that id (`tare.host.resources.kinds.files`), or to change what it inherits.
    """
    made_ns = spec.made()
    procs = spec.group.leaf(TOOL)
    within = [*spec.group.surroundings(), *within]
    pipe = subprocess.PIPE
    with instance_console.opened(spec.space.log) as log:
        held = processes.start_held(
            argv,
            stdin=pipe,
            stdout=pipe,
            stderr=log,
            cgroup_procs=procs,
            within=within,
            rest=spec.timed,
        )
    spec.group.entered_by(held.process.pid)
    stream = ProcessStream(held.process)
    first_byte = FirstByte(stream.fileno())
    try:
        if own is not None:
            own(held.process.pid)
        at = spec.begin(made_ns)
    except BaseException:
        held.give_up()
        first_byte.wait(0)
        stream.close()
        raise
    held.go()
    return AgentStart(stream, at, first_byte)
