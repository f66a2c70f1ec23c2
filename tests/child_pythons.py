"""Commands in which a Python would run, or obey, files of the current folder."""

import ast
import re
import sys
from pathlib import Path

#: With -I or -P the current folder is not among the places that modules come from; a script's own folder is.
ISOLATED = {"-I", "-P"}
_PROGRAM = re.compile(r"(?:^|/)python[0-9.]*$")
#: In a shell's or make's text: the program by name or from a variable, and its options.
_IN_TEXT = re.compile(r'(?:python[0-9.]*|\$1)"?((?:\s+-\S+)+)')


def exposed(words):
    """The first Python among the words of a command that takes modules from the current folder; None: there is none."""
    for at, word in enumerate(words):
        if _PROGRAM.search(word) and _reaches_current_folder(words[at + 1 :]):
            return " ".join(words[at:])
    return None


def exposed_in_text(text):
    """The same for the text of a script or a Makefile, as lines."""
    return [
        line.strip()
        for line in text.splitlines()
        for options in _IN_TEXT.findall(line)
        if _reaches_current_folder(options.split())
    ]


def exposed_in_code(tree):
    """The same for the commands that a module has as lists or tuples: the lines in which they begin."""
    nodes = (node for node in ast.walk(tree) if isinstance(node, ast.List | ast.Tuple))
    return [node.lineno for node in nodes if exposed([_word(element) for element in node.elts])]


def refuse_exposed(event, arguments):
    """An audit hook (sys.addaudithook): an error for what tare's one door to processes starts and should not."""
    if event != "subprocess.Popen" or not _by_the_door():
        return
    _, words, cwd, env = arguments
    words = [str(word) for word in words]
    if found := exposed(words):
        raise AssertionError(f"a Python that takes modules from the current folder: {found}")
    if not Path(cwd or ".").is_absolute():
        raise AssertionError(f"it runs in the current folder: {words}")
    if env is None:
        raise AssertionError(f"it has all of tare's environment: {words}")


def _by_the_door():
    frame = sys._getframe(2)
    while frame is not None and frame.f_globals["__name__"] in {"subprocess", "tare.host.processes"}:
        if frame.f_code.co_name == "start" and frame.f_globals["__name__"] == "tare.host.processes":
            return True
        frame = frame.f_back
    return False


def _reaches_current_folder(options):
    for option in options:
        if option in ISOLATED or not option.startswith("-"):
            return False
        if option.startswith(("-c", "-m")):
            return True
    return False


def _word(element):
    """A word of a command, as far as the code says it: the last text in its expression."""
    if isinstance(element, ast.Attribute) and element.attr == "executable":
        return "python3"
    texts = [node.value for node in ast.walk(element) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    return texts[-1] if texts else "?"
