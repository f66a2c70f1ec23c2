from pathlib import Path

from platforms.test_contract import PROMISES
from shared_out import CONTRACT, FAMILIES, LONG_S, scope, seconds


def _scope_of(promise):
    return scope(f"{CONTRACT}::test_it_keeps_its_promise[{promise.id}]")


def test_the_promises_of_a_platform_stay_together_and_those_of_a_store_of_images():
    for promise in PROMISES:
        name = promise.values[0]
        together = next((family for family in FAMILIES if name.startswith(family)), name)
        assert _scope_of(promise) == f"{CONTRACT} {together}"
    assert {"containerd", "docker", "lxc"} <= {_scope_of(promise).split()[1] for promise in PROMISES}
    assert len({_scope_of(promise) for promise in PROMISES}) > 40


def test_so_do_the_tests_of_a_file():
    assert scope("tests/platforms/test_kill.py::test_killed[lxc-escape]") == "tests/platforms/test_kill.py"
    assert scope("tests/platforms/test_ssh.py::test_a_target") == "tests/platforms/test_ssh.py"


def test_what_takes_long_is_known_by_a_name_that_there_is():
    names = {promise.values[0] for promise in PROMISES} | set(FAMILIES)
    assert not [name for name in LONG_S if name not in names and not Path(name).is_file()]
    longest = max(LONG_S, key=LONG_S.get)
    assert (
        seconds(longest, 1) == seconds(longest, 100) == LONG_S[longest] > seconds("tests/platforms/test_other.py", 10)
    )
