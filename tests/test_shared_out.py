from pathlib import Path

from platforms.test_contract import PROMISES
from shared_out import CONTRACT, LONG_S, STORES, scope, seconds


def _scope_of(promise):
    return scope(f"{CONTRACT}::test_it_keeps_its_promise[{promise.id}]")


def test_the_promises_of_a_platform_stay_together_and_those_of_a_store_of_images():
    scopes = {promise.id: (promise.values[0], _scope_of(promise)) for promise in PROMISES}
    for name, together in scopes.values():
        assert together == name or name.startswith(STORES[together])
    assert {together for _, together in scopes.values()} >= {*STORES, "bubblewrap", "lxc", "qemu-tcg"}


def test_so_do_the_tests_of_a_file_with_others_of_a_store_of_images():
    assert scope("tests/platforms/test_ssh.py::test_a_target") == "tests/platforms/test_ssh.py"
    assert scope("tests/platforms/test_ssh.py::test_it[lxc-escape]") == "tests/platforms/test_ssh.py"
    assert scope("tests/platforms/test_kill.py::test_killed[lxc-0.4]") == "docker and podman"


def test_what_takes_long_or_shares_a_store_is_known_by_a_name_that_there_is():
    platforms = {promise.values[0] for promise in PROMISES}
    subjects = [subject for begins in STORES.values() for subject in begins]
    assert not [name for name in subjects if not Path(name).is_file() and name not in platforms]
    assert not [name for name in LONG_S if not Path(name).is_file() and name not in platforms | set(STORES)]
    assert seconds("uml", 20) == LONG_S["uml"] > seconds("runc", 20)
