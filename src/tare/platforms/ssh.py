"""ssh: a chroot into the image on any Linux host that OpenSSH's client reaches.

That may be a virtual machine of whatever kind, bare metal, a cloud's instance. The user's own configuration of ssh
holds: names, keys, jumps. What runs on the far side is ``remote.sh``.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import select
import shlex
import socket
import subprocess
import time
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from tare.errors import PlatformError, UsageError
from tare.host import distribution, instance_console, instance_limits, processes
from tare.host.kernel import cpulist
from tare.host.processes import Finished
from tare.host.resources.journal import CleanupStack
from tare.image import forms
from tare.image.image_build import Image
from tare.platforms.base import Address, Availability, Instance, LaunchSpec, Platform, PlatformFamily, Prepared
from tare.platforms.parts.common import left_open
from tare.platforms.parts.common.pipes import ProcessStream
from tare.platforms.watchers.marks import FirstByte
from tare.timeouts import stretched, until

HOME = "/var/lib/tare/remote"
#: A script for sh(1), in quotes that take it past the login shell; a folder, and the file in it that gets the input.
_RECEIVE = """'umask 077; set -C; mkdir -p "$0" && cat >"$1"'"""
OPTIONS = (
    "-T",
    *("-o", "BatchMode=yes"),
    *("-o", "ConnectTimeout=10"),
    # A connection of its own: what another left open in the background is not in the instance's group.
    *("-o", "ControlPath=none"),
    *("-o", "ClearAllForwardings=yes"),
    # Nor of the user's agent and screen, whatever the user's configuration says: the host there would have their keys.
    *("-a", "-x"),
    # A host that is switched off does not close its connections.
    *("-o", "ServerAliveInterval=5"),
    *("-o", "ServerAliveCountMax=2"),
)
ARCHITECTURE = "x86_64"
#: The image's tar and what it unpacks to, for a moment both.
COPIES = 3
LOOK_LIMIT_S = 30.0
COPY_LIMIT_S = 3600.0
READY_LIMIT_S = 30.0
#: Bytes that a login may print before our own first line, and the size limit of an answer.
NOISE_CAP = 1 << 16
_TARGET = re.compile(
    r"(?:(?P<user>[A-Za-z0-9_][\w.-]*)@)?"
    r"(?:\[(?P<six>[0-9a-fA-F:.]+)\]|(?P<host>[A-Za-z0-9_][\w.-]*))"
    r"(?::(?P<port>[0-9]{1,5}))?"
)


@dataclass(frozen=True, slots=True)
class SshTarget:
    """The remote host as ``[USER@]HOST[:PORT]``; what is not given is taken from ssh's configuration."""

    host: str
    user: str | None
    port: int | None

    @classmethod
    def parse(cls, text: str) -> SshTarget:
        """Read ``[USER@]HOST[:PORT]``. Raises `UsageError` for what is no such text."""
        match = _TARGET.fullmatch(text)
        if match is None or (match["port"] and not 0 < int(match["port"]) < 65536):
            raise UsageError(f"{text!r} is not a host for ssh", fix="write ssh:[USER@]HOST[:PORT]")
        return cls(match["host"] or match["six"], match["user"], int(match["port"]) if match["port"] else None)

    def argv(self, *words: str) -> list[str]:
        """Return the command that runs these words there.

        The remote's login shell reads them, so they must be plain.
        """
        return ["ssh", *OPTIONS, *self.where(), "--", self.host, *words]

    def settings(self) -> dict[str, str]:
        """Return the settings of ssh for this host (``ssh -G``): the first value of each."""
        shown = processes.run(["ssh", "-G", *self.where(), "--", self.host], time_limit_s=10)
        pairs = (line.partition(" ") for line in reversed(shown.text.splitlines()))
        return {name: value for name, _, value in pairs}

    def where(self) -> list[str]:
        """User and port as options of ssh."""
        port = ["-p", str(self.port)] if self.port else []
        return [*port, *(["-l", self.user] if self.user else [])]


