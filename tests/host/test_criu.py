"""CRIU: what it says where it does not work."""

from tare.host import criu, processes

#: As CRIU 3.17.1 of Debian 12 prints it on Linux 6.18.
ON_A_NEWER_KERNEL = """\
Error (criu/vdso.c:381): vdso: Unexpected rt vDSO area bounds
Error (criu/vdso.c:613): vdso: Failed to fill self vdso symtable
Error (criu/kerndat.c:1615): kerndat_vdso_fill_symtable failed when initializing kerndat.
Error (criu/crtools.c:260): Could not initialize kernel features detection.
"""


def test_the_first_error_is_the_cause():
    assert criu.first_error(ON_A_NEWER_KERNEL) == "vdso: Unexpected rt vDSO area bounds"


def test_what_says_nothing_is_said_to():
    assert criu.first_error("") == "it says nothing"


def test_without_the_program_its_package_is_named(monkeypatch):
    monkeypatch.setattr(processes, "find", lambda _: None)
    criu.why_not.cache_clear()
    assert "CRIU is not installed (" in criu.why_not()
    criu.why_not.cache_clear()
