"""What only a counted machine can show: known programs are counted to the instruction, and two runs are the same."""

import contextlib
import struct
import subprocess
import sys

import pytest

from tare.features.kernel.counters import exact_counts
from tare.features.kernel.lab import exact, lab_build, plugin
from tare.features.kernel.lab.forwarded_run import LabCommand
from tare.footprint_model import PARTS, SIDES
from tare.image import vmlinux

pytestmark = [pytest.mark.lab, pytest.mark.host, pytest.mark.timeout(1800)]

#: Of the loops of the known programs: each turn is two instructions.
TURNS = 3_000
MOVED = 1_000


def mark(kind, number):
    """mov edi, number; and the mark."""
    return b"\xbf" + struct.pack("<I", number) + b"\x0f\x1f\x84\x00" + struct.pack("<I", 0x7A4E0000 | kind)


def loop(turns):
    """mov ecx, turns; then dec ecx, jnz: 1 + 2 * turns instructions."""
    return b"\xb9" + struct.pack("<I", turns) + b"\xff\xc9\x75\xfc"


#: mov %rax, -8(%rsp); mov -8(%rsp), %rax; inc -8(%rsp), which loads and stores
STORE, LOAD, BOTH = b"\x48\x89\x44\x24\xf8", b"\x48\x8b\x44\x24\xf8", b"\x48\xff\x44\x24\xf8"
SYSCALL = b"\xb8\x27\x00\x00\x00\x0f\x05"  # mov eax, 39; syscall: getpid
#: lea rdi, -2048(%rsp); mov rsi, rdi; mov ecx, MOVED; rep movsb
REPEATED = b"\x48\x8d\xbc\x24\x00\xf8\xff\xff\x48\x89\xfe\xb9" + struct.pack("<I", MOVED) + b"\xf3\xa4"
PAGES = 16
#: How many lines of memory are in so many pages: the data cache of the model has 8, the next one more.
LINES = 64 * PAGES


def sweep(lines, access=b"\x48\x8b\x06"):
    """lea rsi, -(PAGES + 2) pages(%rsp); mov ecx, lines; then mov (%rsi), %rax, add $64, %rsi, dec ecx, jnz."""
    start = b"\x48\x8d\xb4\x24" + struct.pack("<i", -4096 * (PAGES + 2)) + b"\xb9" + struct.pack("<I", lines)
    return start + access + b"\x48\x83\xc6\x40\xff\xc9\x75\xf5"


#: mov %rax, (%rsi): what is read before it is written is all one page.
WRITE = b"\x48\x89\x06"
EXIT = b"\xb8\x3c\x00\x00\x00\x31\xff\x0f\x05"


def elf(code):
    """A static program of x86-64 that is these instructions."""
    place = 0x400000
    start = 64 + 56
    size = start + len(code)
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, place + start, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return header + struct.pack("<IIQQQQQQ", 1, 5, 0, place, place, size, size, 4096) + code


def window(number, code):
    return mark(exact_counts.OPEN, number) + code + mark(exact_counts.CLOSE, number)


KNOWN = elf(
    # What it touches first faults, and the kernel's part of that is none of the windows below.
    STORE + REPEATED
    + window(1, loop(TURNS)) + window(2, loop(TURNS + 5_000))
    + window(3, 7 * STORE + 5 * LOAD + 3 * BOTH) + window(4, REPEATED) + window(5, 3 * SYSCALL)
    + sweep(LINES, WRITE) + sweep(LINES // 2) + window(7, sweep(LINES // 2)) + sweep(LINES) + window(8, sweep(LINES))
    + EXIT
)  # fmt: skip
#: A window over many processes: 6 is opened by one, and closed by another.
PROGRAMS = {
    "known": KNOWN,
    "opened": elf(mark(exact_counts.OPEN, 6) + EXIT),
    "closed": elf(mark(exact_counts.CLOSE, 6) + EXIT),
}
#: A guest of the machine's own /dev/kvm: mov cx, TURNS; then dec cx, jnz; hlt, which goes back to who runs it.
GUEST = b"\xb9" + struct.pack("<H", TURNS) + b"\x49\x75\xfd\xf4"
GUEST_SCRIPT = f"""
import fcntl, mmap, ctypes, os, struct
kvm = os.open("/dev/kvm", os.O_RDWR)
machine = fcntl.ioctl(kvm, 0xAE01, 0)
memory = mmap.mmap(-1, 65536)
memory[4096 : 4096 + {len(GUEST)}] = {GUEST!r}
place = ctypes.addressof(ctypes.c_char.from_buffer(memory))
fcntl.ioctl(machine, 0x4020AE46, struct.pack("<IIQQQ", 0, 0, 0, 65536, place))
processor = fcntl.ioctl(machine, 0xAE41, 0)
shared = mmap.mmap(processor, fcntl.ioctl(kvm, 0xAE04, 0))
segments = bytearray(312)
fcntl.ioctl(processor, 0x8138AE83, segments)
segments[0:8] = bytes(8)
segments[12:14] = bytes(2)
fcntl.ioctl(processor, 0x4138AE84, bytes(segments))
registers = [0] * 18
registers[16], registers[17] = 4096, 2
fcntl.ioctl(processor, 0x4090AE82, struct.pack("<18Q", *registers))
fcntl.ioctl(processor, 0xAE80, 0)
assert struct.unpack_from("<I", shared, 8) == (5,), "it is not the hlt that it ended by"
"""
SCRIPT = """
known; opened; for turn in 1 2 3; do bwrap --ro-bind / / --unshare-all ls / >/dev/null; done; runc -v
PYTHONHASHSEED=0 python3 -c "$GUEST" && closed
"""


@contextlib.contextmanager
def busy():
    """Two loops that take what time of the processors they can get."""
    loops = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(2)]
    try:
        yield
    finally:
        for process in loops:
            process.kill()
            process.wait()


