"""The part of a fleet's work that is done on a host: a module for Ansible, which Ansible sends there and runs as root.

Each step does much, since a task costs seconds. All steps may be repeated at any time: what is there stays, what runs
is left alone. Of tare nothing is imported: it may not be there yet.

A run is a folder, ``FOLDER/runs/ID``:

- ``name``: the host's name in the inventory, so that a host which is there twice is seen
- ``lock``: locked by all processes of the run, so that the kernel says whether it runs
- ``run.tare``, ``log``, ``exit``: the campaign, its progress, and the exit code, which a killed run does not have
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import platform
import re
import shutil
import signal
import stat
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule

#: The end of a log that is read for progress and for the reason of a failure.
_LOG_END = 64 << 10
#: What a run needs besides what is unpacked.
_SPARE_BYTES = 256 << 20
_RUN = """\
exec </dev/null >report 2>>log
"$@"
code=$?
echo "$code" >exit.part
mv exit.part exit
"""
_OPTIONS = {
    "platform": ("-p", "--platform"),
    "workload": ("-w", "--workload"),
    "cpus": ("--cpus",),
    "memory": ("--memory",),
    "client": ("--client",),
    "margin": ("--margin",),
}
_ARGUMENTS: dict[str, dict[str, Any]] = {
    "step": {"required": True, "choices": ["start", "wait", "status", "forget", "clean"]},
    "id": {"required": True},
    "name": {"required": True},
    "folder": {"required": True},
    "home": {"required": True},
    "words": {"type": "list", "elements": "str", "default": []},
    "overrides": {"type": "dict", "default": {}},
    "packages": {"type": "dict", "default": {}},
    "tare": {"type": "dict", "default": {}},
    "image": {"type": "dict", "default": {}},
    "wait_s": {"type": "int", "default": 30},
    "force": {"type": "bool", "default": False},
}


class LackError(Exception):
    """What this host lacks, in one line."""


class Host:
    """The host that Ansible reached, as the order of one fleet sees it."""

    def __init__(self, module: AnsibleModule) -> None:
        given = module.params
        self.module = module
        self.given = given
        self.folder = Path(given["folder"])
        self.home = Path(given["home"])
        if not re.fullmatch(r"[0-9a-z-]{8,64}", given["id"]):
            raise LackError("the fleet's id is none")
        self.run = self.folder / "runs" / given["id"]
        self.file = self.run / "run.tare"

    # --- steps ---------------------------------------------------------------------------------------------

    def start(self) -> dict[str, Any]:
        """Bring what is missing, and start the run unless it runs or is complete."""
        self._require_own(self.folder, make=True)
        self._require_own(self.folder / "runs", make=True)
        self._claim()
        lock = self._locked()
        if lock is None:
            return self.status()
        try:
            if self._exit() == 0:
                return self.status()
            python = self._installed()
            self._bring_image(python)
            self._examine(python)
            self._launch(python, lock)
        finally:
            os.close(lock)
        return {**self.status(), "changed": True}

    def wait(self) -> dict[str, Any]:
        """Wait for the end of the run, asleep in the kernel: what runs here is measured."""
        lock = os.open(self.run / "lock", os.O_RDWR)

        def wake(*_: object) -> None:
            raise TimeoutError

        signal.signal(signal.SIGALRM, wake)
        signal.alarm(max(1, self.given["wait_s"]))
        try:
            fcntl.flock(lock, fcntl.LOCK_SH)
        except TimeoutError:
            pass
        finally:
            signal.alarm(0)
            os.close(lock)
        return self.status()

    def status(self) -> dict[str, Any]:
        """How the run stands."""
        if not self.run.is_dir():
            return {"state": "absent", "over": True}
        lock = self._locked()
        if lock is None:
            return {"state": "running", "over": False, **self._progress()}
        os.close(lock)
        code = self._exit()
        if code == 0 and self.file.is_file():
            with self.file.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = self.file.stat().st_size
            return {"state": "complete", "over": True, "file": str(self.file), "sha256": digest, "size": size}
        if code is None:
            state = "killed" if (self.run / "log").exists() else "absent"
            return {"state": state, "over": True, **self._progress()}
        return {"state": "failed", "over": True, "code": code, "reason": self._reason(code)}

    def forget(self) -> dict[str, Any]:
        """Remove the run; the tools and the image stay for the next one.

        Its name stays too: the host's other name in the inventory is no other host after this. Raises `LackError` where
        it still runs.
        """
        lock = self._locked() if self.run.is_dir() else None
        if self.run.is_dir():
            if lock is None:
                raise LackError("its campaign still runs, so it is not removed")
            for entry in self.run.iterdir():
                if entry.name not in {"name", "lock"}:
                    shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
            os.close(lock)
        return {"state": "absent", "over": True, "changed": True}

    def clean(self) -> dict[str, Any]:
        """Remove all that fleets brought.

        Raises `LackError` where a run goes on or, without ``force``, was not fetched.
        """
        turn = os.open(self.folder.parent, os.O_RDONLY)  # a lock in the folder would go with it
        try:
            fcntl.flock(turn, fcntl.LOCK_EX)  # the host may be in the inventory twice
            if not self.folder.is_dir():
                return {"state": "clean", "over": True}
            self._clean()
        finally:
            os.close(turn)
        return {"state": "clean", "over": True, "changed": True}

    # --- parts ---------------------------------------------------------------------------------------------

    def _clean(self) -> None:
        self._require_own(self.folder, make=False)
        for run in sorted((self.folder / "runs").glob("*")):
            lock = _lock_of(run)
            if lock is None:
                raise LackError(f"a campaign still runs ({run}), so nothing is removed")
            os.close(lock)
            if (run / "run.tare").exists() and not self.given["force"]:
                raise LackError(f"{run}/run.tare was not fetched, so nothing is removed; --force removes it")
        self._clean_host()
        shutil.rmtree(self.folder)

    def _claim(self) -> None:
        """Make the run's folder in this host's name, or see that it is this name's."""
        self.run.mkdir(mode=0o700, exist_ok=True)
        name = self.given["name"]
        try:
            descriptor = os.open(self.run / "name", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            for _ in range(50):  # who made it may be about to write it
                owner = (self.run / "name").read_text(errors="replace")
                if owner:
                    break
                time.sleep(0.02)
            if owner != name:
                raise LackError(f"it is the same host as {owner}, which is in the inventory too") from None
        else:
            with os.fdopen(descriptor, "w") as file:
                file.write(name)

    def _locked(self) -> int | None:
        return _lock_of(self.run)

    def _exit(self) -> int | None:
        try:
            return int((self.run / "exit").read_text())
        except (OSError, ValueError):
            return None

    def _installed(self) -> str:
        """Return the Python that has tare, from an environment over the pushed files; make it if it is missing."""
        packages, tare = self.given["packages"], self.given["tare"]
        if not packages or not tare:
            version = "{}.{}".format(*sys.version_info)
            raise LackError(f"nothing was packed for its Python {version} on {platform.machine()}")
        for part in (packages, tare):
            self._unpack(part)
        place = self.folder / f"python-{packages['name'][-16:]}-{tare['name'][-16:]}"
        if not (place / "ready").exists():
            shutil.rmtree(place, ignore_errors=True)
            make = [sys.executable, "-I", "-m", "venv", "--without-pip", str(place)]
            self._must(make, "its Python makes no environment")
            site = next(place.glob("lib/python*/site-packages"))
            (site / "tare.pth").write_text(f"{self.folder / tare['name']}\n{self.folder / packages['name']}\n")
            (place / "ready").touch()
        return str(place / "bin" / "python")

    def _unpack(self, part: dict[str, Any]) -> None:
        place = self.folder / part["name"]
        if place.is_dir():
            return
        archive = self.folder / "incoming" / Path(part["file"]).name
        if not archive.is_file():
            raise LackError(f"{archive.name} did not arrive")
        free = shutil.disk_usage(self.folder).free
        needed = part["unpacked"] + _SPARE_BYTES
        if free < needed:
            raise LackError(f"{free >> 20} MiB are free in {self.folder}, and {needed >> 20} MiB are needed")
        _require_digest(archive, part["sha256"])
        new = self.folder / f"new-{part['name']}"
        shutil.rmtree(new, ignore_errors=True)
        new.mkdir(mode=0o700)
        with tarfile.open(archive) as tar:
            # Debian 12's Python knows no filters.
            known: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            tar.extractall(new, **known)  # noqa: S202 (it has the checksum of what was packed)
        new.rename(place)
        archive.unlink()

    def _bring_image(self, python: str) -> None:
        image = self.given["image"]
        if (self.home / "images" / image["name"]).is_dir():
            return
        archive = self.folder / "incoming" / Path(image["file"]).name
        if not archive.is_file():
            raise LackError("the image did not arrive")
        self._note_what_is_there()
        words = ["image", "import", str(archive), "--sha256", image["sha256"]]
        self._must(self._tare(python, *words), "the image cannot be imported")
        archive.unlink()

    def _note_what_is_there(self) -> None:
        """Note what the host has before the fleet adds to it, so that `clean` removes what the fleet added alone."""
        note = self.folder / "before.json"
        if not note.exists():
            images = self.home / "images"
            before = {"home": self.home.is_dir(), "images": [entry.name for entry in _entries(images)]}
            part = note.with_suffix(".part")
            part.write_text(json.dumps(before))
            part.rename(note)

    def _examine(self, python: str) -> None:
        """Raise for what `tare doctor` says this host lacks for any campaign."""
        asked = self._tare(python, "doctor", "native", "--json")
        _, out, err = self.module.run_command(asked, environ_update=self._env())
        try:
            answer = json.loads(out)
            if answer["usable"]:
                return
            failed = [check for check in answer["checks"] if check["state"] == "fail"]
            wrong = [f"{check['name']}: {check['found']} ({check['advice']})" for check in failed]
            wrong += [f"{row['name']}: {row['reason']}" for row in answer["platforms"] if not row["available"]]
        except (ValueError, KeyError, TypeError):
            wrong = [" ".join((err or out).split())[-300:]]
        raise LackError(f"tare doctor: {'; '.join(wrong[:3])}")

    def _launch(self, python: str, lock: int) -> None:
        """Start the run in a session of its own, with the lock; it goes on whatever becomes of this process."""
        (self.run / "exit").unlink(missing_ok=True)
        words = ["run", "--progress", "json"]
        if self.file.exists():
            words += ["--resume", str(self.file)]
        else:
            own, dashes, command = _split(self.given["words"])
            words += ["-o", str(self.file), *_with_overrides(own, self.given["overrides"]), *dashes, *command]
        (self.run / "words.json").write_text(json.dumps(words))
        start = ["setsid", "--fork", "/bin/sh", "-c", _RUN, "sh", *self._tare(python, *words)]
        with (self.run / "log").open("a"):
            pass  # from here on the run has begun
        code, _, err = self.module.run_command(start, cwd=str(self.run), environ_update=self._env(), pass_fds=[lock])
        if code != 0:
            raise LackError(f"the campaign cannot be started: {err.strip()[-300:]}")

    def _progress(self) -> dict[str, Any]:
        """Return the running block, and the seconds left as the campaign estimated at the start of the block."""
        found: dict[str, Any] = {"blocks": 0, "left_s": None, "doing": ""}
        for line in _end_of(self.run / "log").splitlines():
            try:
                event = json.loads(line)
                if event["event"] == "block":
                    found |= {"blocks": event["number"] - 1, "left_s": event["left_s"], "at": event["at"]}
                elif event["event"] == "doing":
                    found["doing"] = event["what"]
            except (ValueError, KeyError, TypeError):
                continue
        if found["left_s"] is not None and "at" in found:
            found["left_s"] = max(0.0, found["left_s"] - (time.time() - found["at"]))
        return found

    def _reason(self, code: int) -> str:
        lines = [line.strip() for line in _end_of(self.run / "log").splitlines()]
        told = [line for line in lines if re.match(r"(error|fix): ", line)]
        return " ".join(told[-2:])[:600] or f"tare run ended with exit code {code}"

    def _clean_host(self) -> None:
        """Remove what runs left, by `tare clean`; then images that fleets brought, and TARE_HOME if it was theirs."""
        pythons = sorted(self.folder.glob("python-*/bin/python"))
        if pythons:
            self._must(self._tare(str(pythons[-1]), "clean"), "tare clean does not remove everything")
        try:
            before = json.loads((self.folder / "before.json").read_text())
        except (OSError, ValueError):
            return
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text(errors="replace").splitlines()]
        if busy := [place for place in mounts if place.startswith(f"{self.home}/")]:
            raise LackError(f"{busy[0]} is still mounted, so nothing is removed")
        if not before["home"] and self.home != self.folder:
            for entry in self.home.iterdir():  # the folder itself may be a mount
                shutil.rmtree(entry) if entry.is_dir() and not entry.is_symlink() else entry.unlink()
            if not os.path.ismount(self.home):
                self.home.rmdir()
            return
        images = self.home / "images"
        for entry in _entries(images):
            if entry.name not in before["images"] and entry.is_dir():
                shutil.rmtree(entry)

    def _tare(self, python: str, *words: str) -> list[str]:
        return [python, "-P", "-m", "tare", *words]

    def _env(self) -> dict[str, str]:
        return {"TARE_HOME": str(self.home)}

    def _must(self, argv: list[str], what: str) -> None:
        code, out, err = self.module.run_command(argv, environ_update=self._env(), cwd="/")
        if code != 0:
            raise LackError(f"{what}: {' '.join((err or out).split())[-400:]}")

    def _require_own(self, place: Path, *, make: bool) -> None:
        """Raise where others could change the folder, as root runs what is in it."""
        if make:
            place.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = place.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != 0 or status.st_mode & 0o022:
            raise LackError(f"{place} is not root's alone")


