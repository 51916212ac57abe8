"""Kafka in KRaft mode: brokers that are their own controllers, from Maven Central's jars."""
import base64
import os
import pathlib
import re
import secrets
import shutil

from . import kafka_wire
from .ports import free_port
from .service import REPOSITORY, Failure, Service, TimedOut, Unreachable, tail

POM = pathlib.Path(__file__).with_name("kafka_pom.xml")
VERSION = re.search(r"<kafka.version>(.+)</kafka.version>", POM.read_text())[1]
# What Maven says when it reached nobody; of something that isn't there it says "Could not find".
NOT_REACHED = re.compile(r"(could not|failed to) transfer|unknown host|offline mode", re.IGNORECASE)
GOAL = "org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies"
FETCH_SECONDS = 300
HEAP = "256m"


class Kafka(Service):
    name = "kafka"
    needs = "kafka"

    @property
    def programs(self):
        return ("java",) if self.jars.is_dir() else ("java", "mvn")

    @property
    def jars(self):
        folder = os.environ.get("WEIR_SERVICES_JARS") or REPOSITORY / "build/kafka"
        return pathlib.Path(folder).absolute() / VERSION

    def fetch(self):
        """All jars or none: they are moved to their place when the last has come."""
        if self.jars.is_dir():
            return
        self.jars.parent.mkdir(parents=True, exist_ok=True)
        with open(self._beside("lock"), "w") as handle:
            self.lock(handle)
            if not self.jars.is_dir():
                self._fetch(self._beside("partial"))

    def _beside(self, ending):
        return self.jars.with_name(f"{VERSION}-{ending}")

    def _fetch(self, folder):
        log = self._beside("log")
        for leftover in (folder, log):
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink(missing_ok=True)
        try:
            self.run(["mvn", "-q", "-B", "-U", "-Dstyle.color=never", "-f", str(POM), GOAL, f"-DoutputDirectory={folder}"],
                     timeout=FETCH_SECONDS, env=dict(os.environ), log=log)
        except Failure as why:
            if isinstance(why, TimedOut) or (log.exists() and NOT_REACHED.search(log.read_text(errors="replace"))):
                raise Unreachable(f"COULDN'T BE FETCHED: the jars of Kafka (org.apache.kafka:kafka_2.13:{VERSION} from Maven Central): the "
                                  f"registry can't be reached. Maven said:\n{tail(log)}") from why
            raise
        folder.rename(self.jars)

    def choose(self):
        count = self.options.brokers or 1
        return {"cluster": cluster_id(), "ports": [free_port() for _ in range(count)], "controllers": [free_port() for _ in range(count)]}

    def prepare(self):
        for node in range(1, len(self.settings["ports"]) + 1):
            config = self.write(f"broker-{node}.properties", self._properties(node))
            self.run(self._java("kafka.tools.StorageTool", "format", "-t", self.settings["cluster"], "-c", str(config)))

    def _properties(self, node):
        ports, controllers = self.settings["ports"], self.settings["controllers"]
        copies = min(3, len(ports))
        voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(controllers, 1))
        return f"""process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners=PLAINTEXT://127.0.0.1:{ports[node - 1]},CONTROLLER://127.0.0.1:{controllers[node - 1]}
advertised.listeners=PLAINTEXT://127.0.0.1:{ports[node - 1]}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT
log.dirs={self.home}/data-{node}
default.replication.factor={copies}
min.insync.replicas={max(1, copies - 1)}
offsets.topic.replication.factor={copies}
offsets.topic.num.partitions=8
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr={max(1, copies - 1)}
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor={copies}
share.coordinator.state.topic.min.isr={max(1, copies - 1)}
group.initial.rebalance.delay.ms=0
# The default alone would take half of the heap.
log.cleaner.dedupe.buffer.size=8388608
"""

    def _java(self, main, *arguments):
        # The simple compiler starts soonest; without performance data nothing is left in /tmp.
        return ["java", f"-Xmx{HEAP}", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-Djava.net.preferIPv4Stack=true",
                f"-Djava.io.tmpdir={self.home}/tmp", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
                "-Dorg.slf4j.simpleLogger.showDateTime=true", "-Dorg.slf4j.simpleLogger.dateTimeFormat=yyyy-MM-dd HH:mm:ss.SSS",
                "-cp", f"{self.jars}/*", main, *arguments]

    def commands(self):
        return {f"broker-{node}": self._java("kafka.Kafka", str(self.home / f"broker-{node}.properties"))
                for node in range(1, len(self.settings["ports"]) + 1)}

    def ports(self, name):
        node = int(name.rsplit("-", 1)[1])
        return [self.settings["ports"][node - 1], self.settings["controllers"][node - 1]]

    def check(self):
        kafka_wire.produce_once(self.settings["ports"])

    def up(self):
        asked, there = self.options.brokers, len(self.settings.get("ports", []))
        if asked and there and asked != there:
            raise Failure(f"kafka: there are {there} brokers, not {asked}; `scripts/services down kafka` gives them and their data up")
        super().up()

    def lines(self):
        return {"WEIR_QUEUE_URL": "kafka://" + ",".join(self.addresses())}

    def addresses(self):
        return [f"127.0.0.1:{port}" for port in self.settings["ports"]]


def cluster_id():
    """16 random bytes as Kafka writes them: one that begins with a dash would be taken for an option."""
    while (made := base64.urlsafe_b64encode(secrets.token_bytes(16)).decode().rstrip("=")).startswith("-"):
        pass
    return made
