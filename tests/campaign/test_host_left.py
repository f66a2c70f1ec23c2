"""What a campaign could not remove from the host is in its file and on standard error, and stays for `tare clean`."""

import json
import os
import sys

import pytest

from tare.host import janitor, processes, state
from tare.host.journal import Journal
from tare.store.store import Store

pytestmark = pytest.mark.host

MAIN = "from tare.cli import main; main()"


def tare(*words):
    return processes.run([sys.executable, "-c", MAIN, *words], time_limit_s=150)


@pytest.mark.timeout(170)
def test_what_a_killed_run_left_and_nobody_can_remove_is_told(tmp_path):
    folder = state.work() / f"stays{os.getpid()}"
    folder.mkdir()
    [entry] = Journal(state.journal()).write(janitor.file(folder))  # no file: it cannot be removed as one
    record = json.loads(entry.file.read_text())
    record["owner"]["pid"] = 1 << 22  # nobody's
    entry.file.write_text(json.dumps(record))
    try:
        done = tare("run", "-p", "native", "-w", "primes", "--blocks", "1", "-o", str(tmp_path / "x.tare"))
        assert done.code == 0, done.stderr
        said = done.stderr.decode()
        assert said.count(f"left on this host: file {folder} (") == 1
        assert said.count("\nfix: `tare clean` tries again") == 1
        with Store.read(tmp_path / "x.tare") as store:
            [warning] = [event.text for event in store.events() if f"file {folder}" in event.text]
        assert warning.startswith("left on this host")
        assert entry.file.exists()
        folder.rmdir()
        cleaned = tare("clean")
        assert f"removed file {folder}" in cleaned.text
    finally:
        entry.file.unlink(missing_ok=True)
