"""Run of a command in a lab: input goes in, output is forwarded as it is produced, results come back."""

from __future__ import annotations

import contextlib
import shutil
import tarfile
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from tare import outputs
from tare.errors import HostError, PlatformError, SessionTimeout, TareError, UsageError
from tare.features.kernel.lab import kernel, lab_build, lab_recipes, payload
from tare.features.kernel.lab.lab_machine import MachineParts, running
from tare.host.filesystems import archives
from tare.image import image_build
from tare.model import Progress
from tare.session import Session
from tare.session.frames import STDERR, STDOUT
from tare.session.messages import MAX_OUTPUT_CAP
from tare.session.requests import Execution
from tare.timeouts import stretched

#: Called with a command's output: the channel (1 or 2), and some bytes.
Output = Callable[[int, bytes], None]
#: Factor for all time limits inside a lab.
PATIENCE = 12
PREPARE_LIMIT_S = 120.0
FILE_LIMIT_S = 600.0
PACK_LIMIT_S = 3600.0
#: Bytes of results in one transfer, and free space to keep on the disk that receives them.
PIECE, SPARED = 32 << 20, 256 << 20
#: QEMU's limit for the machine type of labs.
MAX_CPUS = 255
#: Exit code of a command that was stopped at its time limit, as with timeout(1).
TIMED_OUT = 124
#: Interval between looks for output, in seconds.
_TURN_S = 0.1
HOME = PurePosixPath("/lab")
#: Folder whose contents come back after the command.
OUT = HOME / "out"
#: Environment of every command in a lab.
ENV = {
    "PATH": "/lab/files:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "PYTHONPATH": "/lab/checkout/src:/payload/site-packages",
    "PYTHONDONTWRITEBYTECODE": "1",
    "TARE_HOME": "/var/lib/tare",
    "TARE_AGENT": "/payload/tare-agent",
    "TARE_PATIENCE": str(PATIENCE),
    "TERM": "dumb",
}


@dataclass(frozen=True, slots=True)
class LabCommand:
    """A command, and the lab to run it in."""

    argv: Sequence[str]
    flavour: str  # Or a stock host.
    memory_bytes: int
    cpus: int
    time_limit_s: float
    files: Sequence[Path] = ()  # Of this host; on PATH in the lab.
    results: Path | None = None  # Folder here for the contents of the lab's /lab/out.
    # Accepted result names (patterns), with a limit in bytes each; None: all.
    expected: Mapping[str, int] | None = None
    kernel: Sequence[str] = ()  # Further arguments of its kernel.
    env: Mapping[str, str] = field(default_factory=dict)  # In addition to `ENV`.
    stdin: bytes = b""

    def check(self) -> None:
        """Raise `UsageError` for invalid options, before anything is built."""
        if not self.argv:
            raise UsageError("no command is given", fix="tare lab run -- COMMAND")
        if self.memory_bytes < 1 << 30:
            raise UsageError("a lab needs at least 1G of memory", fix="--memory 4G")
        if not 1 <= self.cpus <= MAX_CPUS:
            raise UsageError(f"a lab has 1 to {MAX_CPUS} processors", fix="--cpus 2")
        if self.time_limit_s <= 0:
            raise UsageError("a command needs some time", fix="--time-limit 30m")
        lab_recipes.load().require(self.flavour)
        names = Counter(file.name for file in self.files)
        for file in self.files:
            if not file.is_file():
                raise UsageError(f"{file} is no file", fix="give --file a file of this host")
            if names[file.name] > 1:
                raise UsageError(f"two files would be called {file.name} in the lab", fix="rename one of them")
        if self.results is not None:
            outputs.check_empty_folder(self.results)


def ensure(flavour: str, progress: Progress, *, renew: bool = False) -> MachineParts:
    """Return all parts of a lab. Build what is missing. ``renew``: see `tare.features.kernel.lab.kernel.ensure`."""
    lab_recipe = lab_recipes.load()
    host = lab_build.host(flavour, progress)
    emulator = lab_build.emulator(progress)
    image = image_build.ensure(image_build.agent_path(), progress=progress)
    packed = payload.ensure(image, progress, lab_recipe.python(flavour))
    counting = kernel.ensure(flavour, progress, renew=renew)
    return MachineParts(emulator, host, packed, counting.image if counting else None, stock=flavour in lab_recipe.stock)


def run(command: LabCommand, output: Output, progress: Progress) -> int:
    """Boot a lab, run the command in it, and return its exit code. The lab is removed afterwards."""
    command.check()
    parts = ensure(command.flavour, progress)
    began = time.monotonic()
    with running(parts, command.cpus, command.memory_bytes, progress, command.kernel) as session:
        progress("making a host of it")
        _prepare(session, command)
        progress(f"ready after {time.monotonic() - began:.0f} s")
        code = _execute(session, command, output)
        if command.results is not None:
            progress("fetching the results")
            fetch(session, command.results, expected=command.expected)
    return code


def _prepare(session: Session, command: LabCommand) -> None:
    session.put("/lab/checkout.tar", payload.checkout(), time_limit_s=FILE_LIMIT_S)
    script = Path(__file__).with_name("prepare.sh").read_bytes()
    session.put("/lab/prepare.sh", script, 0o755)
    session.execute(["mkdir", "-p", "/lab/files"])
    for file in command.files:
        mode = 0o755 if file.stat().st_mode & 0o111 else 0o644
        session.put(f"/lab/files/{file.name}", file.read_bytes(), mode, time_limit_s=FILE_LIMIT_S)
    done = session.execute(["/lab/prepare.sh", command.flavour], time_limit_s=PREPARE_LIMIT_S)
    if done.code != 0:
        last_lines = " | ".join(done.stderr.decode(errors="replace").strip().splitlines()[-3:])
        raise PlatformError(f"the lab came up, but cannot be made a host: {last_lines}", console=done.stderr)


