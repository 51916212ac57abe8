"""The same site on a real RabbitMQ: counts stay exact while nodes and the broker go and come back, and others may speak to it."""
import os
import signal
import subprocess
import threading
import time

import pika
import pytest
import requests
from services.privateservers import Services, password_of
from weirserver import BINARY, Person, Server, eventually

from conftest import problem


class RabbitMq:
    """A private broker; keeps its address and what it has confirmed over `kill` and `start`."""

    def __init__(self, services):
        self.services = services
        self.url = services.up("rabbitmq")["WEIR_QUEUE_URL_AMQP"]
        self.data = str(services.parent / "node")
        os.mkdir(self.data)

    def signal(self, number):
        for pid in self.services.pids("rabbitmq"):
            os.kill(pid, number)

    def start(self):
        assert self.services.up("rabbitmq")["WEIR_QUEUE_URL_AMQP"] == self.url


@pytest.fixture(scope="module")
def rabbitmq():
    with Services() as services:
        yield RabbitMq(services)


@pytest.fixture
def server(rabbitmq):
    """The same node each time, with its store: what the broker still has of an earlier test is known to its inbox."""
    with Server(env={"WEIR_QUEUE_URL": rabbitmq.url}, data=rabbitmq.data) as running:
        yield running


def reads(server, thing, biz="video"):
    return server.get(f"/v1/interactions/{biz}/{thing}").json()["read_count"]


def post(server, thing, **event):
    return server.post(f"/v1/interactions/video/{thing}/reads", event)


def test_reads_and_likes_are_counted_exactly(server):
    ann = Person(server)
    made = ann.article()
    for _ in range(50):
        assert server.get(f"/v1/articles/{made}").status_code == 200
    assert ann.request("PUT", f"/v1/interactions/article/{made}/like").status_code == 204
    for event in ["a", "b", "a", "a", "!~"]:
        assert post(server, 11, event_id=event).status_code == 202
    assert eventually(lambda: reads(server, made, "article") == 50 and reads(server, 11) == 3, 20)
    assert server.get(f"/v1/interactions/article/{made}").json()["like_count"] == 1
    assert server.get("/readyz").json()["checks"]["queue"] == "ok"
    assert eventually(lambda: ann.get("/v1/me/history").json()["items"] is not None)


def test_counts_are_exact_after_kills(server):
    sent = unknown = 0
    stop = threading.Event()

    def load():
        nonlocal sent, unknown
        while not stop.is_set():
            try:
                if post(server, 21, event_id=f"event-{sent + unknown}").status_code == 202:
                    sent += 1
                    continue
            except requests.RequestException:
                time.sleep(0.05)
            unknown += 1

    thread = threading.Thread(target=load)
    thread.start()
    for _ in range(2):
        time.sleep(1)
        server.kill()
        server.start()
    time.sleep(0.5)
    stop.set()
    thread.join()
    assert sent > 20
    assert eventually(lambda: sent <= reads(server, 21) <= sent + unknown, 20), (sent, unknown, reads(server, 21))


@pytest.mark.parametrize("accident", ["stopped", "killed"])
def test_a_broker_that_is_away_loses_nothing(rabbitmq, server, accident):
    thing = {"stopped": 31, "killed": 32}[accident]
    made = Person(server).article()
    assert post(server, thing, event_id="before").status_code == 202
    rabbitmq.signal(signal.SIGSTOP if accident == "stopped" else signal.SIGKILL)
    try:
        until = time.monotonic() + 5
        gets = refused = taken = 0
        while time.monotonic() < until:
            # People who read go on, and each read counts later; who wants to know is told that nobody knows yet.
            began = time.monotonic()
            assert server.get(f"/v1/articles/{made}").status_code == 200
            assert time.monotonic() - began < 1
            gets += 1
            answer = post(server, thing, event_id=f"meanwhile-{gets}")
            assert time.monotonic() - began < 11
            if answer.status_code == 202:
                taken += 1
                continue
            problem(answer, 503, "unavailable")
            refused += 1
        assert refused > 0
        assert eventually(lambda: server.get("/readyz").json()["checks"]["queue"] == "degraded", 20)
    finally:
        if accident == "stopped":
            rabbitmq.signal(signal.SIGCONT)
        else:
            rabbitmq.start()
    assert eventually(lambda: post(server, thing, event_id="after").status_code == 202, 20)
    # Also those that were refused are in the journal, and are sent: whoever tries again sends the same event_id.
    assert eventually(lambda: reads(server, made, "article") == gets and reads(server, thing) == gets + 2, 30), (
        gets, reads(server, made, "article"), reads(server, thing))
    assert eventually(lambda: server.get("/readyz").json()["checks"]["queue"] == "ok", 20)
    assert password_of(rabbitmq.url) not in "".join(server.log)


def test_other_programs_publish_reads_and_may_repeat_them(rabbitmq, server):
    with pika.BlockingConnection(pika.URLParameters(rabbitmq.url)) as connection:
        channel = connection.channel()
        channel.confirm_delivery()
        for key, event in [("video:41", "x"), ("video:41", "x"), ("video:41", "y"), ("video:42", "x")]:
            properties = pika.BasicProperties(headers={"key": key}, message_id=event, delivery_mode=2)
            channel.basic_publish("read_events", key, bytes(8), properties, mandatory=True)
        assert eventually(lambda: reads(server, 41) == 2 and reads(server, 42) == 1, 20), (reads(server, 41), reads(server, 42))
        # And they read what Weir publishes.
        channel.queue_declare("theirs", exclusive=True)
        for partition in range(8):
            channel.queue_bind("theirs", "read_events", str(partition))
        assert post(server, 43, event_id="from Weir").status_code == 202
        found = eventually(lambda: (got := channel.basic_get("theirs", auto_ack=True))[0] and got)
        assert found[1].headers["key"] == "video:43" and found[1].message_id == "from Weir" and found[1].delivery_mode == 2


@pytest.mark.parametrize("url, told", [
    ("amqp://ann:hush@127.0.0.1:70000", "65535"),
    ("amqp://ann@127.0.0.1/weir", "without a password"),
    ("amqps://ann:hush@127.0.0.1/weir", "TLS isn't supported"),
    ("amqp://ann:hush@127.0.0.1/a/b", "one virtual host"),
])
def test_an_address_that_cant_be_meant_is_refused(url, told):
    run = subprocess.run([BINARY, "config"], capture_output=True, text=True, timeout=60, env={**os.environ, "WEIR_QUEUE_URL": url})
    assert run.returncode != 0, run.stdout
    for words in ("queue.url", told):
        assert words in run.stderr, run.stderr
    assert "hush" not in run.stdout + run.stderr
