"""What must be alike for a file to take more: the record, the image, the host, the platforms and what they give."""

from types import SimpleNamespace

import pytest

import tare
from campaign.fakes import FakePlatform, a_plan, a_record
from tare.campaign.execution import provenance, resume_checks, run_campaign
from tare.campaign.execution.preflight import StartedPlatform
from tare.campaign.host_session import HostSession
from tare.campaign.plan.campaign_plan import job_of
from tare.errors import StoreError, UsageError
from tare.host.facts import machine_facts
from tare.platforms.base import Availability
from tare.store import PlatformRecord, create_store
from tare.workloads import workload_registry

IMAGE = SimpleNamespace(hash="0123abcd" * 8)
HERE = machine_facts.gather()
FAIRNESS = {"memory limit": 1 << 30, "memory seen inside": 1 << 30, "cpus pinned": [0], "network path": "bridge, veth"}


def _record(**values):
    here = {
        "tare_version": tare.__version__,
        "image": {"hash": IMAGE.hash},
        "host": HERE.model_dump(mode="json"),
        "fairness": {name: dict(FAIRNESS) for name in ("native", "runc", "docker")},
    }
    return a_record(a_plan()).model_copy(update=here | values)


def _host(**values):
    host = HERE.model_dump(mode="json")
    return host | {"cpu": host["cpu"] | values.pop("cpu", {})} | values


def _ready(*, version="0", details=None, **fairness):
    """The campaign's platforms, of which docker is otherwise."""
    platforms = []
    for name in ("native", "runc", "docker"):
        other = name == "docker"
        record = PlatformRecord(name=name, title=name, version=version if other else "0", details=details or {})
        platforms.append(StartedPlatform(FakePlatform(name), record, FAIRNESS | (fairness if other else {})))
    return platforms


def test_the_same_bits_on_the_same_host_are_welcome_and_nothing_is_noted():
    record = _record()
    resume_checks.check_same(record, IMAGE, HERE)
    resume_checks.check_cpus(record)
    resume_checks.check_platforms(record, _ready())
    assert list(resume_checks.notes(record, HERE, _ready())) == []


def test_the_revision_of_a_workload_is_recorded_unless_it_is_the_first():
    redis, primes = (
        run_campaign._workload_record(
            job_of(workload_registry.get(name), workload_registry.get(name).profiles["quick"], None)
        )
        for name in ("redis", "primes")
    )
    assert redis.model_dump()["revision"] == workload_registry.get("redis").revision == 2
    assert "revision" not in primes.model_dump(mode="json"), "a tare that does not know it can resume this"
    assert type(primes).model_validate(primes.model_dump()) == primes


def test_figures_that_are_computed_otherwise_now_are_not_added():
    record, present = _record(), [job.workload for job in a_plan().jobs]
    resume_checks.check_revisions(record, present)
    [first, *others] = record.workloads
    changed = record.model_copy(update={"workloads": [first.model_copy(update={"revision": 7}), *others]})
    with pytest.raises(StoreError, match=f"the revision of {first.name}'s figures was 7, and is 1"):
        resume_checks.check_revisions(changed, present)
    resume_checks.check_revisions(changed.model_copy(update={"workloads": others}), present)


@pytest.mark.parametrize(
    ("other", "message"),
    [
        (
            {"image": {"hash": "89abcdef" * 8}},
            "campaign ran image 89abcdef89abcdef, and now there is 0123abcd0123abcd",
        ),
        ({"image": {}}, "other bits, other figures"),
        ({"host": {"kernel": "5.4.13"}}, f"the host's kernel was 5.4.13, and is {HERE.kernel}"),
        ({"host": _host(cpu={"model": "Invented 9000"})}, "the host's cpu model was Invented 9000, and is"),
        ({"host": _host(cpu={"threads": 99})}, "the host's cpu threads was 99, and is"),
        ({"host": _host(mitigations={**HERE.mitigations, "meltdown": "nothing is done"})}, "meltdown: nothing is done"),
    ],
)
def test_others_are_refused_with_what_differs(other, message):
    with pytest.raises(StoreError) as refused:
        resume_checks.check_same(_record(**other), IMAGE, HERE)
    assert message in refused.value.what
    assert refused.value.fix
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("otherwise", "message"),
    [
        ({"version": "27.1"}, "docker's version was 0, and is 27.1"),
        ({"memory limit": 1 << 29}, f"docker: memory limit was {1 << 30}, and is {1 << 29}"),
        ({"cpus pinned": [0, 1]}, "docker: cpus pinned was 0, and is 0, 1"),
        ({"network path": "slirp"}, "docker: network path was bridge, veth, and is slirp"),
    ],
)
def test_a_platform_that_gives_something_else_is_refused(otherwise, message):
    with pytest.raises(StoreError) as refused:
        resume_checks.check_platforms(_record(), _ready(**otherwise))
    assert message in refused.value.what
    assert refused.value.fix == "start a new campaign, or restore the former state"


def test_details_of_a_platform_are_its_version_too():
    platforms = [PlatformRecord(name="native", title="", version="0", details={"storage": "overlay2"})]
    now = _ready(details={"storage": "vfs"})[:1]
    with pytest.raises(StoreError, match="native: storage was overlay2, and is vfs"):
        resume_checks.check_platforms(_record(platforms=platforms), now)


def test_what_a_record_does_not_tell_is_not_held_against_it():
    platforms = [PlatformRecord(name="docker", title="", version="0")]
    record = _record(host={}, fairness={"docker": {"memory limit": 1 << 30}}, platforms=platforms)
    resume_checks.check_same(record, IMAGE, HERE)
    resume_checks.check_platforms(record, _ready(details={"storage": "vfs"}, **{"a new fact": 5})[2:])
    resume_checks.check_platforms(
        record.model_copy(update={"fairness": {"cache mode": "host page cache"}}), _ready()[2:]
    )