@dataclass(frozen=True, slots=True)
class Facts:
    """The remote host's report about itself."""

    uid: int
    arch: str
    kernel: str
    name: str
    cpus: tuple[int, ...]
    model: str
    memory_kib: int
    free_kib: int
    missing: str
    limits: str  # where its memory can be limited; "" when it cannot
    address: str  # its own, as it sees it
    client: str  # this host's, as it sees it
    unsafe: str  # a folder on the way to the image that others can write to; "" when there is none
    image: bool  # whether it has the image already

    @classmethod
    def parse(cls, text: str) -> Facts:
        """Read what ``remote.sh look`` prints, after whatever the login prints. Raises `PlatformError`."""
        _, header, after = text.partition("tare-remote\n")
        values = dict(line.split("=", 1) for line in after.splitlines() if "=" in line)
        try:
            return cls(
                uid=int(values["uid"]),
                arch=values["arch"],
                kernel=values["kernel"],
                name=values["name"],
                cpus=cpulist.parse(values["cpus"]),
                model=values["model"],
                memory_kib=int(values["memory_kib"]),
                free_kib=int(values["free_kib"]),
                missing=values["missing"],
                limits=values["limits"],
                address=values["address"],
                client=values["client"],
                unsafe=values["unsafe"],
                image=values["image"] == "there",
            )
        except (KeyError, ValueError) as error:
            problem = text.strip()[:200] if not header else f"no good {error}"
            raise PlatformError(f"the remote host answers strangely: {problem or 'nothing'}", fix=FIX_LINUX) from error


FIX_LINUX = "name a Linux host, with a plain shell as login shell"


