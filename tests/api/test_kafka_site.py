"""The same site with a real Kafka as its queue: counts stay exact, and Kafka's other clients read and write the same messages."""
import collections
import os
import secrets
import struct
import subprocess
import tempfile
import threading
import time

import kafka
import pytest
import requests
from kafkabroker import Broker
from weirserver import BINARY, Person, Server, eventually

PARTITIONS = 4
IDENTITY = struct.Struct("<BQIQq")  # version, producer, lane, sequence, microseconds


@pytest.fixture(scope="module")
def broker():
    with Broker() as running:
        yield running


@pytest.fixture(scope="module")
def server(broker):
    with Server({"WEIR_QUEUE_URL": broker.url, "WEIR_QUEUE_PARTITIONS": str(PARTITIONS), "WEIR_QUEUE_ACKS": "all"}) as running:
        yield running


def reads(server, thing, biz="article"):
    answer = server.get(f"/v1/interactions/{biz}/{thing}")
    assert answer.status_code == 200
    return answer.json()["read_count"]


def counted(server, thing, count, biz="article", seconds=30):
    """Whether the count comes to be this, and stays so."""
    return eventually(lambda: reads(server, thing, biz) >= count, seconds) and settled(server) and reads(server, thing, biz) == count


def settled(server):
    def lag():
        values = [value for name, value in server.metrics().items() if name.startswith("weir_queue_lag{")]
        return values and sum(values) == 0

    time.sleep(2.5)  # the metric is as old as that
    return eventually(lag, 30)


class Crowd:
    """Posts reads with an id each, from several threads; what isn't answered with 202 is posted again. `answers` counts the codes."""

    def __init__(self, server, biz, thing, threads=8):
        self.url = f"{server.url}/v1/interactions/{biz}/{thing}/reads"
        self.answers, self.slowest, self.count = collections.Counter(), 0.0, 0
        self.stopping, self.lock = False, threading.Lock()
        self.threads = [threading.Thread(target=self._run) for _ in range(threads)]
        for thread in self.threads:
            thread.start()

    def _run(self):
        session = requests.Session()
        while not self.stopping:
            event = secrets.token_hex(8)
            while self._post(session, event) != 202:
                time.sleep(0.05)
            with self.lock:
                self.count += 1

    def _post(self, session, event):
        began = time.monotonic()
        try:
            code = session.post(self.url, json={"event_id": event}, timeout=30).status_code
        except requests.ConnectionError:
            code = "refused"
        with self.lock:
            self.answers[code] += 1
            self.slowest = max(self.slowest, time.monotonic() - began)
        return code

    def stop(self):
        self.stopping = True
        for thread in self.threads:
            thread.join()


def messages(broker, topic, count):
    """The first messages of a topic, as kafka-python reads them."""
    consumer = kafka.KafkaConsumer(topic, bootstrap_servers=broker.address, auto_offset_reset="earliest", consumer_timeout_ms=15_000)
    try:
        return [message for message, _ in zip(consumer, range(count))]
    finally:
        consumer.close()


def test_reads_and_likes_are_counted_exactly(server):
    people = [Person(server) for _ in range(3)]
    made = [people[0].article(f"Article {i}") for i in range(5)]
    for person in people:
        for article in made:
            for _ in range(4):
                assert person.get(f"/v1/articles/{article}").status_code == 200
            for method in ("put", "put", "delete", "put"):
                assert getattr(person, method)(f"/v1/interactions/article/{article}/like").status_code == 204
    for article in made:
        assert counted(server, article, 12), reads(server, article)
        assert server.get(f"/v1/interactions/article/{article}").json()["like_count"] == 3
    for person in people:
        assert eventually(lambda person=person: len(person.get("/v1/me/history").json()["items"]) == 5)
    assert server.sum_of("weir_queue_published_total", topic="read_events") == 60
    assert server.sum_of("weir_queue_deliveries_total", outcome="delivered") == 60
    assert server.get("/readyz").json()["checks"]["queue"] == "ok"


def test_other_clients_read_what_weir_writes_where_they_expect_it(broker, server):
    for thing in range(1, 41):
        assert server.post(f"/v1/interactions/video/{thing}/reads", {"event_id": f"their-{thing}"}).status_code == 202
    ours = {}
    sequences = collections.defaultdict(list)
    for message in messages(broker, "read_events", 100):
        headers = dict(message.headers)
        version, producer, lane, sequence, micros = IDENTITY.unpack(headers["weir"])
        assert version == 1 and producer != 0 and len(message.value) == 8
        assert lane == message.partition
        assert abs(time.time() - micros / 1e6) < 600
        sequences[producer, lane].append(sequence)
        if message.key.startswith(b"video:"):
            assert headers["event_id"] == b"their-" + message.key.split(b":")[1]
            ours[message.key.decode()] = message.partition
    assert all(sorted(numbers) == list(range(1, len(numbers) + 1)) for numbers in sequences.values()), "dense in a lane"
    assert len(ours) == 40 and set(ours.values()) == set(range(PARTITIONS))

    # What Java's and Python's default partitioners do with the same keys.
    for topic in ("by_java", "by_python"):
        broker.tool("TopicCommand", "--create", "--topic", topic, "--partitions", str(PARTITIONS))
    broker.tool("ConsoleProducer", "--topic", "by_java", "--reader-property", "parse.key=true", "--reader-property", "key.separator=/",
                given="".join(f"{key}/x\n" for key in ours))
    producer = kafka.KafkaProducer(bootstrap_servers=broker.address)
    for key in ours:
        producer.send("by_python", key=key.encode(), value=b"x")
    producer.flush()
    producer.close()
    for topic in ("by_java", "by_python"):
        theirs = {message.key.decode(): message.partition for message in messages(broker, topic, len(ours))}
        assert theirs == ours, topic


