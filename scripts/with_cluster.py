"""Bring up a Kubernetes cluster of one node in this host of its own, run a command on the node, and end both.

The programs are those of `make cluster`. Everything runs in the namespaces of `scripts/own-host`, which end all of it,
also after SIGKILL. Runtime classes: runc, and gvisor where its shim is built. Pods get addresses by the bridge plug-in.
"""

import contextlib
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import yaml

from tare.host import processes, state
from tare.image import image_build
from tare.image.forms import oci_archive
from tare.platforms.parts.engines import kubelet_node
from tare.platforms.parts.engines.containerd_server import PAUSE, PAUSE_TAG
from tare.setup import kubernetes_build

NODE, NODE_IP, SERVICE_IP = "node1", "10.20.0.1", "10.96.0.1"
PODS = "10.244.0.0/24"
API = f"https://{NODE_IP}:443"
SOCKET = "/run/containerd/containerd.sock"
READY_LIMIT_S = 120
#: Folders in which a kubelet, plug-ins for networks and Jobs write, whatever they are told.
COVERED = ("/var/lib/kubelet", "/var/lib/cni", "/var/lib/tare-fleet")


class Cluster:
    """The running parts, and their folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.programs = state.home() / kubernetes_build.CLUSTER
        self.parts: list[tuple[str, subprocess.Popen[bytes]]] = []
        self.environment = {
            **os.environ,
            "PATH": f"{self.programs}:{state.home() / 'bin'}:{processes.path()}",
            "KUBECONFIG": str(folder / "admin.kubeconfig"),
        }

    def start(self, name: str, *argv: object) -> None:
        """Start a part of the cluster with a log of its own."""
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                [str(word) for word in argv], stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=self.environment
            )
        self.parts.append((name, process))

    def wait_for(self, what: str, done: Callable[[], bool]) -> None:
        """Wait until ``done`` is true; end with a part's log where one has ended."""
        deadline = time.monotonic() + READY_LIMIT_S
        while not done():
            for name, process in self.parts:
                if process.poll() is not None:
                    sys.exit(f"with-cluster: {name} has ended:\n{self.last(name)}")
            if time.monotonic() > deadline:
                sys.exit(f"with-cluster: no {what} after {READY_LIMIT_S} s\n{self.last('kubelet')}")
            time.sleep(0.1)

    def last(self, name: str) -> str:
        """Return the last lines of a part's log."""
        return "\n".join((self.folder / f"{name}.log").read_text(errors="replace").splitlines()[-15:])

    def kubectl(self, *words: str, stdin: str = "") -> str:
        """Return what kubectl prints; "" where it fails."""
        done = subprocess.run(
            ["kubectl", *words], input=stdin, env=self.environment, capture_output=True, text=True, check=False
        )
        return done.stdout if done.returncode == 0 else ""

    def end(self) -> None:
        """End the parts, the last one first."""
        for _, process in reversed(self.parts):
            process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


def main(argv: Sequence[str]) -> int:
    """Bring it up, run the command, end it."""
    if b"own-host" not in Path("/proc/1/cmdline").read_bytes():
        sys.exit(
            "with-cluster: this is no host of its own (fix: scripts/own-host cluster scripts/with-cluster COMMAND)"
        )
    began = time.monotonic()
    folder = state.home().parent / "cluster-state"
    subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=True)
    folder.mkdir(mode=0o711)
    cluster = Cluster(folder)
    with covered(), contextlib.ExitStack() as end:
        end.callback(cluster.end)
        network()
        credentials(cluster)
        node(cluster)
        control_plane(cluster)
        cluster.wait_for("API server", lambda: "ok" in cluster.kubectl("get", "--raw", "/readyz"))
        kubelet(cluster)
        cluster.wait_for("node that takes pods", lambda: takes_pods(cluster))
        classes(cluster)
        sys.stderr.write(f"with-cluster: the node takes pods after {time.monotonic() - began:.1f} s\n")
        return subprocess.run(argv, env=cluster.environment, check=False).returncode