class Ssh(Platform):
    """One remote host."""

    shares_data = False
    disk_cache = "the remote host's page cache"
    keeps_quota = False
    elsewhere = True
    by_default = False
    open_by_design = left_open.every_door("on the remote host: a chroot there, and what runs in it is its root")
    network_path = "the host's own network, as it reaches the remote host, and the remote host's stack"
    _always = (
        "it is another machine: its processor, disk and clock are not this host's",
        "its CPU time is not seen from here: no cpu-cost",
        "the CPU set is an affinity to the remote host's last CPUs, as many as here",
        "where the host's cache alone is dropped, that is this host's; what begins cold for both is cold there",
    )

    #: Whether it is a client that loads instances of another host's, of which a machine has one at a time.
    loads = False

    def __init__(self, target: str) -> None:
        self.name = f"ssh:{target}"
        self.title = f"{target}, by ssh: chroot into the image there"
        self.not_honoured = self._always
        self._target = SshTarget.parse(target)
        self._facts: Facts | None = None

    @property
    def facts(self) -> Facts | None:
        """The remote host's facts; None until it was looked at."""
        return self._facts

    def detect(self) -> Availability:
        """Connect, and read the remote host's facts."""
        if processes.find("ssh") is None:
            return Availability(False, reason="ssh is not installed", fix=distribution.install("openssh-client"))
        try:
            facts = self._look("")
        except PlatformError as error:
            return Availability(False, reason=error.what, fix=error.fix or "")
        lack = _lack(facts, self._target)
        if lack is not None:
            return Availability(False, reason=lack.what, fix=lack.fix or "")
        self._take(facts)
        details = {
            "remote host": facts.name,
            "processor": facts.model,
            "CPUs": ",".join(map(str, facts.cpus)),
            "memory": f"{facts.memory_kib >> 10} MiB",
        }
        return Availability(True, version=f"Linux {facts.kernel}", details=details)

    def prepare(self, image: Image) -> Prepared:
        """Copy the image's tar once, and unpack it there after its checksum was verified."""
        key = self._key(image)
        facts = self._look(key)
        self._take(facts)
        if not facts.image:
            self._copy(key, forms.oci_tar(image), facts)
        script = f"{HOME}/{key}/remote.sh"
        self._run("/bin/sh", script, "sweep", limit_s=LOOK_LIMIT_S)
        return Prepared("folder on the remote host", forms.image_bytes(image))

    def launch(self, spec: LaunchSpec, cleanup: CleanupStack) -> Instance:  # noqa: ARG002 (nothing is made on this host)
        """Let the remote host set up the chroot, then start the agent, which is on ssh's stdin and stdout."""
        facts = self._facts or self._look("")
        self._take(facts)
        beacon = spec.beacon
        port = "client" if self.loads else "-" if beacon is None else str(beacon.port)
        words = [f"tare-{spec.id}", _cpus(spec, facts), str(spec.resources.memory_bytes), port]
        words.append(instance_limits.for_agent(spec.resources))
        argv = self._target.argv("exec", "/bin/sh", f"{HOME}/{self._key(spec.image)}/remote.sh", "launch", *words)
        pipe = subprocess.PIPE
        with instance_console.opened(spec.space.log) as log:
            procs = spec.group.leaf("tool")
            process = processes.start(argv, stdin=pipe, stdout=pipe, stderr=log, env=agents(), cgroup_procs=procs)
            stream = ProcessStream(process)
        try:
            self._await_ready(stream, spec.space.log)
            first_byte = FirstByte(stream.fileno())
            started = spec.begin()
            stream.send(b"go\n", until(READY_LIMIT_S))
        except BaseException:
            stream.close()
            raise
        return Instance(spec, stream, started, self._address(spec, facts), first_byte, accounted=False)

    def _await_ready(self, stream: ProcessStream, log: Path) -> None:
        poll = select.poll()
        poll.register(stream.fileno(), select.POLLIN)
        deadline = until(READY_LIMIT_S)
        output = b""
        while not output.endswith(b"tare-ready\n"):
            if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise PlatformError(
                    f"{self.name} is not ready within {stretched(READY_LIMIT_S):.0f} s", fix=self.by_hand()
                )
            data = stream.receive(4096)
            output += data or b""
            if data == b"" or len(output) > NOISE_CAP:
                stream.close()
                raise explain(instance_console.read(log).decode(errors="replace"), self._target)

    def resolved(self) -> str | None:
        """Return the remote host's IPv4 address as resolved here; behind a jump host its own, as it sees it.

        None where it has none.
        """
        assert self._facts is not None, "it was looked at"
        settings = self._target.settings()
        host = settings.get("hostname", self._target.host)
        if settings.get("proxyjump", "none") != "none" or settings.get("proxycommand", "none") != "none":
            host = self._facts.address  # nobody but the jump host knows it by its name
        try:
            addresses = socket.getaddrinfo(host, None, socket.AF_INET, socket.SOCK_STREAM)
        except OSError:
            return None
        return str(addresses[0][4][0])

    def _address(self, spec: LaunchSpec, facts: Facts) -> Address:
        ip = self.resolved()
        if ip is None:
            return Address(None, spec.port, spec.port, None, f"{facts.name} has no IPv4 address")
        why = "it is the remote host's own address, which answers before the start"
        return Address(ip, spec.port, spec.port, None, why, facts.client, early_ping=ip)

    def _look(self, key: str) -> Facts:
        done = self._run("/bin/sh", "-s", "look", key or "none", stdin=_script(), limit_s=LOOK_LIMIT_S)
        return Facts.parse(done.text)

    def _take(self, facts: Facts) -> None:
        lack = _lack(facts, self._target)
        if lack is not None:
            raise lack
        self._facts = facts
        limited = bool(facts.limits)
        self.not_honoured = (*self._always, *(() if limited else ("it has no memory control group: no memory limit",)))

    def _copy(self, key: str, tar: Path, facts: Facts) -> None:
        needed = tar.stat().st_size * COPIES
        if facts.free_kib << 10 < needed:
            raise _no_space(self._target, f"{facts.free_kib >> 10} MiB are free, the image needs {needed >> 20} MiB")
        loader = f"{HOME}/load-{secrets.token_hex(4)}.sh"
        self._run("exec", "/bin/sh", "-c", _RECEIVE, HOME, loader, stdin=_script())
        digest = hashlib.sha256()
        with tar.open("rb") as file:
            while data := file.read(1 << 20):
                digest.update(data)
            file.seek(0)
            argv = self._target.argv("exec", "/bin/sh", loader, "receive", key, digest.hexdigest())
            pipe = subprocess.PIPE
            process = processes.start(argv, stdin=file, stdout=pipe, stderr=pipe, env=agents())
            done = processes.finish(process, argv, time_limit_s=COPY_LIMIT_S, output_cap=NOISE_CAP)
        self._check(done)

    def _run(self, *words: str, stdin: bytes = b"", limit_s: float = LOOK_LIMIT_S) -> Finished:
        argv = self._target.argv(*words)
        done = processes.run(argv, stdin=stdin, time_limit_s=limit_s, output_cap=NOISE_CAP, env=agents())
        return self._check(done)

    def _check(self, done: Finished) -> Finished:
        if done.timed_out:
            raise PlatformError(f"{self.name} does not answer within {done.wall_ns / 1e9:.0f} s", fix=self.by_hand())
        if done.code != 0:
            raise explain(done.stderr.decode(errors="replace"), self._target)
        return done

    def by_hand(self) -> str:
        """Return the fix for a connection that fails."""
        return f"see that `{by_hand(self._target)}` works"

    @staticmethod
    def _key(image: Image) -> str:
        return hashlib.sha256(image.hash.encode() + _script()).hexdigest()[:16]


