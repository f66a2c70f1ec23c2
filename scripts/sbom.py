"""Bills of materials, CycloneDX 1.6 as JSON: of the wheel, of the agent and of the image, each checked by the schema.

sbom.py FOLDER writes wheel.cdx.json, agent.cdx.json and, where an image's base is built, image.cdx.json.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement

from tare.errors import TareError
from tare.image import image_build, image_manifest

HERE = Path(__file__).parent.parent
WHEEL = "tare-bench"


def bill(of: Component, parts: Iterable[Component]) -> Bom:
    """The bill of one product, all its parts below it."""
    whole = Bom(components=parts)
    whole.metadata.component = of
    whole.register_dependency(of, whole.components)
    return whole


def written(of: Bom) -> str:
    """The bill as JSON. Raises `ValueError` where the schema does not hold."""
    text = JsonV1Dot6(of).output_as_string(indent=1)
    if wrong := JsonStrictValidator(SchemaVersion.V1_6).validate_str(text):
        raise ValueError(f"no valid bill of materials: {wrong}")
    return text


def wheel() -> Bom:
    """The wheel and what it needs to run, as it is installed here, extras left out."""
    product = metadata.distribution(WHEEL)
    needed: dict[str, Component] = {}
    waiting = [Requirement(line) for line in product.requires or ()]
    while waiting:
        requirement = waiting.pop()
        if requirement.name in needed or (requirement.marker and not requirement.marker.evaluate({"extra": ""})):
            continue
        there = metadata.distribution(requirement.name)
        needed[requirement.name] = _library("pypi", there.name.lower(), there.version)
        waiting += [Requirement(line) for line in there.requires or ()]
    return bill(_product(WHEEL, product.version), needed.values())


def agent() -> Bom:
    """The agent and the crates of its lock file, with the checksums there."""
    locked = tomllib.loads((HERE / "agent" / "Cargo.lock").read_text())["package"]
    [own_crate] = [package for package in locked if package["name"] == "tare-agent"]
    crates = [
        _library("cargo", package["name"], package["version"], sha256=package["checksum"])
        for package in locked
        if "checksum" in package
    ]
    return bill(_product("tare-agent", own_crate["version"]), crates)


def image(manifest: image_manifest.Manifest) -> Bom:
    """The image and its Debian packages: all that its manifest tells."""
    packages = [
        _library("deb", name, version, "debian", sha256=manifest.checksums.get(name, ""))
        for name, version in manifest.packages.items()
    ]
    return bill(_product("tare-image", manifest.recipe_hash[:16], ComponentType.CONTAINER), packages)


def _product(name: str, version: str, kind: ComponentType = ComponentType.APPLICATION) -> Component:
    return Component(name=name, version=version, type=kind, bom_ref=f"{name}@{version}")


def _library(kind: str, name: str, version: str, namespace: str | None = None, *, sha256: str = "") -> Component:
    url = PackageURL(kind, namespace, name, version)
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=sha256)] if sha256 else []
    return Component(name=name, version=version, purl=url, bom_ref=str(url), hashes=hashes)


def main(folder: Path) -> None:
    """Write all bills and say what is in them."""
    bills = {"wheel": wheel(), "agent": agent()}
    try:
        bills["image"] = image(image_manifest.read(image_build.base_place()))
    except TareError as error:
        print(f"sbom: no bill of the image: {error}", file=sys.stderr)
    for name, of in bills.items():
        file = folder / f"{name}.cdx.json"
        file.write_text(written(of) + "\n")
        print(f"{file}: {len(of.components)} components")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
