"""What others' machines run: the action, the templates, the jobs for HPC sites, held to the services' own schemas."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import jsonschema
import pytest
import yaml
from check_jsonschema.builtin_schemas import get_builtin_schema
from ruamel.yaml import YAML

HERE = Path(__file__).parents[2]
EXAMPLES = HERE / "docs" / "examples"
ACTION = HERE / "action.yml"
GATE = EXAMPLES / "ci" / "gate.sh"


@pytest.mark.parametrize(
    ("schema", "files"),
    [
        ("github-actions", ["action.yml"]),
        ("github-workflows", ["docs/examples/ci/github.yml"]),
        ("gitlab-ci", ["docs/examples/ci/gitlab.yml", "docs/examples/ci/gitlab-template.yml"]),
    ],
)
def test_files_hold_to_the_services_own_schema(schema, files):
    validator = jsonschema.validators.validator_for(loaded := get_builtin_schema(f"vendor.{schema}"))(loaded)
    yaml_1_2 = YAML(typ="safe", pure=True)  # in which `on` is a word
    for name in files:
        assert [error.message for error in validator.iter_errors(yaml_1_2.load(HERE / name))] == []
    wrong = {"runs": {"using": "composite", "steps": [{"shell": 1}]}, "jobs": 7, "job": {"script": {}}}
    assert not validator.is_valid(wrong)


def scripts(node):
    """The shell scripts of an action or a template."""
    if isinstance(node, dict):
        if isinstance(node.get("run"), str):
            yield node["run"]
        if isinstance(node.get("script"), list):
            yield "\n".join(node["script"])
        for value in node.values():
            yield from scripts(value)
    elif isinstance(node, list):
        for value in node:
            yield from scripts(value)


@pytest.mark.parametrize("file", [ACTION, EXAMPLES / "ci" / "gitlab-template.yml"], ids=lambda path: path.name)
def test_scripts_parse_and_no_value_of_others_is_part_of_one(file):
    """A branch's name in a script would be run; as a variable it is data."""
    found = [*scripts(yaml.safe_load(file.read_text()))]
    assert len(found) >= 1
    for script in found:
        subprocess.run(["bash", "-n"], input=script, text=True, check=True)
        assert "${{" not in script


