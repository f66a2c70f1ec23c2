"""Initial data of databases: made once, and copied for each trial.

A layer of the image has the seeds of the profile `quick`, made when the image is built by the programs that will serve
them; the first trial in an instance unpacks one. Others are made by that trial. Either way a seed stays in the
instance, and each trial has files that were written anew, by the instance that serves them.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from tare.workloads.applications import serving
from tare.workloads.base import Command

#: Where the image has seeds, packed.
PLACE = "/usr/share/tare/seeds"
#: $1: the seed's name, $2: who owns the folder, $3: the commands that fill ``$folder/new``, the rest: their arguments.
_PACK = f"""
name=$1; owner=$2; fill=$3; shift 3
folder=$(mktemp -d); chown "$owner" "$folder"
eval "$fill"
mkdir -p {PLACE}
tar --numeric-owner -C "$folder/new" -czf "{PLACE}/$name.tar.gz" .
rm -rf "$folder"
"""
#: $1: the folder, then as above. A copy is there afterwards as ``$folder/db``.
_COPY = f"""
folder=$1; name=$2; owner=$3; fill=$4; shift 4
packed={PLACE}/$name.tar.gz; seed=$folder/seed-$name
if [ ! -d "$seed" ]; then
    rm -rf "$folder"; mkdir -p "$folder"; chown "$owner" "$folder"
    if [ -f "$packed" ]; then
        mkdir "$folder/new"
        tar --numeric-owner -C "$folder/new" -xpzf "$packed"
    else
        eval "$fill"
    fi
    mv "$folder/new" "$seed"
fi
rm -rf "$folder/db"
cp -a "$seed" "$folder/db"
"""


@dataclass(frozen=True, slots=True)
class Seed:
    """The initial data of a database.

    ``name``: what tells it from all others. ``fill``: shell commands that make its files in ``$folder/new``;
    ``arguments`` are theirs. ``owner``: the user who serves it.
    """

    name: str
    fill: str
    arguments: Sequence[str] = ()
    owner: str = "root"

    def copied(self, folder: str, *, time_limit_s: float) -> Command:
        """Make a fresh copy of it, ``FOLDER/db``, for a trial; ``time_limit_s``: of filling it."""
        argv = ("bash", "-eu", "-c", _COPY, "prepare", folder, self.name, self.owner, self.fill, *self.arguments)
        return Command(argv, time_limit_s=time_limit_s + 2 * serving.READY_LIMIT_S)

    def in_layer(self) -> str:
        """Return the command of an image's layer that makes it and packs it (`tare.image.image_recipe`)."""
        packing = ("bash", "-eu", "-c", _PACK, "pack", self.name, self.owner, self.fill, *self.arguments)
        return f'chroot "$1" {shlex.join(packing)}'


def with_seeds(layer: str, seeds: Sequence[Seed]) -> str:
    """Return the text of a layer, as `tare.image.image_recipe` reads it, that makes these seeds too."""
    return f"commands = {json.dumps([seed.in_layer() for seed in seeds])}\n{layer}"
