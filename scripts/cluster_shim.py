"""Build gVisor's containerd shim for a machine without CAP_SYS_RESOURCE, on which the shim gives up at its start.

The shim lowers its own OOM score, and has no switch for that. Here the error of this call is ignored, in a copy of the
two packages around it; everything else is the module of `tare.setup.gvisor_build`, with its checksums. For tests
alone: where the right is there, `tare setup --with containerd-gvisor` builds the unchanged shim.
"""

import json
import sys
import tempfile
from pathlib import Path

from tare.host import processes, state
from tare.setup import gvisor_build, kubernetes_build

_FATAL = 'return shim.BootstrapParams{}, fmt.Errorf("failed to set OOM Score on shim: %w", err)'
_IGNORED = "_ = err // CAP_SYS_RESOURCE is missing here"


def main() -> int:
    """Build it, unless it is there."""
    place = state.home() / kubernetes_build.CLUSTER / gvisor_build.SHIM
    stamp = place.with_name(f".{place.name}.built")
    if place.is_file() and stamp.is_file() and stamp.read_text() == gvisor_build.VERSION:
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        go = gvisor_build.toolchain(folder, print)
        shown = gvisor_build._downloaded(go, folder, gvisor_build._MODULE, gvisor_build.VERSION, gvisor_build.SUM)
        source = Path(json.loads(json.dumps(shown))["Dir"])
        gvisor_build._write_module(source, folder)
        for package, copied in (("pkg/shim/v1", "changed"), ("shim/v1/cli", "cli"), ("shim", ".")):
            _copy(source / package, folder / copied)
        argv = [go, "build", "-o", str(folder / "built"), "-gcflags=all=-dwarf=false", "-ldflags=-s -w", "."]
        processes.run(
            argv, cwd=folder, time_limit_s=gvisor_build.LIMIT_S, env=gvisor_build.build_environment()
        ).require()
        place.parent.mkdir(exist_ok=True)
        gvisor_build.into_place(folder / "built", place)
    stamp.write_text(gvisor_build.VERSION)
    return 0


def _copy(source: Path, target: Path) -> None:
    """Copy a package's files, with the one line changed, and imports of what is copied too."""
    target.mkdir(exist_ok=True)
    for file in source.glob("*.go"):
        text = file.read_text()
        if file.name == "manager.go" and _FATAL not in text:
            sys.exit("cluster_shim: gVisor's shim has changed: see manager.go")
        text = text.replace(_FATAL, _IGNORED)
        for package, copied in (("pkg/shim/v1", "changed"), ("shim/v1/cli", "cli")):
            text = text.replace(f'"gvisor.dev/gvisor/{package}"', f'"tare.build/{copied}"')
        (target / file.name).write_text(text)


if __name__ == "__main__":
    sys.exit(main())
