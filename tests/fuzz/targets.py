"""What reads bytes from elsewhere, a function each: it takes any bytes, and raises only for a defect of tare's.

`make fuzz` runs each by coverage (atheris, hours), `make test` on mutations of the seeds (hypothesis, seconds).
The seeds are what is in the tree: golden frames and captured sessions, captured outputs, recipes, profiles, studies.
"""

from __future__ import annotations

import json
import math
import re
import tempfile
import tomllib
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
from fuzz import clusters, elsewhere, newest
from fuzz.elsewhere import one_line
from tare.analysis.comparisons.thresholds import Thresholds
from tare.errors import HostError, ImageError, ParseError, StoreError, UsageError, first_invalid
from tare.features.kernel.analysis import attack_profile
from tare.features.studies.analysis import profile
from tare.features.studies.literature import catalogue, library
from tare.footprint_model import Footprint, Surface
from tare.image import image_recipe
from tare.inputs import parse_toml
from tare.model import Layer
from tare.platforms import monitors, xen
from tare.platforms.parts.machines import boxfile
from tare.records import of_a_file
from tare.report.campaign import choose
from tare.report.formats import bundled, crate
from tare.session import frames, messages
from tare.store import CampaignRecord, known_part, read_store
from tare.workloads import workload_registry
from tare.workloads.base import Workload
from tare.workloads.own import compose, dockerfile, own_application, service, toml_lines
from tare.workloads.own import file as own_file
from workloads import (
    captures,
    test_mutations,
    test_network_workloads,
    test_own_from_files,
    test_storage_bonnie,
    test_storage_dbench,
    test_storage_fio,
)

TESTS = Path(__file__).parent.parent
PROTOCOL = TESTS.parent / "protocol"


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


def _of_text(read: Callable[[str], object], refusal: type[Exception]) -> Callable[[bytes], None]:
    """A check of what reads text: an object, or the refusal in one line."""

    def check(data: bytes) -> None:
        text = data.decode(errors="replace")
        try:
            read(text)
        except refusal as error:
            one_line(error)

    return check


def _studies() -> Iterator[bytes]:
    for name in catalogue.names():
        yield (
            resources.files("tare.features.studies.literature")
            .joinpath("studies", f"{name}{catalogue.SUFFIX}")
            .read_bytes()
        )


def _boxes() -> Iterator[bytes]:
    yield b'vmm = "xen"\nmachine = "pvh"\nkernel = "k"\ncmdline = "{ip}/{prefix} {gateway} {mac}"\n[answers]\nudp = 7\n'
    yield (
        b'machine = "microvm"\nkernel = "k"\ninitrd = "i"\ncmdline = "ip={ip}"\nmemory = 64\ncpus = 2\n'
        b'network = "virtio-net-device"\nconsole = "ready.*"\n[answers]\nhttp = 80\npath = "/x"\n'
    )
    yield (
        b'disk = "d.raw"\ndisk_device = "ide-hd"\nnetwork = "e1000"\nlink = "user"\ndevices = ["VGA", "pvpanic"]\n'
        b'cpu = "max,-svm"\nmachine_options = "acpi=off,kernel-irqchip=split"\n[answers]\ntcp = 22\n'
    )
    yield b'vmm = "spt"\nkernel = "k"\ncmdline = "--a=\'b c\' --ip={ip}"\nnet_name = "n"\n[answers]\nping = true\n'
    yield (
        b'machine = "microvm"\nkernel = "k"\nmodern_virtio = true\nip = "10.0.0.2"\nconsole = "(a+)+$"\n'
        b"[answers]\nudp = 7\n"
    )


#: A line of xl.cfg(5) as tare writes it: what its lexer takes for one number, string or list of strings.
_STRING = r'"(?:[^"\\\n]|\\["\\])*"'
_XEN_LINE = re.compile(rf"\w+ = (?:\d+|{_STRING}|\[(?:{_STRING}(?:, {_STRING})*)?\])")


