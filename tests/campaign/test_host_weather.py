"""A host that lacks something: one clear line with the fix, nothing left, and the rest goes on."""

import contextlib
from dataclasses import replace

import pytest

from campaign.fakes import Quiet, a_record
from platforms import guests
from tare.campaign.execution.runner import Runner
from tare.campaign.instances.client import HostClient
from tare.campaign.plan.campaign_plan import CampaignPlan, WorkloadJob
from tare.contract.leftovers import left_on_host
from tare.errors import TareError
from tare.host import processes
from tare.image import guest
from tare.model import Arm
from tare.platforms import platform_registry
from tare.store import create_store
from tare.workloads import workload_registry as workloads

pytestmark = [pytest.mark.host, pytest.mark.own_host]


@contextlib.contextmanager
def _platform(name, image):
    platform = platform_registry.choose([name])[0]
    platform.prepare(image)
    yield platform
    platform.close()


def _refusal(launcher, name):
    """Why an instance does not start; nothing of it may stay."""
    with _platform(name, launcher.image) as platform, pytest.raises(TareError) as refused:
        launcher.start(platform, Arm(name), measured=True)
    assert left_on_host(f"{launcher.campaign}x") == []
    assert "\n" not in refused.value.what
    return refused.value


@pytest.fixture(params=[3, 6], ids="{} inodes".format)
def full_disk(tmp_path, request):
    """A folder on a filesystem of two megabytes that has no byte left, and few inodes: each start fails elsewhere."""
    place = tmp_path / "full"
    place.mkdir()
    options = f"size=2m,nr_inodes={request.param}"
    processes.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]).require()
    (place / "filler").write_bytes(b"x")
    processes.run(["dd", "if=/dev/zero", f"of={place}/filler", "bs=4k"])
    yield place
    processes.run(["umount", str(place)]).require()


@pytest.mark.parametrize("name", ["native", "runc", "lxc", "qemu-tcg", "uml"])
def test_a_full_disk(launcher, full_disk, name):
    error = _refusal(replace(launcher, work=full_disk), name)
    assert error.what.startswith("the disk is full: ")
    assert error.fix.startswith(f"free disk space below {full_disk}")
    assert list(full_disk.iterdir()) == [full_disk / "filler"]


@pytest.mark.parametrize("name", ["native", "runc", "bubblewrap", "gvisor"])
def test_an_image_without_its_agent(launcher, tmp_path, name):
    empty = tmp_path / "root"
    empty.mkdir()
    error = _refusal(replace(launcher, image=replace(launcher.image, root=empty)), name)
    assert "tare-agent" in error.what


@pytest.mark.parametrize("name", ["native", "runc"])
def test_an_image_of_other_bits(launcher, name):
    error = _refusal(replace(launcher, image=replace(launcher.image, hash="0" * 16)), name)
    assert "runs other bits" in error.what
    assert launcher.image.hash in error.what


def test_the_next_start_is_well(launcher):
    with _platform("native", launcher.image) as platform:
        launcher.start(platform, Arm("native"), measured=True).stop()


def test_a_guest_that_panics_in_a_campaign(launcher, tmp_path, monkeypatch):
    """Its trials are failed rows with the reason, its console is in the campaign's file, the rest goes on."""
    launcher = guests.with_one_processor(launcher)
    initramfs = tmp_path / "initramfs"
    initramfs.write_bytes(b"not an archive" * 100)
    broken = replace(guest.ensure(), initramfs=initramfs)
    monkeypatch.setattr(guest, "ensure", lambda *_: broken)
    platforms = tuple(platform_registry.choose(["native", "qemu-tcg"]))
    workload = workloads.get("sysbench-cpu")
    jobs = (WorkloadJob(workload, workload.profiles["quick"]),)
    plan = CampaignPlan("quick", 5, platforms, jobs, launcher.resources, 1, None)
    client = HostClient(launcher.image.root, ())  # nobody asks it
    with create_store(tmp_path / "panic.tare", a_record(plan)) as store:
        Runner(plan, store, launcher, client, Quiet()).run()
        rows = list(store.trials().iter_rows(named=True))
        consoles = store.attachments()
    [failed] = [row for row in rows if row["platform"] == "qemu-tcg"]
    assert failed["status"] == "failed"
    assert "Kernel panic" in failed["reason"]
    assert "\n" not in failed["reason"]
    assert {name for name, _ in consoles} == {"console of qemu-tcg"}
    assert all(b"Kernel panic" in console for _, console in consoles)
    assert [row["status"] for row in rows if row["platform"] == "native"] == ["ok", "ok"]
    assert left_on_host(f"{launcher.campaign}x") == []
