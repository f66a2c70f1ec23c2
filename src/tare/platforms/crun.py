"""crun: the OCI runtime written in C, without a daemon, on a bundle over the image."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tare.host import cgroup, distribution, processes
from tare.host.daemons.runtimes import asked_version, surroundings
from tare.host.kernel import pinning
from tare.host.resources import removers
from tare.model import Resources
from tare.platforms.base import Availability
from tare.platforms.parts.bundles import own_build
from tare.platforms.parts.bundles.oci_bundle import Net, bundle_config
from tare.platforms.parts.bundles.on_bundle import OnBundle
from tare.platforms.parts.common.attempt import MEMORY, TrialSite, complaint, system_folders

_INSTALL = distribution.install("crun")
#: `Platform.not_honoured` of the platforms that start crun themselves.
WRAPPED = "where cgroup v2 lies beside v1, crun refuses; a script starts it then: 4 ms of CPU time in its start"


def trial_config(root: Path, group: str) -> dict[str, Any]:
    """Return a bundle that runs the host's own `true` in a root with nothing else."""
    resources = Resources(tuple(sorted(pinning.usable())), MEMORY)
    config = bundle_config(["true"], root, root, resources, f"{group}/box", None)
    options = ["rbind", "ro"]
    config["mounts"] = [mount for mount in config["mounts"] if mount["destination"] in {"/proc", "/dev"}] + [
        {"destination": str(path), "type": "bind", "source": str(path), "options": options} for path in system_folders()
    ]
    return config


def trial_argv(site: TrialSite, program: str, within: Sequence[str] = (), removed_by: str = "") -> list[str]:
    """Return a runtime with that bundle. ``within``: what makes the surroundings of a crun that must not see cgroup v2.

    ``removed_by``: the installed runtime of which ``program`` is another build.
    """
    root = site.folder / "root"
    root.mkdir()
    (site.folder / "config.json").write_text(json.dumps(trial_config(root, site.group.inner)))
    state = site.folder / "state"
    name = f"tare-{site.folder.name}"
    site.cleanup.own(removers.oci_container(removed_by or program, state, name, without_v2=bool(within)))
    return [*within, program, "--root", str(state), "run", "--bundle", str(site.folder), name]


class Crun(OnBundle):
    """Namespaces, cgroups and capabilities by crun; the same bundles as runc's."""

    by_default = False
    runtime = "crun"
    years = MappingProxyType(
        {
            2021: "1.0 1.1 1.2 1.3",
            2022: "1.4 1.5 1.6 1.7",
            2023: "1.8 1.9 1.10 1.11 1.12",
            2024: "1.14 1.15 1.16 1.17 1.18 1.19",
            2025: "1.20 1.21 1.22 1.23",
        }
    )
    without_v2 = True

    def detect(self) -> Availability:
        """Run a trivial bundle."""
        if processes.find("crun") is None:
            return Availability(False, reason="crun is not installed", fix=_INSTALL)
        unfit = self.unfit()
        if unfit is not None:
            return unfit
        why = complaint(lambda site: trial_argv(site, self.program, surroundings(cgroup.hierarchies()), "crun"))
        if why:
            return Availability(False, reason=f"a trivial bundle fails: {why}", fix="tare doctor")
        version = processes.run([self.program, *asked_version("crun")[1:]], time_limit_s=5).text.splitlines()
        shown = version[0].removeprefix("crun version ").strip() if version else "unknown"
        hidden = surroundings(cgroup.hierarchies())
        details = {**self.details(), **({"hidden from it": hidden[-1]} if hidden else {})}
        return Availability(True, version=shown, details=details)


PLATFORMS = (
    Crun("crun"),
    Crun("crun-none", Net.NONE),
    Crun("crun-userns", users=True),
    Crun("crun-seccomp", filtered=True),
)
FAMILIES = own_build.family("crun", "crun", lambda name, path: Crun(name, build=path))