def _entries(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.is_dir() else []


def _lock_of(run: Path) -> int | None:
    """Return a descriptor that holds the run's lock, or None while the run's processes hold it."""
    lock = os.open(run / "lock", os.O_RDWR | os.O_CREAT, 0o600)
    for _ in range(10):  # one that waits holds it for a moment
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            time.sleep(0.02)
        else:
            return lock
    os.close(lock)
    return None


def _require_digest(archive: Path, expected: str) -> None:
    with archive.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    if digest != expected:
        archive.unlink()
        raise LackError(f"{archive.name} arrived damaged; play it again")


def _split(words: list[str]) -> tuple[list[str], list[str], list[str]]:
    """Options of `tare run`, and the command of the user's own behind ``--``."""
    at = words.index("--") if "--" in words else len(words)
    return words[:at], words[at : at + 1], words[at + 1 :]


def _with_overrides(words: list[str], overrides: dict[str, Any]) -> list[str]:
    """Replace options by those of the host's variables."""
    for name, spellings in _OPTIONS.items():
        values = overrides.get(name) or []
        values = [values] if isinstance(values, str | int | float) else values
        if values:
            words = _without(words, spellings)
            for value in values:
                words += [spellings[-1], str(value)]
    extra = overrides.get("options") or []
    return [*words, *(extra.split() if isinstance(extra, str) else map(str, extra))]


def _without(words: list[str], spellings: tuple[str, ...]) -> list[str]:
    kept, skip = [], False
    for word in words:
        if skip:
            skip = False
        elif word in spellings:
            skip = True
        elif not any(word.startswith(f"{name}=" if name.startswith("--") else name) for name in spellings):
            kept.append(word)
    return kept


def _end_of(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _LOG_END))
            return file.read(_LOG_END).decode(errors="replace")
    except OSError:
        return ""


def main() -> None:
    """Carry out the step, and answer Ansible."""
    module = AnsibleModule(argument_spec=_ARGUMENTS)
    os.umask(0o077)
    if os.geteuid() != 0:
        module.fail_json(msg="its user is not root: set ansible_become in the inventory")
    try:
        answer = getattr(Host(module), module.params["step"])()
    except LackError as lack:
        module.fail_json(msg=str(lack))
    except OSError as error:
        module.fail_json(msg=f"{error.filename or module.params['folder']}: {error.strerror or error}")
    module.exit_json(**answer)


if __name__ == "__main__":
    main()
