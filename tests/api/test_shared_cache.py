"""The cache that nodes share, in a real Redis: what comes from there, what a write drops there, and what happens while it is away."""
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import pytest

from weirserver import BINARY, Person, Server, eventually

PASSWORD = "p@ss/word"
IN_URL = "p%40ss%2Fword"


class Redis:
    """A private server; keeps its port over `kill` and `start`."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="weir-redis-")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"redis://:{IN_URL}@127.0.0.1:{self.port}/3"

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder, "--save", "", "--appendonly",
             "no", "--requirepass", PASSWORD], stdout=subprocess.DEVNULL)
        assert eventually(self._answers)
        return self

    def _answers(self):
        try:
            return self.ask("PING") == "+PONG"
        except OSError:
            return False

    def ask(self, *words):
        """One command; a simple reply as its line, an array of texts as a list."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=5) as wire:
            for command in (("AUTH", PASSWORD), ("SELECT", "3"), words):
                wire.sendall(b"*%d\r\n" % len(command) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w.encode()) for w in command))
            reader = wire.makefile("rb")
            lines = [reader.readline().rstrip().decode() for _ in range(3)]
            if not lines[2].startswith("*"):
                return lines[2]
            texts = []
            for _ in range(int(lines[2][1:])):
                size = int(reader.readline()[1:])
                texts.append(reader.read(size).decode())
                reader.read(2)
            return texts

    def values(self, kind):
        return [name for name in self.ask("KEYS", f"weir:*:{kind}:*") if not name.endswith(":lease")]

    def send(self, which):
        self.process.send_signal(which)

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def redis():
    with Redis() as running:
        yield running


def site(redis, **env):
    return Server(env={"WEIR_CACHE_REMOTE": redis.url, **env})


def looks(server, cache, result):
    return server.sum_of("weir_cache_lookups_total", cache=cache, level="remote", result=result)


def read(server, article):
    """The article without its counts, which reading changes."""
    answer = server.get(f"/v1/articles/{article}")
    assert answer.status_code == 200, answer.text
    return {key: value for key, value in answer.json().items() if key != "interaction"}


def checks(server):
    return server.get("/readyz").json()["checks"]


def test_a_restarted_server_reads_what_it_has_shared(redis):
    with site(redis) as server:
        ann = Person(server, nickname="Ann 安")
        article = ann.article("Water 水", "Words\nand \"more\"")
        first = read(server, article)
        assert eventually(lambda: redis.values("article") and redis.values("user"))
        assert server.stop() == 0
        server.start()
        assert read(server, article) == first
        assert looks(server, "article", "hit") == 1 and looks(server, "user", "hit") >= 1
        assert server.sum_of("weir_cache_loads_total", cache="article") == 0
        assert checks(server)["cache"] == "ok"


def test_writes_drop_what_is_shared(redis):
    with site(redis) as server:
        ann = Person(server, nickname="Ann")
        article = ann.article("One", "First.")
        assert server.get(f"/v1/articles/{article}").json()["title"] == "One"
        assert ann.put(f"/v1/articles/{article}", {"title": "Two", "content": "Second."}).status_code == 200
        assert ann.post(f"/v1/articles/{article}/publish").status_code == 200
        assert ann.request("PATCH", "/v1/me", json={"nickname": "Anna"}).status_code == 200
        seen = server.get(f"/v1/articles/{article}").json()
        assert seen["title"] == "Two" and seen["author"]["nickname"] == "Anna"
        # Another's attempt changes nothing, not even what is cached.
        assert eventually(lambda: redis.values("article"))
        assert Person(server).post(f"/v1/articles/{article}/publish").status_code == 403
        assert redis.values("article")
        # What is shared is new as well.
        assert server.stop() == 0
        server.start()
        seen = server.get(f"/v1/articles/{article}").json()
        assert seen["title"] == "Two" and seen["author"]["nickname"] == "Anna"
        assert ann.post(f"/v1/articles/{article}/withdraw").status_code == 200
        assert not redis.values("article")
        assert server.get(f"/v1/articles/{article}").status_code == 404
        assert server.stop() == 0
        server.start()
        assert server.get(f"/v1/articles/{article}").status_code == 404


