"""What must be alike for a file to take more: the image and the kernel."""

from types import SimpleNamespace

import pytest

from campaign.fakes import a_plan, a_record
from tare.campaign.conduct import check_same
from tare.errors import StoreError
from tare.host import facts

IMAGE = SimpleNamespace(hash="0123abcd" * 8)


def _record(**values):
    here = {"image": {"hash": IMAGE.hash}, "host": {"kernel": facts.gather().kernel}}
    return a_record(a_plan()).model_copy(update=here | values)


def test_the_same_bits_on_the_same_kernel_are_welcome():
    check_same(_record(), IMAGE)


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            {"image": {"hash": "89abcdef" * 8}},
            "campaign ran image 89abcdef89abcdef, and now there is 0123abcd0123abcd",
        ),
        ({"image": {}}, "other bits, other figures"),
        ({"host": {"kernel": "5.4.13"}}, "the campaign ran on kernel 5.4.13, and this is"),
    ],
)
def test_others_are_refused_with_what_differs(other, said):
    with pytest.raises(StoreError) as refused:
        check_same(_record(**other), IMAGE)
    assert said in refused.value.what
    assert refused.value.fix
