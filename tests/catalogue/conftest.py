"""A PostgreSQL server of the test's own, as a user without rights; a new database for each test."""

from __future__ import annotations

import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import psycopg
import pytest

sys.path[:0] = [str(Path(__file__).parent.parent), str(Path(__file__).parent.parent / "store")]


@dataclass
class Server:
    """A running server: by its socket everybody is let in, by its port a password is asked for."""

    folder: Path
    port: int
    password: str
    databases: int = 0

    def address(self, database: str, *, by_password: bool = False) -> str:
        if by_password:
            return f"postgresql://tare@127.0.0.1:{self.port}/{database}"
        return f"postgresql://tare@/{database}?host={self.folder}&port={self.port}"

    def new(self) -> str:
        self.databases += 1
        name = f"test{self.databases}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return name


def _binaries() -> Path | None:
    """The folder of initdb: that of another version by POSTGRESQL=FOLDER, else the distribution's newest."""
    if chosen := os.environ.get("POSTGRESQL"):
        return Path(chosen)
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    return found[-1].parent if found else None


def _run(folder: Path, command: list[str | Path]) -> None:
    subprocess.run(command, cwd=folder, check=True, timeout=120, stdout=subprocess.DEVNULL)


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    binaries = _binaries()
    if binaries is None:
        assert not os.environ.get("CI"), "the gate installs PostgreSQL: tare.setup.components"
        pytest.skip("PostgreSQL is not installed: make setup")
    if os.geteuid() == 0:  # it refuses to run as root
        nobody = pwd.getpwnam("nobody")
        as_user = ["setpriv", f"--reuid={nobody.pw_uid}", f"--regid={nobody.pw_gid}", "--clear-groups"]
    else:
        nobody, as_user = None, []
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    folder = Path(tempfile.mkdtemp(prefix="tare-pg-"))  # short: a socket's path has 107 bytes
    try:
        if nobody is not None:
            os.chown(folder, nobody.pw_uid, nobody.pw_gid)
        data = folder / "data"
        made = [binaries / "initdb", "--no-sync", "-A", "trust", "-U", "tare", "-D", data]
        _run(folder, [*as_user, *made])
        rules = "local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"
        (data / "pg_hba.conf").write_text(rules)
        settings = f"-k {folder} -p {port} -c listen_addresses=127.0.0.1 -c fsync=off -c log_statement=all"
        control = [*as_user, binaries / "pg_ctl", "-w", "-D", data, "-l", folder / "log"]
        _run(folder, [*control, "-o", settings, "start"])
        try:
            running = Server(folder, port, "correct-horse-7")
            with psycopg.connect(running.address("postgres"), autocommit=True) as connection:
                connection.execute(f"ALTER USER tare PASSWORD '{running.password}'".encode())
            (folder / "log").write_text("")  # this statement has the password itself
            yield running
        finally:
            _run(folder, [*control, "-m", "immediate", "stop"])
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def database(server: Server) -> str:
    """The address of an empty database."""
    return server.address(server.new())