@pytest.mark.parametrize("trouble", ["stopped", "paused"])
def test_a_redis_that_is_away_fails_no_read(redis, trouble):
    with site(redis) as server:
        ann = Person(server)
        articles = [ann.article(f"Number {i}") for i in range(20)]
        assert server.stop() == 0  # the local cache is empty
        server.start()
        assert eventually(lambda: checks(server)["cache"] == "ok")
        redis.kill() if trouble == "stopped" else redis.send(signal.SIGSTOP)
        began = time.monotonic()
        for article in articles:
            assert server.get(f"/v1/articles/{article}").status_code == 200
        assert time.monotonic() - began < 10
        ready = eventually(lambda: server.get("/readyz").json()["checks"]["cache"] == "degraded" and server.get("/readyz"))
        assert ready.status_code == 200 and ready.json()["status"] == "degraded"
        # Writes stand.
        other = Person(server)
        made = other.article("Meanwhile")
        assert server.get(f"/v1/articles/{made}").json()["title"] == "Meanwhile"
        redis.start() if trouble == "stopped" else redis.send(signal.SIGCONT)
        assert eventually(lambda: checks(server)["cache"] == "ok")
        again = other.article("Afterwards")
        assert server.get(f"/v1/articles/{again}").status_code == 200
        assert eventually(lambda: any(f"{{{again}}}" in name for name in redis.values("article")))
        assert server.stop() == 0


def test_a_redis_that_refuses_writes_brings_nothing_back(redis):
    with site(redis) as server:
        ann = Person(server)
        gone, stays = ann.article("Gone"), ann.article("Stays")
        assert server.get(f"/v1/articles/{gone}").status_code == 200
        assert eventually(lambda: len(redis.values("article")) == 2)
        assert redis.ask("CONFIG", "SET", "min-replicas-to-write", "1") == "+OK"  # reads go on
        assert ann.post(f"/v1/articles/{gone}/withdraw").status_code == 200
        assert server.get(f"/v1/articles/{gone}").status_code == 404
        assert server.sum_of("weir_cache_owed_drops", cache="article") == 1
        time.sleep(6)  # longer than an absence is believed here
        assert server.get(f"/v1/articles/{gone}").status_code == 404
        assert redis.ask("CONFIG", "SET", "min-replicas-to-write", "0") == "+OK"
        time.sleep(6)
        assert server.get(f"/v1/articles/{gone}").status_code == 404
        assert server.get(f"/v1/articles/{stays}").status_code == 200
        assert eventually(lambda: server.sum_of("weir_cache_owed_drops", cache="article") == 0)


def test_protect_answers_503_while_redis_is_away(redis):
    with site(redis, WEIR_CACHE_ON_REMOTE_ERROR="protect") as server:
        article = Person(server).article()
        assert server.stop() == 0
        server.start()
        redis.kill()
        answer = server.get(f"/v1/articles/{article}")
        assert answer.status_code == 503 and answer.json()["code"] == "unavailable"
        assert int(answer.headers["Retry-After"]) >= 1
        redis.start()
        assert eventually(lambda: server.get(f"/v1/articles/{article}").status_code == 200)


def test_without_the_lease_it_is_shared_all_the_same(redis):
    with site(redis, WEIR_CACHE_LEASE="false") as server:
        article = Person(server).article()
        assert server.stop() == 0
        server.start()
        assert server.get(f"/v1/articles/{article}").status_code == 200
        assert looks(server, "article", "hit") == 1


def command(server, redis, *words):
    run = subprocess.run([BINARY, *words, "--data", server.data], capture_output=True, text=True, timeout=60,
                         env={**os.environ, "WEIR_CACHE_REMOTE": redis.url})
    assert run.returncode == 0, run.stderr


