"""What reads bytes from elsewhere, a function each: it takes any bytes, and raises only for a defect of tare's.

`make fuzz` runs each by coverage (atheris, hours), `make test` on mutations of the seeds (hypothesis, seconds).
The seeds are what is in the tree: golden frames and captured sessions, captured outputs, recipes, profiles, studies.
"""

from __future__ import annotations

import json
import tempfile
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib import resources
from io import BytesIO
from pathlib import Path

from pydantic import ValidationError

import fake_campaign
from tare.analysis.exposure import attack_profile
from tare.analysis.studies import profile
from tare.errors import ImageError, ParseError, StoreError, UsageError, first_invalid
from tare.footprint_model import Footprint, Surface
from tare.image import recipe
from tare.literature import catalogue, library
from tare.model import Layer
from tare.platforms.parts.machines import boxfile
from tare.report.formats import bundle, bundled
from tare.session import frames, messages
from tare.store import CampaignRecord, known_part, read_store
from tare.workloads import registry
from tare.workloads.base import Workload
from workloads import captures, test_mutations, test_storage_bonnie, test_storage_dbench, test_storage_fio

TESTS = Path(__file__).parent.parent
PROTOCOL = TESTS.parent / "protocol"
MAX_LINE = 2000  # characters of an error's line


# --- the session's frames and messages ----------------------------------------------------------------------------


def _decoded(stream: bytes, piece: int, *, noise: bool) -> tuple[list[frames.Frame], str]:
    """All frames of a stream that comes in pieces, and the code of the error that it ended with."""
    decoder, got = frames.Decoder(noise=noise), []
    try:
        for start in range(0, len(stream), piece):
            for frame in decoder.feed(stream[start : start + piece]):
                got.append(frame)  # one by one: those before an error count
            assert decoder.pending <= max(frames.MAX_PAYLOAD + 8, frames.NOISE_LIMIT)
    except frames.FrameError as error:
        return got, error.code
    return got, ""


def check_frames(stream: bytes) -> None:
    """Frames or a refusal, the same however the stream is cut."""
    digest = sum(stream)  # the stream itself says where it is cut, and whether noise may come first
    piece, noise = len(stream) * (digest % 16) // 16 + 1, digest & 16 > 0
    assert _decoded(stream, piece, noise=noise) == _decoded(stream, len(stream) + 1, noise=noise)


def check_reply(payload: bytes) -> None:
    """A reply that is the same when it is written and read again, or a refusal in one line."""
    messages.greeted_protocol(payload)
    try:
        reply = messages.REPLIES.validate_json(payload)
    except ValidationError as error:
        why = messages.why_invalid(error)
        assert "\n" not in why
        assert len(why) < 400
    else:
        assert messages.REPLIES.validate_json(messages.encode(reply)) == reply


def _golden() -> Iterator[bytes]:
    for file in sorted((PROTOCOL / "golden").glob("*.json")):
        yield bytes.fromhex(json.loads(file.read_text())["frame_hex"])


def streams() -> Iterator[bytes]:
    """The golden frames, and whole sessions as they went over the pipe."""
    yield from _golden()
    for file in sorted((PROTOCOL / "sessions").glob("*.bin")):
        yield file.read_bytes()


def _messages() -> Iterator[bytes]:
    yield from (raw[8:] for raw in _golden() if len(raw) > 8)


# --- files that users give -----------------------------------------------------------------------------------------


def _one_line(error: Exception) -> None:
    assert "\n" not in str(error), str(error)
    assert len(str(error)) < MAX_LINE


def _of_text(read: Callable[[str], object], refusal: type[Exception]) -> Callable[[bytes], None]:
    """A check of what reads text: an object, or the refusal in one line."""

    def check(data: bytes) -> None:
        text = data.decode(errors="replace")
        try:
            read(text)
        except refusal as error:
            _one_line(error)

    return check


def _studies() -> Iterator[bytes]:
    for name in catalogue.names():
        yield resources.files("tare.literature").joinpath("studies", f"{name}{catalogue.SUFFIX}").read_bytes()


