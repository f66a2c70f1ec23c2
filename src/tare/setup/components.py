"""Components that can be named, with Debian's packages for them. The only list of them: data, no logic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

#: The Rust of agent/Cargo.toml, which a test holds to this.
RUST = "1.90"


@dataclass(frozen=True, slots=True)
class Need:
    """One package. It is not needed where one of ``instead`` is there.

    A word of ``instead`` is a program on PATH, ``PROGRAM>=VERSION`` one that is new enough, ``/PATH`` a file,
    ``python3:MODULE`` a module of the host's Python, ``bin/NAME`` a program below ``TARE_HOME``, ``$NAME`` a variable
    that is set, ``runsc:systrap`` a runsc that knows this way to trap system calls. ``optional``: a release without the
    package has what is in it in another one of the component's.
    """

    package: str
    purpose: str
    instead: tuple[str, ...]
    optional: bool = False

    @property
    def has(self) -> str:
        """The reason for a package without a known name: a program, else the first of ``instead``."""
        programs = [word for word in self.instead if not set("/:$").intersection(word)]
        return programs[-1] if programs else self.instead[0]


@dataclass(frozen=True, slots=True)
class Component:
    """A component that a user may name.

    ``engine``: what a host has that has this component already; none: nobody has. ``built_unless``: tare builds it
    where the host has none of these; nothing is built without.
    """

    title: str
    needs: tuple[Need, ...]
    engine: tuple[str, ...] = ()
    built_unless: tuple[str, ...] = ()


#: Where platforms look for what may be on no path.
QEMU = ("qemu-system-x86_64", "/usr/libexec/qemu-kvm")
VIRTIOFSD = ("virtiofsd", "/usr/libexec/virtiofsd", "/usr/lib/virtiofsd", "/usr/lib/qemu/virtiofsd")
LIBVIRT_LXC = ("/usr/lib/libvirt/libvirt_lxc", "/usr/libexec/libvirt_lxc", "/usr/lib64/libvirt/libvirt_lxc")

_RUNC = Need("runc", "starts containers", ("runc",))
#: Podman's default, which Debian's package does not bring where runc is there already.
_CRUN = Need("crun", "starts containers", ("crun",))
_QEMU = Need("qemu-system-x86", "runs virtual machines", QEMU)
_QEMU_IMG = Need("qemu-utils", "makes virtual machines' disks", ("qemu-img",))
_BUSYBOX = Need("busybox-static", "is the userland of a guest's first seconds", ("busybox",))
_CPIO = Need("cpio", "packs a guest's first file system", ("cpio",))
#: As Debian 12 packs its kernels, and 13.
_UNPACK_KERNEL = (
    Need("lz4", "unpacks the guest's kernel, of Debian 12", ("lz4",)),
    Need("zstd", "unpacks the guest's kernel, of Debian 13", ("zstd",)),
)
_BUBBLEWRAP = Need("bubblewrap", "starts sandboxes, and is the jail of other monitors", ("bwrap",))
#: Where distributions have libraries on x86-64: Debian, Fedora and SUSE, Arch.
_LIBRARIES = ("lib/x86_64-linux-gnu", "lib64", "lib")
#: Debian 12's runsc is older than systrap.
_RUNSC = ("bin/runsc", "runsc:systrap")
_GCC = Need("gcc", "compiles and links", ("gcc",))
_LIBC = Need("libc6-dev", "what is compiled against", ("/usr/include/stdlib.h",))
_CONTAINERD = (Need("containerd", "the daemon and its client ctr", ("ctr",)), _RUNC)
_PODMAN = Need("podman", "the engine", ("podman",))
_NETAVARK = Need(
    "netavark", "Podman's networks", ("netavark", "/usr/lib/podman/netavark", "/usr/libexec/podman/netavark")
)
#: Debian 13's netavark filters by it, and only recommends it.
_NFT = Need("nftables", "Podman's networks, of Debian 13", ("nft",))
_LIBVIRT = (
    Need("libvirt-clients", "virsh, by which libvirt is told", ("virsh",)),
    Need("libvirt-daemon-system", "libvirt's daemon", ("libvirtd",)),
)
_CARGO = (
    Need("cargo-web", "builds what is written in Rust: the agent, youki", (f"cargo>={RUST}",)),
    Need("rustc-web", "builds what is written in Rust: the agent, youki", (f"rustc>={RUST}",)),
    _GCC,
    _LIBC,
)
_CLONE = (
    Need("python3-venv", "the environment .venv", ("python3:ensurepip,venv",)),
    Need("ca-certificates", "packages of Python and Rust come by TLS", ("/etc/ssl/certs/ca-certificates.crt",)),
    *_CARGO,
)

#: Every campaign needs this one.
NATIVE = "native"
#: Platforms of a first answer (`tare quick`).
FIRST = ("runc", "docker", "gvisor")
#: Not for a user of tare, but for who builds or changes it.
CLONE, DEVELOPMENT = "clone", "development"

COMPONENTS: Mapping[str, Component] = {
    NATIVE: Component(
        "the baseline, and what every campaign needs: image, network, disks",
        (
            Need("mmdebstrap", "builds the image that every platform runs", ("mmdebstrap",)),
            Need(
                "debian-archive-keyring",
                "Debian's keys, for the image",
                ("/usr/share/keyrings/debian-archive-keyring.gpg",),
            ),
            Need("iproute2", "the bridge between instances and the client", ("ip",)),
            Need("iptables", "keeps instances away from the host and each other", ("iptables",)),
            Need("e2fsprogs", "disks of instances", ("mkfs.ext4",)),
            Need("mount", "mounts", ("umount",)),
            Need("util-linux", "namespaces", ("nsenter",)),
            Need("tar", "forms of the image", ("tar",)),
        ),
    ),
    "runc": Component("runc without a daemon", (_RUNC,), ("runc",)),
    "crun": Component("crun without a daemon", (_CRUN,), ("crun",)),
    "youki": Component(
        "youki without a daemon, built from crates.io into TARE_HOME/bin",
        tuple(replace(need, instead=("bin/youki", "youki", *need.instead)) for need in _CARGO),
        ("youki",),
        built_unless=("bin/youki", "youki"),
    ),
    "docker": Component(
        "Docker",
        (Need("docker.io", "the engine", ("dockerd", "/var/run/docker.sock", "$DOCKER_HOST")),),
        ("dockerd", "/var/run/docker.sock"),
    ),
    "containerd": Component("containerd by its own client", _CONTAINERD, ("containerd",)),
    "containerd-gvisor": Component(
        "gVisor's shim for containerd, built from its Go module into TARE_HOME/bin",
        (
            *_CONTAINERD,
            Need("golang-go", "builds gVisor's shim, in some minutes", ("bin/containerd-shim-runsc-v1", "go")),
        ),
        built_unless=("bin/containerd-shim-runsc-v1", "containerd-shim-runsc-v1"),
    ),
    "kubelet": Component(
        "a Kubernetes node's kubelet, built from its Go module into TARE_HOME/bin",
        (*_CONTAINERD, Need("golang-go", "builds the kubelet, in some 10 minutes", ("bin/kubelet", "kubelet", "go"))),
        built_unless=("bin/kubelet", "kubelet"),
    ),
    "containerd-cri": Component(
        "crictl, the commands of a pod's life by the CRI, built from its Go module into TARE_HOME/bin",
        (*_CONTAINERD, Need("golang-go", "builds crictl, in a minute", ("bin/crictl", "crictl", "go"))),
        built_unless=("bin/crictl", "crictl"),
    ),
    "podman": Component("Podman", (_PODMAN, _NETAVARK, _NFT, _CRUN), ("podman",)),
    "podman-rootless": Component(
        "Podman of a user without rights",
        (
            _PODMAN,
            _NETAVARK,
            _CRUN,
            Need("slirp4netns", "the network of a user without rights, of Podman 4", ("podman>=5", "slirp4netns")),
            Need("passt", "the network of a user without rights, of Podman 5", ("pasta",)),
            Need("uidmap", "maps a user's ids", ("newuidmap",)),
        ),
    ),
    "gvisor": Component(
        "gVisor's runsc, built from its Go module into TARE_HOME/bin where none is there that knows systrap",
        (Need("golang-go", "builds gVisor's runsc, in some minutes", (*_RUNSC, "go")),),
        ("runsc:systrap",),
        built_unless=_RUNSC,
    ),
    "lxc": Component("LXC", (Need("lxc", "starts containers", ("lxc-start",)),), ("lxc-start",)),
    "lxd": Component(
        "LXD",
        (
            Need("lxd", "the daemon", ("lxd",)),
            Need("lxd-client", "by which the daemon is told", ("lxc",)),
        ),
        ("lxd",),
    ),
    "incus": Component("Incus (since Debian 13)", (Need("incus", "daemon and client", ("incus",)),), ("incus",)),
    "nspawn": Component(
        "systemd-nspawn", (Need("systemd-container", "starts containers", ("systemd-nspawn",)),), ("systemd-nspawn",)
    ),
    "bubblewrap": Component("bubblewrap", (_BUBBLEWRAP,), ("bwrap",)),
    "charliecloud": Component(
        "Charliecloud", (Need("charliecloud-runtime", "starts containers", ("ch-run",)),), ("ch-run",)
    ),
    "libvirt-lxc": Component(
        "libvirt's containers",
        (*_LIBVIRT, Need("libvirt-daemon-driver-lxc", "libvirt's containers", LIBVIRT_LXC)),
        LIBVIRT_LXC,
    ),
    "libvirt-qemu": Component(
        "libvirt's virtual machines",
        (
            *_LIBVIRT,
            Need(
                "libvirt-daemon-driver-qemu",
                "libvirt's virtual machines",
                tuple(f"/usr/{lib}/libvirt/connection-driver/libvirt_driver_qemu.so" for lib in _LIBRARIES),
            ),
            _QEMU,
            _QEMU_IMG,
            _BUSYBOX,
            _CPIO,
        ),
    ),
    "qemu": Component(
        "QEMU's virtual machines",
        (
            _QEMU,
            _QEMU_IMG,
            _BUSYBOX,
            _CPIO,
            Need("passt", "a machine's network, of qemu-passt", ("passt",)),
            # In Debian 12 it is in a package that QEMU's needs.
            Need("virtiofsd", "a machine's /data, of qemu-virtiofs", VIRTIOFSD, optional=True),
        ),
        QEMU,
    ),
    "firecracker": Component(
        "Firecracker's virtual machines; the program itself is its project's, put it on PATH",
        (_BUSYBOX, _CPIO, *_UNPACK_KERNEL),
        ("firecracker",),
    ),
    "cloud-hypervisor": Component(
        "Cloud Hypervisor's virtual machines; the program itself is its project's, put it on PATH",
        (_BUSYBOX, _CPIO, *_UNPACK_KERNEL),
        ("cloud-hypervisor",),
    ),
    "uml": Component(
        "User-Mode Linux",
        (Need("user-mode-linux", "the kernel as a program", ("linux.uml",)), _BUBBLEWRAP),
        ("linux.uml",),
    ),
    "blackbox": Component(
        "the tiny guest without an agent, and images of your own",
        (
            _QEMU,
            _GCC,
            _LIBC,
            _BUBBLEWRAP,
            Need("dnsmasq-base", "gives an address to a guest that asks by DHCP", ("dnsmasq",)),
        ),
    ),
    "ssh": Component("another machine", (Need("openssh-client", "the way there", ("ssh",)),)),
    "footprint": Component(
        "tare footprint: system calls and stacks of the host's kernel",
        (
            Need("clang", "compiles what counts (BPF)", ("clang",)),
            Need("libbpf-dev", "what that is compiled against", ("/usr/include/bpf/bpf_helpers.h",)),
        ),
    ),
    CLONE: Component("what a clone needs to build itself", _CLONE),
    DEVELOPMENT: Component(
        "linters and the tests' own needs, for who changes tare",
        (
            *_CLONE,
            Need("rustfmt-web", "formats the agent", ("cargo-fmt",)),
            Need("rust-web-clippy", "lints the agent", ("cargo-clippy",)),
            Need("git", "Go asks it for versions", ("git",)),
            Need("r-base-core", "estimates are held to R's", ("Rscript",)),
            Need("r-bioc-limma", "moderated variances are held to its", ("/usr/lib/R/site-library/limma",)),
            Need("r-cran-metafor", "merged hosts are held to its", ("/usr/lib/R/site-library/metafor",)),
            Need("openssh-server", "a host to reach", ("sshd",)),
            Need("jq", "the language of a question to GitHub", ("jq",)),
            Need("shellcheck", "lints what the nodes of a cluster run", ("shellcheck",)),
            Need("nftables", "the firewalls of other hosts", ("nft",)),
            Need("libxml2-utils", "checks what libvirt is told", ("xmllint",)),
            Need("prometheus", "reads what tare exposes", ("promtool",)),
            Need("postgresql", "keeps the catalogue of many hosts", ("/usr/lib/postgresql",)),
            Need("influxdb", "reads what tare exports", ("influxd",)),
            Need("firejail", "the platform of the guide's package", ("firejail",)),
        ),
    ),
}
#: Components behind ``everything``: all that can be measured or counted.
EVERYTHING = tuple(name for name in COMPONENTS if name not in {CLONE, DEVELOPMENT})
