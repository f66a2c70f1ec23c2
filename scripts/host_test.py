"""Tries tare on the stock hosts of the lab: the contract's suite by platform, a campaign of all, and what stays.

    python scripts/host_test.py [--host debian12] [--only docker] [--again] [--table]

Each job is a lab of its own, and takes minutes to an hour by emulation. Its result is a file below ``build/hosts``; a
job that passed is not run again unless told so, so this goes on where it was ended. ``--table`` runs nothing: it
writes what there is into docs/hosts.md, beside what other machines found before. Exit code 1 when a job failed.
"""

from __future__ import annotations

import argparse
import datetime
import json
import re
import signal
import sys
import tarfile
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tare.features.kernel.lab import lab_recipes
from tare.host import processes
from tare.platforms import platform_registry

TOP = Path(__file__).parents[1]
RESULTS = TOP / "build" / "hosts"
DOCUMENT = TOP / "docs" / "hosts.md"
#: As on a user's machine, in which Docker has systemd's driver.
COMMON = ("native", "runc", "crun", "docker", "podman", "lxc", "nspawn", "bubblewrap", "gvisor", "libvirt-lxc")
#: What a host has besides.
OWN = {"debian12": ("lxd",), "debian13": ("incus",)}
#: Beside these in a campaign: what runs without a guest's kernel, which takes minutes to start in an emulated host.
MORE = ("docker-host", "gvisor-ptrace", "podman-runc", "podman-gvisor", "podman-rootless")
#: Guests by emulation, in a host that is emulated itself: a start takes minutes, and each has a campaign of its own.
EMULATED = "-tcg"
#: A kernel that nobody has built in such a host.
_DIRECT = "qemu-microvm-direct-tcg"
#: But those that lack a program there: no engine of Debian 12's brings passt. `everything` tells why they are left out.
LACKING = {"debian12": ("qemu-passt-tcg", _DIRECT), "debian13": (_DIRECT,)}
#: A start takes a minute here, and on an emulated host some seventy times as long, as that of crun in a guest does.
ENDLESS = ("docker-in-qemu-tcg",)
#: At most this many platforms that were left out are named in the table.
NAMED = 6
PLAN = ("-w", "startup", "-w", "primes", "--blocks", "1", "--json")
CGROUPFS = """\
mkdir -p /etc/docker
echo '{"exec-opts": ["native.cgroupdriver=cgroupfs"]}' >/etc/docker/daemon.json
systemctl restart docker
exec tare platform check docker --json
"""
#: containerd keeps the images, as Docker 29 has it by itself.
CONTAINERD_STORE = """\
mkdir -p /etc/docker
echo '{"features": {"containerd-snapshotter": true}}' >/etc/docker/daemon.json
systemctl restart docker
docker info --format '{{.DriverStatus}}' | grep -F io.containerd.snapshotter.v1 >&2
exec tare platform check docker --json
"""
#: systemd reads its units anew all the time, as a package manager has it do in the middle of a campaign.
RELOAD = f"""\
while sleep 3; do systemctl daemon-reload; done &
reloading=$!
trap 'kill $reloading' EXIT
for name in runc docker podman; do
    tare platform check $name --only memory-holds --only cpus-hold --only work-is-accounted >&2
done
tare run -p native -p runc -p docker -p podman {" ".join(PLAN)}
kill -0 $reloading
"""
#: A key as a user makes it, and the host's sshd as it runs there; $1: whose login it opens.
KEY = """\
mkdir -p -m 700 /root/.ssh
ssh-keygen -q -t ed25519 -N '' -f /root/.ssh/id_ed25519
home=$(getent passwd "$1" | cut -d : -f 6)
install -d -o "$1" -m 700 "$home/.ssh"
install -o "$1" -m 600 /root/.ssh/id_ed25519.pub "$home/.ssh/authorized_keys"
ssh-keyscan -t ed25519 127.0.0.1 >>/root/.ssh/known_hosts
"""
#: The host as its own remote one.
SSH = f"""\
{KEY}
tare platform check ssh:root@127.0.0.1 --json
journalctl --quiet --boot --grep 'Started tare-remote-.*\\.scope' --lines 1 >&2
"""
#: Without root, after a login of the user's own: the user's systemd delegates control groups to what that one starts.
USER = f"""\
{KEY}
install -o user -m 600 /lab/files/image.tar.zst /home/user/
digest=$(sha256sum /lab/files/image.tar.zst | cut -d ' ' -f 1)
ssh user@127.0.0.1 env $(env | grep -E '^(PATH|PYTHON|TERM|TARE_(AGENT|PATIENCE|LAB)=)') sh -es "$digest" <<'END'
cat /proc/self/cgroup >&2
tare image import image.tar.zst --sha256 "$1" >&2
tare doctor native bubblewrap podman-rootless >&2
tare run -p native -p bubblewrap -p podman-rootless -w startup -w primes --blocks 2 --json >report.json
cat report.json
if grep '"cgroup": "none"' report.json >&2; then exit 1; fi # `!` does not end a shell by -e
tare clean >&2
END
"""
#: Campaigns whose ends are looked at: what is found on the host after each.
LEFT = ("doctor", "campaign", "interrupt", "kill")
LEFT_OF = ("native", "runc", "docker", "podman", "lxc")
PACK_LIMIT_S = 900.0
TIME_LIMIT, LAB_LIMIT_S = "3h", 4 * 3600.0
_TABLE = re.compile(r"(<!-- results -->\n)(.*?)(<!-- end -->)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Result:
    """How a job ended: the day, whether it passed, how long it took with the lab's boot, and one line about it."""

    day: str
    passed: bool
    seconds: float
    summary: str


def jobs(host: str) -> dict[str, list[str]]:
    """The jobs on a host by name: the command that the lab is given."""
    made = {name: ["tare", "platform", "check", name, "--json"] for name in (*COMMON, *OWN[host])}
    made["docker-cgroupfs"] = ["sh", "-ec", CGROUPFS]
    if host == "debian13":  # Debian 12's Docker has no such store
        made["docker-containerd-store"] = ["sh", "-ec", CONTAINERD_STORE]
    made["reload"] = ["sh", "-ec", RELOAD]
    made["ssh"] = ["sh", "-ec", SSH, "sh", "root"]
    made["user"] = ["sh", "-ec", USER, "sh", "user"]
    made["containers"] = ["tare", "run", *(f"-p{name}" for name in (*COMMON, *OWN[host], *MORE)), *PLAN]
    names = [name for name in platform_registry.all_platforms() if name not in ENDLESS]
    emulated = [name for name in names if name.endswith(EMULATED) and name not in LACKING[host]]
    others = [name for name in names if name not in emulated]
    made["everything"] = ["tare", "run", *(f"-p{name}" for name in others), *PLAN]
    made |= {f"emulated-{name}": ["tare", "run", f"-p{name}", *PLAN] for name in emulated}
    made["wheel"] = ["sh", "tests/lab/wheel.sh", "/lab/files"]
    for end in LEFT:
        made[f"left-{end}"] = ["python3", "tests/lab/left.py", end, *(LEFT_OF if end != "doctor" else ())]
    return made


def answer_of(output: str) -> dict[str, Any] | None:
    """The JSON at the end of what a job printed; None where there is none."""
    try:
        answer: dict[str, Any] = json.loads("{" + re.split(r"^\{", output, maxsplit=1, flags=re.MULTILINE)[1])
    except (IndexError, ValueError):
        return None
    return answer


def passed(name: str, code: int, output: str) -> bool:
    """Whether a job passed. A campaign ends with 0 also where a trial failed, or some of its platforms are left out."""
    answer = answer_of(output) or {}
    missing = [] if name == "everything" else answer.get("left_out")
    return code == 0 and not answer.get("failures") and not missing


def summary(code: int, output: str, errors: str) -> str:
    """One line about a job, from what it printed."""
    answer = answer_of(output)
    if answer is None:
        lines = errors.strip().splitlines()
        return f"ended with {code}: {lines[-1] if lines else 'no output'}"
    if "checks" in answer:
        broken = [row["name"] for row in answer["checks"] if row["broken"]]
        return f"{len(answer['checks']) - len(broken)} kept" + (f", broken: {', '.join(broken)}" if broken else "")
    if "left" in answer:
        return "nothing left" if not answer["left"] and code == 0 else f"code {code}, left: {'; '.join(answer['left'])}"
    if "left_out" in answer:
        names = [row["platform"] for row in answer["left_out"]]
        gone = [f"left out: {', '.join(names) if len(names) <= NAMED else len(names)}"] * bool(names)
        bad = [f"failures: {', '.join(row['platform'] for row in answer['failures'])}"] * bool(answer["failures"])
        return "; ".join([f"{len(answer['platforms'])} platforms", *gone, *bad])
    return f"code {code}"


def table(cells: Mapping[tuple[str, str], str]) -> str:
    """A row a job, a column a host; ``cells`` are by host and job."""
    hosts = list(OWN)
    names = dict.fromkeys(name for host in hosts for name in jobs(host))
    lines = [f"| job | {' | '.join(hosts)} |", f"| --- |{' --- |' * len(hosts)}"]
    for name in names:
        row = [cells.get((host, name), "not run") if name in jobs(host) else "-" for host in hosts]
        lines.append(f"| {name} | {' | '.join(row)} |")
    return "\n".join(lines) + "\n"


def cell(result: Result) -> str:
    """A job's result as the table has it."""
    text = result.summary.replace("|", "\\|")
    return f"{'' if result.passed else 'FAILED: '}{text} ({result.day})"


def recorded(document: str) -> dict[tuple[str, str], str]:
    """The cells of a document's table, by host and job: other machines' results stand there."""
    head, _, *rows = (re.split(r" ?(?<!\\)\| ?", line)[1:-1] for line in _TABLE.search(document)[2].splitlines())
    return {(host, name): text for name, *cells in rows for host, text in zip(head[1:], cells, strict=True)}


def known(folder: Path) -> dict[tuple[str, str], Result]:
    """The results that are there, by host and job; those of an earlier form are as if they were not."""
    read = {(file.parent.name, file.stem): json.loads(file.read_text()) for file in folder.glob("*/*.json")}
    return {key: Result(**result) for key, result in read.items() if result.keys() == Result.__annotations__.keys()}


def needed(name: str, python: tuple[int, int], folder: Path) -> list[Path]:
    """The files that a job needs in its lab, made in a folder: for the wheel all that another machine would fetch."""
    if name not in ("user", "wheel"):
        return []
    image = folder / "image.tar.zst"
    export = [str(TOP / ".venv/bin/tare"), "image", "export", str(image)]
    own = processes.own_environment()
    processes.run(export, time_limit_s=PACK_LIMIT_S, env=own).require(fix="make image")
    if name == "user":
        return [image]
    processes.run([str(TOP / "scripts/wheel"), "x86_64"], time_limit_s=PACK_LIMIT_S, env=own).require(fix="make wheel")
    wheel = next((TOP / "build" / "wheel").glob("*_x86_64.whl"))
    packages = folder / "wheels"
    version = "{}.{}".format(*python)
    pip = [str(TOP / ".venv/bin/python"), "-I", "-m", "pip", "download", "--quiet", "--dest", str(packages)]
    pip += ["--python-version", version, "--only-binary=:all:", str(wheel)]
    processes.run(pip, time_limit_s=PACK_LIMIT_S, env=own).require(
        fix=f"see that pip finds wheels for Python {version}"
    )
    with tarfile.open(folder / "wheels.tar", "w") as archive:
        archive.add(packages, ".")
    return [wheel, folder / "wheels.tar", image]


def run(host: str, name: str, argv: Sequence[str]) -> Result:
    """Run a job in a lab of its own; what it prints is in files beside its result, as it comes."""
    began = time.monotonic()
    lab = [str(TOP / ".venv/bin/tare"), "lab", "run", "--host", host, "--time-limit", TIME_LIMIT]
    folder = RESULTS / host
    folder.mkdir(parents=True, exist_ok=True)
    output, errors = folder / f"{name}.out", folder / f"{name}.log"
    print(f"{host} {name}: running; tail -f {errors}", file=sys.stderr, flush=True)
    with tempfile.TemporaryDirectory() as scratch, output.open("wb") as stdout, errors.open("wb") as stderr:
        files = needed(name, lab_recipes.load().python(host), Path(scratch))
        lab += [word for file in files for word in ("--file", str(file))]
        own = processes.own_environment()
        process = processes.start([*lab, "--", *argv], stdout=stdout, stderr=stderr, env=own)
        try:
            code = process.wait(LAB_LIMIT_S)  # whose command has a limit of its own
        finally:
            processes.end(process)
    day = datetime.datetime.now(datetime.UTC).date().isoformat()
    printed, log = (file.read_text(errors="replace") for file in (output, errors))
    seconds = round(time.monotonic() - began, 1)
    result = Result(day, passed(name, code, printed), seconds, summary(code, printed, log))
    (folder / f"{name}.json").write_text(json.dumps(asdict(result)))
    return result


def main(arguments: Sequence[str]) -> int:
    """Run what has not passed yet, and print the table."""
    parser = argparse.ArgumentParser(description="tare on the stock hosts of the lab")
    parser.add_argument("--host", choices=sorted(OWN), action="append", help="default: all of them")
    parser.add_argument("--only", action="append", help="a job by name")
    parser.add_argument("--again", action="store_true", help="also what has passed")
    parser.add_argument("--table", action="store_true", help="run nothing; write the results into docs/hosts.md")
    asked = parser.parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))  # so that the lab ends too
    failed = False
    if not asked.table:
        for host in asked.host or OWN:
            for name in asked.only or ():
                if name not in jobs(host):
                    parser.error(f"{host} has no job {name}; there are {', '.join(jobs(host))}")
            for name, argv in jobs(host).items():
                before = known(RESULTS).get((host, name))
                if (asked.only and name not in asked.only) or (before and before.passed and not asked.again):
                    continue
                result = run(host, name, argv)
                failed |= not result.passed
                print(f"{host} {name}: {cell(result)}", flush=True)
    document = DOCUMENT.read_text()
    made = table(recorded(document) | {where: cell(result) for where, result in known(RESULTS).items()})
    if asked.table:
        DOCUMENT.write_text(_TABLE.sub(lambda match: match[1] + made + match[3], document))
    print(made, end="")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
