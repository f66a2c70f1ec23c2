"""H3: a box's file that tries to run commands, to read the host's files and to hang what reads its console."""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

from command import tare
from findings import Finding
from guests import is_monitor, started

from tare.campaign.instances.launcher import InstanceLauncher
from tare.errors import TareError
from tare.host import processes
from tare.image import blackbox_guest
from tare.platforms import platform_registry

LIMIT_S = 150.0
#: The kernel prints this word, on which an expression with nested repetitions never ends.
_WORD = f"{'a' * 60}!"
_BASE = """\
kernel = "{kernel}"
initrd = "initrd"
cmdline = "console=ttyS0 panic=-1 {word} box_ip={{ip}} box_prefix={{prefix}} box_gateway={{gateway}}"
memory = 128
{more}
[answers]
{answers}
"""


def folder_of(work: Path) -> Path:
    """The folder of the boxes' files, with tare's own small guest in it."""
    folder = work / "boxes"
    if not folder.exists():
        folder.mkdir()
        guest = blackbox_guest.ensure()
        for name, source in (("kernel", guest.kernel), ("initrd", guest.initramfs)):
            (folder / name).write_bytes(source.read_bytes())
    return folder


def write(folder: Path, name: str, *, kernel: str = "kernel", more: str = "", answers: str = "udp = 7") -> Path:
    """A box's file in a folder, with tare's own small guest."""
    file = folder / f"{name}.toml"
    file.write_text(_BASE.format(kernel=kernel, word=_WORD, more=more, answers=answers))
    return file


def attack(finding: Finding, work: Path) -> None:
    """Run each box as `tare run -p blackbox:FILE` does, and see what came of it on the host."""
    if processes.find("qemu-system-x86_64") is None:
        finding.untried.append("QEMU is not installed")
        return
    folder = folder_of(work)
    marker, secret = work / "box-ran", work / "secret"
    secret.write_bytes(os.urandom(1 << 20))
    secret.chmod(0o600)
    (folder / "link.raw").symlink_to(secret)
    (folder / "links").symlink_to(work)
    os.mkfifo(folder / "pipe.raw")
    made = [(["-f", "qcow2", "-b", str(secret), "-F", "raw"], "evil.qcow2"), (["-f", "vmdk"], "evil.vmdk")]
    for options, image in made:
        argv = ["qemu-img", "create", "-q", *options, str(folder / image), "1M"]
        subprocess.run(argv, check=False, capture_output=True)
    command = f"exec:id >{marker}; :"
    boxes = {
        "arguments": write(folder, "arguments", more=f'arguments = ["-incoming", "{command}"]'),
        "machine options": write(folder, "machine", more=f'machine_options = "acpi=off,dumpdtb={marker}"'),
        "a CPU's options": write(folder, "cpu", more=f'cpu = "max,{command}"'),
        "a device with a file": write(folder, "device", more='devices = ["VGA,romfile=/etc/shadow"]'),
        "words in the kernel's name": write(folder, "name", kernel=f"kernel -incoming {command}"),
        "a qcow2 disk": write(folder, "qcow2", more='disk = "evil.qcow2"'),
        "a disk by a whole path": write(folder, "whole", more=f'disk = "{secret}"'),
        "a disk above": write(folder, "above", more='disk = "../secret"'),
        "a disk by a link": write(folder, "link", more='disk = "link.raw"'),
        "a disk behind a link": write(folder, "behind", more='disk = "links/secret"'),
        "a disk by a protocol": write(folder, "protocol", more=f'disk = "file:{secret}"'),
        "a disk in JSON": write(folder, "json", more=f'disk = \'json:{{"driver":"raw","file":"{secret}"}}\''),
        "a pipe": write(folder, "pipe", more='disk = "pipe.raw"'),
    }
    for name, file in boxes.items():
        with opens_of(secret) as opened:
            ended = tare("run", "-p", f"blackbox:{file}", "-w", "startup", "--blocks", "1", "-o", work / f"{name}.tare",
                         limit_s=LIMIT_S)  # fmt: skip
        said = f"a command ran: {marker.read_text()[:60]}" if marker.exists() else ended.fault
        finding.attempt(name, said or ("the host's file was opened" if opened() else ""))
        marker.unlink(missing_ok=True)
    slow = write(folder, "slow", answers='udp = 7\nconsole = "(a+)+$"')
    ended = tare(
        "run", "-p", f"blackbox:{slow}", "-w", "startup", "--blocks", "1", "-o", work / "slow.tare", limit_s=300
    )
    finding.attempt("an endless expression", ended.fault)


@contextlib.contextmanager
def opens_of(file: Path) -> Iterator[Callable[[], bool]]:
    """Whether a file's contents are read in this context: its time of access is set back before."""
    os.utime(file, (1, file.stat().st_mtime))
    yield lambda: file.stat().st_atime != 1


def attack_monitor(finding: Finding, launcher: InstanceLauncher) -> None:
    """What a guest that has taken QEMU over finds: the rights of its process, and the files that are there."""
    box = platform_registry.choose(["blackbox"])[0]
    if not (answer := box.detect()).available:
        finding.untried.append(f"blackbox: {answer.reason}")
        return
    box.prepare(launcher.image)
    try:
        with started(box, launcher) as running:
            monitors = [pid for pid in running.instance.host_processes() if is_monitor(pid)]
            for pid in monitors:
                status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
                root = Path(f"/proc/{pid}/root")
                said = [f"{name} {status[name]}" for name in ("CapEff", "CapPrm", "CapBnd") if int(status[name], 16)]
                said += ["it is the host's root"] if status["Uid"].split("\t")[1] == "0" else []
                said += ["no seccomp filter"] if status["Seccomp"] != "2" else []
                said += [f"it sees {name}" for name in ("/etc/shadow", "/root", "/home", "/dev/sda") if
                         (root / name.lstrip("/")).exists()]  # fmt: skip
                finding.attempt("QEMU's process", ", ".join(said))
            if not monitors:
                finding.untried.append("no monitor of the box is seen")
    except TareError as error:
        finding.untried.append(f"QEMU's process: {error.what[-150:]}")
    finally:
        box.close()
