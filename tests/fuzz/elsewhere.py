"""What guests, labs, remote hosts, images and browsers send, a function each, as in `fuzz.targets`."""

from __future__ import annotations

import gzip
import io
import json
import os
import re
import socket
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path

from tare.cli.answering import HttpServer, Response, _Handler
from tare.contract import doors, survey
from tare.errors import ImageError, ParseError, PlatformError, UsageError
from tare.features.kernel.execution import wire
from tare.features.kernel.lab import gcov
from tare.host.filesystems import archives
from tare.host.network import fence
from tare.host.resources import claims, removers
from tare.host.resources.journal import Journal, JournalEntry
from tare.image import container_images
from tare.platforms.ssh import Facts
from tare.safe_text import clean

TESTS = Path(__file__).parent.parent
MAX_LINE = 2000  # characters of an error's line
#: What a terminal or a CI's log obeys.
_OBEYED = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]|##\[|(?:^|\n)[^\S\n]*::")


def one_line(error: Exception) -> None:
    """An error for a user is a line of some length."""
    assert "\n" not in str(error), str(error)
    assert len(str(error)) < MAX_LINE


# --- guests and remote hosts ---------------------------------------------------------------------------------------

_HOST = doors.HostSecrets("a-secret", {"boot": "b", "uts": "u", "net": "n"}, (1, 2**62))


def check_doors(data: bytes) -> None:
    """What a guest prints of its doors is an outcome for each, in one line without its control characters."""
    answers = doors.DoorAnswers.parse(data.decode(errors="replace"))
    for door in (*doors.DOORS, *doors.DOORS_TO_OTHERS):
        outcome = doors.judge(door, answers, _HOST)
        assert outcome.how.isprintable(), outcome.how


def captured_doors() -> Iterator[bytes]:
    """What instances printed, cut to the length that libFuzzer is held to."""
    for file in sorted((TESTS / "platforms" / "doors").glob("*.txt")):
        yield file.read_bytes()[:3000]
    yield b"fact\tboot\tb\nfact\tsince_boot_ns\t5\ndoor\tkcore\tas it is\tOK\ndoor\tfiles\tx\t=a-secret\nend\n"


def check_survey(data: bytes) -> None:
    """A file of another host's doors: tables whose rows it cannot break, or a refusal."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "doors.json")
        file.write_bytes(data)
        try:
            table = survey.table(survey.merged(survey.read(file)))
        except UsageError as error:
            one_line(error)
        else:
            assert all(line.startswith(("| ", "- ", "Not tried")) or not line for line in table.splitlines())


def surveys() -> Iterator[bytes]:
    """One platform with an open door, and one that was not tried."""
    door = {"door": "files", "state": "open", "how": "x: OK", "by_design": None}
    platforms = [
        {"platform": "runc", "why_not": None, "doors": [door], "failed": False},
        {"platform": "uml", "why_not": "it is not there", "doors": [], "failed": True},
    ]
    yield json.dumps({"schema": "tare.doors/1", "platforms": platforms}).encode()


def check_remote(data: bytes) -> None:
    """What a remote host says of itself, or a refusal."""
    with suppress(PlatformError):
        Facts.parse(data.decode(errors="replace"))


def remote_facts() -> Iterator[bytes]:
    """As ``remote.sh look`` prints them."""
    names = ("missing", "limits", "unsafe", "model", "name", "kernel", "arch")
    words = "".join(f"{name}={name}\n" for name in names)
    yield (
        f"welcome\ntare-remote\nuid=0\ncpus=0-1,3\nmemory_kib=4096\nfree_kib=1\n{words}"
        "address=192.0.2.1\nclient=192.0.2.2\nimage=there\n"
    ).encode()


def check_text(data: bytes) -> None:
    """Any text, once it is cleaned, has nothing that a terminal or a CI's log obeys."""
    for text in (data.decode(errors="replace"), data.decode(errors="surrogateescape"), data.decode("latin-1")):
        cleaned = clean(text)
        assert not _OBEYED.search(cleaned), cleaned
        cleaned.encode()
        assert clean(cleaned) == cleaned