@contextlib.contextmanager
def covered() -> Iterator[None]:
    """Keep what kubelet and plug-ins write outside of the folder's away from the real host's disk and settings."""
    made: list[str] = []
    for place in COVERED:
        if not Path(place).exists():
            Path(place).mkdir()
            made.append(place)
    places = [*COVERED, "/var/log"]
    settings = state.home().parent / "cluster-settings"
    settings.mkdir(exist_ok=True)
    for place in places:
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "tare", place], check=True)
    for setting, value in kubelet_node.SETTINGS.items():
        there = Path("/proc/sys", *setting.split("."))
        if there.exists():
            (settings / setting).write_text(f"{value}\n")
            subprocess.run(["mount", "--bind", str(settings / setting), str(there)], check=True)
            places.append(str(there))
    try:
        yield
    finally:
        for place in places:
            subprocess.run(["umount", "--lazy", place], check=False)
        for place in made:
            Path(place).rmdir()


def network() -> None:
    """Give the node an address that is not the loopback's, and the address at which services find the API."""
    lines = [
        "link add node0 type veth peer name node0-peer",
        f"addr add {NODE_IP}/24 dev node0",
        "link set node0 up",
        "link set node0-peer up",
        "route add default via 10.20.0.2",
        f"addr add {SERVICE_IP}/32 dev lo",
    ]
    # `ip netns` makes it a mount of its own, which on this host would hide namespaces of pods that are there by then.
    Path("/run/netns").mkdir(exist_ok=True)
    for words in (["--bind", "/run/netns", "/run/netns"], ["--make-shared", "/run/netns"]):
        subprocess.run(["mount", *words], check=True)
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, check=True)
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")


def credentials(cluster: Cluster) -> None:
    """Write tokens, the key of service accounts, and a kubeconfig for the administrator and for the node."""
    folder = cluster.folder
    tokens = {name: secrets.token_hex(16) for name in ("admin", "node")}
    rows = [f'{tokens["admin"]},admin,1,"system:masters"', f'{tokens["node"]},system:node:{NODE},2,"system:nodes"']
    (folder / "tokens.csv").write_text("\n".join(rows) + "\n")
    subprocess.run(["openssl", "genrsa", "-out", str(folder / "sa.key"), "2048"], check=True, capture_output=True)
    for name, token in tokens.items():
        described = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [
                {
                    "name": "c",
                    "cluster": {"server": API, "certificate-authority": str(folder / "pki" / "apiserver.crt")},
                }
            ],
            "users": [{"name": name, "user": {"token": token}}],
            "contexts": [{"name": "c", "context": {"cluster": "c", "user": name}}],
            "current-context": "c",
        }
        (folder / f"{name}.kubeconfig").write_text(yaml.safe_dump(described))


def node(cluster: Cluster) -> None:
    """Start containerd with its plug-ins for networks, and import the image that pods begin with."""
    folder, programs = cluster.folder, cluster.programs
    plugins = folder / "cni.d"
    plugins.mkdir()
    (plugins / "10-bridge.conflist").write_text(
        json.dumps(
            {
                "cniVersion": "1.0.0",
                "name": "bridge",
                "plugins": [
                    {
                        "type": "bridge",
                        "bridge": "cni0",
                        "isGateway": True,
                        "ipam": {
                            "type": "host-local",
                            "dataDir": str(folder / "ipam"),
                            "ranges": [[{"subnet": PODS}]],
                            "routes": [{"dst": "0.0.0.0/0"}],
                        },
                    }
                ],
            }
        )
    )
    text = json.dumps
    cri = "plugins.'io.containerd.cri.v1.runtime'"
    runsc = (
        f'[{cri}.containerd.runtimes.runsc]\nruntime_type = "io.containerd.runsc.v1"\n' if has_gvisor(cluster) else ""
    )
    (folder / "containerd.toml").write_text(
        f"""version = 3
root = {text(str(folder / "containerd"))}
state = "/run/containerd/state"
[plugins.'io.containerd.cri.v1.images'.pinned_images]
sandbox = {text(PAUSE_TAG)}
[{cri}]
restrict_oom_score_adj = true
[{cri}.cni]
bin_dirs = [{text(str(programs / "cni"))}]
conf_dir = {text(str(plugins))}
[{cri}.containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
{runsc}"""
    )
    cluster.start("containerd", programs / "containerd", "--config", folder / "containerd.toml")
    ctr = ["ctr", "--address", SOCKET, "--namespace", "k8s.io"]
    cluster.wait_for(
        "containerd",
        lambda: (
            subprocess.run([*ctr, "version"], env=cluster.environment, capture_output=True, check=False).returncode == 0
        ),
    )
    image = image_build.ensure(image_build.agent_path(), progress=console_line)
    with oci_archive(image, (PAUSE_TAG, PAUSE)) as archive:
        argv = [*ctr, "images", "import", str(archive)]
        subprocess.run(argv, env=cluster.environment, check=True, stdout=subprocess.DEVNULL)


