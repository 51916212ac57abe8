"""The lab's command: accidents and their cures."""
import json
import subprocess

import pytest
from weirserver import BINARY

NAMES = ["stampede", "penetration", "avalanche", "stale-fill", "double-write", "long-absence", "lost-wakeup", "cache-down"]


def lab(*words, cwd):
    """Without a store, a data directory or a variable: a lab needs nothing."""
    return subprocess.run([BINARY, "lab", *words], capture_output=True, text=True, timeout=60, cwd=cwd, env={"PATH": "/usr/bin:/bin"})


def test_the_list_names_every_accident(tmp_path):
    listed = lab("list", cwd=tmp_path)
    assert listed.returncode == 0
    assert [line.split()[0] for line in listed.stdout.splitlines()] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_cure_holds(name, tmp_path):
    done = lab("run", name, "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)  # JSON and nothing else
    assert list(document) == ["name", "held", "without", "with"]
    assert document["name"] == name and document["held"] is True
    assert document["without"] and list(document["without"]) == list(document["with"])
    assert document["without"] != document["with"]
    assert done.stderr == "" and not list(tmp_path.iterdir())


def test_people_get_a_table(tmp_path):
    done = lab("run", "stale-fill", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    assert ["without", "with"] in rows and ["they", "agree", "no", "yes"] in rows
    assert "weir/cache/lease_table.h" in done.stdout


def test_what_is_not_there_is_refused_with_the_nearest(tmp_path):
    for words, guess in [(["run", "stampde"], '"stampede"'), (["run", "stale_fill", "--json"], '"stale-fill"'), (["rnu"], '"run"')]:
        done = lab(*words, cwd=tmp_path)
        assert done.returncode == 2 and guess in done.stderr and done.stdout == "", done.stdout + done.stderr
    assert lab("run", cwd=tmp_path).returncode == 2 and lab(cwd=tmp_path).returncode == 2
