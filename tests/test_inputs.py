"""The files that users write: read as UTF-8 wherever it is, with a limit, and refused in one line with the fix."""

import json
import os
import subprocess
import sys
import time
from importlib import resources
from pathlib import Path

import pytest

from tare import inputs
from tare.analysis.comparisons import thresholds
from tare.errors import UsageError
from tare.features.kernel.analysis import attack_profile
from tare.features.kernel.footprint_report import footprint_parts
from tare.features.studies.analysis import profile
from tare.platforms.parts.machines import boxfile
from tare.workloads.own import file as own
from tare.workloads.own import foreign

#: Each by its module and function.
READERS = {
    "thresholds": thresholds.load,
    "profile": profile.load,
    "weights": attack_profile.load_densities,
    "functions": footprint_parts.read_files,
    "box": boxfile.load,
    "application": own.examine,
    "compose": lambda file: foreign.converted(file, None),
}


@pytest.fixture(params=READERS)
def read(request):
    return READERS[request.param]


def _refusal(read, file):
    with pytest.raises(UsageError) as refused:
        read(file)
    assert refused.value.fix
    assert "\n" not in str(refused.value)
    return refused.value.what


def test_what_is_no_file_is_refused_and_not_waited_for(read, tmp_path):
    pipe = tmp_path / "pipe.toml"
    os.mkfifo(pipe)
    assert _refusal(read, pipe) == f"{pipe} is not a file"
    assert _refusal(read, Path("/dev/zero")) == "/dev/zero is not a file"
    assert _refusal(read, tmp_path) == f"{tmp_path} is a folder"
    assert _refusal(read, tmp_path / "none.toml") == f"{tmp_path / 'none.toml'} does not exist"
    assert _refusal(read, pipe / "below.toml") == f"{pipe / 'below.toml'} does not exist"
    (tmp_path / "loop.toml").symlink_to("loop.toml")
    assert "cannot be read: Too many levels" in _refusal(read, tmp_path / "loop.toml")


def test_what_is_too_large_is_not_read(read, tmp_path):
    file = tmp_path / "large.toml"
    with file.open("wb") as sparse:
        sparse.truncate(inputs.MAX_BYTES + 1)
    assert "has more than the " in _refusal(read, file)


def test_what_is_not_utf_8_is_said_with_its_place(read, tmp_path):
    file = tmp_path / "latin.toml"
    file.write_bytes(b'title = "\xe9"')
    assert _refusal(read, file) == f"{file} is not UTF-8: invalid continuation byte at byte 9"


@pytest.mark.parametrize("text", ["x =", f"x = {'1' * 5000}", f"x = {'[' * 5000}"], ids=["syntax", "number", "depth"])
@pytest.mark.parametrize("name", ["thresholds", "profile", "weights", "box"])
def test_what_is_not_toml_is_said(name, text, tmp_path):
    file = tmp_path / "wrong.toml"
    file.write_text(text)
    assert _refusal(READERS[name], file).startswith(f"{file} is not TOML: ")


def test_a_file_of_the_kernels_that_tells_no_size_has_the_same_limit():
    with pytest.raises(UsageError, match="more than the 0 KiB"):
        inputs.read_text(Path("/proc/self/status"), "read less", largest=100)


#: A right file for each, with a comment where what ends no line may stand: {}.
SAMPLES = {
    "thresholds": "# {}\npercent = 3\n",
    "profile": (Path(profile.__file__).with_name("profile.toml")).read_text(encoding="utf-8") + "# {}\n",
    "weights": 'title = "{}"\ndefault = 0.5\n[density]\n"net/" = 2.5\n',
    "functions": "name,file\ndo_mmap,mm/mmap.c\n",
    "box": 'machine = "microvm" # {}\nkernel = "k"\ninitrd = "i"\ncmdline = "ip={ip}"\n[answers]\ntcp = 22\n',
    "application": resources.files("tare.workloads.own").joinpath("example.toml").read_text() + "# {}\n",
    "compose": "services:\n  web:\n    image: nginx\n    command: nginx\n    ports: ['80']\n",
}
#: U+0085, U+2028, U+2029, form feed and others end a line to Python's `str.splitlines`.
NO_ENDS = "\x85 \u2028 \u2029"


@pytest.mark.parametrize("name", READERS)
def test_a_mark_that_an_editor_puts_first_is_no_part_of_the_file(name, tmp_path):
    file = tmp_path / ("plain.yaml" if name == "compose" else "plain.csv" if name == "functions" else "plain.toml")
    contents = SAMPLES[name].encode()
    for place in ("k", "i"):
        (tmp_path / place).touch()
    file.write_bytes(contents)
    expected = READERS[name](file)
    file.write_bytes(b"\xef\xbb\xbf" + contents)
    assert READERS[name](file) == expected


