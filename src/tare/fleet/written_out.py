"""The playbook as files, for those who run Ansible themselves: plays, the module, what is brought, and the order."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tare import outputs
from tare.fleet import packing
from tare.fleet.packing import PackTarget
from tare.fleet.playing import PLAYBOOK
from tare.fleet.run_fleet import WAIT_S
from tare.model import Progress


def write(folder: Path, words: Sequence[str], progress: Progress) -> None:
    """Write it into a new folder, for hosts of this machine's Python and processor. Raises `TareError`."""
    outputs.check_empty_folder(folder)
    target = PackTarget("{}.{}".format(*sys.version_info), os.uname().machine)
    packed, image = packing.packed_for(target, progress), packing.packed_image(progress)
    shutil.copytree(PLAYBOOK, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
    files = folder / "files"
    files.mkdir()
    variables: dict[str, Any] = {
        "tare_fleet_id": secrets.token_hex(8),
        "tare_words": list(words),
        "tare_wait_s": WAIT_S,
        "tare_packed": {str(target): {kind: _taken(part, files) for kind, part in packed.items()}},
        "tare_image": _taken(image, files),
        "tare_incoming": "{{ playbook_dir }}/results",
        "tare_names": "{{ dict(groups['all'] | zip(groups['all'])) }}",
    }
    with outputs.written(folder / "fleet.json", new=True) as file:
        json.dump(variables, file, indent=1)


def _taken(part: dict[str, Any], files: Path) -> dict[str, Any]:
    source = Path(part["file"])
    shutil.copy2(source, files / source.name)
    return {**part, "file": source.name}  # Ansible looks in files/ beside the playbook
