"""What a program is linked with, from what ldd prints."""

from pathlib import Path

from tare.host import libraries

#: Of Debian 12's runc.
RUNC = """\
	linux-vdso.so.1 (0x00007fc8145d0000)
	libseccomp.so.2 => /lib/x86_64-linux-gnu/libseccomp.so.2 (0x00007fc81459e000)
	libc.so.6 => /lib/x86_64-linux-gnu/libc.so.6 (0x00007fc8143bc000)
	/lib64/ld-linux-x86-64.so.2 (0x00007fc8145d2000)
"""


def test_libraries_and_loader_come_by_their_own_paths():
    assert list(libraries.parse_ldd(RUNC).values()) == [
        "/lib/x86_64-linux-gnu/libseccomp.so.2",
        "/lib/x86_64-linux-gnu/libc.so.6",
        "/lib64/ld-linux-x86-64.so.2",
    ]


def test_a_library_that_is_missing_has_no_file():
    assert libraries.parse_ldd("\tlibseccomp.so.2 => not found\n") == {"libseccomp.so.2": None}


def test_a_program_is_linked_with_libraries_that_are_there():
    paths = [Path(file) for file in libraries.linked("/bin/sh").values()]
    assert any(path.name.startswith("libc") for path in paths)
    assert all(path.is_file() for path in paths)
    assert libraries.linked(__file__) == {}
