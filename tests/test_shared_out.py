from platforms.test_contract import PROMISES
from shared_out import CONTRACT, scope


def test_the_promises_of_a_platform_stay_together():
    for promise in PROMISES:
        assert scope(f"{CONTRACT}::test_it_keeps_its_promise[{promise.id}]") == f"{CONTRACT} {promise.values[0]}"


def test_so_do_the_tests_of_a_file():
    assert scope("tests/platforms/test_kill.py::test_killed[lxc-escape]") == "tests/platforms/test_kill.py"
    assert scope("tests/platforms/test_ssh.py::test_a_target") == "tests/platforms/test_ssh.py"