def _boxes() -> Iterator[bytes]:
    yield b'vmm = "xen"\nmachine = "pvh"\nkernel = "k"\ncmdline = "{ip}/{prefix} {gateway} {mac}"\n[answers]\nudp = 7\n'
    yield (
        b'machine = "microvm"\nkernel = "k"\ninitrd = "i"\ncmdline = "ip={ip}"\nmemory = 64\ncpus = 2\n'
        b'network = "virtio-net-device"\nconsole = "ready.*"\n[answers]\nhttp = 80\npath = "/x"\n'
    )
    yield b'disk = "d.qcow2"\ndisk_device = "ide-hd"\nnetwork = "e1000"\nlink = "user"\n[answers]\ntcp = 22\n'


def _read_weights(text: str) -> None:
    """By its first character as TOML or as CSV."""
    attack_profile.parse(text[1:], "weights.csv" if text[:1] == "c" else "weights.toml")


def _weights() -> Iterator[bytes]:
    yield b"cname,density\nnet/,2.5\ndefault,1\n"
    yield b't title = "bugs"\ndefault = 0.5\n[density]\n"net/" = 2.5\n"tcp_*" = 1e3\n'


def _named(package: str, *names: str) -> Callable[[], Iterator[bytes]]:
    return lambda: (resources.files(package).joinpath(name).read_bytes() for name in names)


def _recipes() -> Iterator[bytes]:
    yield resources.files("tare.image").joinpath("recipe.toml").read_bytes()
    yield resources.files("tare.workloads.cpu").joinpath("recipe-kernel.toml").read_bytes()


def check_layer(data: bytes) -> None:
    """The image's recipe, and the same bytes as a layer on top of it."""
    for read in (
        recipe.parse,
        lambda text: recipe.on_top(recipe.load(), Layer("any", text.decode(errors="surrogateescape"))),
    ):
        try:
            read(data)
        except ImageError as error:
            _one_line(error)


# --- what is in campaign files -------------------------------------------------------------------------------------


def check_readings(data: bytes) -> None:
    """The record, footprints and surfaces of a file: each is read, or refused in one line."""
    for model in (CampaignRecord, Footprint, Surface):
        try:
            known_part(model, data)
        except ValidationError as error:
            _one_line(StoreError(first_invalid(error)))


def _readings() -> Iterator[bytes]:
    import sqlite3  # noqa: PLC0415 (seeds alone need it)

    for file in sorted((TESTS / "store" / "released").glob("*.tare")):
        db = sqlite3.connect(f"file:{file}?mode=ro&immutable=1", uri=True)
        yield from (value.encode() for (value,) in db.execute("SELECT value FROM fact WHERE name = 'record'"))
        db.close()
    yield Footprint.model_validate(
        {
            "level": "syscalls", "scope": "host", "platform": "native", "phase": "steady", "workload": "w",
            "repeat": 0, "seconds": 1.5, "hits": {"read": 3, "write": 2**63},
        }
    ).model_dump_json().encode()  # fmt: skip


def _edited(bases: list[bytes], data: bytes) -> bytes:
    """A file that is too large for an input, with what the input changes of it: a place and a byte, 4 bytes each."""
    contents = bytearray(bases[data[0] % len(bases)]) if data else bytearray()
    for start in range(1, len(data) - 3, 4):
        place = int.from_bytes(data[start : start + 3], "big")
        contents[place % len(contents)] = data[start + 3]
    return bytes(contents)


@cache
def _campaign_files() -> list[bytes]:
    files = [*sorted((TESTS / "store" / "released").glob("whole-*.tare")), TESTS / "store/released/footprints-4.tare"]
    return [file.read_bytes() for file in files]