def texts() -> Iterator[bytes]:
    """Commands of a CI, and of a terminal."""
    yield b"a\n::error::b\n\t ::set-output name=x::y ##[error] ##vso[x] ##teamcity[x] \x1b]0;t\x07\r\x9b31m\xe2\x80\xae"


# --- labs ----------------------------------------------------------------------------------------------------------


class _Watcher:
    def doing(self, what: str) -> None:
        assert isinstance(what, str)

    def step(self, done: int, of: int, missed: int) -> None:
        assert min(done, of, missed) >= 0


def check_lab(data: bytes) -> None:
    """A lab's answer, and its lines of progress: each is read, or is none."""
    for line in data.decode(errors="replace").splitlines():
        wire.pass_on(line, _Watcher(), "in the lab: ")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, wire.ANSWER).write_bytes(data)
        try:
            wire.read_answer(Path(folder))
        except ParseError as error:
            one_line(error)


def lab_answers() -> Iterator[bytes]:
    """An error, and progress."""
    yield wire.LabAnswer(error="it failed", fix="a fix").model_dump_json().encode()
    yield b'{"doing": "x"}\n{"done": 1, "of": 2, "missed": 0}\n{"result": null, "error": null}'


def check_counters(data: bytes) -> None:
    """A lab's reading of the kernel's counters."""
    try:
        for contents in gcov.counters_in(data).values():
            with suppress(ParseError):
                gcov.stamp(contents)
                gcov.ran(contents)
    except ParseError as error:
        one_line(error)
    with suppress(ParseError):
        gcov.ran(data)


def _tar(**files: bytes) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for name, contents in files.items():
            member = tarfile.TarInfo(name.replace("__", "/"))
            member.size = len(contents)
            tar.addfile(member, io.BytesIO(contents))
    return packed.getvalue()


def readings() -> Iterator[bytes]:
    """A tar of counters that gzip compressed, and counters themselves."""
    counters = bytes.fromhex("61646367523130420102030400000000") + bytes.fromhex("0000a101") + b"\x08\0\0\0" + bytes(8)
    yield gzip.compress(_tar(**{"kernel__x.gcda": counters}))
    yield counters


# --- images --------------------------------------------------------------------------------------------------------


def check_archive(data: bytes) -> None:
    """A root's tar: what comes of it is below its folder, whatever is in it."""
    with tempfile.TemporaryDirectory() as place:
        beside = Path(place, "beside")
        beside.write_text("as it was")
        before = set(os.listdir(place))  # noqa: PTH208
        for unpack in (archives.unpack_root, archives.unpack_layer):
            folder = Path(place, f"root-{unpack.__name__}")
            folder.mkdir()
            with suppress(tarfile.TarError, OSError):
                unpack(io.BytesIO(data), folder, 1 << 20)
            before.add(folder.name)
            assert set(os.listdir(place)) == before  # noqa: PTH208
            assert beside.read_text() == "as it was"
        with suppress(tarfile.TarError):
            for name, contents in archives.members(io.BytesIO(data), 1 << 20):
                assert not name.is_absolute()
                assert ".." not in name.parts
                if contents is not None:
                    contents.read()


def _entry(name: str, kind: bytes, target: str = "") -> bytes:
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.mode = kind, target, 0o755
    return member.tobuf(tarfile.GNU_FORMAT)


def tars() -> Iterator[bytes]:
    """Links, folders, devices and whiteouts; names that lead out."""
    end = bytes(1024)
    yield _tar(a=b"x", b__c=b"y" * 600)
    yield _entry("up", tarfile.SYMTYPE, "..") + _entry("up/beside", tarfile.REGTYPE) + end
    yield _entry("../beside", tarfile.REGTYPE) + _entry("/beside", tarfile.LNKTYPE, "../beside") + end
    yield _entry("d", tarfile.DIRTYPE) + _entry("d/.wh.x", tarfile.REGTYPE) + _entry("n", tarfile.CHRTYPE) + end
    pax = b"30 path=../../../../beside\n"
    yield (
        _entry("pax", tarfile.XHDTYPE)[:124]
        + f"{len(pax):011o}\0".encode()
        + _entry("pax", tarfile.XHDTYPE)[136:]
        + pax
    )


