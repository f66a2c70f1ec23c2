"""BPF programs by libbpf: compiled once on this host, and unloaded by the kernel when the loading process ends.

libbpf is the only BPF tool whose programs start at once and that needs nothing else. It is part of the kernel's source
and of every Debian, since iproute2 links it. It fits a small object file to the running kernel by the kernel's own type
information (CO-RE). bcc compiles against the kernel's headers at each start, and a custom kernel has no package of
headers. bpftrace also compiles at each start, needs a mounted tracefs, and runs as a separate process that prints its
results and must be stopped after a kill.

Nothing is pinned below ``/sys/fs/bpf``. Programs, maps and attachments are descriptors of this process, closed on exec,
and the kernel releases them however the process ends. A tracepoint takes any number of programs, each with its own
maps, so other tracers are not disturbed. ftrace's buffer, filters and current tracer are not touched.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import hashlib
import mmap
import os
import sysconfig
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from pathlib import Path

from tare.errors import HostError
from tare.host import distribution, processes, state
from tare.host.kernel import cpulist, host_text

BTF = Path("/sys/kernel/btf/vmlinux")
FLAGS = ("-O2", "-g", "-target", "bpf", "-Wall")
FIX = distribution.install("clang", "libbpf-dev")
#: End of the fixes in errors, for a host that does not allow counting.
LAB = "count in a lab: tare lab run -- tare footprint"
#: ``struct bpf_prog_info`` (linux/bpf.h): its size as of Linux 5.12, and the offset of ``recursion_misses``.
_INFO_BYTES, _MISSES_AT = 216, 208
_Say = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


class Loaded:
    """A BPF object in the kernel, with all its programs attached."""

    def __init__(
        self, code: bytes, entries: Mapping[str, int], events: Mapping[str, Sequence[int]] | None = None
    ) -> None:
        """Load and attach an object file.

        ``code``: the object file; ``entries``: sizes of maps that are known only at run time.

        ``events``: descriptors of the perf events for a program to attach to, by the program's name. They are closed
        here. Raises `HostError`, with the fix, if this kernel does not accept BPF.
        """
        self._library = _library()
        self._links: list[int] = []
        self._programs: list[int] = []
        self._memory: list[mmap.mmap] = []
        self._object = 0
        # Events that no link holds yet.
        self._events = [event for descriptors in (events or {}).values() for event in descriptors]
        with _messages(self._library) as messages:
            try:
                self._load(code, entries)
                self._attach(events or {})
            except _Refused as refused:
                self.close()
                raise _host_error(refused, messages) from None
            except BaseException:
                self.close()
                raise

    def _load(self, code: bytes, entries: Mapping[str, int]) -> None:
        library = self._library
        self._object = library.bpf_object__open_mem(code, len(code), None) or 0
        _require(self._object, "open")
        for name, count in entries.items():
            library.bpf_map__set_max_entries(library.bpf_object__find_map_by_name(self._object, name.encode()), count)
        _require(library.bpf_object__load(self._object) == 0, "load")
        program = 0
        while program := library.bpf_object__next_program(self._object, program or None) or 0:
            self._programs.append(library.bpf_program__fd(program))

    def _attach(self, events: Mapping[str, Sequence[int]]) -> None:
        library = self._library
        program = 0
        while program := library.bpf_object__next_program(self._object, program or None) or 0:
            name = library.bpf_program__name(program).decode()
            for event in events.get(name, (None,)):
                if event is None:
                    link = library.bpf_program__attach(program) or 0
                else:
                    link = library.bpf_program__attach_perf_event(program, event) or 0
                _require(link, "attach")
                if event is not None:
                    self._events.remove(event)  # The link closes the event.
                self._links.append(link)

    def memory(self, name: str, length: int) -> mmap.mmap:
        """Map the memory of an array map, which programs update. The map must be declared with BPF_F_MMAPABLE."""
        view = mmap.mmap(self._map(name), length, mmap.MAP_SHARED, mmap.PROT_READ)
        self._memory.append(view)
        return view

    def put(self, name: str, key: int, value: bytes) -> None:
        """Set one element of an array map. Raises `HostError` if the kernel refuses it."""
        done = self._library.bpf_map_update_elem(self._map(name), ctypes.byref(ctypes.c_uint32(key)), value, 0)
        if done != 0:
            raise HostError(f"a BPF map cannot be written: {os.strerror(ctypes.get_errno())}")

    def drain(self, name: str, key: int, value: int, most: int) -> tuple[bytes, bytes]:
        """Remove all elements from a hash map. Return their keys and their values, in the same order.

        ``key``, ``value``: bytes of each key and value; ``most``: capacity of the map. An addition by a program at the
        moment of an element's removal may be missed. Raises `HostError`.
        """
        keys, values = ctypes.create_string_buffer(most * key), ctypes.create_string_buffer(most * value)
        count, after = ctypes.c_uint32(most), ctypes.create_string_buffer(max(key, 8))
        done = self._library.bpf_map_lookup_and_delete_batch(
            self._map(name), None, after, keys, values, ctypes.byref(count), None
        )
        # ENOENT means that the map is empty.
        if done != 0 and ctypes.get_errno() != errno.ENOENT:
            raise HostError(f"a BPF map cannot be read: {os.strerror(ctypes.get_errno())}")
        return ctypes.string_at(keys, count.value * key), ctypes.string_at(values, count.value * value)

    def missed(self) -> int:
        """Return how often a program was skipped because it was already running on that CPU."""
        return sum(self._misses(program) for program in self._programs)

    def close(self) -> None:
        """Detach and unload everything. May be called twice."""
        while self._memory:
            view = self._memory.pop()
            # After Ctrl-C, the traceback may still hold a view of the memory. It is released with the traceback.
            with contextlib.suppress(BufferError):
                view.close()
        while self._links:
            self._library.bpf_link__destroy(self._links.pop())
        while self._events:
            os.close(self._events.pop())
        self._programs.clear()
        if self._object:
            self._library.bpf_object__close(self._object)
            self._object = 0

    def _misses(self, program: int) -> int:
        info, length = ctypes.create_string_buffer(_INFO_BYTES), ctypes.c_uint32(_INFO_BYTES)
        if self._library.bpf_obj_get_info_by_fd(program, info, ctypes.byref(length)) != 0:
            raise HostError(f"a BPF program does not tell what it missed: {os.strerror(ctypes.get_errno())}")
        return int.from_bytes(info.raw[_MISSES_AT : _MISSES_AT + 8], "little")

    def _map(self, name: str) -> int:
        descriptor = self._library.bpf_object__find_map_fd_by_name(self._object, name.encode())
        assert descriptor >= 0, f"the object has no map {name}"
        return int(descriptor)


def compiled(source: str) -> bytes:
    """Compile a source of this package, once for each version of it, and return the object file. Raises `HostError`."""
    package = resources.files("tare.features.kernel.reading")
    parts = {file.name: file.read_bytes() for file in package.iterdir() if file.name.endswith(".bpf.h")}
    parts = dict(sorted(parts.items())) | {source: package.joinpath(source).read_bytes()}
    # For BPF, clang does not search the folder in which Debian keeps its architecture's kernel headers.
    flags = (*FLAGS, "-idirafter", f"/usr/include/{sysconfig.get_config_var('MULTIARCH')}")
    folder = state.home() / "bpf"
    folder.mkdir(exist_ok=True)
    version = hashlib.sha256(repr((flags, parts)).encode()).hexdigest()[:16]
    object_file = folder / f"{source.removesuffix('.bpf.c')}-{version}.o"
    if not object_file.exists():
        if processes.find("clang") is None:
            raise HostError("a BPF program is compiled here, and clang is not installed", fix=FIX)
        with tempfile.TemporaryDirectory(dir=folder) as scratch:
            source_file, built = Path(scratch, source), Path(scratch, "built.o")
            for name, text in parts.items():
                Path(scratch, name).write_bytes(text)
            done = processes.run(["clang", *flags, "-c", "-o", str(built), str(source_file)], time_limit_s=60)
            if done.code != 0:
                lines = done.stderr.decode(errors="replace").splitlines()
                message = next((line for line in lines if "error:" in line), "no message")
                raise HostError(f"a BPF program does not compile: {message.strip()}", fix=FIX)
            built.rename(object_file)
    return object_file.read_bytes()


def possible_cpus() -> int:
    """Return the highest possible CPU number of this kernel, plus one."""
    return cpulist.parse(host_text.read("/sys/devices/system/cpu/possible"))[-1] + 1


class _Refused(Exception):  # noqa: N818 (it becomes a `HostError`)
    def __init__(self, step: str, number: int) -> None:
        self.step, self.number = step, number


def _require(well: object, step: str) -> None:
    if not well:
        raise _Refused(step, ctypes.get_errno())


def _host_error(refused: _Refused, messages: list[str]) -> HostError:
    """Return the error with the likely reason why the kernel refuses the object, and the fix."""
    if not BTF.exists():
        problem = f"BPF programs do not fit this kernel: it has no type information ({BTF})"
        return HostError(problem, fix=f"boot a kernel with CONFIG_DEBUG_INFO_BTF, or {LAB}")
    if refused.number == errno.EPERM:
        lockdown = host_text.said("/sys/kernel/security/lockdown")
        locked = bool(lockdown) and "[none]" not in lockdown
        why = "the kernel is locked down" if locked else "tare lacks the capabilities BPF and PERFMON"
        fix = "boot without lockdown=" if locked else "run tare as root on the host itself"
        return HostError(f"BPF is locked: {why}", fix=f"{fix}, or {LAB}")
    if refused.number == errno.ENOSYS:
        return HostError("this kernel has no BPF", fix=f"boot a kernel with CONFIG_BPF_SYSCALL, or {LAB}")
    last_message = next((line for line in reversed(messages) if line), "")
    why = f"{os.strerror(refused.number)}{f': {last_message}' if last_message else ''}"
    return HostError(
        f"this kernel does not {refused.step} a BPF program: {why}",
        fix=f"boot Linux 5.12 or later with CONFIG_FTRACE_SYSCALLS and CONFIG_BPF_EVENTS, or {LAB}",
    )


@contextlib.contextmanager
def _messages(library: ctypes.CDLL) -> Iterator[list[str]]:
    """Collect the lines of libbpf's warnings during the block, and keep them off standard error."""
    messages: list[str] = []
    line = ctypes.create_string_buffer(4096)

    def say(level: int, form: bytes, values: int) -> int:
        if level == 0:  # Level 0 is warnings; the other levels are progress.
            ctypes.CDLL(None).vsnprintf(line, ctypes.c_size_t(len(line)), form, ctypes.c_void_p(values))
            messages.extend(line.value.decode(errors="replace").strip().splitlines())
        return 0

    callback = _Say(say)
    library.libbpf_set_print(callback)
    try:
        yield messages
    finally:
        library.libbpf_set_print(None)