def console_line(line: str) -> None:
    """Print a line of progress."""
    sys.stderr.write(f"with-cluster: {line}\n")


def control_plane(cluster: Cluster) -> None:
    """Start etcd, the API server, the controllers and the scheduler."""
    folder, programs = cluster.folder, cluster.programs
    client = "http://127.0.0.1:2379"
    cluster.start(
        "etcd",
        programs / "etcd",
        f"--data-dir={folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        "--listen-peer-urls=http://127.0.0.1:2380",
        "--unsafe-no-fsync",
    )
    cluster.start(
        "kube-apiserver",
        programs / "kube-apiserver",
        f"--etcd-servers={client}",
        "--bind-address=0.0.0.0",
        f"--advertise-address={NODE_IP}",
        "--secure-port=443",
        f"--cert-dir={folder / 'pki'}",
        "--service-cluster-ip-range=10.96.0.0/24",
        f"--token-auth-file={folder / 'tokens.csv'}",
        "--authorization-mode=Node,RBAC",
        f"--service-account-key-file={folder / 'sa.key'}",
        f"--service-account-signing-key-file={folder / 'sa.key'}",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--allow-privileged=true",
        "--endpoint-reconciler-type=none",
        "--kubelet-preferred-address-types=InternalIP",
    )
    admin = f"--kubeconfig={folder / 'admin.kubeconfig'}"
    cluster.wait_for("certificate", (folder / "pki" / "apiserver.crt").exists)
    cluster.start(
        "kube-controller-manager",
        programs / "kube-controller-manager",
        admin,
        f"--service-account-private-key-file={folder / 'sa.key'}",
        f"--root-ca-file={folder / 'pki' / 'apiserver.crt'}",
        "--leader-elect=false",
    )
    cluster.start("kube-scheduler", programs / "kube-scheduler", admin, "--leader-elect=false")


def kubelet(cluster: Cluster) -> None:
    """Start the kubelet, which registers the node."""
    folder = cluster.folder
    for name in ("manifests", "logs", "plugins", "kubelet"):
        (folder / name).mkdir()
    alone = kubelet_node.configuration(folder, SOCKET, "")
    joined = {
        name: value
        for name, value in alone.items()
        if name not in {"enableServer", "healthzPort", "cgroupRoot", "maxPods", "podPidsLimit"}
    }
    # Nobody else is in this network: the API server's calls (exec, logs) come without a certificate.
    joined |= {"address": NODE_IP, "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}}}
    (folder / "kubelet.json").write_text(json.dumps(joined))
    cluster.start(
        "kubelet",
        state.home() / kubernetes_build.KUBELET.place,
        f"--config={folder / 'kubelet.json'}",
        f"--kubeconfig={folder / 'node.kubeconfig'}",
        f"--root-dir={folder / 'kubelet'}",
        f"--cert-dir={folder / 'kubelet' / 'pki'}",
        f"--hostname-override={NODE}",
        f"--node-ip={NODE_IP}",
    )


def takes_pods(cluster: Cluster) -> bool:
    """Return whether the node is ready without a taint, and the account that pods run by is there."""
    shown = cluster.kubectl("get", "node", NODE, "-o", "json")
    if not shown or not cluster.kubectl("get", "serviceaccount", "default"):
        return False
    found = json.loads(shown)
    ready: bool = any(
        one["type"] == "Ready" and one["status"] == "True" for one in found["status"].get("conditions", ())
    )
    return ready and "taints" not in found["spec"]


def has_gvisor(cluster: Cluster) -> bool:
    """Return whether gVisor's shim and runsc are there."""
    return (cluster.programs / "containerd-shim-runsc-v1").exists() and (state.home() / "bin" / "runsc").exists()


def classes(cluster: Cluster) -> None:
    """Make the runtime classes."""
    handlers = {"runc": "runc", **({"gvisor": "runsc"} if has_gvisor(cluster) else {})}
    objects = [
        {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": name}, "handler": handler}
        for name, handler in handlers.items()
    ]
    if not cluster.kubectl("apply", "-f", "-", stdin=yaml.safe_dump_all(objects)):
        sys.exit("with-cluster: the runtime classes are refused")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
