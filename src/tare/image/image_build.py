"""Builder of the image: a base by mmdebstrap, cached by the recipe's hash, and the agent on top.

Everything is built in a folder beside its final place and renamed when complete, under a lock. A killed build leaves
nothing that could be mistaken for an image, and two builds do not disturb each other.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tare import lazily
from tare.errors import HostError, ImageError
from tare.host import processes, state
from tare.host.filesystems.disk_copies import copy
from tare.image import image_recipe
from tare.image.build_places import atomic_directory, locked
from tare.image.image_recipe import ImageRecipe
from tare.model import Application, Layer, Progress

if TYPE_CHECKING:
    from tare.image import image_manifest
    from tare.image.image_manifest import Manifest
else:
    image_manifest = lazily.LazyModule("tare.image.image_manifest")

#: Path of the agent inside.
AGENT_INSIDE = "usr/local/bin/tare-agent"
#: File inside with the image's hash.
HASH_INSIDE = "etc/tare-image"
#: Base, image, tar and Docker's copy together, with room to work.
NEEDED_DISK = 3 << 30
BUILD_LIMIT_S = 1200.0
_OFFLINE = ("Could not resolve", "Temporary failure", "Could not connect", "Unable to connect", "Failed to fetch")


@dataclass(frozen=True, slots=True)
class Image:
    """A built image. Nothing writes below ``root``."""

    hash: str  # Over recipe, all package versions and the agent; 64 hexadecimal digits.
    root: Path
    manifest: Manifest
    agent_hash: str
    layers: tuple[str, ...] = ()  # Names of the layers on top of the recipe.
    #: Of a user's own image (`tare.image.own`): its start command, and tare's image, which the client then runs.
    application: Application | None = None
    tools: Image | None = None


def agent_path() -> Path:
    """Return the agent's program: ``TARE_AGENT``, or the program in the wheel, or the result of `make agent`.

    Raises `HostError` if there is none.
    """
    if named := os.environ.get("TARE_AGENT"):
        agent, fix = Path(named).absolute(), "unset TARE_AGENT, or let it name the agent"
    elif (packed := Path(__file__).with_name("tare-agent")).is_file():
        return packed
    else:
        clone = Path(__file__).parents[3] / "agent"
        agent, fix = clone / "target" / "release" / "tare-agent", "make agent, or set TARE_AGENT"
        if not (clone / "Cargo.toml").is_file():
            machine = os.uname().machine
            raise HostError(
                f"this tare was installed without an agent for {machine}",
                fix=f"install the wheel that `make wheel MACHINE={machine}` builds in a clone, or set TARE_AGENT",
            )
    if not agent.is_file():
        raise HostError(f"the agent is not built: {agent} is missing", fix=fix)
    return agent


def ensure(agent: Path, *, progress: Progress, layers: Collection[Layer] = ()) -> Image:
    """Return the image with this agent and the requested layers, from the cache or newly built.

    Raises `ImageError`.
    """
    base_recipe = image_recipe.load(layers)
    agent_hash = hashlib.sha256(agent.read_bytes()).hexdigest()
    base = _place(base_recipe)
    # A folder under its final name is complete, so a build that needs nothing more does not wait for the lock.
    if base.is_dir() and (image := _image(base, agent_hash, base_recipe.layers)).root.is_dir():
        return image
    with locked(state.images(), progress):
        base = built_base(base_recipe, progress)
        image = _image(base, agent_hash, base_recipe.layers)
        if not image.root.is_dir():
            progress("adding the agent to the image")
            with atomic_directory(image.root.parent) as folder:
                _assemble(base, agent, image.hash, folder)
        return image


def _image(base: Path, agent_hash: str, layers: tuple[str, ...]) -> Image:
    """Return the image of a base with an agent, existing or not."""
    manifest = image_manifest.read(base)
    digest = image_hash(manifest, agent_hash)
    return Image(digest, state.images() / digest[:16] / "root", manifest, agent_hash, layers)


def image_hash(manifest: Manifest, agent_hash: str) -> str:
    """Return the SHA-256 over everything that decides what runs."""
    packages = "".join(f"{name} {version}\n" for name, version in sorted(manifest.packages.items()))
    return hashlib.sha256(f"{manifest.recipe_hash}\n{packages}{agent_hash}\n".encode()).hexdigest()


def sources() -> list[str]:
    """Return Debian's archives for mmdebstrap: ``TARE_DEBIAN_ARCHIVE``, or this host's sources, or its default.

    If the archive dropped a pinned version, the variable can name a snapshot of the archive that still has it.
    """
    if named := os.environ.get("TARE_DEBIAN_ARCHIVE"):
        return [named]
    candidates = (Path("/etc/apt/sources.list.d/debian.sources"), Path("/etc/apt/sources.list"))
    suite = image_recipe.load().suite
    return [str(file) for file in candidates if file.is_file() and suite in file.read_text()][:1]


def base_place() -> Path:
    """Return the place of the base of the present recipe, existing or not."""
    return _place(image_recipe.load())


def base_is_there() -> bool:
    """Return True if that base exists, as far as the caller may see."""
    try:
        return (state.home_if_any() / "images" / _name(image_recipe.load())).is_dir()
    except OSError:
        return False


def _name(base_recipe: ImageRecipe) -> str:
    return "-".join(["base", *base_recipe.layers, base_recipe.hash[:16]])


def _place(base_recipe: ImageRecipe) -> Path:
    return state.images() / _name(base_recipe)


def built_base(base_recipe: ImageRecipe, progress: Progress) -> Path:
    """Return the folder with a recipe's base (root and manifest), cached or newly built. Raises `ImageError`.

    The caller holds the lock of the images' folder.
    """
    place = _place(base_recipe)
    if place.is_dir():
        return place
    if processes.find("mmdebstrap") is None:
        raise ImageError(
            "mmdebstrap is not installed, which builds the image",
            fix="tare setup; where it cannot be had, tare image import what `tare image export` wrote elsewhere",
        )
    require_room()
    note = f" and {' and '.join(base_recipe.layers)} (some minutes)" if base_recipe.layers else " (about half a minute)"
    progress(f"building the image's base with mmdebstrap{note}")
    with atomic_directory(place) as folder:
        root = folder / "root"
        dated = {**processes.kept(*processes.DOWNLOADS), "SOURCE_DATE_EPOCH": str(base_recipe.epoch)}
        done = processes.run(command(base_recipe, root, sources()), time_limit_s=BUILD_LIMIT_S, env=dated)
        if done.code != 0:
            raise explain(done.stderr.decode(errors="replace"), timed_out=done.timed_out)
        packages = installed(root)
        check_pins(base_recipe, packages)
        checksums = _checksums(root, packages)
        neutralise(base_recipe, root)
        manifest = image_manifest.Manifest(
            suite=base_recipe.suite, recipe_hash=base_recipe.hash, packages=packages, checksums=checksums
        )
        (folder / "manifest.json").write_text(manifest.model_dump_json(indent=1))
    return place


def require_room() -> None:
    """Raise `ImageError` if the disk has no room for an image."""
    free = shutil.disk_usage(state.images()).free
    if free < NEEDED_DISK:
        raise ImageError(
            f"{free / 2**30:.1f} GiB are free below {state.images()}, the image needs {NEEDED_DISK / 2**30:.0f} GiB",
            fix="tare clean --images, which removes those of other versions; or set TARE_HOME to a larger disk",
        )


def command(base_recipe: ImageRecipe, root: Path, archives: list[str]) -> list[str]:
    """Return the command that builds a base."""
    left_out = [f"--dpkgopt=path-exclude={pattern}" for pattern in base_recipe.left_out]
    options = [
        "--mode=root",
        "--format=directory",
        f"--variant={base_recipe.variant}",
        f"--include={base_recipe.include}",
    ]
    options.append("--skip=cleanup/apt/lists")  # They contain the checksums; `_checksums` removes them.
    hooks = [f"--customize-hook={command}" for command in base_recipe.commands]
    return ["mmdebstrap", *options, *left_out, *hooks, base_recipe.suite, str(root), *archives]


def neutralise(base_recipe: ImageRecipe, root: Path) -> None:
    """Remove traces of the building host from a base."""
    for pattern in base_recipe.removed:
        for path in root.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    for name, contents in base_recipe.files:
        (root / name).unlink(missing_ok=True)  # Do not write through a link, which may point anywhere.
        (root / name).write_text(contents)


def explain(output: str, *, timed_out: bool) -> ImageError:
    """Return the error for mmdebstrap's output, in one line with the fix."""
    if timed_out:
        return ImageError(
            "building the image took too long", fix="see that Debian's archive is reachable, and try again"
        )
    lines = [line.strip() for line in output.splitlines() if line.strip()] or ["no message"]
    # The first error is the cause. Later errors only say that each caller failed too.
    cause = next((line.removeprefix("E: ") for line in lines if line.startswith("E: ")), lines[-1])
    if "No space left" in output:
        return ImageError("no space is left to build the image", fix="free some space, or set TARE_HOME")
    pin = re.search(r"Version '(.+)' for '(.+)' was not found", output)
    if pin is not None:
        return ImageError(
            f"Debian's archive does not have {pin[2]} {pin[1]} any more, which the recipe pins",
            fix=f"set TARE_DEBIAN_ARCHIVE to the URL of a snapshot of the archive that has it, or pin a version that "
            f"`apt-cache madison {pin[2]}` shows in src/tare/image/recipe.toml",
        )
    if any(words in output for words in _OFFLINE):
        return ImageError(
            f"Debian's archive is not reached: {cause}",
            fix="see that apt-get update works on this host, or tare image import an image of another",
        )
    return ImageError(f"mmdebstrap failed: {cause}", fix="see that apt-get update works on this host")