def check_image(data: bytes) -> None:
    """A container image in a tar: what it is, or a refusal in one line."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "image.tar")
        file.write_bytes(data)
        try:
            image = container_images.read(file)
            root = Path(folder, "root")
            root.mkdir()
            container_images.unpack(file, image, root)
        except ImageError as error:
            one_line(error)
        except OSError as error:  # rights that do not suffice
            assert os.geteuid() != 0, error  # noqa: PT017


def images() -> Iterator[bytes]:
    """As ``docker save`` writes one, without a layer."""
    config = json.dumps({"architecture": "amd64", "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}).encode()
    saved = json.dumps([{"Config": "c.json", "RepoTags": ["a:b"], "Layers": []}]).encode()
    yield _tar(**{"manifest.json": saved, "c.json": config})
    yield _tar(**{"index.json": b'{"manifests": []}', "oci-layout": b'{"imageLayoutVersion": "1.0.0"}'})


# --- the journal, and browsers -------------------------------------------------------------------------------------


def check_journal(data: bytes) -> None:
    """An entry of the journal that anything may have written: one that `claims` has, or it is told and left alone."""
    with tempfile.TemporaryDirectory() as home:
        journal = Journal(Path(home, "journal"))
        journal.write(removers.link("tarefuzz"))
        [entry] = journal.entries()
        entry.file.write_bytes(data)
        for entry in journal.entries():
            assert isinstance(entry, JournalEntry)
            assert claims.fault(entry.resource, claims.Bounds(Path(home).resolve())) is None
        for unreadable in journal.unreadable():
            assert "\n" not in f"{unreadable} {unreadable.why}"


def entries() -> Iterator[bytes]:
    """Entries of several kinds, as they are written."""
    with tempfile.TemporaryDirectory() as home:
        journal = Journal(Path(home, "journal"))
        for resource in (
            removers.link("tarefuzz"),
            removers.network_namespace("tare-fuzz"),
            removers.iptables_rule(*fence.PUBLISHED),
            removers.setting(Path("/proc/sys/net/ipv4/ip_forward"), "0", "1"),
            removers.packet_rules("tare-fuzzx1"),
        ):
            [entry] = journal.write(resource)
            yield entry.file.read_bytes()


def check_web(data: bytes) -> None:
    """A request to `tare serve` or ``--metrics``: an answer, or none; a stranger's name gets no page."""
    server = _server()
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.settimeout(5)
        theirs.sendall(data[:60_000])
        theirs.shutdown(socket.SHUT_WR)
        with suppress(OSError):
            _Handler(ours, ("127.0.0.1", 9), server)
        ours.close()
        said = b""
        while piece := theirs.recv(1 << 16):
            said += piece
    if b"THE PAGE" in said:
        hosts = re.findall(rb"(?im)^host[^\S\n]*:[^\S\n]*(\S*)", data)
        assert any(server.is_called(host.decode("latin-1")) for host in hosts), data


_servers: list[HttpServer] = []


def _server() -> HttpServer:
    if not _servers:
        page = Response(HTTPStatus.OK, "text/plain", b"THE PAGE")
        _servers.append(HttpServer("127.0.0.1", 0, lambda _target, _accepted: page))
        _servers[0].server_close()  # it only answers what it is given
    return _servers[0]


def requests() -> Iterator[bytes]:
    """Requests as browsers and scrapers send them, and by another name."""
    port = _server().server_port
    yield f"GET /metrics HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: */*\r\n\r\n".encode()
    yield f"HEAD / HTTP/1.0\r\nHost: localhost:{port}\r\n\r\n".encode()
    yield f"GET / HTTP/1.1\r\nHost: evil.example:{port}\r\nHost: [::1]:{port}\r\nX: y\r\n z\r\n\r\n".encode()


TARGETS = {
    "doors": check_doors,
    "surveys": check_survey,
    "remote": check_remote,
    "texts": check_text,
    "labs": check_lab,
    "counters": check_counters,
    "archives": check_archive,
    "images": check_image,
    "journal": check_journal,
    "web": check_web,
}
SEEDS = {
    "doors": captured_doors,
    "surveys": surveys,
    "remote": remote_facts,
    "texts": texts,
    "labs": lab_answers,
    "counters": readings,
    "archives": tars,
    "images": images,
    "journal": entries,
    "web": requests,
}
