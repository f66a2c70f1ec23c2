"""L13 to L15, L18, D and F: more files and folders of a stranger's, signals, and what builds take from the network."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
import urllib.request
import zipfile
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from command import TARE, at_once, tare
from findings import Finding

NOBODY = 65_534
#: What the command says once it has matched the expression in vain.
_MATCHED = {"ready.output": "in service", "a metric's regex": "metrics.rate"}
SECRET = "attack-secret-word"  # noqa: S105 (a bait)
END_S = 30.0
#: An endless query: the product of three large tables.
ENDLESS = "select count(*) from range(1000000) a, range(1000000) b, range(1000000) c where a.range + b.range = -1"
_COMPOSE = """\
services:
  web:
    image: "debian:12"
    command: ["sleep", "1"]
    environment: [SECRET_TOKEN]
    volumes: ["data\\n[start.files]\\n'/root/.profile' = 'attack'\\n#:/var/lib/data"]
    ports: ["80:80"]
"""
_RETRIES = """\
services:
  web:
    image: "debian:12"
    healthcheck: {test: ["CMD", "true"], retries: %s}
"""
_APPLICATION = """\
name = "attack"
[source]
folder = "rootfs"
[start]
command = ["/bin/sh", "-c", "echo {text}; kill -STOP $$", "{{port}}"]
[ready]
output = '{ready}'
within = 5
[load]
command = ["/bin/sh", "-c", "echo {text}"]
program = "application"
[metrics.rate]
regex = '{regex}'
unit = "requests/s"
better = "higher"
"""
_RUNS = '#!/bin/sh\necho ran >>{marker}\necho \'{{"all": {{"hosts": ["192.0.2.1"]}}}}\'\n'
#: A Go whose registry gives other files than those that were locked.
_GO = """\
#!/bin/sh
echo "$GOFLAGS" >>{folder}/flags
case $* in
    *GOVERSION*) echo go1.99 ;;
    *download*) echo '{{"Sum": "h1:AAAA", "Dir": "{folder}"}}' ;;
    *build*) echo built >{folder}/built ;;
esac
"""


def attack_applications(finding: Finding, work: Path) -> None:
    """L13: a compose file that writes keys or takes secrets, and an application's file that nobody agreed to run."""
    folder, marker = work / "compose", work / "application-ran"
    folder.mkdir()
    (folder / "compose.yaml").write_text(_COMPOSE)
    written = folder / "made.toml"
    os.environ["SECRET_TOKEN"] = SECRET
    try:
        ended = tare("app", "init", written, "--from", folder / "compose.yaml", "--image", "docker://x/y:1")
    finally:
        del os.environ["SECRET_TOKEN"]
    text = written.read_text() if written.exists() else ""
    read = tomllib.loads(text) if text else {}
    finding.attempt("a line feed in a volume's name", ended.fault or str(read.get("start", {}).get("files", "")))
    finding.attempt("a variable of the environment", "it is in the file" if SECRET in text + ended.text else "")
    (folder / "retries.yaml").write_text(_RETRIES % ("9" * 5000))
    ended = tare("app", "init", folder / "2.toml", "--from", folder / "retries.yaml", "--image", "docker://x/y:1")
    finding.attempt("5,000 digits", ended.fault)
    _root(folder)
    text = _APPLICATION.format(text=f"x >{marker}", ready="x", regex="(x)")
    (folder / "runs.toml").write_text(text)
    ended = tare("app", "check", folder / "runs.toml")
    said = "it ran unasked" if marker.exists() or ended.code == 0 else ended.fault
    if said or "--trust" in ended.text:
        finding.attempt("app check without a terminal", said)
    else:
        finding.untried.append(f"app check: {' '.join(ended.text.split())[-150:]}")


