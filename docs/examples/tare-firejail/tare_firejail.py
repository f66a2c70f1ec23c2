"""firejail: namespaces by a setuid program for desktops, here with a network of its own and the image as its root."""

from tare.host import processes
from tare.host.filesystems import roots
from tare.host.network import bridge
from tare.host.resources import kinds
from tare.image.forms import disk_bytes
from tare.platforms.base import EVERY_DOOR, Address, Availability, Instance, Platform, PlatformFamily, Prepared
from tare.platforms.parts.common.pipes import start

#: What firejail notes of a sandbox under the id of its first process, and leaves there when it is killed.
NOTES = kinds.files("tare-firejail:notes", "/run/firejail/name/{pid}", "/run/firejail/sandbox/{pid}")
#: Without the second, all below /var is read-only inside, and so is the data volume.
COMMAND = ["firejail", "--noprofile", "--writable-var", "--quiet"]


class Firejail(Platform):
    """A sandbox of firejail's in a network namespace of tare's."""

    title = "firejail without a profile, and a chroot into the image"
    network_path = "client, bridge, veth"
    by_default = False

    def __init__(self, name, options=(), why="firejail has no profile here, and filters nothing"):
        self.name = name
        self.options = options
        self.open_by_design = {EVERY_DOOR: why}

    def detect(self):
        """Try it."""
        if processes.find("firejail") is None:
            return Availability(False, reason="firejail is not installed", fix="apt-get install firejail")
        tried = processes.run([*COMMAND, *self.options, "true"], time_limit_s=10)
        if tried.code != 0:
            said = tried.stderr.decode(errors="replace").strip().splitlines()
            return Availability(False, reason=f"firejail ends with {tried.code}: {said[-1:]}", fix="run as root")
        version = processes.run(["firejail", "--version"], time_limit_s=5).text.split()[2]
        return Availability(True, version=version, details={"options": " ".join(self.options)})

    def prepare(self, image):
        """The image as a folder."""
        return Prepared("folder", disk_bytes(image.root), (image.root,), ("firejail",))

    def launch(self, spec, cleanup):
        """A throw-away root, a network, and the agent in both; what firejail forgets is noted before it begins."""
        endpoint = spec.network.new_namespace(cleanup, spec.id)
        root = roots.overlay_root(cleanup, spec.space, spec.image.root)
        roots.chroot_mounts(cleanup, root, spec.space.data)
        notes = NOTES.resource(name=f"tare-{spec.id}", group=spec.group.path)
        cleanup.own(notes)
        inside = ["chroot", str(root), *spec.agent_argv()]
        began = start(
            spec,
            [*COMMAND, f"--name=tare-{spec.id}", *self.options, *inside],
            ["nsenter", f"--net={bridge.namespace_path(spec.id)}"],
            own=lambda pid: cleanup.learn(notes, {"process": kinds.process(pid)}),
        )
        return Instance(spec, began.stream, began.at, Address.on_veth(spec, endpoint.address), began.first_byte)


def without(capability):
    """Firejail that drops a capability, as in ``-p firejail-without:net_raw``."""
    return Firejail(f"firejail-without:{capability}", [f"--caps.drop={capability}"])


PLATFORMS = (Firejail("firejail"),)
FAMILIES = {
    "firejail-without": PlatformFamily(
        without, "CAPABILITY", "firejail that drops a capability", "name one, such as net_raw"
    )
}
RESOURCES = (NOTES,)
