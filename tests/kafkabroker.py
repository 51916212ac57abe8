"""A private Kafka for the tests: scripts/services with a folder of its own."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import warnings

import pytest

REPOSITORY = pathlib.Path(__file__).resolve().parents[1]
JARS = pathlib.Path(os.environ.get("WEIR_SERVICES_JARS") or REPOSITORY / "build/kafka")
COULD_NOT_BE_FETCHED = 3


class Broker:
    """`with Broker() as kafka: kafka.url`. Keeps its address and what was written over `kill` and `start`. Skips the test, loudly, if its
    jars can't be fetched because the registry can't be reached, and only then."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="weir-kafka-test-")

    def _services(self, *words):
        return subprocess.run([REPOSITORY / "scripts/services", *words, "kafka"], capture_output=True, text=True, timeout=300,
                              env={**os.environ, "WEIR_SERVICES_DIR": f"{self.folder}/servers"})

    def start(self):
        done = self._services("up")
        if done.returncode == COULD_NOT_BE_FETCHED:
            warnings.warn("KAFKA ISN'T TESTED: " + done.stderr)
            pytest.skip(done.stderr)
        assert done.returncode == 0, done.stderr
        self.url = re.search(r"WEIR_QUEUE_URL=(\S+)", done.stdout)[1]
        self.address = self.url.removeprefix("kafka://")
        self.pid = int(re.search(r" pid (\d+)", self._services("status").stdout)[1])
        return self

    def pause(self):
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self):
        os.kill(self.pid, signal.SIGCONT)

    def kill(self):
        os.kill(self.pid, signal.SIGKILL)

    def tool(self, main, *words, given=None):
        """The output of one of Kafka's own programs, which are written in Java."""
        jars = next(JARS.glob("*/kafka-clients-*.jar")).parent
        command = ["java", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-cp", f"{jars}/*", f"org.apache.kafka.tools.{main}",
                   "--bootstrap-server", self.address, *words]
        done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        self._services("down")
        shutil.rmtree(self.folder, ignore_errors=True)