def check_campaign(data: bytes) -> None:
    """A campaign's file with some bytes changed: all of it is read, or refused in one line."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x.tare")
        file.write_bytes(_edited(_campaign_files(), data))
        try:
            with read_store(file) as store, store.snapshot():
                for read in (store.events, store.attachments, store.schedule, store.done, store.segments):
                    read()
                for read in (store.samples, store.trials, store.slices, store.telemetry):
                    read()
                for read in (store.rows, store.footprints, store.surfaces):
                    deque(read(), maxlen=0)
        except StoreError as error:
            _one_line(error)


@cache
def _bundles() -> list[bytes]:
    shape = fake_campaign.Shape(blocks=1, rounds=1, workloads=("startup",))
    with tempfile.TemporaryDirectory() as folder:
        packed = BytesIO()
        bundle.write(fake_campaign.write(Path(folder, "x.tare"), shape), packed)
    return [packed.getvalue()]


def check_bundle(data: bytes) -> None:
    """A bundle with some bytes changed, most of them near its end: what is wrong with it, or a refusal in one line."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "x.zip")
        file.write_bytes(_edited(_bundles(), data))
        try:
            for problem in bundled.verify(file).problems:
                assert "\n" not in problem
        except UsageError as error:
            _one_line(error)


def _edits(bases: Callable[[], list[bytes]], tail: int) -> Callable[[], Iterator[bytes]]:
    """Inputs for `_edited`: files as they are, and some with a byte changed among their last ones."""

    def seeds() -> Iterator[bytes]:
        for number, base in enumerate(bases()):
            yield bytes([number])
            for step in range(1, tail, 97):
                yield bytes([number]) + (len(base) - step).to_bytes(3, "big") + bytes([step % 256])

    return seeds


# --- outputs of tools ----------------------------------------------------------------------------------------------


@cache
@cache
def _workloads() -> dict[str, Workload]:
    return registry.all_workloads()  # reads what is installed: once, and not for every input


def _reports() -> list[tuple[str, dict[str, object], list[str]]]:
    """Every good capture: workload, parameters, the outputs of its measures."""
    bonnie = [("bonnie", params, [capture]) for capture, params in test_storage_bonnie.GOOD]
    return [*test_mutations.GOOD, *test_storage_fio.GOOD, *test_storage_dbench.GOOD, *bonnie]


def check_report(data: bytes) -> None:
    """A workload's parser, chosen by the first byte, on the rest as its first output: figures, or a refusal."""
    if not data:
        return
    name, params, outputs = _reports()[data[0] % len(_reports())]
    workload = _workloads()[name]
    results = [captures.captured(output) for output in outputs]
    results[0] = replace(results[0], stdout=data[1:])
    all_params = {**workload.profiles["quick"], **captures.CAPTURED_WITH.get(name, {}), **params}
    with suppress(ParseError):
        workload.parse(all_params, results)


def _outputs() -> Iterator[bytes]:
    for number, (_, _, outputs) in enumerate(_reports()):
        yield bytes([number]) + captures.text(outputs[0]).encode()


TARGETS: dict[str, Callable[[bytes], None]] = {
    "frames": check_frames,
    "replies": check_reply,
    "boxes": _of_text(lambda text: boxfile.parse(text, "box"), UsageError),
    "profiles": _of_text(lambda text: profile.parse(text, "profile"), UsageError),
    "weights": _of_text(_read_weights, UsageError),
    "studies": _of_text(lambda text: library.parse(text, "study"), UsageError),
    "recipes": check_layer,
    "readings": check_readings,
    "reports": check_report,
    "campaigns": check_campaign,
    "bundles": check_bundle,
}
#: Bytes that are right, or nearly, by target; `requests` are the agent's, whose targets are in agent/fuzz.
SEEDS: dict[str, Callable[[], Iterator[bytes]]] = {
    "frames": streams,
    "requests": _messages,
    "replies": _messages,
    "boxes": _boxes,
    "profiles": _named("tare.analysis", "profile.toml"),
    "weights": _weights,
    "studies": _studies,
    "recipes": _recipes,
    "readings": _readings,
    "reports": _outputs,
    "campaigns": _edits(_campaign_files, 2),
    "bundles": _edits(_bundles, 2000),
}