@pytest.mark.parametrize("name", [name for name, text in SAMPLES.items() if "{}" in text])
def test_only_a_line_feed_ends_a_line(name, tmp_path):
    for place in ("k", "i"):
        (tmp_path / place).touch()
    file = tmp_path / "some.toml"
    file.write_text(SAMPLES[name], encoding="utf-8")
    expected = READERS[name](file)
    file.write_text(SAMPLES[name].replace("{}", NO_ENDS), encoding="utf-8")
    read = READERS[name](file)
    if name == "weights":  # whose title it is
        assert read.title == NO_ENDS
    elif name == "application":  # which keeps the text too
        assert (read[0].contents, read[1]) == (expected[0].contents, [])
    else:
        assert read == expected


def test_lines_are_as_editors_count_them():
    assert inputs.lines("a\u2028b\x0cc\r\nd\x85\n\ne") == ["a\u2028b\x0cc\r\n", "d\x85\n", "\n", "e"]
    assert inputs.lines("") == []


def test_a_dockerfiles_line_ends_with_a_line_feed(tmp_path):
    file = tmp_path / "Dockerfile"
    file.write_bytes('\ufeffFROM debian:12\r\nENV A=x\u2028y\r\nCMD ["serve", "\x85"]\r\n'.encode())
    text, mistakes = foreign.converted(file, None)
    assert [mistake.what for mistake in mistakes if "is no instruction" in mistake.what] == []
    assert "serve" in text
    assert "x\u2028y" in text or "x\\u2028y" in text


def test_a_profile_is_utf_8_in_any_locale(tmp_path):
    file = tmp_path / "mine.toml"
    shipped = Path(profile.__file__).with_name("profile.toml")
    file.write_text(shipped.read_text(encoding="utf-8") + "# Kärnä\n", encoding="utf-8")
    load = "from tare.features.studies.analysis import profile; profile.load(pathlib.Path(sys.argv[1]))"
    script = f"import sys, pathlib; {load}"
    locale = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    command = [sys.executable, "-c", script, str(file)]
    done = subprocess.run(command, env=os.environ | locale, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


TOML = ["thresholds", "profile", "weights", "box"]


@pytest.mark.parametrize("name", TOML)
@pytest.mark.parametrize(
    "key", ["a." * 100_000 + "a = 1", f"x = 1\n{chr(34)}a b{chr(34)} . " + "'c'.d ." * 50_000 + "e = 1"]
)
def test_a_key_of_many_parts_is_refused_at_once(name, key, tmp_path):
    file = tmp_path / "keys.toml"
    file.write_text(key)
    began = time.monotonic()
    assert f"keys.toml:{key.count(chr(10)) + 1}: a key of 500 parts or more is not read" in _refusal(
        READERS[name], file
    )
    assert time.monotonic() - began < 5


def test_a_key_of_many_parts_is_a_mistake_of_an_applications_file(tmp_path):
    file = tmp_path / "app.toml"
    file.write_text("name = 'a'\n" + "a." * 30_000 + "a = 1")
    began = time.monotonic()
    _, mistakes = own.examine(file)
    assert (2, "a key of 500 parts or more is not read") in [(mistake.line, mistake.what) for mistake in mistakes]
    assert time.monotonic() - began < 5


def test_dots_elsewhere_are_no_long_key():
    assert inputs.line_of_long_key("x = '" + "." * 5_000 + " 1.2.3.4 a.b.c'\n" + "a.b = 1\n" * 2_000) is None


def test_a_byte_order_mark_is_no_part_of_a_file(tmp_path):
    file = tmp_path / "thresholds.toml"
    file.write_bytes(b"\xef\xbb\xbfpercent = 5\n")
    assert thresholds.load(file).percent == 5
    (tmp_path / "weights.csv").write_bytes(b"\xef\xbb\xbfname,density\nnet/,2.5\ndefault,1\n")
    assert attack_profile.load_densities(tmp_path / "weights.csv").density == {"net/": 2.5}


@pytest.mark.parametrize("key", ["a\nb\x1b[31m", "k" * 10_000])
def test_a_strange_key_is_shown_in_one_short_line(read, key, tmp_path):
    file = tmp_path / "keys.toml"
    file.write_text(f"{json.dumps(key)} = 1\n[start]\n{json.dumps(key)} = 1\n")
    try:
        found = read(file)
    except UsageError as error:
        shown = [error.what]
    else:
        assert isinstance(found, tuple), "no other file may have such a key"
        shown = [mistake.what for mistake in found[1]]
    assert shown
    assert all(line.isprintable() and len(line) < 600 for line in shown)
