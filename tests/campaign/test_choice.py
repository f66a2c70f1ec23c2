"""Which platforms take part: by default, by name, or all; and what is said of those that do not run here."""

import pytest

from campaign.fakes import FakePlatform
from tare.campaign.execution.preflight import available, require_any
from tare.campaign.execution.run_campaign import not_meant, platforms_for
from tare.errors import HostError, UsageError
from tare.platforms import platform_registry
from tare.platforms.base import Availability


def names(chosen):
    return [platform.name for platform in chosen]


def test_the_usual_ones_are_those_that_say_so():
    assert names(platforms_for(())) == ["native", "docker", "gvisor", "runc"]


def test_the_baseline_is_always_there_and_first():
    assert names(platforms_for(("lxc", "crun"))) == ["native", "lxc", "crun"]
    assert names(platforms_for(("lxc", "native", "lxc"))) == ["native", "lxc"]


def test_all_are_all_and_families_may_be_named_besides():
    everyone = [name for name, platform in platform_registry.all_platforms().items() if not platform.only_named]
    assert names(platforms_for(("all",))) == everyone
    assert names(platforms_for(("ssh:far.example", "all", "runc"))) == [*everyone, "ssh:far.example"]


def test_what_takes_minutes_to_prepare_takes_part_only_by_its_name():
    slow = "docker-in-qemu-tcg"
    assert slow not in names(platforms_for(("all",)))
    assert slow in names(platforms_for(("all", slow)))
    [told] = not_meant(("all",))
    assert (told.platform, told.fix) == (slow, f"name it as well: -p all -p {slow}")
    assert "minutes" in told.reason
    assert not_meant(("all", slow)) == not_meant((slow,)) == not_meant(()) == []


def test_an_unknown_one_is_an_error_with_all_too():
    with pytest.raises(UsageError, match="there is no platform 'runk'"):
        platforms_for(("all", "runk"))


class Missing(FakePlatform):
    def detect(self):
        return Availability(False, reason="it is not installed", fix="apt-get install it")


def test_what_does_not_run_is_left_out_with_its_reason():
    platforms = [FakePlatform("here"), Missing("missing")]
    ready, left_out = available(platforms, progress=lambda _: None, keep=pytest.fail)
    assert [platform.name for platform, _ in ready] == ["here"]
    assert [(omission.platform, omission.reason, omission.fix) for omission in left_out] == [
        ("missing", "it is not installed", "apt-get install it")
    ]
    require_any(platforms, left_out)


def test_where_nothing_that_was_named_runs_the_first_says_why():
    chosen = [FakePlatform("native", baseline=True), Missing("missing"), Missing("gone")]
    _, left_out = available(chosen, progress=lambda _: None, keep=pytest.fail)
    with pytest.raises(HostError, match="missing does not run here: it is not installed; nor do gone") as refused:
        require_any(chosen, left_out)
    assert refused.value.fix == "apt-get install it"
    require_any(chosen[:1], [])  # the baseline alone is what was asked for


def test_without_the_baseline_there_is_no_campaign():
    with pytest.raises(HostError, match="missing does not run here"):
        available([Missing("missing", baseline=True)], progress=lambda _: None, keep=pytest.fail)


def test_a_profile_takes_the_stand_in_of_what_does_not_run_and_a_user_does_not(monkeypatch):
    missing, stand_in = Missing("missing"), FakePlatform("stand-in")
    missing.stand_in = "stand-in"
    monkeypatch.setattr(platform_registry, "all_platforms", lambda: {"stand-in": stand_in})
    order = [missing, FakePlatform("other")]
    ready, left_out = available(order, progress=lambda _: None, keep=pytest.fail, stand_ins=True)
    assert [platform.name for platform, _ in ready] == ["stand-in", "other"]
    assert [omission.platform for omission in left_out] == ["missing"]
    ready, _ = available(order, progress=lambda _: None, keep=pytest.fail)
    assert [platform.name for platform, _ in ready] == ["other"]
