"""Hosts that answer Ansible with what should be more than an answer: in a real play, by a program in ssh's place."""

import base64
import json

import pytest

from tare.fleet import playing
from tare.fleet.playing import Inventory

#: What is run on a host, run here.
SSH = """\
#!/bin/sh
for last; do :; done
case "$*" in
    *192.0.2.4*) printf 'sh: %s' "$(cat {forged})" >&2; exit 255 ;;
    *192.0.2.3*) sleep 100 ;;
    *192.0.2.5*) cat {template} ;;
    *) exec sh -c "$last" ;;
esac
"""
#: A Python that will do, and answers for each module.
PYTHON = """\
#!/bin/sh
case "$*" in *"%d.%d"*) echo 3.11; exit ;; *venv*) exit ;; esac
if grep -q ansible.legacy.stat; then
    echo '{{"changed": false, "stat": {{"exists": true, "isdir": false, "checksum": "abc"}}}}'
else
    cat {answer}
fi
"""
PROGRAM = """\
#!/bin/sh
echo "$@" >>{ran}
exit 1
"""
EVENT = {"uuid": "1", "event": "runner_on_ok", "event_data": {"host": "other", "task": "status", "res": {"state": "x"}}}


def script(file, text):
    file.write_text(text)
    file.chmod(0o755)
    return file


def forged(event):
    """An event as ansible-runner finds it in what ansible-playbook prints."""
    start, end = (base64.b64encode(json.dumps(data).encode()).decode() for data in (event, {}))
    return "".join(f"\x1b[K{data}\x1b[{len(data)}D\x1b[K" for data in (start, end))


@pytest.fixture(scope="module")
def played(tmp_path_factory):
    """A play with hostile hosts: what was heard of each, and what ran here."""
    place = tmp_path_factory.mktemp("hostile")
    words, ran = forged(EVENT), place / "ran"
    (place / "forged").write_text(words)
    ssh = script(place / "ssh", SSH.format(forged=place / "forged", template=place / "template"))
    program = str(script(place / "program", PROGRAM.format(ran=ran)))
    template = f"{{{{ lookup('ansible.builtin.pipe', '{program} by a template') }}}}"
    names = ("python", "version", "machine", "name", "has", "images", "client")
    (place / "template").write_text("".join(f"tare-fleet {name}={template}\n" for name in names))
    said = {"state": "complete", "over": True, "file": "/etc/hostname", "changed": True}
    facts = {f"ansible_{name}_executable": program for name in ("sftp", "scp", "ssh", "shell", "piped", "su", "sudo")}
    added = {"host_name": "other", "host_vars": {"ansible_connection": "local", "ansible_become_exe": program}}
    answers = {
        "facts": {**said, "ansible_facts": facts, "add_host": added, "_ansible_delegated_vars": facts},
        "words": {**said, "warnings": [words], "deprecations": [{"msg": words, "version": "9"}], "exception": words},
        "files": {**said, "file": template, "state": template, "msg": template},
        "fails": {"failed": True, "msg": words, "exception": f"Traceback\n{words}", "module_stderr": words},
    }
    lines = ["other ansible_connection=local", "[all:vars]", f"ansible_ssh_executable={ssh}"]
    for name, answer in answers.items():
        (place / f"{name}.json").write_text(json.dumps(answer))
        python = script(place / f"python-{name}", PYTHON.format(answer=place / f"{name}.json"))
        lines.insert(0, f"{name} ansible_host=192.0.2.1 ansible_python_interpreter={python}")
    addresses = {"silent": 3, "unreached": 4, "templates": 5}
    lines[:0] = [f"{name} ansible_host=192.0.2.{last}" for name, last in addresses.items()]
    (place / "hosts.ini").write_text("\n".join(lines) + "\n")
    heard = {}

    def hear(event):
        data = event.get("event_data") or {}
        heard.setdefault(data.get("host"), {})[data.get("task")] = (event["event"], data.get("res") or {})

    hosts = [*addresses, *answers]
    variables = {"tare_fleet_id": "0" * 8, "tare_step": "status", "tare_fetch": True, "tare_look_limit_s": 8,
                 "tare_names": dict(zip(hosts, hosts, strict=True))}  # fmt: skip
    with playing.owned(place / "fleet") as work:
        variables["tare_incoming"] = str(work / "incoming")
        playing.play("one", Inventory((str(place / "hosts.ini"),)), variables, work, hear, forks=5, limit=hosts)
    return heard, ran


def test_a_hosts_facts_name_no_program_that_is_executed_here(played):
    heard, ran = played
    assert heard["facts"]["status"][0] == "runner_on_ok"
    assert "fetch" in heard["facts"], "what moves files was reached"
    assert not ran.exists()


def test_no_template_of_a_host_is_filled_in_here(played):
    heard, ran = played
    assert heard["templates"]["look"][0] == "runner_on_ok"
    assert "status" in heard["templates"], "what it says of its Python was used"
    assert "lookup" in heard["files"]["status"][1]["file"]
    assert not ran.exists()


def test_no_host_tells_of_another(played):
    heard, _ = played
    assert {name: heard[name]["status"][0] for name in ("words", "fails")} == {
        "words": "runner_on_ok",
        "fails": "runner_on_failed",
    }
    assert heard["unreached"]["look"][0] == "runner_on_unreachable"
    assert "other" not in heard


def test_a_host_that_never_answers_is_given_up(played):
    heard, _ = played
    assert heard["silent"]["look"][0] == "runner_on_failed"
