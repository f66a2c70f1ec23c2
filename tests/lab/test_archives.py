"""Archives out of a lab unpack within their bounds, and the rest of them is refused."""

import gzip
import io
import tarfile

import pytest

from tare.errors import HostError, ParseError
from tare.features.kernel.lab import forwarded_run, gcov
from tare.host.filesystems import archives


def _tar(*infos, data=b"", fmt=tarfile.PAX_FORMAT):
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=fmt) as tar:
        for info in infos:
            tar.addfile(info, io.BytesIO(data[: info.size]))
    return archive.getvalue()


def _info(name, size=0, **fields):
    info = tarfile.TarInfo(name)
    info.size = size
    for key, value in fields.items():
        setattr(info, key, value)
    return info


#: 300 MiB of a hole, and one byte: what GNU tar -S writes.
SPARSE = _info("a.gcda", 0, pax_headers={
    "GNU.sparse.major": "0", "GNU.sparse.minor": "1", "GNU.sparse.name": "a.gcda",
    "GNU.sparse.size": str(300 << 20), "GNU.sparse.map": f"{(300 << 20) - 1},0",
})  # fmt: skip


def test_a_hole_is_not_filled(tmp_path):
    packed = tmp_path / "x.tar"
    packed.write_bytes(_tar(SPARSE))
    assert packed.stat().st_size < 20_000
    with pytest.raises(HostError, match="a file with holes"):
        forwarded_run.unpack(packed, tmp_path / "out")
    assert sum(file.stat().st_size for file in (tmp_path / "out").rglob("*")) == 0
    with pytest.raises(ParseError, match="a file with holes"):
        gcov.counters_in(gzip.compress(packed.read_bytes()))


def test_a_header_as_large_as_memory_is_not_read():
    long = bytearray(_tar(_info("a", pax_headers={"comment": "x" * 2000})))
    long[124:136] = b"%011o\0" % (1 << 30)  # the header's own length
    long[148:156] = b" " * 8
    long[148:156] = b"%06o\0 " % sum(long[:512])
    with pytest.raises(tarfile.ReadError):
        list(archives.members(io.BytesIO(bytes(long)), 1 << 40))


def test_more_members_than_there_are_in_any(monkeypatch):
    monkeypatch.setattr(archives, "MAX_MEMBERS", 10)
    with pytest.raises(tarfile.ReadError, match="more than 10 members"):
        list(archives.members(io.BytesIO(_tar(*(_info(f"{n}") for n in range(11)))), 1 << 20))


def test_a_bomb_of_a_reading_is_refused(monkeypatch):
    monkeypatch.setattr(gcov, "MAX_COUNTERS", 1 << 20)
    with pytest.raises(ParseError, match="more than 1 MiB"):
        gcov.counters_in(gzip.compress(bytes(2 << 20)))


def test_links_devices_and_ways_out_are_passed_over():
    infos = [
        _info("../out", 1), _info("/abs", 1), _info("link", type=tarfile.SYMTYPE, linkname="/etc"),
        _info("hard", type=tarfile.LNKTYPE, linkname="a"), _info("null", type=tarfile.CHRTYPE), _info("a", 1),
    ]  # fmt: skip
    members = [(str(name), contents and contents.read()) for name, contents in archives.members(
        io.BytesIO(_tar(*infos, data=b"x")), 1 << 20)]  # fmt: skip
    assert members == [("a", b"x")]