def _execute(session: Session, command: LabCommand, output: Output) -> int:
    execution = session.start(
        command.argv,
        env={**ENV, **command.env, "TARE_LAB": command.flavour},
        cwd="/lab/checkout",
        stdin=command.stdin,
        time_limit_s=command.time_limit_s,
        output_cap=MAX_OUTPUT_CAP,
    )
    _stream(session, execution, output)
    done = execution.wait()
    if done.truncated:
        output(STDERR, b"tare: the command said more than 64 MiB; the rest is not shown\n")
    if done.timed_out:
        output(
            STDERR, f"tare: the command was ended at its limit of {stretched(command.time_limit_s):.0f} s\n".encode()
        )
        return TIMED_OUT
    return done.code if done.code is not None else 128 + (done.signal or 0)


def _stream(session: Session, execution: Execution, output: Output) -> None:
    shown = {STDOUT: 0, STDERR: 0}
    while True:
        over = execution.over
        for channel, place in shown.items():
            new = execution.since(channel, place)
            if new:
                output(channel, new)
                shown[channel] = place + len(new)
        if over:
            return
        with contextlib.suppress(SessionTimeout):
            turn = time.monotonic() + _TURN_S
            session.pump_until(lambda: execution.over, turn, f"to {execution.what}", fatal=False)


def fetch(
    session: Session, folder: Path, lab: PurePosixPath = HOME, *, expected: Mapping[str, int] | None = None
) -> None:
    """Copy the lab's folder ``out`` into a folder here: plain files and folders, nothing else.

    ``expected``: see `LabCommand`.

    The data come as one file of any size, piece by piece, beside the folder. If a later step fails after hours of work,
    that file stays, and the error names it. Raises `TareError`.
    """
    archive, copy = lab / "out.tar", folder.with_name(f"{folder.name}.from-lab.tar")
    packed = session.execute(["tar", "-C", str(lab / "out"), "-cf", str(archive), "."], time_limit_s=PACK_LIMIT_S)
    if packed.code != 0:
        raise PlatformError("the results cannot be packed in the lab", console=packed.stderr)
    try:
        _bring(session, archive, copy)
        unpack(copy, folder, expected)
    except TareError as error:
        if copy.exists() and copy.stat().st_size > 0:
            error.what += f"; what came of the results is kept in {copy}"
        raise
    copy.unlink()


def _bring(session: Session, archive: PurePosixPath, copy: Path) -> None:
    """Copy a file of any size out of the lab, unless the disk here would become too full. Raises `TareError`."""
    answer = session.execute(["stat", "-c", "%s", str(archive)]).stdout.strip()
    if not answer.isdigit():
        raise PlatformError(f"the lab does not say how large {archive} is")
    size = int(answer)
    room = max(0, shutil.disk_usage(copy.parent).free - SPARED)
    try:
        with copy.open("wb") as file:
            for number in range(-(-min(size, room) // PIECE)):
                words = [f"if={archive}", f"bs={PIECE}", f"skip={number}", "count=1", "iflag=fullblock", "status=none"]
                piece = session.execute(["dd", *words], time_limit_s=FILE_LIMIT_S, output_cap=PIECE).stdout
                if len(piece) != min(PIECE, size - file.tell()):
                    raise PlatformError(f"only {file.tell()} of {size} bytes of results came out of the lab")
                file.write(piece)
    except OSError as error:
        raise HostError(f"the results cannot be written to {copy}: {error.strerror}") from error
    if size > room:
        raise HostError(
            f"the results have {size >> 20} MiB, and the disk of {copy.parent} has room for {room >> 20} MiB",
            fix="give --out a folder on a larger disk",
        )


def unpack(packed: Path, folder: Path, expected: Mapping[str, int] | None = None) -> None:
    """Unpack plain files and folders of a tar, none of them outside of the folder: a lab may run hostile code.

    ``expected``: see `LabCommand`. Raises `HostError`, also for an archive beyond the bounds of
    `tare.host.filesystems.archives`, and for a file above its own limit.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # The transfer kept the archive below the free space, which bounds the unpacked size too.
        room = 2 * packed.stat().st_size
        with packed.open("rb") as archive:
            for name, contents in archives.members(archive, room):
                place, most = folder / name, room if expected is None else _most(name, expected)
                if contents is None and expected is None:
                    place.mkdir(parents=True, exist_ok=True)
                if contents is None or most is None:
                    continue
                place.parent.mkdir(parents=True, exist_ok=True)
                with outputs.written(place, "wb", new=True) as file:
                    shutil.copyfileobj(contents, file)
                if place.stat().st_size > most:
                    raise tarfile.ReadError(f"{name} has more than {most >> 20} MiB")
    except (OSError, tarfile.TarError) as error:
        raise HostError(
            f"the results cannot be written to {folder}: {error}", fix="give --out another folder"
        ) from error


def _most(name: PurePosixPath, expected: Mapping[str, int]) -> int | None:
    """Return the size limit in bytes of a file of this name, or None if it is not expected."""
    patterns = (pattern for pattern in expected if len(PurePosixPath(pattern).parts) == len(name.parts))
    return next((expected[pattern] for pattern in patterns if name.match(pattern)), None)
