"""Commands of a user's own on real platforms: a folder that they change, failures, parameters, and a resume."""

import os
import re
import subprocess
import sys

import pytest

from campaign.fakes import Quiet
from tare.campaign.execution import run_campaign
from tare.campaign.plan.campaign_request import CampaignRequest
from tare.errors import ParseError, StoreError
from tare.image.image_build import agent_path
from tare.model import UserProgram
from tare.report.campaign.report_builder import build
from tare.session import Refused
from tare.store import read_store
from tare.workloads.own import program

pytestmark = [pytest.mark.host, pytest.mark.own_host]
PLATFORMS = ("runc", "gvisor")
#: Fails where anything is not as the host's folder was, and then changes all of it.
JOB = """\
#!/bin/sh -e
[ "$(pwd)" = /work ] && [ "$(cat data)" = "the host's" ] && [ -x job ] && [ ! -e new ] && [ "$(ls -A | wc -l)" = 4 ]
[ "$(readlink link)" = data ] && [ "$(stat -c %Y data)" = 1900000000 ] && [ "$(cat sub/file)" = kept ] || exit 9
echo changed >data
touch -d @1900000000 data
mkdir new && echo more >new/file
rm -r sub link
chmod 700 job
echo "$GREETING"
"""


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "project"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/file").write_text("kept\n")
    (folder / "data").write_text("the host's\n")
    os.utime(folder / "data", (1_900_000_000, 1_900_000_000))
    (folder / "link").symlink_to("data")
    (folder / "job").write_text(JOB)
    (folder / "job").chmod(0o755)
    return folder


def _tree(folder):
    return {
        path.name: (path.lstat().st_mode, path.lstat().st_mtime_ns, path.read_bytes() if path.is_file() else None)
        for path in folder.rglob("*")
    }


def _request(*ordered, platforms=PLATFORMS, blocks=2, runs=None, **fields):
    workloads = [program.of(name, definition) for name, definition in ordered]
    params = {workload.name: {"rounds": runs} for workload in workloads} if runs else {}
    return CampaignRequest(platforms=platforms, programs=workloads, params=params, blocks=blocks, **fields)


def _run(file, *ordered, watcher=None, **fields):
    run_campaign.begin(_request(*ordered, **fields), file, watcher or Quiet())


def _trials(file):
    with read_store(file) as store:
        return store.trials()


def test_every_run_finds_the_folder_as_it_was_and_the_hosts_never_changes(tmp_path, folder):
    file, before = tmp_path / "folder.tare", _tree(folder)
    job = UserProgram(argv=("./job",), env={"GREETING": "hello"}, folder=str(folder), warmup=1)
    _run(file, ("job", job), runs=3)
    assert _tree(folder) == before
    trials = _trials(file)
    assert dict(zip(trials["platform"], trials["reason"], strict=True)) == dict.fromkeys(("native", *PLATFORMS))
    with read_store(file) as store:
        samples = store.samples()
        assert store.outputs(next(iter(store.done())))["round 0: 0 ./job"].data == b"hello\n"
    by_metric = {(row["platform"], row["metric"]) for row in samples.iter_rows(named=True)}
    metrics = ("wall", "peak-rss", "cpu-cost", "peak-memory")
    assert by_metric == {(platform, metric) for platform in ("native", *PLATFORMS) for metric in metrics}
    assert set(samples["round"]) == {0, 1, 2}
    report = build(file)
    assert [ranking.workload for ranking in report.rankings] == ["job"]
    assert {rank.platform for rank in report.rankings[0].ranks} == set(PLATFORMS)
    assert all(rank.low <= rank.times <= rank.high for rank in report.rankings[0].ranks)


def test_what_is_prepared_is_there_in_each_run_and_not_timed(tmp_path):
    file = tmp_path / "prepared.tare"
    job = UserProgram(argv=("rm", "made"), prepare=("sh", "-c", "sleep 0.2; echo x >made"), cleanup=("touch", "end"))
    _run(file, ("job", job), platforms=("runc",), blocks=1, runs=3)
    with read_store(file) as store:
        assert set(store.trials()["status"]) == {"ok"}
        walls = store.samples().filter(metric="wall")["value"]
    assert len(walls) == 9
    assert max(walls) < 0.2


