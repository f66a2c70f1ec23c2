"""tare as a user without root's rights, on this host: an account that only a mount namespace knows."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from tare.host import state
from tare.image import image_build

pytestmark = pytest.mark.host
UID, FIRST = 60700, 1_900_000_000
ACCOUNT = {
    "passwd": "weigher:x:{uid}:{uid}::{home}:/bin/sh\n",
    "group": "weigher:x:{uid}:\n",
    "subuid": "weigher:{first}:65536\n",
    "subgid": "weigher:{first}:65536\n",
}
#: Becomes the account, in a mount namespace in which it exists, and sees these libraries wherever they lie.
BECOME = """\
names=$1 libraries=$2; shift 2
while [ "$libraries" -gt 0 ]; do
    mount --bind "$1" "$2"; shift 2
    libraries=$((libraries - 1))
done
for name in passwd group subuid subgid; do mount --bind "$names/$name" "/etc/$name"; done
mount -t tmpfs -o mode=755 none /run/user
mkdir -m 700 /run/user/60700; chown 60700:60700 /run/user/60700
mknod -m 666 /run/user/tun c 10 200; mount --bind /run/user/tun /dev/net/tun # as udev has it
cd "$HOME"
exec setpriv --reuid 60700 --regid 60700 --clear-groups "$@"
"""


@pytest.fixture(scope="module")
def user():
    """Starts a command as the user; his TARE_HOME has this host's image."""
    with tempfile.TemporaryDirectory(dir="/var/tmp", prefix="tare-user-") as folder:
        yield _user(Path(folder))


def _user(folder):
    folder.chmod(0o755)
    home, names = folder / "home", folder / "names"
    for place in (home, names):
        place.mkdir()
    for name, line in ACCOUNT.items():
        written = line.format(uid=UID, first=FIRST, home=home)
        (names / name).write_text(Path("/etc", name).read_text() + written)
    python = next(path for path in ("/usr/bin/python3.11", "/usr/bin/python3", sys.executable) if Path(path).exists())
    shutil.copy2(image_build.agent_path(), folder / "agent")
    libraries = [path for path in sys.path if Path(path).is_dir()]
    shown = [str(folder / f"library{number}") for number, _ in enumerate(libraries)]
    for library in shown:
        Path(library).mkdir()
    environment = {
        "HOME": str(home),
        "PATH": "/usr/local/bin:/usr/bin:/bin",
        "XDG_RUNTIME_DIR": f"/run/user/{UID}",
        "PYTHONPATH": os.pathsep.join(shown),
        "PYTHONDONTWRITEBYTECODE": "1",
        "TARE_AGENT": str(folder / "agent"),
    }

    def start(*argv, **pipes):
        pairs = [word for pair in zip(libraries, shown, strict=True) for word in pair]
        become = ["unshare", "--mount", "--propagation", "private", "sh", "-ec", BECOME, "sh", str(names)]
        become += [str(len(libraries)), *pairs, *argv]
        return subprocess.Popen(become, env=environment, text=True, stdin=subprocess.DEVNULL, **pipes)

    os.chown(home, UID, UID)
    images = home / ".local/share/tare/images"
    assert start("mkdir", "-p", "-m", "700", str(images.parent)).wait() == 0
    image = image_build.ensure(image_build.agent_path(), progress=print)
    packed = folder / "images.tar"
    held = [image.root.parent.name, f"{image_build.base_place().name}/manifest.json"]
    left_out = ("--exclude=*.ext4", "--exclude=*.tar", "--exclude=*/root/dev/*")
    packing = ["tar", "-C", state.images(), "--numeric-owner", *left_out, "-cf", packed, *held]
    subprocess.run(packing, check=True)
    packed.chmod(0o644)
    unpack = f"mkdir {images} && tar -C {images} --numeric-owner -xpf {packed}"
    inside = ["unshare", "--user", "--map-root-user", "--map-auto", "sh", "-ec", unpack]
    assert start(*inside).wait() == 0
    packed.unlink()

    def tare(*arguments, **pipes):
        return start(python, "-P", "-m", "tare", *arguments, **pipes)

    return tare, home


def _of_user():
    """What runs with the account's id or one of its subordinate ids, zombies left out."""
    running = []
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except OSError:
            continue
        uid = int(fields["Uid"].split()[0])
        if (uid == UID or FIRST <= uid < FIRST + 65536) and not fields["State"].startswith("Z"):
            running.append(fields["Name"])
    return running


def _left(home):
    tare = home / ".local/share/tare"
    return [path.name for folder in ("work", "journal") for path in (tare / folder).glob("*")]


def _links():
    return sorted(path.name for path in Path("/sys/class/net").iterdir())