def agents() -> dict[str, str]:
    """Return the variables by which ssh finds the keys that the user's agent holds."""
    return processes.kept("SSH_AUTH_SOCK", "KRB5CCNAME")


def by_hand(target: SshTarget) -> str:
    """Return the command by which a user tries the connection."""
    return shlex.join(["ssh", *target.where(), target.host, "true"])


def explain(stderr: str, target: SshTarget) -> PlatformError:
    """Return an error of one line with its fix, from what ssh or the remote's script printed on stderr."""
    hand = by_hand(target)
    reasons = (
        (r"Could not resolve hostname", "its name is not known", "name an address, or put the host into ~/.ssh/config"),
        (r"REMOTE HOST IDENTIFICATION HAS CHANGED|Host key verification failed|No \S+ host key is known",
         "its host key is not the known one", f"log in once by hand (`{hand}`), and check its key"),
        (r"Permission denied|Too many authentication failures|No supported authentication",
         "it lets nobody in without a password", f"ssh-copy-id, or ssh-add: `{hand}` must ask nothing"),
        (r"Connection refused|timed out|No route to host|Network is unreachable|Connection (?:closed|reset)",
         "it is not reached", f"see that `{hand}` works"),
        (r"No space left on device", "no space is left there", f"free some, or remove old images: rm -r {HOME}"),
        (r"remote\.sh.*(?:[Nn]o such file|not found)|(?:[Nn]o such file|not found|[Cc]an't open).*remote\.sh",
         "the image is not there any more", "run the campaign again: it is copied when a campaign begins"),
        (r"another campaign loads from this machine", "another campaign loads from it: figures would be of both",
         "wait for the end of that one, or name another client"),
        (r"arrived damaged", "the image arrived damaged", "try again"),
        (r"wrong fs type|unknown filesystem type|overlay",
         "it cannot mount an overlay", f"put {HOME} on a filesystem that can hold one (ext4, xfs)"),
    )  # fmt: skip
    for pattern, problem, fix in reasons:
        if re.search(pattern, stderr):
            return PlatformError(f"{target.host}: {problem}", fix=fix, console=stderr.encode())
    last = (stderr.strip().splitlines() or ["the connection ended without a word"])[-1].strip()
    return PlatformError(f"{target.host}: {last[:300]}", fix=f"see that `{hand}` works", console=stderr.encode())


def _lack(facts: Facts, target: SshTarget) -> PlatformError | None:
    """Return why a host that answers cannot be used; None where it can."""
    if facts.uid != 0:
        fix = f"name a user who is root there: ssh:root@{target.host}"
        return PlatformError(f"{target.host}: the user is not root there", fix=fix)
    if facts.arch != ARCHITECTURE:
        return PlatformError(f"{target.host}: it is {facts.arch}, and the image's programs are {ARCHITECTURE}")
    if facts.missing:
        fix = "install util-linux, coreutils and tar there"
        return PlatformError(f"{target.host}: it lacks {facts.missing}", fix=fix)
    if facts.unsafe:
        message = f"{target.host}: {facts.unsafe} there is not root's alone, and root would run what is in it"
        return PlatformError(message, fix=f"chown root {facts.unsafe}; chmod go-w {facts.unsafe}, there")
    return None


def _no_space(target: SshTarget, problem: str) -> PlatformError:
    return PlatformError(f"{target.host}: {problem}", fix=f"free some space there, or remove old images: rm -r {HOME}")


def _cpus(spec: LaunchSpec, facts: Facts) -> str:
    count = len(spec.resources.cpus)
    if count > len(facts.cpus):
        message = f"{facts.name} has {len(facts.cpus)} CPUs, and instances are to have {count}"
        raise PlatformError(message, fix="give fewer with --cpus")
    return ",".join(map(str, facts.cpus[-count:]))


def _script() -> bytes:
    return resources.files("tare.platforms").joinpath("remote.sh").read_bytes()


PLATFORMS = ()
FAMILIES = {
    "ssh": PlatformFamily(
        Ssh,
        "HOST",
        "any Linux host that ssh reaches: chroot into the image there",
        "name a host: -p ssh:[USER@]HOST[:PORT]",
    )
}
