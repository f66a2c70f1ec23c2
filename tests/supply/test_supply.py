"""What is shipped is named: every locked version with its hashes, bills of materials that hold to the schema."""

import importlib
import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

from tare.image.image_manifest import Manifest

HERE = Path(__file__).parents[2]


def _sbom():
    spec = importlib.util.spec_from_file_location("sbom", HERE / "scripts" / "sbom.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def validator(jsonschema):
    """CycloneDX's own, which loads jsonschema."""
    version = importlib.import_module("cyclonedx.schema").SchemaVersion.V1_6
    return importlib.import_module("cyclonedx.validation.json").JsonStrictValidator(version)


@pytest.mark.parametrize(
    "name", ["requirements.lock", "requirements-fuzz.lock", "requirements-browser.lock", "requirements-docs.lock"]
)
def test_every_locked_version_has_hashes(name):
    entries = re.split(r"\n(?=\S)", (HERE / name).read_text().strip())
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9.-]+==\S+", entry), entry
        assert "--hash=sha256:" in entry, entry


def test_what_builds_the_wheel_is_locked_too():
    requirements = tomllib.loads((HERE / "pyproject.toml").read_text())["build-system"]["requires"]
    locked = (HERE / "requirements.lock").read_text()
    for requirement in requirements:
        name = re.match(r"[\w-]+", requirement)[0].lower()
        assert f"\n{name}==" in locked


def test_the_environment_is_installed_by_hashes():
    assert "--require-hashes -r requirements.lock" in (HERE / "scripts" / "venv").read_text()


@pytest.mark.parametrize("name", ["wheel", "agent", "image"])
def test_bills_of_materials_hold_to_the_schema_and_name_what_is_there(name, validator):
    sbom = _sbom()
    packages = {"fio": "3.33-3", "bonnie++": "2.00a+nmu1"}
    manifest = Manifest(suite="bookworm", recipe_hash="0" * 64, packages=packages, checksums={"fio": "ab" * 32})
    bill = sbom.image(manifest) if name == "image" else getattr(sbom, name)()
    text = sbom.written(bill)
    assert validator.validate_str(text) is None
    for part in {"wheel": ("numpy", "rich"), "agent": ("rustix", "serde_json"), "image": ("fio", "bonnie++")}[name]:
        assert f'"name": "{part}"' in text
    assert ("ab" * 32 in text) == (name == "image")


def test_the_schema_is_really_asked(validator):
    sbom = _sbom()
    text = sbom.written(sbom.agent()).replace('"bomFormat": "CycloneDX"', '"bomFormat": "None"')
    assert validator.validate_str(text) is not None