def _read_box(text: str) -> None:
    """A box, and the words that its monitor would be started with: none of its files' names is among them."""
    box = boxfile.parse(text, "box")
    box = box.model_copy(update=dict.fromkeys(box.files, Path("of,the=box")))
    filled = box.command_line(ip="192.0.2.9", prefix="24", netmask="255.255.255.0", gateway="192.0.2.1", mac="02:00")
    setup = monitors.GuestSetup("tare-x", Path("/folder"), "tarex", "tap,id=net", "02:00", filled, (0,))
    words: list[str] = []
    if box.vmm == "qemu":
        words = monitors.qemu_command(box, setup, "tcg", 9)
        assert sum(word.startswith("-") for word in words) <= 60
    elif box.vmm == "firecracker":
        words = [json.dumps(monitors.firecracker_settings(box, setup))]
    elif box.vmm == "xen":
        words = xen.config(monitors.xen_domain(box, setup, ["/dev/loop0"])).removesuffix("\n").split("\n")
        assert all(_XEN_LINE.fullmatch(word) for word in words), words
    else:
        words = monitors.tender_command(box, setup)
    assert not any("\n" in word or "\0" in word for word in words)
    assert not any("of,the=box" in word for word in words)


def _read_application(text: str) -> None:
    """An application's file, and behind a NUL what its load printed: figures, or a refusal in one line."""
    text, _, output = text.partition("\0")
    described, mistakes = own_file.parse(text, Path("app.toml"))
    assert (described is None) == bool(mistakes)
    last = text.count("\n") + 1
    for mistake in mistakes:
        assert 1 <= mistake.line <= last
        one_line(UsageError(mistake.what, fix=mistake.fix))
    if described is None:
        return
    workload = own_application.of(described, "app.toml")
    params = workload.profiles["quick"]
    with suppress(HostError):
        workload.plan(params, test_network_workloads.AROUND)
    outcome = None
    with suppress(ParseError):
        outcome = workload.parse(params, [captures.completed(output)])
    assert outcome is None or all(map(math.isfinite, outcome.samples.values()))


def _applications() -> Iterator[bytes]:
    example = resources.files("tare.workloads.own").joinpath("example.toml").read_text()
    # Below the length to which libFuzzer is held.
    head, built_in = (
        "\n".join(line for line in part.splitlines() if not line.startswith("#")).encode()
        for part in example.partition("\n[load]\n")[::2]
    )
    yield head + b"\n[load]\n" + built_in
    guide = (TESTS.parent / "docs" / "applications-own.md").read_text().split("```toml\n")
    shown = next(block for block in guide if block.startswith("[load]")).partition("```")[0]
    yield head + b"\n" + shown.encode() + b"\0" + captures.text("wrk-fast").encode()
    yield head + (
        b'\n[load]\ncommand = ["x"]\n[metrics.a]\njson = "a[0].b"\nunit = "s"\nbetter = "lower"\n'
        b'[metrics.b]\nregex = \'([0-9.]+)\'\nwhich = "last"\nunit = "ms"\nbetter = "higher"\n'
        b'\0{"a": [{"b": 1.5e3}], "c": "7ms"}'
    )


#: All that a file of ours made of another may have.
_KEYS = {"": {"name", "source", "start", "ready", "load"}, "source": {"image"}} | {
    "start": {"command", "arguments", "directory", "user", "env"},
    "ready": {"http", "tcp", "command", "within"},
    "load": {"built_in", "path"},
}


def _converts(
    read: Callable[[str, bool], tuple[service.OwnService, list[toml_lines.Mistake]]],
) -> Callable[[bytes], None]:
    """A check of what reads another kind of file: what is written of it is TOML with no key that is not ours."""

    def check(data: bytes) -> None:
        text, built = data.decode(errors="replace"), bool(sum(data) & 1)
        described, mistakes = read(text, built)
        for mistake in mistakes:
            assert 1 <= mistake.line <= text.count("\n") + text.count("\r") + 2
            one_line(UsageError(mistake.what, fix=mistake.fix))
        written = tomllib.loads(service.toml_of(described, "a\nb", "x.tar" if built else None))
        assert written.keys() <= _KEYS[""]
        for table in written.keys() - {"name"}:
            assert written[table].keys() <= _KEYS[table], written[table]

    return check


def _dockerfiles() -> Iterator[bytes]:
    yield test_own_from_files.DOCKERFILE.encode()
    yield b'FROM a\nRUN cat <<-\'E F\' <<<x >/y\n\tE F\nHEALTHCHECK --retries=2 CMD ["a", "-p", "80"]\nEXPOSE 80\n'


