"""As much of Kafka's protocol as it takes to write one record and to see that groups can be joined.

A client library isn't there before Weir is built, and the console tools take seconds of processor time a try. The
requests are the oldest versions that Kafka 4 still knows (https://kafka.apache.org/protocol), which have no tagged fields.
"""
import socket
import struct
import time

from .service import Failure

ANSWER_SECONDS = 5
TOPIC = "weir.services.check"
PRODUCE, CREATE_TOPICS, DELETE_TOPICS, INIT_PRODUCER_ID, DESCRIBE_GROUPS, FIND_COORDINATOR = 0, 19, 20, 22, 15, 10
OK, NOT_LEADER, NOT_COORDINATOR, TOPIC_EXISTS = 0, 6, 16, 36


def produce_once(ports):
    """Writes an idempotent record to a topic of its own with acks = all, and takes the topic away again. Raises if not."""
    brokers = [Broker(port) for port in ports]
    try:
        _demand("make a topic", brokers[0].create_topic(TOPIC, len(ports)), OK, TOPIC_EXISTS)
        for broker in brokers:
            broker.take_producer_id()
        for partition in range(len(ports)):
            _ask_all(brokers, f"write to partition {partition}", lambda b, p=partition: b.produce(TOPIC, p), NOT_LEADER)
        for broker in brokers:
            _demand("find the coordinator", broker.find_coordinator(TOPIC), OK)
        _ask_all(brokers, "ask for a group", lambda broker: broker.describe_group(TOPIC), NOT_COORDINATOR)
        _demand("remove the topic", brokers[0].delete_topic(TOPIC), OK)
    finally:
        for broker in brokers:
            broker.close()


def _demand(what, error, *allowed):
    if error not in allowed:
        raise Failure(f"can't {what}: Kafka's error code {error}")


def _ask_all(brokers, what, ask, elsewhere):
    """One of the brokers must do it, the others must say that they aren't the one."""
    errors = [ask(broker) for broker in brokers]
    for error in errors:
        _demand(what, error, OK, elsewhere)
    if OK not in errors:
        raise Failure(f"can't {what}: no broker is responsible yet")


class Broker:
    """A connection to one broker. Its methods answer with Kafka's error code, 0 for success."""

    def __init__(self, port):
        self._connection = socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS)
        self._stream = self._connection.makefile("rb")
        self._producer = (-1, -1)

    def close(self):
        self._stream.close()
        self._connection.close()

    def create_topic(self, name, partitions):
        # -1: as many copies as the brokers' configuration says.
        topic = string(name) + struct.pack(">ih", partitions, -1) + array() + array()
        answer = self._call(CREATE_TOPICS, 4, array(topic) + struct.pack(">i?", ANSWER_SECONDS * 1000, False))
        return struct.unpack_from(">h", answer, 8 + len(string(name)))[0]

    def delete_topic(self, name):
        answer = self._call(DELETE_TOPICS, 1, array(string(name)) + struct.pack(">i", ANSWER_SECONDS * 1000))
        return struct.unpack_from(">h", answer, 8 + len(string(name)))[0]

    def take_producer_id(self):
        answer = self._call(INIT_PRODUCER_ID, 0, struct.pack(">hi", -1, 60_000))
        error, *self._producer = struct.unpack_from(">hqh", answer, 4)
        _demand("get a producer id", error, OK)

    def produce(self, topic, partition):
        batch = record_batch(b"usable", *self._producer)
        records = struct.pack(">ii", partition, len(batch)) + batch
        answer = self._call(PRODUCE, 3, struct.pack(">hhi", -1, -1, ANSWER_SECONDS * 1000) + array(string(topic) + array(records)))
        return struct.unpack_from(">h", answer, 4 + len(string(topic)) + 4 + 4)[0]

    def find_coordinator(self, group):
        return struct.unpack_from(">h", self._call(FIND_COORDINATOR, 0, string(group)))[0]

    def describe_group(self, group):
        return struct.unpack_from(">h", self._call(DESCRIBE_GROUPS, 0, array(string(group))), 4)[0]

    def _call(self, key, version, body):
        request = struct.pack(">hhi", key, version, key) + string("weir-services") + body
        self._connection.sendall(struct.pack(">i", len(request)) + request)
        head = self._stream.read(8)
        if len(head) < 8:
            raise Failure("the broker closed the connection")
        return self._stream.read(struct.unpack(">ii", head)[0] - 4)


def string(text):
    return struct.pack(">h", len(text)) + text.encode()


def array(*items):
    return struct.pack(">i", len(items)) + b"".join(items)


def record_batch(value, producer, epoch):
    """A batch of format 2 with one record without a key, the first of its producer."""
    now = int(time.time() * 1000)
    # Attributes, differences of time and offset, no key (-1), value, no headers; lengths are variable, zigzag.
    record = bytes([0, 0, 0]) + varint(-1) + varint(len(value)) + value + varint(0)
    record = varint(len(record)) + record
    checked = struct.pack(">hiqqqhii", 0, 0, now, now, producer, epoch, 0, 1) + record
    rest = struct.pack(">ibI", -1, 2, crc32c(checked)) + checked
    return struct.pack(">qi", 0, len(rest)) + rest


def varint(number):
    zigzag = number << 1 ^ number >> 31
    out = bytearray()
    while zigzag > 0x7F:
        out.append(zigzag & 0x7F | 0x80)
        zigzag >>= 7
    return bytes(out) + bytes([zigzag])


def crc32c(data):
    """Castagnoli's polynomial, reflected, a bit at a time: it is for a hundred bytes."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF
