"""Guest of the platform blackbox: a static program of tare's own as the whole userspace of Debian's cloud kernel."""

from __future__ import annotations

import hashlib
import tempfile
from importlib import resources
from pathlib import Path

from tare.errors import ImageError
from tare.host import distribution, processes, state
from tare.image import guest
from tare.image.guest import Guest

FLAGS = ("-static", "-Os", "-s")
FIX = distribution.install("gcc", "libc6-dev")
#: Ports that it answers on, as in its source.
ECHO_PORT, HTTP_PORT = 7, 80


#: Kinds of guests, by the monitor that boots them.
KINDS = {"qemu": "network", "firecracker": "network-firecracker", "xen": "network-xen"}


def ensure(vmm: str = "qemu") -> Guest:
    """Return the kernel and the initramfs with the program; cached by the hash of all input. Raises `ImageError`."""
    return guest.ensure(KINDS[vmm], program())


def place() -> Path:
    """Return the path of the compiled program."""
    folder = state.home() / "guest"
    folder.mkdir(exist_ok=True)
    return folder / f"blackbox-{hashlib.sha256(_source() + repr(FLAGS).encode()).hexdigest()[:16]}"


def program() -> bytes:
    """Return the program, compiled once for each version of its source. Raises `ImageError`."""
    file = place()
    if not file.exists():
        if processes.find("gcc") is None:
            raise ImageError("the black box's guest is compiled here, and gcc is not installed", fix=FIX)
        with tempfile.TemporaryDirectory(dir=file.parent) as scratch:
            text, built = Path(scratch, "blackbox.c"), Path(scratch, "blackbox")
            text.write_bytes(_source())
            done = processes.run(["gcc", *FLAGS, "-o", str(built), str(text)], time_limit_s=60)
            if done.code != 0:
                raise ImageError(f"the black box's guest does not compile: {done.message}", fix=FIX)
            built.rename(file)
    return file.read_bytes()


def _source() -> bytes:
    return resources.files("tare.image").joinpath("blackbox.c").read_bytes()