@functools.cache
def _library() -> ctypes.CDLL:
    """Load libbpf and declare its functions' types. Raises `HostError` if it is not installed."""
    try:
        library = ctypes.CDLL("libbpf.so.1", use_errno=True)
    except OSError:
        raise HostError("libbpf 1 is not installed", fix=distribution.install("libbpf1")) from None
    pointer, text, number = ctypes.c_void_p, ctypes.c_char_p, ctypes.c_int
    types: dict[str, tuple[type | None, list[type]]] = {
        "bpf_object__open_mem": (pointer, [text, ctypes.c_size_t, pointer]),
        "bpf_object__load": (number, [pointer]),
        "bpf_object__close": (None, [pointer]),
        "bpf_object__next_program": (pointer, [pointer, pointer]),
        "bpf_object__find_map_by_name": (pointer, [pointer, text]),
        "bpf_object__find_map_fd_by_name": (number, [pointer, text]),
        "bpf_map__set_max_entries": (number, [pointer, ctypes.c_uint32]),
        "bpf_map_update_elem": (number, [number, pointer, text, ctypes.c_uint64]),
        "bpf_map_lookup_and_delete_batch": (number, [number, pointer, pointer, pointer, pointer, pointer, pointer]),
        "bpf_program__fd": (number, [pointer]),
        "bpf_program__name": (text, [pointer]),
        "bpf_program__attach": (pointer, [pointer]),
        "bpf_program__attach_perf_event": (pointer, [pointer, number]),
        "bpf_link__destroy": (number, [pointer]),
        "bpf_obj_get_info_by_fd": (number, [number, pointer, pointer]),
        "libbpf_set_print": (pointer, [pointer]),
    }
    for name, (result, arguments) in types.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library