def test_what_another_client_writes_is_counted(broker, server):
    nobody = bytes(8)
    producer = kafka.KafkaProducer(bootstrap_servers=broker.address)
    for event in ("a", "b", "a", "c", "b"):
        producer.send("read_events", key=b"video:1000", value=nobody, headers=[("event_id", event.encode())])
    for _ in range(2):
        producer.send("read_events", key=b"video:1001", value=nobody)
    # None of these is an event; they are parked, and nobody waits for them.
    dead = server.sum_of("weir_queue_consumed_total", topic="read_events", outcome="dead")
    for key, value in ((None, b""), (b"video:1", b"x"), (b"nonsense", nobody), (b"v" * 5000, nobody), (b"video:1002", b"v" * 900_000)):
        producer.send("read_events", key=key, value=value)
    producer.send("read_events", key=b"video:1000", value=nobody, headers=[("event_id", b"e" * 5000)])
    producer.send("read_events", key=b"video:1003", value=nobody, headers=[("weir", b"damaged"), ("event_id", b"d")])
    producer.flush()
    producer.close()
    assert counted(server, 1003, 1, "video")
    assert counted(server, 1001, 2, "video")
    assert reads(server, 1000, "video") in (3, 4), "an id that is too long may be refused or taken, by the store"
    assert eventually(lambda: server.sum_of("weir_queue_consumed_total", topic="read_events", outcome="dead") >= dead + 5 * 2)


def test_a_killed_server_loses_and_repeats_nothing(server):
    crowd = Crowd(server, "video", 2000)
    try:
        for _ in range(2):
            assert eventually(lambda before=crowd.count: crowd.count >= before + 300, 60)
            server.kill()
            server.listen = f"127.0.0.1:{server.port}"
            server.start()
    finally:
        crowd.stop()
    assert crowd.answers["refused"] > 0
    assert counted(server, 2000, crowd.count, "video", 60), (reads(server, 2000, "video"), crowd.count)


def test_a_broker_that_stands_still_or_dies_costs_nobody_a_read_or_a_count(broker, server):
    article = Person(server).article()
    crowd = Crowd(server, "video", 3000)
    try:
        for stop, back in ((broker.pause, broker.resume), (broker.kill, broker.start)):
            assert eventually(lambda before=crowd.count: crowd.count >= before + 200, 60)
            refused = crowd.answers[503]
            stop()
            until = time.monotonic() + 9
            while time.monotonic() < until:
                began = time.monotonic()
                assert server.get(f"/v1/articles/{article}").status_code == 200
                assert server.get("/v1/rankings/hot").status_code == 200
                assert time.monotonic() - began < 2
                time.sleep(0.05)
            ready = server.get("/readyz")
            assert ready.status_code == 200 and ready.json()["checks"]["queue"] == "degraded", ready.text
            assert crowd.answers[503] > refused
            back()
            assert eventually(lambda: server.get("/readyz").json()["checks"]["queue"] == "ok", 30)
    finally:
        crowd.stop()
    assert set(crowd.answers) == {202, 503} and crowd.slowest < 15, (crowd.answers, crowd.slowest)
    assert counted(server, 3000, crowd.count, "video", 60), (reads(server, 3000, "video"), crowd.count)
    views = server.sum_of("weir_queue_dropped_total", topic="read_events")
    assert views == 0


def test_a_server_starts_and_stops_while_the_broker_is_away(broker):
    with Broker() as other:
        other.kill()
        with Server({"WEIR_QUEUE_URL": other.url}) as server:
            person = Person(server)
            article = person.article()
            for _ in range(10):
                assert person.get(f"/v1/articles/{article}").status_code == 200
            assert server.post("/v1/interactions/video/1/reads", {"event_id": "a"}).status_code == 503
            began = time.monotonic()
            assert server.stop() == 0
            assert time.monotonic() - began < 30
            other.start()
            server.start()
            assert counted(server, article, 10), reads(server, article)
            assert counted(server, 1, 1, "video")


@pytest.mark.parametrize("url,told", [("kafka://", "a host is missing"), ("kafka://me:hidden@host", "SASL is not supported yet"),
                                      ("kafka://host:0", "1 .. 65535"), ("kafkaa://host", "kafka://")])
def test_a_url_that_cant_be_used_stops_the_start_without_its_password(url, told):
    with tempfile.TemporaryDirectory() as data:
        done = subprocess.run([BINARY, "serve", "--data", data], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "WEIR_QUEUE_URL": url})
        assert done.returncode == 2 and "queue.url" in done.stderr and told in done.stderr and "hidden" not in done.stderr, done.stderr