def _assemble(base: Path, agent: Path, digest: str, folder: Path) -> None:
    root = folder / "root"
    copy(base / "root", root)
    inside = root / AGENT_INSIDE
    inside.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(agent, inside)
    inside.chmod(0o755)
    (root / HASH_INSIDE).write_text(digest + "\n")
    (root / "data").mkdir(exist_ok=True)
    shutil.copyfile(base / "manifest.json", folder / "manifest.json")


def installed(root: Path) -> dict[str, str]:
    """Return the packages in a Debian root, and their versions."""
    query = ["dpkg-query", f"--admindir={root}/var/lib/dpkg", "-W", "-f=${Package} ${Version}\n"]
    pairs = (line.split(" ", 1) for line in processes.run(query).require().text.splitlines())
    return {name: version for name, version in pairs}  # noqa: C416 (a pair a line, checked by unpacking)


def _checksums(root: Path, packages: dict[str, str]) -> dict[str, str]:
    """Return the SHA-256 of each package's archive, from the indices that apt used; remove the indices."""
    lists = root / "var/lib/apt/lists"
    checksums = {}
    for index in lists.glob("*_Packages"):
        for stanza in index.read_text().split("\n\n"):
            fields = dict(re.findall(r"^(Package|Version|SHA256): (\S+)$", stanza, re.MULTILINE))
            name = fields.get("Package", "")
            if packages.get(name) == fields.get("Version", "?") and "SHA256" in fields:
                checksums[name] = fields["SHA256"]
    for index_file in lists.glob("*_*"):
        index_file.unlink()
    return checksums


def check_pins(base_recipe: ImageRecipe, packages: dict[str, str]) -> None:
    """Raise `ImageError` unless a base with these packages has the versions that the recipe pins."""
    for name, version in base_recipe.pinned:
        if packages.get(name) != version:
            raise ImageError(f"the base has {name} {packages.get(name)}, the recipe pins {version}")