def attack_expressions(finding: Finding, work: Path) -> None:
    """H3's relative: expressions without an end in an application's file, for its output and for its figures."""
    folder = work / "expressions"
    folder.mkdir()
    _root(folder)
    text = "a" * 60 + "!"
    files = {"ready.output": ("(a+)+$", "(a)"), "a metric's regex": ("a", "(a+)+$")}
    for number, (name, (ready, regex)) in enumerate(files.items()):
        file = folder / f"{number}.toml"
        file.write_text(_APPLICATION.format(text=text, ready=ready, regex=regex))
        ended = tare("app", "check", file, "--trust", limit_s=240)
        words = " ".join(ended.text.split())
        if ended.fault or _MATCHED[name] in words:
            finding.attempt(f"an endless expression as {name}", ended.fault)
        else:
            finding.untried.append(f"{name}: {words[-150:]}")


def _root(folder: Path) -> None:
    """A root filesystem with a shell and nothing else."""
    root = folder / "rootfs"
    for name in ("bin", "data", "tmp"):
        (root / name).mkdir(parents=True)
    done = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=True)
    for library in re.findall(r"(/\S+\.so\S*)", done.stdout):
        place = root / library.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, place)
    shutil.copy("/bin/sh", root / "bin/sh")


def attack_names(finding: Finding, campaign: Path, work: Path) -> None:
    """L14: a file's name that is not UTF-8, beside a sound campaign."""
    folder = work / "names"
    folder.mkdir()
    shutil.copy(campaign, folder / "night.tare")
    shutil.copy(campaign, folder / os.fsdecode(b"\xff.tare"))
    for words in (("history", folder), ("fleet", "report", folder), ("sql", folder, "select 1")):
        finding.attempt(words[0], tare(*words).fault)
    with _served(folder) as (address, process):
        with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310 (serve's own)
            page = answer.read().decode()
        finding.attempt("serve", "" if answer.status == 200 and "night.tare" in page else f"it answers {answer.status}")
        finding.attempt("serve goes on", "" if process.poll() is None else "it has ended")


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    process = subprocess.Popen([TARE, "serve", folder], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert process.stdout is not None
    try:
        address = next(line.strip() for line in process.stdout if line.startswith("http://"))
        yield address, process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.communicate(timeout=END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()


def attack_queries(finding: Finding, campaign: Path) -> None:
    """L15: a query without an end, which each signal has to end, and the tables of DuckDB's own."""
    for number in (signal.SIGTERM, signal.SIGINT):
        process = subprocess.Popen(
            [TARE, "sql", campaign, ENDLESS], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        time.sleep(8)
        if process.poll() is not None:
            finding.untried.append(f"{number.name}: the query had an end: exit code {process.returncode}")
            continue
        process.send_signal(number)
        try:
            process.wait(END_S)
            finding.attempt(number.name, "")
        except subprocess.TimeoutExpired:
            finding.attempt(number.name, f"it goes on {END_S:.0f} s later")
            process.kill()
            process.wait()
    for query in ("select * from duckdb_settings()", "select * from read_csv('/etc/passwd')", "attach '/etc/passwd'"):
        ended = tare("sql", campaign, query)
        finding.attempt(query, ended.fault or ("it answers" if "root:" in ended.text else ""))


def attack_links(finding: Finding, campaign: Path, work: Path) -> None:
    """L18: what another user put into a folder that everybody writes to, at the place of an output."""
    shared, private = work / "shared", work / "private"
    shared.mkdir()
    shared.chmod(0o1777)
    private.mkdir()
    outputs = {
        "--html": ("report", campaign, "--html", "PLACE.html"),
        "--share": ("report", campaign, "--share", "PLACE.tare"),
        "--markdown": ("diff", campaign, campaign, "--markdown", "PLACE.md", "--force"),
        "--sarif": ("diff", campaign, campaign, "--sarif", "PLACE.sarif", "--source", "x", "--force"),
        "export": ("export", campaign, "--format", "csv", "-o", "PLACE.csv", "--force"),
        "figure": ("figure", campaign, "-o", "PLACE.svg", "--force"),
        "cite": ("cite", campaign, "-o", "PLACE.bib", "--force"),
        "bundle": ("bundle", campaign, "-o", "PLACE.zip"),
        "app init": ("app", "init", "PLACE.toml"),
        "run": ("run", "-p", "native", "-w", "startup", "--blocks", "1", "-o", "PLACE.tare"),
        "fleet run": ("fleet", "run", "-i", "192.0.2.1,", "-o", "PLACE", "--", "-p", "native"),
    }
    tries = [
        (f"{name}, {kind}", partial(_planted, shared, private / f"{number}-{len(kind)}", words, kind))
        for number, (name, words) in enumerate(outputs.items())
        for kind in ("dangling link", "link to a file", "file")
    ]
    for (name, _), said in zip(tries, at_once([attempt for _, attempt in tries]), strict=True):
        finding.attempt(name, said)


def _planted(shared: Path, target: Path, words: Sequence[str | Path], kind: str) -> str:
    """What became of an output at the place of a link or a file of another user's; "": nothing was written there."""
    place = shared / f"{target.name}-{kind[0:4]}"
    ending = Path(next(str(word) for word in words if str(word).startswith("PLACE"))).suffix
    planted = Path(f"{place}{ending}")
    if kind == "file":
        planted.write_text("planted")
    else:
        if kind == "link to a file":
            target.write_text("of root's")
        planted.symlink_to(target)
    os.chown(planted, NOBODY, NOBODY, follow_symlinks=False)
    before = target.read_text() if target.is_file() else None
    ended = tare(*(str(word).replace("PLACE", str(place)) for word in words), limit_s=180)
    after = target.read_text(errors="replace") if target.is_file() else None
    if after != before or target.is_dir():
        return "the link was followed"
    if not os.path.lexists(planted) or planted.lstat().st_uid != NOBODY:
        return f"another user's {kind} was replaced"
    if kind == "file" and planted.read_bytes() != b"planted":
        return "another user's file was written to"
    return ended.fault


def attack_supply(finding: Finding, work: Path) -> None:
    """D: an environment that turns checksums off, another crate, and newer kernels by their text."""
    variables = {"GOSUMDB": "off", "GONOSUMDB": "*", "GOPRIVATE": "*", "GOINSECURE": "*", "GOFLAGS": "-mod=mod"}
    python, programs = [sys.executable, "-I", "-c"], work / "go"
    programs.mkdir()
    go = programs / "go"
    go.write_text(_GO.format(folder=programs))
    go.chmod(0o755)
    environment = {**os.environ, **variables, "PATH": f"{programs}:{os.environ['PATH']}"}
    asked = (
        "from pathlib import Path; from tare.setup import gvisor_build; "
        "gvisor_build._install('runsc', Path('/nowhere'), print)"
    )
    told = subprocess.run([*python, asked], env=environment, capture_output=True, text=True, check=False)
    refused = "does not have the checksum" in told.stderr
    finding.attempt("another gVisor, with checksums off", "" if refused else f"it is taken: {told.stderr[-150:]}")
    flags = (programs / "flags").read_text().split() if (programs / "flags").exists() else []
    finding.attempt("Go's flags", "" if flags and set(flags) == {"-mod=readonly"} else f"Go gets {flags}")
    crate = work / "cargo" / "registry" / "cache" / "x" / "youki-{}.crate"
    asked = (
        "import sys; from pathlib import Path; from tare.setup import youki_build; "
        "youki_build.check_crate(Path(sys.argv[1]))"
    )
    version = subprocess.run([*python, "from tare.setup import youki_build; print(youki_build.VERSION)"],
                             capture_output=True, text=True, check=True).stdout.strip()  # fmt: skip
    crate.parent.mkdir(parents=True)
    Path(str(crate).format(version)).write_bytes(b"another crate")
    tried = subprocess.run([*python, asked, work / "cargo"], capture_output=True, check=False)
    refused = b"does not have the checksum" in tried.stderr
    finding.attempt("another youki under its name", "" if refused else "it would be built")
    lock = Path(__file__).parents[2] / "requirements.lock"
    names = re.findall(r"(?m)^([A-Za-z0-9._-]+)==[^\\\n]+(\\?)$", lock.read_text())
    bare = [name for name, more in names if not more]
    finding.attempt(f"hashes of {len(names)} Python packages", ", ".join(bare) if bare or not names else "")
    _attack_lock(finding, work, lock.read_text())


def _attack_lock(finding: Finding, work: Path, lock: str) -> None:
    """Another package under the name and version of the first that is locked, in the place of an index."""
    first = re.search(r"(?m)^([a-z0-9._-]+)==([^ \\\n]+)(?: \\\n +--hash=\S+)+", lock)
    if first is None:
        finding.untried.append("another package under its name: the lock has no package")
        return
    named, (name, version) = f"{first[1]}=={first[2]}", (first[1].replace("-", "_"), first[2])
    index, asked = work / "index", work / "locked.txt"
    index.mkdir()
    about = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(index / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {first[1]}\nVersion: {version}\n")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    pip = [sys.executable, "-I", "-m", "pip", "--disable-pip-version-check", "download", "-q", "--no-deps"]
    pip += ["--no-index", "--find-links", str(index), "-d", str(work / "wheels")]
    asked.write_text(f"{first[0]}\n")
    taken = subprocess.run([*pip, named], capture_output=True, text=True, check=False, timeout=300)
    shutil.rmtree(work / "wheels", ignore_errors=True)
    locked = [*pip, "--require-hashes", "-r", str(asked)]
    refused = subprocess.run(locked, capture_output=True, text=True, check=False, timeout=300)
    if taken.returncode or (refused.returncode and "HASH" not in refused.stderr.upper()):
        said = (taken.stderr + refused.stderr).strip()[-100:]
        finding.untried.append(f"another package under its name: pip takes none: {said}")
    else:
        finding.attempt("another package under its name", "" if refused.returncode else "it is taken")


def attack_fleets(finding: Finding, work: Path) -> None:
    """F: a fleet's folder of another user's, one that came with links and names, and an ansible.cfg there."""
    marker = work / "fleet-ran"
    for name in ("owned by nobody", "which nobody may write to", "of root's, from elsewhere"):
        folder, victim = work / name.replace(" ", "-"), work / "victim-folder"
        shutil.rmtree(victim, ignore_errors=True)
        victim.mkdir()
        (victim / "file").write_text("of root's")
        (folder / ".fleet").mkdir(parents=True)
        script = folder / "inventory"
        script.write_text(_RUNS.format(marker=marker))
        script.chmod(0o755)
        order = {"id": "0" * 16, "words": ["-p", "native"], "inventory": [str(script)], "made": 1.0}
        (folder / "fleet.json").write_text(json.dumps(order))
        (folder / ".fleet" / "control").write_text(str(victim))
        (folder / ".fleet" / "variables.json").symlink_to(victim / "file")
        if name == "owned by nobody":
            for place in (folder, *folder.rglob("*")):
                os.chown(place, NOBODY, NOBODY, follow_symlinks=False)
        elif name == "which nobody may write to":
            folder.chmod(0o777)
        else:
            order["inventory"] = ["192.0.2.1,"]
            (folder / "fleet.json").write_text(json.dumps(order))
        ended = tare("fleet", "status", folder, limit_s=200)
        kept = (victim / "file").is_file() and (victim / "file").read_text() == "of root's"
        said = "its program ran" if marker.exists() else "" if kept else "it removed or changed another folder"
        finding.attempt(f"a folder {name}", said or ended.fault)
        marker.unlink(missing_ok=True)
    _attack_cluster(finding, work, marker)
    _attack_settings(finding, work, marker)
    _attack_variables(finding, work, marker)


def _attack_cluster(finding: Finding, work: Path, marker: Path) -> None:
    programs, folder = work / "kubectls", work / "cluster"
    programs.mkdir()
    kubectl = programs / "kubectl"
    kubectl.write_text(f'#!/bin/sh\nfor word; do echo "$word"; done >>{marker}\ncat >>{marker}\nexit 1\n')
    kubectl.chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    plan = {"nodes": ["node1"], "image": "debian:12", "words": ["-p", "runc"], "namespace": "tare", "tare": "tare",
            "folder": "/var/lib/tare-fleet"}  # fmt: skip
    folder.mkdir()
    (folder / "kubernetes.json").write_text(json.dumps(plan))
    (folder / "kubernetes.yaml").write_text("attack: of another user's\n")
    tare("fleet", "run", "--kubernetes", "-o", folder, path=path)
    called = marker.read_text() if marker.exists() else ""
    finding.attempt("objects of a file", "they were applied" if "attack:" in called or str(folder) in called else "")
    marker.unlink(missing_ok=True)
    for place in (folder, *folder.rglob("*")):
        os.chown(place, NOBODY, NOBODY)
    tare("fleet", "run", "--kubernetes", "-o", folder, path=path)
    finding.attempt("a plan of another user's", "it was applied" if marker.exists() else "")
    marker.unlink(missing_ok=True)


def _attack_settings(finding: Finding, work: Path, marker: Path) -> None:
    folder = work / "settings"
    folder.mkdir()
    script = folder / "vault"
    script.write_text(f"#!/bin/sh\necho a program of ansible.cfg >{marker}\necho x\n")
    script.chmod(0o755)
    (folder / "ansible.cfg").write_text(f"[defaults]\nvault_password_file = {script}\n")
    words, weighed = ("fleet", "run", "-i", "192.0.2.1,", "-o"), ("--", "-p", "native")
    tare(*words, work / "fleet-control", *weighed, cwd=folder, limit_s=200)
    if not marker.exists():
        finding.untried.append("ansible.cfg: root's own is not obeyed either, so that it shows nothing")
    marker.unlink(missing_ok=True)
    for place in (folder, *folder.rglob("*")):
        os.chown(place, NOBODY, NOBODY)
    ended = tare(*words, work / "fleet-attacked", *weighed, cwd=folder, limit_s=200)
    finding.attempt("ansible.cfg beside the command", marker.read_text() if marker.exists() else ended.fault)
    marker.unlink(missing_ok=True)


def _attack_variables(finding: Finding, work: Path, marker: Path) -> None:
    folder = work / "variables"
    (folder / "group_vars").mkdir(parents=True)
    program = folder / "ssh"
    program.write_text(f"#!/bin/sh\necho a program of group_vars >{marker}\nexit 255\n")
    program.chmod(0o755)
    (folder / "hosts.ini").write_text("a ansible_host=192.0.2.1\n")
    (folder / "group_vars" / "all.yml").write_text(f"ansible_ssh_executable: {program}\n")
    words, weighed = ("fleet", "run", "-i", folder / "hosts.ini", "-o"), ("--", "-p", "native")
    tare(*words, work / "fleet-own", *weighed, limit_s=200)
    if not marker.exists():
        finding.untried.append("group_vars: root's own are not obeyed either, so that it shows nothing")
    marker.unlink(missing_ok=True)
    for place in (program, *(folder / "group_vars").rglob("*")):
        os.chown(place, NOBODY, NOBODY)
    folder.chmod(0o1777)
    ended = tare(*words, work / "fleet-shared", *weighed, limit_s=200)
    finding.attempt("variables beside an inventory", marker.read_text() if marker.exists() else ended.fault)
    marker.unlink(missing_ok=True)
