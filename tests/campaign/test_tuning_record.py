"""What a campaign's record says of its tuning, and what a resumed one has otherwise."""

from tare.campaign.execution.run_campaign import _setting_record, _tuned_otherwise
from tare.host.tuning.tune import Setting, Tuned

SWAP = Setting("swappiness", "proc/sys/vm/swappiness", "60", "0", "memory is not swapped out")
KSM = Setting("ksm", "sys/kernel/mm/ksm/run", "0", "0", "no thread looks for equal pages")
TURBO = Setting("turbo", "", None, None, "this host shows none")


def test_a_record_has_the_value_before_and_during_the_campaign():
    changed = _setting_record(Tuned(SWAP, "changed"))
    assert (changed.former, changed.value, changed.why) == ("60", "0", "memory is not swapped out")
    refused = _setting_record(Tuned(SWAP, "not changed", "the kernel refuses it"))
    assert (refused.former, refused.value, refused.why) == ("60", "60", "the kernel refuses it")
    assert _setting_record(Tuned(KSM, "as wanted")).value == "0"
    lacking = _setting_record(Tuned(TURBO, "not changed", TURBO.why))
    assert (lacking.former, lacking.value, lacking.why) == (None, None, "this host shows none")


def test_what_a_resumed_campaign_has_otherwise_is_told():
    before = [_setting_record(Tuned(setting, "changed")) for setting in (SWAP, KSM)]
    now = [Tuned(SWAP, "not changed", "the kernel refuses it"), Tuned(KSM, "as wanted")]
    assert list(_tuned_otherwise(before, now)) == [
        "swappiness is 60 since the campaign was resumed, and was 0",
    ]
    assert list(_tuned_otherwise(None, None)) == []
