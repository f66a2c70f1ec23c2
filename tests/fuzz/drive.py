"""Runs one target by coverage until libFuzzer's limits (`-runs=`, `-max_total_time=`); `make fuzz` does.

drive.py --list | --seeds TARGET FOLDER | TARGET [libFuzzer's options] FOLDER
"""

import sys
from pathlib import Path


def main() -> None:
    match sys.argv[1:]:
        case ["--list"]:
            from fuzz.targets import TARGETS

            print(*TARGETS)
        case ["--seeds", name, place]:
            from fuzz.targets import SEEDS

            folder = Path(place)
            folder.mkdir(parents=True, exist_ok=True)
            for number, seed in enumerate(SEEDS[name]()):
                (folder / f"seed-{number}").write_bytes(seed)
        case [name, *options]:
            import atheris

            with atheris.instrument_imports(include=["tare", "tomllib", "csv"]):
                from fuzz.targets import TARGETS
            atheris.Setup([sys.argv[0], *options], TARGETS[name])
            atheris.Fuzz()


main()