def counted(folder, seed):
    folder.mkdir()
    files = []
    for name, contents in PROGRAMS.items():
        (folder / name).write_bytes(contents)
        (folder / name).chmod(0o755)
        files.append(folder / name)
    command = LabCommand(["sh", "-c", SCRIPT], "kvm", 2 << 30, 1, 900.0, files, env={"GUEST": GUEST_SCRIPT})
    host = lab_build.host("kvm", print)
    arguments, symbols = plugin.kernel_facts(vmlinux.ensure(host / "vmlinuz").read_bytes())
    counting = exact.Counted(plugin.ensure(print), {**arguments, "caches": "1"}, symbols, seed, folder / "log")
    printed = bytearray()
    assert exact.run(command, counting, lambda _, data: printed.extend(data), print) == 0, printed.decode()
    return (folder / "log").read_text()


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    return counted(tmp_path_factory.mktemp("counted") / "first", 1)


def test_known_programs_are_counted_to_the_instruction(log):
    windows = exact_counts.parse(log)
    shorter, longer, memory, moved, calls = (windows[number].whole for number in range(1, 6))
    before_close = 1  # the mov that has the window's number
    assert (shorter["user"], shorter["kernel"]) == (1 + 2 * TURNS + before_close, 0)
    assert longer["user"] - shorter["user"] == 10_000
    assert (memory["user"], memory["loads"], memory["stores"]) == (15 + before_close, 8, 10)
    assert (moved["user"], moved["repeated"]) == (3 + before_close, MOVED + 1), "its end is one more"
    assert (calls["user"], calls["calls"]) == (6 + before_close, 3)
    assert calls["kernel"] > 3 * 50


def test_what_fits_into_a_modelled_cache_is_found_there_and_what_does_not_in_the_next_one(log):
    windows = exact_counts.parse(log)
    for number, lines, missed in ((7, LINES // 2, 0), (8, LINES, LINES)):
        whole = windows[number].whole
        assert (whole["moved"], whole["l1d"], whole["l2"]) == (lines, missed, 0)
        assert whole["l1i"] <= 2, "the loop is in a line or two"


def test_what_a_guest_of_kvm_executes_is_the_guests_to_the_instruction(log):
    guests = [counts for command, _, counts in exact_counts.parse(log)[6].shares if command == "[guest]"]
    [counts] = guests
    assert (counts["user"], counts["kernel"], counts["switches"]) == (1 + 2 * TURNS + 1, 0, 0)
    code = [(place, many) for command, _, _, place, many in exact_counts.parse(log)[6].code if command == "[guest]"]
    assert code == [("[guest]", 1 + 2 * TURNS + 1)]


def test_the_sum_over_commands_and_groups_is_the_whole(log):
    window = exact_counts.parse(log)[6]
    for part in PARTS:
        assert sum(counts[part] for _, _, counts in window.shares) == window.whole[part]
    commands = {command for command, _, _ in window.shares}
    assert {"bwrap", "ls", "runc"} <= commands
    assert window.whole["switches"] > 10


def test_the_sum_over_code_is_that_of_its_tasks_and_code_has_its_file_and_its_function(log):
    windows = exact_counts.parse(log)
    [(command, _, side, place, count)] = [code for code in windows[1].code if code[2] == "user"]
    assert (command, side, place, count) == ("known", "user", "known", windows[1].whole["user"])
    window = windows[6]
    for side in SIDES:
        assert sum(code[4] for code in window.code if code[2] == side) == window.whole[side]
    places = {(side, place) for _, _, side, place, _ in window.code}
    assert {("user", "bwrap"), ("user", "runc"), ("user", "ld-linux-x86-64.so.2")} <= places
    assert {("kernel", "do_syscall_64"), ("kernel", "unmap_page_range")} <= places
    assert window.whole["faults"] > 500
    assert window.whole["interrupts"] > 0


def test_the_same_seed_is_the_same_log_beside_load_and_another_is_another(log, tmp_path):
    with busy():
        again = counted(tmp_path / "again", 1)
    assert again == log
    other = counted(tmp_path / "other", 2)
    assert other != log
    whole, others = (exact_counts.parse(text)[6].whole for text in (log, other))
    assert abs(others["kernel"] / whole["kernel"] - 1) < 0.05
