"""Report and installation of missing packages, for `tare setup` and a clone's `scripts/packages`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tare.errors import HostError
from tare.host import distribution
from tare.model import Progress
from tare.setup import apt, gvisor_build, host_packages, kubernetes_build, youki_build
from tare.setup.components import COMPONENTS, NATIVE
from tare.setup.install_plan import SetupPlan, named, plan, without, words

#: A package of every release. If it is unknown, apt's lists were never read.
_ALWAYS = "tar"


def set_up(asked: str, *, dry_run: bool, tell: Progress, build: bool = True) -> None:
    """Install what the components in a comma-separated list need and this host lacks. Raises `TareError`.

    ``dry_run``: only report it. ``build``: also build components that have no package. If apt does not install packages
    here, nothing is installed, and `HostError` names them.
    """
    chosen = plan(named(asked) if asked else (), host_packages.present(words()))
    if host_packages.has_apt():
        by_name = [word.strip() for word in asked.split(",")]
        chosen = _by_apt(chosen, by_name, dry_run=dry_run, tell=tell)
    else:
        _by_hand(chosen, dry_run=dry_run, tell=tell)
    builders = {"gvisor": gvisor_build.build, "containerd-gvisor": gvisor_build.build_shim, "youki": youki_build.build}
    builders |= {"kubelet": kubernetes_build.build, "containerd-cri": kubernetes_build.build_crictl}
    for name in chosen.built if build and not dry_run else ():
        builders[name](tell)
    if chosen.more:
        tell(f"not here, and could be added: tare setup --with {','.join(chosen.more)}")


def _by_apt(chosen: SetupPlan, requested: Sequence[str], *, dry_run: bool, tell: Progress) -> SetupPlan:
    """Install by apt. Return the plan that was carried out.

    That plan omits packages that this release does not have and that were not requested by name.
    """
    chosen, unknown = _looked_up(chosen)
    asked_for = {
        missing.package for missing in chosen.packages if {NATIVE, *requested}.intersection(missing.components)
    }
    if unknown and not dry_run and (unknown & asked_for or apt.unknown([_ALWAYS])):
        apt.update(tell)
        chosen, unknown = _looked_up(chosen)
    if not (unknown and dry_run):
        chosen, left_out = without(chosen, unknown, requested)
        for name in left_out:
            tell(f"left out: {name}, of which this release does not have all")
    for line in lines(chosen):
        tell(line)
    if unknown and dry_run:
        tell(f"apt's lists do not have {', '.join(sorted(unknown))}; an installation would first read them anew")
    elif packages := [missing.package for missing in chosen.packages]:
        if taken := apt.size(packages):
            tell(f"with what they depend on: {taken}")
        if dry_run:
            tell("this was a dry run: nothing was installed")
        else:
            apt.install(packages, tell)
            tell("installed")
    return chosen


def _by_hand(chosen: SetupPlan, *, dry_run: bool, tell: Progress) -> None:
    """Report the packages to install by hand, in this distribution's names. Raises `HostError` unless ``dry_run``.

    A package whose name is not certain is described by its purpose.
    """
    host = distribution.here()
    family = distribution.family(host)
    names = {missing.package: distribution.name_of(missing.package, family) for missing in chosen.packages}
    shown = (
        replace(missing, package=names[missing.package] or f"what has {missing.has}") for missing in chosen.packages
    )
    for line in lines(replace(chosen, packages=tuple(shown))):
        tell(line)
    if not chosen.packages:
        return
    if "mmdebstrap" in names:
        tell("in place of mmdebstrap and Debian's keys: tare image import, of what tare image export wrote on Debian")
    certain = [package for package, name in names.items() if name]
    by_hand = distribution.command(family, certain, lean=True) if certain else "install what is listed"
    if family is not None and family.besides:
        by_hand += f" ({family.besides})"
    if dry_run:
        tell(f"tare installs by apt alone; by hand, which was never tried: {by_hand}")
    else:
        problem = f"{distribution.title(host)} has no apt, and tare installs by nothing else"
        raise HostError(problem, fix=f"by hand, which was never tried: {by_hand}")


def _looked_up(chosen: SetupPlan) -> tuple[SetupPlan, frozenset[str]]:
    """Return the plan without packages that other packages of this release contain, and the unknown packages."""
    unknown = apt.unknown([missing.package for missing in chosen.packages])
    if unknown and not apt.unknown([_ALWAYS]):
        kept = (lacking for lacking in chosen.packages if not (lacking.optional and lacking.package in unknown))
        chosen = replace(chosen, packages=tuple(kept))
    return chosen, unknown.intersection(missing.package for missing in chosen.packages)


def lines(chosen: SetupPlan) -> Iterator[str]:
    """Describe the plan: a summary line, then a line for each package."""
    for_what = ", ".join(chosen.components)
    if not (chosen.packages or chosen.built):
        yield f"all there for {for_what}"
        return
    yield f"missing for {for_what}:"
    width = max((len(missing.package) for missing in chosen.packages), default=0)
    for missing in chosen.packages:
        yield f"  {missing.package:{width}}  {missing.purpose} ({', '.join(missing.components)})"
    for name in chosen.built:
        yield f"  {name}: {COMPONENTS[name].title}"
