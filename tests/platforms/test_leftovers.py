"""What is left on the host is told by a label, which must not be seen where it is not."""

from tare.contract.leftovers import carries

#: A socket of one of Docker's shims: it was taken for a leftover of a session with a label of five of its digits.
SOCKET = "/run/containerd/s/9747a59c26abd50fe718ba40e4bc0b13ff853465ddf7d119ddeba2f2e0d9b8c0"


def test_a_label_among_the_digits_of_a_hash_is_there_by_chance():
    assert not carries("b40e4", SOCKET)
    assert not carries("b40e4", f"containerd-shim-runc-v2 -namespace moby -id {SOCKET[-64:]} -address x")


def test_in_every_name_of_tares_the_label_is_seen():
    for name in (
        "tare-b40e4x1",
        "b40e4",
        "tb40e4x2h",
        f"{SOCKET}/tare-b40e4x12",
        "runc --root /run/b40e4 start b40e4x1",
    ):
        assert carries("b40e4", name), name
