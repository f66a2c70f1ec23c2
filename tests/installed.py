"""The packages of docs/examples as pip would install them."""

from __future__ import annotations

import contextlib
import shutil
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

from tare import plugins


@contextlib.contextmanager
def installed(source: Path, folder: Path, monkeypatch) -> Iterator[Path]:
    """Have a package's modules and entry points, as its pyproject.toml names them, in a folder on the path."""
    project = tomllib.loads((source / "pyproject.toml").read_text())["project"]
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    header = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    (info / "METADATA").write_text(header)
    groups = project["entry-points"].items()
    lines = (line for group, points in groups for line in (f"[{group}]", *(f"{k} = {v}" for k, v in points.items())))
    (info / "entry_points.txt").write_text("\n".join(lines))
    modules = sorted(source.glob("*.py"))
    for module in modules:
        shutil.copy(module, folder)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv(plugins.ALLOWED, project["name"])
    yield folder
    for module in modules:
        sys.modules.pop(module.stem, None)
