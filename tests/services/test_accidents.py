"""What can go wrong around `up` and `down`: signals, broken servers, other people's processes and folders, a registry that is away."""
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import time

import pytest
from privateservers import COULD_NOT_BE_FETCHED, SCRIPT, Services, settings, tool
from weirserver import eventually

NOBODY = 65534
QUICK = ("mariadb", "redis", "rabbitmq")


@pytest.fixture
def services():
    with Services() as own:
        yield own


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_up_leaves_nothing(services, number):
    seed = int(os.environ.get("WEIR_SEED", random.randrange(1 << 32)))
    print("seed", seed)
    call = services.begin("up", *QUICK)
    assert eventually(services.processes)
    time.sleep(random.Random(seed).uniform(0, 1.5))  # RabbitMQ takes longer than that
    call.send_signal(number)
    out, err = call.communicate(timeout=30)
    assert call.returncode == 128 + number, err
    assert out == ""
    assert services.left() == []


def test_an_interrupted_up_keeps_what_ran_before(services):
    before = services.up("redis")
    pid = services.pids("redis")
    call = services.begin("up", "redis", "rabbitmq")
    assert eventually(lambda: len(services.processes()) > 1)
    call.send_signal(signal.SIGTERM)
    call.communicate(timeout=30)
    assert services.processes() == pid
    assert services.up("redis") == before


def test_a_server_that_does_not_start_shows_its_log_and_takes_the_others_along(services):
    services.up("redis")
    os.kill(services.pids("redis")[0], signal.SIGKILL)
    config = next((services.folder / "redis").glob("*.conf"))
    whole = config.read_text()
    config.write_text(whole + "nonsense yes\n")
    done = services("up", "mariadb", "redis")
    assert done.returncode == 1 and done.stdout == ""
    assert "redis" in done.stderr and "nonsense" in done.stderr
    assert services.processes() == []
    assert [entry.name for entry in services.folder.iterdir()] == ["redis"]  # its data was there before
    config.write_text(whole)
    services.up("redis")


def test_an_unreachable_registry_has_an_exit_code_of_its_own(services):
    home = services.parent / "home"
    (home / ".m2").mkdir(parents=True)
    (home / ".m2/settings.xml").write_text("<settings><mirrors><mirror><id>away</id><mirrorOf>*</mirrorOf>"
                                           "<url>https://127.0.0.1:1/</url></mirror></mirrors></settings>")
    services.env.update(MAVEN_OPTS=f"-Duser.home={home}", WEIR_SERVICES_JARS=str(services.parent / "jars"))
    done = services("up", "redis", "kafka")
    assert done.returncode == COULD_NOT_BE_FETCHED and done.stdout == ""
    assert "COULDN'T BE FETCHED" in done.stderr and "kafka_2.13" in done.stderr
    assert services.left() == []


def test_a_number_that_became_another_process_is_left_alone(services):
    services.up("redis")
    state = services.folder / "redis/state.json"
    known = json.loads(state.read_text())
    (identity,) = [entry["identity"] for entry in known["processes"].values()]
    os.kill(identity["pid"], signal.SIGKILL)
    with subprocess.Popen(["sleep", "60"]) as stranger:
        try:
            identity["pid"] = stranger.pid
            state.write_text(json.dumps(known))
            assert "dead" in services("status", "redis").stdout
            assert services("down").returncode == 0
            assert stranger.poll() is None
        finally:
            stranger.kill()
    assert services.left() == []


def test_a_folder_of_somebody_is_neither_used_nor_removed(services):
    precious = services.folder / "redis/precious"
    precious.parent.mkdir(parents=True)
    services.folder.chmod(0o700)
    precious.write_text("words")
    for command in ("up", "down"):
        assert services(command, "redis").returncode == 1
    assert precious.read_text() == "words"
    services.folder.chmod(0o755)
    done = services("up", "mariadb")
    assert done.returncode == 1 and "0700" in done.stderr
    shutil.rmtree(services.folder)


def test_a_folder_that_start_scripts_would_split_is_refused(services):
    services.env["WEIR_SERVICES_DIR"] = f"{services.parent}/two words"
    done = services("up", "redis")
    assert done.returncode == 1 and "two words" in done.stderr
    assert list(services.parent.iterdir()) == []
    services.env["WEIR_SERVICES_DIR"] = str(services.folder)


def test_three_at_the_same_time_agree(services):
    calls = [services.begin("up", "mariadb") for _ in range(3)]
    answers = {call.communicate(timeout=60)[0] for call in calls}
    assert [call.returncode for call in calls] == [0, 0, 0]
    assert len(answers) == 1 and services.processes() == services.pids("mariadb")


@pytest.mark.parametrize("arguments", [["sideways"], ["up", "oracle"], []])
def test_a_wrong_word_is_refused(services, arguments):
    done = services(*arguments)
    assert done.returncode == 2 and done.stdout == "" and "usage" in done.stderr


def test_a_redis_cluster_answers_from_every_node(services):
    url = services.up("redis-cluster")["WEIR_CACHE_REMOTE_CLUSTER"]
    secret, nodes = url.removeprefix("redis-cluster://:").removesuffix("/0").split("@")
    ports = [node.rsplit(":", 1)[1] for node in nodes.split(",")]
    assert len(ports) == 6
    login = {"REDISCLI_AUTH": secret}
    for number in range(20):
        assert tool("redis-cli", "-c", "-p", ports[number % 6], "SET", f"key{number}", number, env=login) == "OK\n"
    assert tool("redis-cli", "-c", "-p", ports[0], "GET", "key19", env=login) == "19\n"
    roles = [tool("redis-cli", "-p", port, "ROLE", env=login).split()[0] for port in ports]
    assert sorted(roles) == ["master"] * 3 + ["slave"] * 3


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become somebody else; everybody else is an ordinary user anyway")
def test_an_ordinary_user_needs_no_rights():
    with Services() as services:
        # The checkout may be where others can't read.
        scripts = services.parent / "scripts"
        shutil.copytree(SCRIPT.parent, scripts)
        for path in (services.parent, *services.parent.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        call = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", scripts / "services"]
        try:
            done = subprocess.run([*call, "up", *QUICK], env=services.env, capture_output=True, text=True, timeout=200)
            assert done.returncode == 0, done.stderr
            assert set(settings(done.stdout)) == {"WEIR_STORE_URL", "WEIR_CACHE_REMOTE", "WEIR_LOCK_URL", "WEIR_QUEUE_URL_AMQP"}
            assert {pathlib.Path(f"/proc/{pid}").stat().st_uid for pid in services.processes()} == {NOBODY}
        finally:
            subprocess.run([*call, "down"], env=services.env, check=True, timeout=60)
        assert services.left() == []
