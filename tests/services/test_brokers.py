"""Three Kafka brokers: each message is on all of them, and two must have it."""
import warnings

import pytest
from privateservers import COULD_NOT_BE_FETCHED, Services, kafka_tool, settings


def test_three_brokers_copy_what_they_take():
    with Services() as services:
        done = services("up", "kafka", "--brokers", "3")
        if done.returncode == COULD_NOT_BE_FETCHED:
            warnings.warn("KAFKA ISN'T TESTED: " + done.stderr)
            pytest.skip("Kafka's jars couldn't be fetched")
        assert done.returncode == 0, done.stderr
        brokers = settings(done.stdout)["WEIR_QUEUE_URL"].removeprefix("kafka://").split(",")
        assert len(brokers) == len(services.pids("kafka")) == 3
        assert services.up("kafka") == settings(done.stdout)
        other = services("up", "kafka", "--brokers", "1")
        assert other.returncode == 1 and "3 brokers" in other.stderr

        kafka_tool("ConsoleProducer", "--bootstrap-server", brokers[0], "--topic", "words", "--command-property", "acks=all", given="first\n")
        described = kafka_tool("TopicCommand", "--bootstrap-server", brokers[2], "--topic", "words", "--describe")
        assert "ReplicationFactor: 3" in described and "min.insync.replicas=2" in described, described
        assert services("down").returncode == 0
        assert services.left() == []