def test_commands_drop_what_is_shared_and_tell_the_server(redis):
    with site(redis) as server:
        ann = Person(server)
        assert eventually(lambda: server.sum_of("weir_redis_connected", client="cache_feed") == 1)
        assert ann.get("/v1/me").json()["roles"] == []
        assert eventually(lambda: redis.values("user"))
        command(server, redis, "admin", "grant", ann.email)
        # At once, though the local cache would have believed the old profile for minutes.
        assert eventually(lambda: ann.get("/v1/me").json()["roles"] == ["admin"])
        assert server.sum_of("weir_cache_heard_total", cache="user") == 1
        assert server.sum_of("weir_cache_told_total", cache="user", outcome="error") == 0


def test_what_may_have_been_missed_is_not_believed(redis):
    with site(redis) as server:
        ann = Person(server)
        assert ann.get("/v1/me").json()["roles"] == []
        redis.kill()
        assert eventually(lambda: checks(server)["cache"] == "degraded")
        command(server, redis, "admin", "grant", ann.email)  # nobody can be told
        assert ann.get("/v1/me").json()["roles"] == []
        redis.start()
        assert eventually(lambda: ann.get("/v1/me").json()["roles"] == ["admin"])


def test_two_sites_on_one_redis_keep_apart(redis):
    with site(redis) as one, site(redis) as two:
        ann, bob = Person(one, nickname="Ann"), Person(two, nickname="Bob")
        assert ann.id == bob.id  # ids count from 1
        first, second = ann.article("Ann's"), bob.article("Bob's")
        assert first == second
        for _ in range(2):
            assert one.get(f"/v1/articles/{first}").json()["title"] == "Ann's"
            assert two.get(f"/v1/articles/{second}").json()["title"] == "Bob's"
            assert ann.get("/v1/me").json()["nickname"] == "Ann" and bob.get("/v1/me").json()["nickname"] == "Bob"
            for server in (one, two):
                assert server.stop() == 0
                server.start()


def test_the_password_is_not_logged_by_a_server_that_repeats_it():
    redis = Redis()
    redis.process = subprocess.Popen(["redis-server", "--port", str(redis.port), "--bind", "127.0.0.1", "--dir", redis.folder, "--save", "",
                                      "--rename-command", "AUTH", ""], stdout=subprocess.DEVNULL)
    try:
        with site(redis) as server:
            assert eventually(lambda: any("AUTH" in line for line in server.log))
            Person(server)
            assert PASSWORD not in "".join(server.log)
    finally:
        redis.__exit__()


@pytest.mark.parametrize("key, value, told", [
    ("WEIR_CACHE_REMOTE", "rediss://:hush@127.0.0.1", "TLS isn't supported"),
    ("WEIR_CACHE_REMOTE", "http://:hush@127.0.0.1", "the scheme isn't redis"),
    ("WEIR_CACHE_REMOTE", "redis://ann@127.0.0.1", "a user without a password"),
    ("WEIR_CACHE_REMOTE", "redis://:hush@h%0d%0aFLUSHALL", "control characters"),
    ("WEIR_CACHE_LEASE", "yes", "true or false"),
    ("WEIR_CACHE_ON_REMOTE_ERROR", "bulkhed", "bulkhead"),
])
def test_what_cannot_be_used_stops_the_start(tmp_path, key, value, told):
    run = subprocess.run([BINARY, "serve", "--data", str(tmp_path)], env={**os.environ, key: value}, capture_output=True, text=True,
                         timeout=60)
    assert run.returncode == 2 and key in run.stderr and told in run.stderr, run.stderr
    assert "hush" not in run.stderr and "ann@" not in run.stderr


def test_the_password_is_not_shown(redis):
    run = subprocess.run([BINARY, "config"], env={**os.environ, "WEIR_CACHE_REMOTE": redis.url}, capture_output=True, text=True,
                         timeout=60)
    assert run.returncode == 0 and f"redis://***@127.0.0.1:{redis.port}/3" in run.stdout
    assert "word" not in "".join(line for line in run.stdout.splitlines() if "remote" in line)
