"""The GitHub action and the GitLab job of contrib/: their shell is run as a runner does, over real small studies."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.parse import parse_qs

import pytest
import yaml

from tests.documents import ROOT, blocks, understood, unknown_words

ACTION = yaml.safe_load((ROOT / "contrib/github/action.yml").read_text(encoding="utf-8"))
JOB = yaml.safe_load((ROOT / "contrib/gitlab/dbdyno.yml").read_text(encoding="utf-8"))[".dbdyno"]
STEPS = {step["name"]: step for step in ACTION["runs"]["steps"]}
SCRIPTS = {name: step["run"] for name, step in STEPS.items() if "run" in step} | {"GitLab": "\n".join(JOB["script"])}
PROGRAM = """\
#!/bin/bash
seed=$((DBDYNO_SEED & 0x7fffffff))  # from the study's, so that each test has the same rates every time
echo "rate: $(({base} + seed / {place} % {noise}))"
"""
STUDY = """\
version = 1
[study]
title = "Two programs"
[stack]
device = "here"
server = "none"
[workload]
kind = "command"
command = ["./before.sh", "./after.sh"]
figure = "rate: ([0-9.]+)"
[design]
seed = 1
blocks = 8
margin = "5%"
interference = "note"
[fail_if]
slower = "10%"
"""
OUTCOMES = {"passed": (0, 1000, 20), "failed": (3, 700, 20), "undecided": (4, 1000, 900)}  # code, rate after, noise


@pytest.fixture
def desk(state):
    """Return a function that has two programs and a study in a runner's folder, and its environment."""
    tmp_path = Path(tempfile.mkdtemp(prefix="dbdyno-ci-", dir="/var/tmp"))
    tmp_path.chmod(0o755)  # as root, the programs run as nobody

    def laid(outcome):
        _, after, noise = OUTCOMES[outcome]
        for name, base, place in (("before.sh", 1000, 1), ("after.sh", after, 1000)):
            (tmp_path / name).write_text(PROGRAM.format(base=base, noise=noise, place=place), encoding="utf-8")
            (tmp_path / name).chmod(0o755)
        (tmp_path / "study.toml").write_text(STUDY, encoding="utf-8")
        own = tmp_path / "bin"
        own.mkdir()
        _program(own / "dbdyno", f'exec {shlex.quote(sys.executable)} -m dbdyno.cli.main "$@"')
        _program(own / "gh", 'printf "%s\\n" "$@" > "$GH_LOG"')  # there is no GitHub here
        log = tmp_path / "gh.log"
        more = {"PATH": f"{own}:{os.environ['PATH']}", "DBDYNO_STATE_DIR": str(state), "GH_LOG": str(log)}
        outputs = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
        return tmp_path, {**os.environ, **more, **outputs}

    yield laid
    shutil.rmtree(tmp_path)


def _program(path, line):
    path.write_text(f"#!/bin/bash\n{line}\n", encoding="utf-8")
    path.chmod(0o755)


def shell(script, folder, environment):
    """Run a step as GitHub's runner does."""
    argv = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_step_is_shell_without_a_value_of_others_in_its_text(name):
    assert subprocess.run(["bash", "-n"], input=SCRIPTS[name], text=True, check=False).returncode == 0
    assert "${{" not in SCRIPTS[name], "what a pull request names must not become shell; give it in env"


def test_every_command_is_one_of_dbdyno():
    lines = [line for script in SCRIPTS.values() for line in script.splitlines()]
    found = [re.split(r" \|\| | > ", line.strip())[0] for line in lines if line.strip().startswith("dbdyno ")]
    assert len(found) >= 5
    for line in found:
        words = shlex.split(line)[1:]
        assert unknown_words(words) == []
        understood(words)


def test_inputs_that_steps_use_are_declared():
    text = (ROOT / "contrib/github/action.yml").read_text(encoding="utf-8")
    assert set(re.findall(r"inputs\.([\w-]+)", text)) == set(ACTION["inputs"])
    used = {name for name in re.findall(r"\$\{?(DBDYNO_\w+)", SCRIPTS["GitLab"]) if name != "DBDYNO_TOKEN"}
    assert used == set(JOB["variables"])


def test_the_page_uses_them_as_they_are():
    workflow, pipeline = (yaml.safe_load(one.text) for one in blocks(ROOT / "docs/ci.md") if one.language == "yaml")
    (used,) = [step["with"] for step in workflow["jobs"]["dbdyno"]["steps"] if "dbdyno" in step.get("uses", "")]
    required = {name for name, one in ACTION["inputs"].items() if one.get("required")}
    assert required <= set(used) <= set(ACTION["inputs"])
    assert pipeline["measure"]["extends"] == ".dbdyno"
    assert set(pipeline["measure"]["variables"]) <= set(JOB["variables"])


@pytest.mark.parametrize("outcome", OUTCOMES)
def test_the_action_runs_a_study_and_ends_as_it_does(outcome, desk):
    folder, environment = desk(outcome)
    code = OUTCOMES[outcome][0]
    ran = shell(SCRIPTS["Run the study"], folder, {**environment, "STUDY": "study.toml", "INTO": "dbdyno"})
    assert ran.returncode == 0, ran.stderr
    assert (folder / "GITHUB_OUTPUT").read_text() == f"exit-code={code}\n"
    into = folder / "dbdyno"
    assert {path.name for path in into.iterdir()} == {
        "run", "card.svg", "verdicts.xml", "result.txt", "report.json", "comment.md",
    }  # fmt: skip
    assert json.loads((into / "report.json").read_text())["thresholds"]["outcome"] == outcome
    level = {"passed": "notice", "failed": "error", "undecided": "error"}[outcome]
    assert f"::{level} title=Two programs" in ran.stderr
    comment = (into / "comment.md").read_text()
    assert (folder / "GITHUB_STEP_SUMMARY").read_text() == comment
    assert {"passed": "Passed: ", "failed": "Failed (exit code 3)", "undecided": "Not judged (exit code 4)"}[
        outcome
    ] in comment
    assert all(line.startswith("    ") for line in comment.splitlines()[2:])
    pull_request = "https://example.org/pull/1"
    said = shell(SCRIPTS["Comment"], folder, {**environment, "INTO": "dbdyno", "PULL_REQUEST": pull_request})
    assert said.returncode == 0, said.stderr
    assert (folder / "gh.log").read_text().split() == [
        "pr",
        "comment",
        pull_request,
        "--body-file",
        "dbdyno/comment.md",
    ]
    assert shell(SCRIPTS["Pass or fail"], folder, {**environment, "CODE": str(code)}).returncode == code


def test_a_study_that_is_refused_leaves_no_comment(desk):
    folder, environment = desk("passed")
    (folder / "study.toml").write_text("version = 1\n", encoding="utf-8")
    ran = shell(SCRIPTS["Run the study"], folder, {**environment, "STUDY": "study.toml", "INTO": "dbdyno"})
    assert (ran.returncode, (folder / "GITHUB_OUTPUT").read_text()) == (0, "exit-code=2\n")
    assert list((folder / "dbdyno").iterdir()) == []
    assert shell(SCRIPTS["Comment"], folder, {**environment, "INTO": "dbdyno"}).returncode == 0
    assert not (folder / "gh.log").exists()


class _Notes(BaseHTTPRequestHandler):
    """The part of GitLab that takes a comment."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.server.notes.append((self.path, self.headers["PRIVATE-TOKEN"], parse_qs(body)["body"][0]))
        self.send_response(201)
        self.end_headers()

    def log_message(self, *_):
        """Say nothing."""


@pytest.fixture
def gitlab():
    server = HTTPServer(("127.0.0.1", 0), _Notes)
    server.notes = []
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def test_the_job_runs_a_study_comments_and_ends_as_it_does(desk, gitlab):
    folder, environment = desk("failed")
    of_merge_request = {
        **JOB["variables"],
        "DBDYNO_TOKEN": "secret",
        "CI_API_V4_URL": f"http://127.0.0.1:{gitlab.server_port}",
        "CI_PROJECT_ID": "7",
        "CI_MERGE_REQUEST_IID": "3",
    }
    ran = shell(SCRIPTS["GitLab"], folder, {**environment, **of_merge_request})
    assert ran.returncode == 3, ran.stderr
    ((path, token, body),) = gitlab.notes
    assert (path, token) == ("/projects/7/merge_requests/3/notes", "secret")
    assert body == (folder / "dbdyno/comment.md").read_text()
    assert "Failed (exit code 3)" in body
    assert JOB["artifacts"]["reports"]["junit"] == "$DBDYNO_INTO/verdicts.xml"
    assert (folder / "dbdyno/verdicts.xml").exists()
