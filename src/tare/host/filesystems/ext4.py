"""ext4 filesystems in sparse files, made without mounting anything."""

from __future__ import annotations

from pathlib import Path

from tare.host import processes

#: Leave no work to the kernel for after the first mount.
AT_ONCE = ("-E", "lazy_itable_init=0,lazy_journal_init=0")
LIMIT_S = 600.0


def make(file: Path, size_bytes: int, *options: str, contents: Path | None = None) -> processes.Finished:
    """Create a file with a filesystem of this size, and copy ``contents``, a folder, into it.

    ``options``: further options of mkfs.ext4(8). The caller checks the exit code.
    """
    with file.open("xb") as sparse:
        sparse.truncate(size_bytes)
    filled = ["-d", str(contents)] if contents is not None else []
    # It ends with tare; otherwise it would continue in a folder that was removed.
    argv = [*processes.WITH_TARE, "mkfs.ext4", "-q", "-F", *options, *filled, str(file)]
    return processes.run(argv, time_limit_s=LIMIT_S)