def test_another_version_of_a_plug_in_is_noted():
    record = _record()
    plugged = [platform.model_copy(update={"package": "tare-x 1.0"}) for platform in record.platforms]
    assert list(resume_checks.notes(record.model_copy(update={"platforms": plugged}), HERE, _ready()[2:])) == [
        "resumed: the package of docker was tare-x 1.0, and is tare itself"
    ]


def test_settings_are_noted():
    record = _record(tare_version="0.0.9", host=_host(huge_pages="painted", memory_bytes=HERE.memory_bytes // 2))
    facts = {"memory seen inside": 1 << 29}
    assert list(resume_checks.notes(record, HERE, _ready(**facts))) == [
        f"resumed: tare was 0.0.9, and is {tare.__version__}",
        f"resumed: the host's memory bytes was {HERE.memory_bytes // 2}, and is {HERE.memory_bytes}",
        f"resumed: the host's huge pages was painted, and is {HERE.huge_pages}",
        f"resumed: docker: memory seen inside was {1 << 30}, and is {1 << 29}",
    ]


def test_another_boots_few_pages_of_memory_are_not_another_memory():
    record = _record(host=_host(memory_bytes=HERE.memory_bytes - (1 << 20)))
    assert list(resume_checks.notes(record, HERE, _ready(**{"memory seen inside": (1 << 30) - 4096}))) == []


def test_a_cpu_that_is_gone_is_named():
    resources = a_record(a_plan()).resources.model_copy(update={"cpus": [0, 4099]})
    with pytest.raises(StoreError, match="runs on CPU 4099, which cannot be used here"):
        resume_checks.check_cpus(_record(resources=resources))


class TestResume:
    """Refusals before anything is built or started."""

    @pytest.fixture
    def resume(self, tmp_path, monkeypatch):
        monkeypatch.setenv("TARE_HOME", str(tmp_path))

        def run(record, **others):
            file = tmp_path / "x.tare"
            create_store(file, record, provenance.mark).close()
            run_campaign.resume(file, SimpleNamespace(doing=lambda what: None, fault=lambda line: None), **others)

        return run

    def test_a_platform_that_no_longer_runs_is_named(self, resume, monkeypatch):
        gone = FakePlatform("runc")
        monkeypatch.setattr(gone, "detect", lambda: Availability(False, reason="it was removed", fix="install it"))
        chosen = [FakePlatform("native", baseline=True), gone]
        monkeypatch.setattr(run_campaign.platforms, "choose", lambda names: chosen)
        monkeypatch.setattr(HostSession, "image", lambda host, workloads: IMAGE)
        monkeypatch.setattr(run_campaign, "jobs_of", lambda record: ())
        monkeypatch.setattr(run_campaign, "check_disk", lambda: None)
        with pytest.raises(
            StoreError, match="runc is in the campaign and does not run here now: it was removed"
        ) as refused:
            resume(_record())
        assert "\n" not in str(refused.value)

    def test_a_workload_whose_figures_are_computed_otherwise_now_is_named(self, resume, monkeypatch):
        monkeypatch.setattr(HostSession, "image", lambda host, workloads: IMAGE)
        monkeypatch.setattr(run_campaign, "check_disk", lambda: None)
        job = job_of(workload_registry.get("redis"), workload_registry.get("redis").profiles["quick"], None)
        before = run_campaign._workload_record(job).model_copy(update={"revision": 1})
        with pytest.raises(StoreError, match="the revision of redis's figures was 1, and is 2"):
            resume(_record(workloads=[before]))

    def test_one_that_this_tare_does_not_know_is_named(self, resume, monkeypatch):
        monkeypatch.setattr(HostSession, "image", lambda host, workloads: IMAGE)
        monkeypatch.setattr(run_campaign, "jobs_of", lambda record: ())
        monkeypatch.setattr(run_campaign, "check_disk", lambda: None)
        with pytest.raises(UsageError, match="there is no platform 'my-plugin'"):
            resume(_record(platforms=[PlatformRecord(name="my-plugin", title="", version="0")]))


def test_a_campaign_does_not_go_on_where_its_record_asks_for_more_than_is_known(tmp_path):
    with create_store(tmp_path / "x.tare", _record(tare_version="7.2.0")) as store:
        resume_checks.check_known(store)
        store.unknown_fields = ("weather",)
        with pytest.raises(StoreError, match="does not know: weather") as refused:
            resume_checks.check_known(store)
    assert refused.value.fix == "resume with tare 7.2.0, or a later one"


def test_settings_of_the_host_that_its_containers_have_are_noted_and_not_refused():
    before = {"huge pages inside": "always", "socket limits inside": {"somaxconn": "128"}, "fsync on /": "kept"}
    record = _record(fairness={"docker": FAIRNESS | before})
    changed = _ready(**before | {"huge pages inside": "madvise", "socket limits inside": {"somaxconn": "4096"}})
    resume_checks.check_platforms(record, changed)
    assert list(resume_checks.notes(record, HERE, changed)) == [
        "resumed: docker: huge pages inside was always, and is madvise",
        "resumed: docker: socket limits inside was somaxconn: 128, and is somaxconn: 4096",
    ]
    with pytest.raises(StoreError, match="fsync on / was kept, and is ignored"):
        resume_checks.check_platforms(record, _ready(**before | {"fsync on /": "ignored"}))