def test_a_command_that_fails_on_one_platform_fails_its_trials_alone(tmp_path):
    """gVisor has a kernel of its own, which says another version."""
    file = tmp_path / "fails.tare"
    script = f'echo "this is $(uname -r)" >&2; [ "$(uname -r)" = {os.uname().release} ] || exit 7'
    _run(file, ("job", UserProgram(argv=("sh", "-c", script))))
    trials = _trials(file)
    failed = trials.filter(platform="gvisor")
    assert set(failed["status"]) == {"failed"}
    assert all(re.search(r"ended with exit code 7: this is \S+", reason) for reason in failed["reason"])
    assert set(trials.filter(platform="runc")["status"]) == {"ok"}
    text = build(file).rankings[0].text
    assert text.endswith("gvisor has no run that ended well")
    ignored = tmp_path / "ignored.tare"
    _run(ignored, ("job", UserProgram(argv=("sh", "-c", script), ignore_failure=True)), blocks=1)
    assert set(_trials(ignored)["status"]) == {"ok"}


def test_what_fails_or_is_not_there_at_once_measures_nothing(tmp_path):
    file = tmp_path / "none.tare"
    with pytest.raises(
        ParseError, match="in a first run on native `sh -c 'echo no >&2; exit 3'` ended with exit code 3: no"
    ):
        _run(file, ("job", UserProgram(argv=("sh", "-c", "echo no >&2; exit 3"))), platforms=("runc",))
    with pytest.raises(Refused, match="no program nowhere-to-be-found"):
        _run(file, ("job", UserProgram(argv=("nowhere-to-be-found",))), platforms=("runc",))
    assert not file.exists()


def test_a_resume_runs_what_the_record_says_and_refuses_another_folder(tmp_path, folder):
    file = tmp_path / "resumed.tare"
    job = UserProgram(argv=("./job",), env={"GREETING": "hello"}, folder=str(folder))
    with pytest.raises(KeyboardInterrupt):
        _run(file, ("job", job), platforms=("runc",), blocks=3, watcher=Quiet(interrupt_after=4))
    before = _trials(file)
    with read_store(file) as store:
        [entry] = store.record.workloads
        assert (entry.program.argv, entry.program.folder) == (["./job"], str(folder))
        assert entry.params["rounds"] > 1, "a first run has told that it is short"
    contents = (folder / "data").read_text()
    (folder / "data").write_text("another\n")
    with pytest.raises(StoreError, match=f"{folder} has changed since the campaign began"):
        run_campaign.resume(file, Quiet())
    (folder / "data").write_text(contents)
    os.utime(folder / "data", (1_900_000_000, 1_900_000_000))
    run_campaign.resume(file, Quiet())
    after = _trials(file)
    assert after.height == 9
    assert set(after["status"]) == {"ok"}
    assert set(before["seq"]) < set(after["seq"])


def test_the_command_line_scans_a_parameter_and_ranks_last(tmp_path):
    file = tmp_path / "scan.tare"
    hostile = "a [red]{x}[/] <b>\n::error::y"
    words = ["run", "-p", "runc", "--blocks", "2", "-o", str(file), "--scan", "n=0.01,0.02", "--warmup", "1"]
    words += ["--", "sh", "-c", 'sleep "$1"', hostile, "{n}"]
    done = subprocess.run([sys.executable, "-P", "-m", "tare", *words], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    last = " ".join(lines[next(at for at, line in enumerate(lines) if line.startswith("report:")) + 1 :])
    for value in ("0.01", "0.02"):
        words = "(slower than|faster than|as long as)"
        assert re.search(rf"\(n={value}\): runc (was|took) [\d.]+ times {words} native \(", last)
    assert not any(line.startswith("::error") for line in lines)
    page = file.with_suffix(".html").read_text()
    assert "<b>\n" not in page
    assert "[red]{x}[/] &lt;b&gt;" in page
    with read_store(file) as store:
        assert [entry.program.argv[-1] for entry in store.record.workloads] == ["0.01", "0.02"]
        assert [entry.program.argv[3] for entry in store.record.workloads] == [hostile] * 2


def test_a_root_of_the_users_own_has_the_command_and_the_folder(tmp_path, folder):
    """A root filesystem with one program in it, which is no shell."""
    root = tmp_path / "root"
    (root / "srv").mkdir(parents=True)
    (root / "srv/tool").write_bytes(agent_path().read_bytes())
    (root / "srv/tool").chmod(0o755)
    file = tmp_path / "own.tare"
    job = UserProgram(argv=("/srv/tool", "version"), image=str(root), folder=str(folder))
    _run(file, ("job", job), blocks=1, runs=2)
    assert set(_trials(file)["status"]) == {"ok"}
    with read_store(file) as store:
        assert set(store.record.image["digests"]) == {"folder", "folder at /work"}
        assert b"tare-agent" in store.outputs(next(iter(store.done())))["round 0: 0 /srv/tool"].data
        assert store.record.image["source"] == "root and project"