def _compose_files() -> Iterator[bytes]:
    yield test_own_from_files.COMPOSE.encode()
    yield (
        b"services:\n  a:\n    image: a:${TAG:?none}\n    entrypoint: [a, -p]\n    command: ['80']\n"
        b"    ports: [{target: 80, published: 8080}]\n    environment: [A=0.0.0.0:80, SECRET]\n"
        b"    volumes: [{type: volume, source: b, target: /b}]\n    x: !reset null\n    y: &y [*y]\n"
    )


def _read_thresholds(text: str) -> None:
    read = of_a_file(Thresholds, parse_toml(text, "thresholds", "fix"), "thresholds", "fix")
    read.names("redis", "get")


def _thresholds() -> Iterator[bytes]:
    yield b'percent = 5\n[[rule]]\nworkload = "redis*"\nmetric = "p99"\nplatform = "?ocker"\npercent = 10.5\n'
    yield b'[[rule]]\nworkload = "[a-z]*"\nignore = true\n'


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
        image_recipe.parse,
        lambda text: image_recipe.on_top(image_recipe.load(), Layer("any", text.decode(errors="surrogateescape"))),
    ):
        try:
            read(data)
        except ImageError as error:
            one_line(error)


# --- what is in campaign files -------------------------------------------------------------------------------------


def check_readings(data: bytes) -> None:
    """The record, footprints and surfaces of a file: each is read, or refused in one line."""
    for model in (CampaignRecord, Footprint, Surface):
        try:
            known_part(model, data)
        except ValidationError as error:
            one_line(StoreError(first_invalid(error)))


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
    files = [TESTS / "store" / "released" / f"{name}-1.tare" for name in ("whole", "footprints")]
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
            one_line(error)


@cache
def _bundles() -> list[bytes]:
    shape = fake_campaign.Shape(blocks=1, rounds=1, workloads=("startup",))
    with tempfile.TemporaryDirectory() as folder:
        packed = BytesIO()
        crate.write(fake_campaign.write(Path(folder, "x.tare"), shape), packed)
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
            one_line(error)


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
def _workloads() -> dict[str, Workload]:
    return workload_registry.all_workloads()  # reads what is installed: once, and not for every input


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
    "boxes": _of_text(_read_box, UsageError),
    "applications": _of_text(_read_application, UsageError),
    "dockerfiles": _converts(dockerfile.read),
    "compose": _converts(lambda text, built: compose.read(text, built, {"TAG": "7", "SECRET": "hush\n", "PORT": "80"})),
    "thresholds": _of_text(_read_thresholds, UsageError),
    "choices": _of_text(choose.parse, UsageError),
    "profiles": _of_text(lambda text: profile.parse(text, "profile"), UsageError),
    "weights": _of_text(_read_weights, UsageError),
    "studies": _of_text(lambda text: library.parse(text, "study"), UsageError),
    "recipes": check_layer,
    "readings": check_readings,
    "reports": check_report,
    "campaigns": check_campaign,
    "bundles": check_bundle,
    **elsewhere.TARGETS,
    **newest.TARGETS,
    **clusters.TARGETS,
}
#: Bytes that are right, or nearly, by target; `requests` are the agent's, whose targets are in agent/fuzz.
SEEDS: dict[str, Callable[[], Iterator[bytes]]] = {
    "frames": streams,
    "requests": _messages,
    "replies": _messages,
    "boxes": _boxes,
    "applications": _applications,
    "dockerfiles": _dockerfiles,
    "compose": _compose_files,
    "thresholds": _thresholds,
    "choices": lambda: iter([b"cpu<10% start<300ms calls<300 daemon=no root=no"]),
    "profiles": _named("tare.features.studies.analysis", "profile.toml"),
    "weights": _weights,
    "studies": _studies,
    "recipes": _recipes,
    "readings": _readings,
    "reports": _outputs,
    "campaigns": _edits(_campaign_files, 2),
    "bundles": _edits(_bundles, 2000),
    **elsewhere.SEEDS,
    **newest.SEEDS,
    **clusters.SEEDS,
}