def test_a_campaign_ends_with_a_table_and_leaves_nothing(user):
    tare, home = user
    before = _links()
    run = tare(
        *("run", "-p", "native", "-p", "bubblewrap", "-p", "podman-rootless", "-w", "primes", "-w", "tcp-rr"),
        *("--blocks", "2", "--json", "-o", "user.tare"),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    answer, progress = run.communicate(timeout=170)
    assert run.returncode == 0, progress
    report = json.loads(answer)
    figures = {(row["workload"], row["metric"]): row for row in report["results"]}
    rows = figures["primes", "events-per-second"]["platforms"]
    assert [row["platform"] for row in rows if row["mean"] > 0] == ["native", "bubblewrap", "podman-rootless"]
    assert report["host"]["own_namespaces"] is True
    assert report["failures"] == []
    assert (_of_user(), _left(home), _links()) == ([], [], before)


def test_sigkill_leaves_no_process_and_clean_removes_the_rest(user):
    tare, home = user
    run = tare("run", "-p", "native", "-w", "primes", "--blocks", "200", "-o", "killed.tare", stderr=subprocess.PIPE)
    for line in run.stderr:
        if line.startswith("block 2"):
            break
    assert _of_user()
    run.send_signal(signal.SIGKILL)
    with run:
        run.wait()
    deadline = time.monotonic() + 10
    while _of_user() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _of_user() == []
    assert _left(home)
    assert tare("clean").wait() == 0
    assert _left(home) == []


def test_its_promises_are_those_that_can_be_kept_without_groups(user):
    tare, _ = user
    only = ("--only", "memory-holds", "--only", "kill-leaves-nothing")
    check = tare("platform", "check", "native", *only, "--json", stdout=subprocess.PIPE)
    answer = json.loads(check.communicate(timeout=100)[0])
    memory, kill = answer["checks"]
    assert memory["not applicable"].startswith("no control groups are delegated to this user")
    assert (kill["name"], kill["broken"]) == ("kill-leaves-nothing", None)


@pytest.fixture
def enter_groups():
    """Groups that are the user's, as systemd's scope of a login is: puts the process that calls it into them."""
    places = [Path(line.split()[1], "tare-test-user") for line in Path("/proc/mounts").read_text().splitlines()
              if line.split()[2] in {"cgroup", "cgroup2"}]  # fmt: skip
    for place in places:
        place.mkdir()
        for name in ("cpuset.cpus", "cpuset.mems"):
            if (place / name).exists():
                (place / name).write_text((place.parent / name).read_text())
        for path in (place, *place.glob("cgroup.*"), *place.glob("tasks")):
            os.chown(path, UID, UID)

    def enter():
        for place in places:
            (place / "cgroup.procs").write_text("0")

    yield enter
    for place in places:
        for folder in sorted((path for path in place.rglob("*") if path.is_dir()), reverse=True):
            folder.rmdir()
        place.rmdir()


def test_in_groups_of_the_users_own_limits_hold(user, enter_groups):
    """The kernel refuses to mount a hierarchy over itself, so that they were not seen on any host."""
    tare, _ = user
    only = ("--only", "memory-holds", "--only", "work-is-accounted")
    check = tare("platform", "check", "native", *only, "--json", stdout=subprocess.PIPE, preexec_fn=enter_groups)
    answer = json.loads(check.communicate(timeout=100)[0])
    assert [(row["broken"], row["not applicable"]) for row in answer["checks"]] == [(None, None)] * 2


def test_an_interrupt_of_the_command_alone_is_passed_on(user):
    tare, home = user
    run = tare("run", "-p", "native", "-w", "primes", "--blocks", "200", "-o", "ended.tare", stderr=subprocess.PIPE)
    first_words = ""
    for line in run.stderr:
        first_words += line
        if line.startswith("block 2"):
            break
    run.send_signal(signal.SIGTERM)
    with run:
        last_words = run.stderr.read()
    assert run.returncode == 130, first_words + last_words
    assert last_words.count("interrupted: what tare made on this host is removed") == 1
    assert (_of_user(), _left(home)) == ([], [])


def test_doctor_says_what_runs_and_what_needs_root(user):
    tare, _ = user
    doctor = tare("doctor", "native", "bubblewrap", "runc", "--json", stdout=subprocess.PIPE)
    answer = json.loads(doctor.communicate(timeout=60)[0])
    by_name = {row["name"]: row for row in answer["platforms"]}
    assert by_name["native"]["available"], by_name["native"]["reason"]
    assert by_name["bubblewrap"]["available"], by_name["bubblewrap"]["reason"]
    assert (by_name["runc"]["reason"], by_name["runc"]["fix"]) == ("it needs root", "run tare as root (sudo)")
    assert {check["state"] for check in answer["checks"] if check["name"] == "root"} == {"warn"}