def test_action_gives_the_gate_every_variable_that_it_takes():
    takes = {name for name in re.findall(r"\$\{(\w+):-", GATE.read_text()) if not name.startswith("GITHUB")}
    step = next(step for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"] if step.get("id") == "gate")
    assert takes == set(re.findall(r"\b([A-Z]+)=", step["run"])) & takes
    template = (EXAMPLES / "ci" / "gitlab-template.yml").read_text()
    assert takes == {name for name in takes if re.search(rf"\b{name}\b", template)}


@pytest.mark.skipif(shutil.which("jq") is None, reason="needs jq: apt-get install jq")
def test_a_forks_branch_of_the_same_name_is_no_baseline(tmp_path):
    """jq stands for `gh api`, which has its language; a fork's artefact is the newest, and names the same branch."""
    steps = yaml.safe_load(ACTION.read_text())["runs"]["steps"]
    [find] = [step["run"] for step in steps if step["name"] == "Find the baseline"]
    runs = [(7, 2, "main"), (6, 1, "topic"), (5, 1, "main"), (4, 1, "main")]
    artifacts = [
        {
            "expired": False,
            "workflow_run": {"id": run, "repository_id": 1, "head_repository_id": of, "head_branch": name},
        }
        for run, of, name in runs
    ]
    (tmp_path / "answer").write_text(json.dumps({"artifacts": artifacts}))
    gh = tmp_path / "gh"
    gh.write_text(f"""\
#!/bin/sh
case $1 in
    api) for query; do :; done; exec jq -r "$query" {tmp_path}/answer ;;
    run) echo "$@" >{tmp_path}/words ;;
esac
""")
    gh.chmod(0o755)
    variables = {
        "BASELINE": "tare-baseline",
        "BRANCH": "main",
        "GITHUB_REPOSITORY": "a/b",
        "RUNNER_TEMP": str(tmp_path),
    }
    environment = os.environ | variables | {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    subprocess.run(["bash", "-e"], input=find, text=True, env=environment, check=True)
    assert (tmp_path / "words").read_text().startswith("run download 5 ")


@pytest.mark.parametrize("name", ["gitlab-template.yml", "gitlab.yml", "github.yml"])
def test_a_job_takes_no_campaign_that_the_change_brought(name):
    """Its checkout may have files and links of the names that the job reads and writes."""
    lines = [line.strip() for line in (EXAMPLES / "ci" / name).read_text().splitlines()]
    removed = next(number for number, line in enumerate(lines) if re.search(r"^(- )?rm -f main\.tare new\.tare", line))
    first = next(number for number, line in enumerate(lines) if re.search(r"^(- )?(cp|curl|sh) ", line))
    assert removed < first


def slurm(folder, code):
    """Stand-ins for srun, which starts the command on one node, and for tare, which notes its words."""
    bin_ = folder / "bin"
    bin_.mkdir()
    (bin_ / "srun").write_text('#!/bin/sh\nwhile [ "${1#--}" != "$1" ]; do shift; done\nexec "$@"\n')
    (bin_ / "tare").write_text(
        f'#!/bin/sh\necho "$@" >>{folder}/words\nfor word; do case $word in *.tare) echo more >>"$word" ;; esac; done\n'
        f"exit $(cat {folder}/code)\n"
    )
    for program in bin_.iterdir():
        program.chmod(0o755)
    (folder / "code").write_text(str(code))
    environment = {"SLURM_JOB_ID": "7", "SLURM_SUBMIT_DIR": str(folder), "TMPDIR": str(folder)}
    return os.environ | environment | {"PATH": f"{bin_}:{os.environ['PATH']}"}


def test_a_job_that_was_cut_off_goes_on_when_it_is_submitted_again(tmp_path):
    environment = slurm(tmp_path, code=130)
    job = ["bash", EXAMPLES / "hpc" / "tare.sbatch", "-p", "native"]
    assert subprocess.run(job, env=environment, check=False).returncode == 130
    (kept,) = (tmp_path / "campaigns-7").iterdir()
    assert kept.read_text() == "more\n"
    (tmp_path / "code").write_text("0")
    subprocess.run(job, env=environment, check=True)
    assert kept.read_text() == "more\nmore\n"
    first, second = (tmp_path / "words").read_text().splitlines()
    assert re.fullmatch(r"run -o \S+\.tare -p native", first)
    assert re.fullmatch(r"run --resume \S+\.tare --trust", second)
    assert not [*tmp_path.glob("*.tare")]  # nothing stays on the node


def conditions():
    """The conditions of the action's steps, by the steps' names."""
    return {step["name"]: step.get("if", "") for step in yaml.safe_load(ACTION.read_text())["runs"]["steps"]}


def test_what_a_change_brought_is_no_comment_where_nothing_was_compared():
    """A step that fails before leaves the change's own diff.md there, or a link of that name."""
    assert "steps.gate.outputs.exit-code != ''" in conditions()["Comment on the pull request"]


@pytest.mark.parametrize("step", ["Make it the baseline", "Keep the baseline"])
def test_a_baseline_is_of_the_branch_itself(step):
    """A tag may have the branch's name, and a change under pull_request_target has its base's reference."""
    condition = conditions()[step]
    assert "github.ref == format('refs/heads/{0}', inputs.baseline-branch)" in condition
    assert "github.event_name != 'pull_request_target'" in condition
    opposite = conditions()["Keep the campaign"]
    assert "github.ref != format('refs/heads/{0}', inputs.baseline-branch)" in opposite
