"""Three nodes on one store, one cache and one queue, behind nginx, under load, while one thing after the other breaks.

WEIR_CLUSTER_TABLE names a file that gets the table of docs/operations.md; WEIR_CLUSTER_OUTAGE (seconds) is how long the broker is
away: 60 for the table, less in an ordinary run.
"""
import contextlib
import os
import pathlib
import signal
import sys
import time

import pytest
from load import Crowd, table
from nodes import ANSWER_SECONDS, Nginx, Node
from weirserver import Person, eventually

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "services"))
from privateservers import Services, password_of, port_of, settings, tool  # noqa: E402

NODES = 3
PEOPLE = 8
ARTICLES = 40
COUNTED = 6
QUIET = 3.0    # after each accident, so that each has a row of its own
HANGS = 10.0   # a Redis that neither answers nor ends
OUTAGE = float(os.environ.get("WEIR_CLUSTER_OUTAGE") or 15)
SETTLED = 60   # seconds by which all counts are right again
HOT = "GET the hot list"


class Cluster:
    """The services, the nodes and nginx, and what may happen to them."""

    def __init__(self, stack, services, lines):
        self.services, self.lines = services, lines
        env = {**lines, "WEIR_QUEUE_URL": lines["WEIR_QUEUE_URL_AMQP"], "WEIR_RANKING_EVERY": "2s", "WEIR_QUEUE_ACKS": "all"}
        self.nodes = [stack.enter_context(Node(env)) for _ in range(NODES)]
        self.nginx = stack.enter_context(Nginx([node.port for node in self.nodes]))
        self.rows = []

    @contextlib.contextmanager
    def accident(self, name):
        """A row of the table: from the accident on, until some time after it is over."""
        began = time.monotonic()
        yield
        time.sleep(QUIET)
        self.rows.append((name, began, time.monotonic()))

    def signal(self, service, number):
        for pid in self.services.pids(service):
            os.kill(pid, number)

    def stop(self, service):
        """The servers end by themselves, as on a planned restart."""
        pids = self.services.pids(service)
        self.signal(service, signal.SIGTERM)
        assert eventually(lambda: not any(os.path.exists(f"/proc/{pid}/cwd") for pid in pids), 60), f"{service} doesn't end"

    def redis(self, *words):
        url = self.lines["WEIR_CACHE_REMOTE"]
        return tool("redis-cli", "-p", port_of(url), *words, env={"REDISCLI_AUTH": password_of(url)})


@pytest.fixture(scope="module")
def cluster():
    with contextlib.ExitStack() as stack:
        services = stack.enter_context(Services())
        up = services("up", "mariadb", "redis", "rabbitmq")
        assert up.returncode == 0, up.stderr
        yield Cluster(stack, services, settings(up.stdout))


@pytest.fixture(scope="module")
def crowd(cluster):
    people = [Person(cluster.nodes[0]) for _ in range(PEOPLE)]
    articles = [people[i % PEOPLE].article(f"Article {i}", "Some words. " * 50) for i in range(ARTICLES + COUNTED)]
    first = eventually(lambda: cluster.nodes[1].get("/v1/rankings/hot").json()["items"], 30)
    assert first, "no node computes the hot list"
    tokens = [person.tokens["access_token"] for person in people]
    with Crowd(cluster.nginx.port, tokens, articles[:ARTICLES], articles[ARTICLES:]) as crowd:
        time.sleep(QUIET)
        yield crowd


def test_what_breaks_is_told_and_nothing_is_lost(cluster, crowd):
    with cluster.accident("nothing: as a measure for the others"):
        time.sleep(QUIET)
    with cluster.accident("a node is killed (kill -9) and started again after 5 s"):
        cluster.nodes[2].kill()
        time.sleep(5)
        cluster.nodes[2].start()
    with cluster.accident("Redis is stopped for 5 s"):
        cluster.stop("redis")
        time.sleep(5)
        cluster.services.up("redis")
    with cluster.accident(f"Redis hangs (SIGSTOP) for {HANGS:.0f} s"):
        cluster.signal("redis", signal.SIGSTOP)
        time.sleep(HANGS)
        cluster.signal("redis", signal.SIGCONT)
    with cluster.accident("Redis is flushed"):
        assert cluster.redis("FLUSHALL") == "OK\n"
    with cluster.accident(f"the broker is stopped for {OUTAGE:.0f} s"):
        cluster.stop("rabbitmq")
        time.sleep(OUTAGE)
        cluster.services.up("rabbitmq")
    with cluster.accident("MariaDB is restarted"):
        cluster.stop("mariadb")
        cluster.services.up("mariadb")
    text = table(cluster.rows, crowd)
    print(text)
    if name := os.environ.get("WEIR_CLUSTER_TABLE"):
        pathlib.Path(name).write_text(text)

    assert not [one for one in crowd.done if one.status == 0], "nginx always answers"
    assert max(one.took for one in crowd.done) < ANSWER_SECONDS + QUIET, "a request hung"
    assert not [one for one in crowd.done if one.kind == HOT and one.status != 200], "the hot list is there, whatever happens"
    assert {one.status for one in crowd.done} <= {200, 202, 204, 502, 503, 504}


def test_every_count_is_right_on_every_node(cluster, crowd):
    crowd.__exit__()
    assert crowd.unknown == []
    assert sum(crowd.reads.values()) > 0 and any(crowd.likes.values())

    def wrong():
        found = []
        for node in cluster.nodes:
            for article in crowd.counted:
                seen = node.get(f"/v1/interactions/article/{article}").json()
                must = (crowd.reads[article], crowd.likes_of(article))
                if (seen["read_count"], seen["like_count"]) != must:
                    found.append((node.port, article, seen, must))
        return found

    assert eventually(lambda: not wrong(), SETTLED), wrong()
