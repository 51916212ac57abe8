"""All four servers, really used: ready in time, private, kept by a second `up`, started again after an accident, gone after `down`."""
import os
import select
import signal
import socket
import subprocess
import time
import warnings

import pytest
from privateservers import (COULD_NOT_BE_FETCHED, SCRIPT, Services, kafka_tool, listening, password_of, port_of, settings, tool,
                            use_database, use_rabbitmq)
from weirserver import eventually

ALL = ("mariadb", "redis", "rabbitmq", "kafka")
NAMES = {"WEIR_STORE_URL", "WEIR_CACHE_REMOTE", "WEIR_LOCK_URL", "WEIR_QUEUE_URL", "WEIR_QUEUE_URL_AMQP"}
READY_SECONDS = 60
LOOPBACK = {"0100007F", "00000000000000000000000001000000"}  # 127.0.0.1 and ::1


class Running:
    """What was brought up for all tests of this file."""

    def __init__(self, services):
        self.services = services
        self.names = ALL
        done = self._up("")
        if done.returncode == COULD_NOT_BE_FETCHED:
            warnings.warn("KAFKA ISN'T TESTED: " + done.stderr)
            self.names = tuple(name for name in ALL if name != "kafka")
            done = self._up(" ".join(self.names))
        assert done.returncode == 0, done.stderr
        print(done.stderr, f"all together: {self.seconds:.1f} s")
        self.lines = settings("\n".join(line for line in done.stdout.splitlines() if line.split("=")[0] in NAMES))

    def _up(self, names):
        """As the user of a shell does it: the substitution ends only when no server holds its pipe. Another pipe is kept for a test."""
        self.reader, writer = os.pipe()
        began = time.monotonic()
        done = subprocess.run(["bash", "-c", f'lines=$("{SCRIPT}" up {names}) && export $lines && env'], env=self.services.env,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, pass_fds=[writer], text=True, timeout=300)
        self.seconds = time.monotonic() - began
        os.close(writer)
        return done


@pytest.fixture(scope="module")
def running():
    with Services() as services:
        yield Running(services)


@pytest.fixture
def services(running):
    return running.services


@pytest.fixture
def lines(running):
    return running.lines


def test_all_are_ready_within_a_minute_and_their_settings_are_printed(running):
    assert running.seconds < READY_SECONDS
    assert set(running.lines) == (NAMES if "kafka" in running.names else NAMES - {"WEIR_QUEUE_URL"})


def test_servers_hold_no_descriptor_of_their_caller(running):
    ready, _, _ = select.select([running.reader], [], [], 5)
    assert ready and os.read(running.reader, 1) == b""  # nobody has the other end of the pipe
    os.close(running.reader)


def test_the_database_takes_its_user_alone_and_keeps_every_character(lines):
    use_database(lines)


def test_redis_wants_its_password(lines):
    assert lines["WEIR_CACHE_REMOTE"] == lines["WEIR_LOCK_URL"]
    port, secret = port_of(lines["WEIR_CACHE_REMOTE"]), {"REDISCLI_AUTH": password_of(lines["WEIR_CACHE_REMOTE"])}
    assert tool("redis-cli", "-p", port, "SET", "key", "value", env=secret) == "OK\n"
    assert tool("redis-cli", "-p", port, "GET", "key", env=secret) == "value\n"
    assert "NOAUTH" in tool("redis-cli", "-p", port, "GET", "key")


def test_rabbitmq_takes_its_user_alone_and_answers_its_tool(services, lines):
    use_rabbitmq(lines)
    listed = tool(services.folder / "rabbitmq/rabbitmqctl", "--silent", "list_permissions", "--vhost", "weir")
    assert listed.splitlines()[-1].split() == ["weir", ".*", ".*", ".*"]


def test_kafka_takes_and_gives_a_message(running, lines):
    if "kafka" not in running.names:
        pytest.skip("Kafka's jars couldn't be fetched")
    url = lines["WEIR_QUEUE_URL"]
    assert url.startswith("kafka://127.0.0.1:")
    at = ["--bootstrap-server", url.removeprefix("kafka://"), "--topic", "words"]
    kafka_tool("ConsoleProducer", *at, given="first\nsecond\n")
    assert kafka_tool("consumer.ConsoleConsumer", *at, "--from-beginning", "--max-messages", "2") == "first\nsecond\n"


def test_nobody_else_gets_in(services, lines):
    assert services.folder.stat().st_mode & 0o777 == 0o700
    processes = services.processes()
    assert set(services.pids()) <= set(processes)
    addresses = listening(processes)
    assert len(addresses) >= len(lines) - 1 and set(addresses) <= LOOPBACK
    secrets = [password_of(url) for url in lines.values() if password_of(url)]
    for pid in processes:
        with open(f"/proc/{pid}/cmdline") as command:
            words = command.read()
        assert not any(secret in words for secret in secrets), words


def test_status_tells_where_and_since_when(running, services):
    done = services("status", *running.names)
    assert done.returncode == 0
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [[name, "running"] for name in running.names]
    redis = next(line for line in done.stdout.splitlines() if line.startswith("redis"))
    assert f"127.0.0.1:{port_of(running.lines['WEIR_CACHE_REMOTE'])} " in redis and f"since {time.strftime('%Y-')}" in redis
    assert services("status", "redis", "redis-cluster").returncode == 1


def test_up_again_changes_nothing(running, services, lines):
    before = services.pids()
    assert services.up(*running.names) == lines
    assert services.pids() == before


def test_killed_servers_are_told_and_started_again_where_they_were(running, services, lines):
    for name, use in (("redis", None), ("mariadb", use_database), ("rabbitmq", use_rabbitmq)):
        kept = [other for other in running.names if other != name]
        before = services.pids(*kept)
        victim = services.pids(name)[-1]
        os.kill(victim, signal.SIGKILL)
        assert eventually(lambda n=name: f"{n:14}dead" in services("status").stdout)
        assert services("status", name).returncode == 1
        # Usable when `up` returns, and not somewhat later; asked for alone, because another's start could hide that.
        assert services.up(name).items() <= lines.items()
        if use:
            use(lines)
        assert services("status", *running.names).returncode == 0
        assert services.pids(*kept) == before
        assert victim not in services.pids(name)


def test_a_port_that_another_program_took_is_named_and_the_data_stays(services, lines):
    port = port_of(lines["WEIR_CACHE_REMOTE"])
    os.kill(services.pids("redis")[0], signal.SIGKILL)
    assert eventually(lambda: services("status", "redis").returncode == 1)
    with socket.socket() as squatter:
        squatter.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        squatter.bind(("127.0.0.1", port))
        squatter.listen()
        done = services("up", "redis")
        assert done.returncode == 1 and done.stdout == ""
        assert f"port {port}" in done.stderr and "taken" in done.stderr
    assert services.up("redis")["WEIR_CACHE_REMOTE"] == lines["WEIR_CACHE_REMOTE"]


def test_down_leaves_nothing(running, services, lines):
    """The last of this file: it ends what the others use."""
    pids = services.processes()
    assert len(pids) >= len(running.names)
    assert services("down", "redis").returncode == 0
    assert services("status", "redis").returncode == 1 and services("status", "mariadb").returncode == 0
    assert services("down").returncode == 0
    assert services.left() == []
    for url in lines.values():
        with socket.socket() as probe:
            assert probe.connect_ex(("127.0.0.1", port_of(url))) != 0
    assert services("status").returncode == 1
    assert services("down").returncode == 0
