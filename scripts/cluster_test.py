"""Try all that tare does with Kubernetes, on the node of `scripts/with-cluster`: `make cluster-test`.

1. The promises of `kubernetes:` and of a kubelet alone, by runc and by gVisor, a harness that is killed in mid-start
   among them. `--only promises`: those by runc; `--only gvisor`: those by gVisor.
2. One campaign with runc, the CRI alone, a kubelet alone, and pods of the cluster, by runc and gVisor.
3. A fleet: a Job on each node runs a campaign, the file is fetched, and nothing is left in the cluster; another one is
   cleaned while it runs.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from tare.cli.exit_codes import ExitCode
from tare.host import state
from tare.platforms.parts.engines.containerd_server import PAUSE_TAG

HERE = Path(__file__).resolve().parents[1]
TARE = HERE / ".venv" / "bin" / "tare"
CLASSES = ("runc", "gvisor")
FLEET_LIMIT_S = 900.0


def run(*words: object) -> None:
    """Run a command in the foreground; end where it fails."""
    argv = [str(word) for word in words]
    sys.stderr.write(f"\ncluster-test: {' '.join(argv)}\n")
    if (code := subprocess.run(argv, check=False).returncode) != 0:
        sys.exit(f"cluster-test: it ended with {code}")


def asked(*words: str) -> str:
    """Return what kubectl prints."""
    return subprocess.run(["kubectl", *words], check=True, capture_output=True, text=True).stdout


def pods() -> list[str]:
    """Return the names of all pods that are left."""
    items = json.loads(asked("get", "pods", "--all-namespaces", "-o", "json"))["items"]
    return [str(pod["metadata"]["name"]) for pod in items]


def require(holds: bool, what: str) -> None:
    """End with a line where something does not hold."""
    if not holds:
        sys.exit(f"cluster-test: {what}")


def main() -> int:
    """Try it."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--blocks", type=int, default=6)
    parser.add_argument("--only", choices=("promises", "gvisor", "campaign", "fleet"))
    options = parser.parse_args()
    build = HERE / "build"
    build.mkdir(exist_ok=True)
    names = json.loads(asked("get", "runtimeclass", "-o", "json"))["items"]
    classes = [name for name in CLASSES if name in {found["metadata"]["name"] for found in names}]
    for runtime, only, alone in (("runc", "promises", "kubelet"), ("gvisor", "gvisor", "kubelet-gvisor")):
        if runtime in classes and options.only in {None, only}:
            run(TARE, "platform", "check", f"kubernetes:{runtime}")
            run(TARE, "platform", "check", alone)
            require(not pods(), f"pods are left: {pods()}")
    if options.only in {None, "campaign"}:
        campaign(build / "cluster.tare", classes, options.blocks)
    if options.only in {None, "fleet"}:
        fleet(build / "cluster-fleet", classes)
    sys.stderr.write("cluster-test: all of it holds, and nothing is left\n")
    return 0


def campaign(file: Path, classes: list[str], blocks: int) -> None:
    """Run all ways to start a pod in one campaign, and print its answer."""
    for earlier in (file, file.with_suffix(".html")):
        earlier.unlink(missing_ok=True)
    alone = {"runc": "kubelet", "gvisor": "kubelet-gvisor"}
    pods_of_both = [name for by in classes for name in (alone[by], f"kubernetes:{by}")]
    platforms = ["runc", "gvisor", "containerd-cri", *pods_of_both]
    named = [word for name in platforms for word in ("-p", name)]
    run(TARE, "run", *named, "-w", "startup", "--blocks", blocks, "-o", file)
    run(TARE, "report", file)
    require(not pods(), f"pods are left: {pods()}")


def fleet(folder: Path, classes: list[str]) -> None:
    """Run a campaign by a Job on the node, and fetch it."""
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    # A Job enters the node's namespaces, and not this shell's environment.
    program = state.home().parent / "tare-on-the-node"
    program.write_text(f'#!/bin/sh\nTARE_HOME={state.home()} PATH={os.environ["PATH"]} exec {TARE} "$@"\n')
    program.chmod(0o755)
    words = ["--image", PAUSE_TAG, "--tare", program, "--runtime-class", ",".join(classes), "--look", "5"]
    first = [TARE, "fleet", "run", "--kubernetes", "-o", folder, *words, "--", "-w", "startup", "--blocks", "2"]
    with subprocess.Popen([str(word) for word in first]) as controller:
        while controller.poll() is None and '"active": 1' not in asked("get", "jobs", "-A", "-o", "json"):
            time.sleep(0.2)
        controller.kill()
    sys.stderr.write("cluster-test: the controller was killed while its Job ran; status and fetch until it is here:\n")
    cleaned = subprocess.run([TARE, "fleet", "clean", folder], check=False).returncode
    require(cleaned == ExitCode.ERROR, "clean did not keep what was not fetched")
    deadline = time.monotonic() + FLEET_LIMIT_S
    while (code := subprocess.run([TARE, "fleet", "status", folder], check=False).returncode) == ExitCode.OPEN:
        require(time.monotonic() < deadline, "the Job does not end")
        if "complete, not fetched yet" in rows_of(folder):
            break
        time.sleep(5)
    require(code == ExitCode.OPEN, f"status ended with {code}")
    run(TARE, "fleet", "fetch", folder)
    files = list(folder.glob("*.tare"))
    require(len(files) == 1, f"{len(files)} files were fetched")
    run(TARE, "report", files[0])
    require(not pods(), f"pods are left: {pods()}")
    for kind in ("namespaces", "clusterroles", "clusterrolebindings"):
        left = asked("get", kind, "--selector=tare.fleet", "-o", "name")
        require(not left, f"left in the cluster: {left}")
    cleaned_by_force(folder.with_name("cluster-cleaned"), [*words, "--", "-w", "startup", "--blocks", "40"])
    left_there = list(Path("/var/lib/tare-fleet").glob("*"))
    require(not left_there, f"left on the node: {left_there}")


def cleaned_by_force(folder: Path, words: list[object]) -> None:
    """Start a campaign by a Job, and remove it while it runs."""
    subprocess.run(["rm", "-rf", str(folder)], check=True)
    started = [TARE, "fleet", "run", "--kubernetes", "-o", folder, *words]
    with subprocess.Popen([str(word) for word in started]) as first:
        while first.poll() is None and not list(Path("/var/lib/tare-fleet").glob("*.tare")):
            time.sleep(0.2)
        first.kill()
    run(TARE, "fleet", "clean", "--force", folder)
    for kind in ("namespaces", "clusterroles", "clusterrolebindings"):
        left = asked("get", kind, "--selector=tare.fleet", "-o", "name")
        require(not left, f"left in the cluster: {left}")
    require(not pods(), f"pods are left: {pods()}")


def rows_of(folder: Path) -> str:
    """Return the rows that the last command wrote."""
    return (folder / "hosts.json").read_text()


if __name__ == "__main__":
    sys.exit(main())
