"""Small tar archives for tests of what reads them."""

import io
import os
import tarfile


def info(name, **fields):
    """A member of this user's, with further fields of `tarfile.TarInfo`."""
    member = tarfile.TarInfo(name)
    member.uid, member.gid, member.mode = os.getuid(), os.getgid(), 0o755
    for key, value in fields.items():
        setattr(member, key, value)
    return member


def tar(*infos, data=b"hello"):
    """The archive of these members; every file has these contents."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for member in infos:
            member.size = len(data) if member.isfile() else 0
            archive.addfile(member, io.BytesIO(data))
    return buffer.getvalue()
