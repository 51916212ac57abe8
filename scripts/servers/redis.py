"""Redis: one server, or a cluster of six. Both forget their data when they stop, as a cache may."""
import secrets
import socket

from .ports import free_port
from .service import Failure, Service

ANSWER_SECONDS = 2


class Redis(Service):
    name = "redis"
    needs = "redis"
    programs = ("redis-server",)
    def choose(self):
        return {"ports": [free_port()], "password": secrets.token_hex(16)}

    def prepare(self):
        for port in self.settings["ports"]:
            (self.home / f"data-{port}").mkdir(mode=0o700)
            # The password is in a file, because all users of the machine see command lines.
            self.write(f"redis-{port}.conf", f"""bind 127.0.0.1
port {port}
requirepass {self.settings['password']}
dir "{self.home}/data-{port}"
save ""
appendonly no
daemonize no
{self.more(port)}""")

    def more(self, port):
        """Further lines of a server's configuration."""
        return ""

    def commands(self):
        return {f"redis-{port}": ["redis-server", str(self.home / f"redis-{port}.conf")] for port in self.settings["ports"]}

    def ports(self, name):
        return [int(name.rsplit("-", 1)[1])]

    def check(self):
        for port in self.settings["ports"]:
            answer = self.ask(port, "PING")
            if answer != "+PONG":
                raise Failure(f"port {port} answers {answer}")

    def ask(self, port, *words):
        """The answer to a command, for a number or a status with its mark before it."""
        with socket.create_connection(("127.0.0.1", port), ANSWER_SECONDS) as connection:
            connection.sendall(f"AUTH {self.settings['password']}\r\n{' '.join(words)}\r\n".encode())
            stream = connection.makefile("rb")
            login = stream.readline().decode().rstrip()
            if login != "+OK":
                return login
            answer = stream.readline().decode().rstrip()
            return stream.read(int(answer[1:])).decode() if answer.startswith("$") else answer

    def lines(self):
        url = f"redis://:{self.settings['password']}@127.0.0.1:{self.settings['ports'][0]}/0"
        return {"WEIR_CACHE_REMOTE": url, "WEIR_LOCK_URL": url}

    def addresses(self):
        return [f"127.0.0.1:{port}" for port in self.settings["ports"]]


class RedisCluster(Redis):
    """Six servers: three masters that share the slots, and a replica of each."""

    name = "redis-cluster"
    programs = ("redis-server", "redis-cli")

    def choose(self):
        return {"ports": [free_port() for _ in range(6)], "buses": [free_port() for _ in range(6)], "password": secrets.token_hex(16)}

    def more(self, port):
        # The time after which a master counts as dead: short, so that one sees a replica take over, and long enough
        # for a laptop that is busy.
        return f"""cluster-enabled yes
cluster-port {self._bus(port)}
cluster-node-timeout 5000
masterauth {self.settings['password']}
repl-diskless-sync-delay 0
"""

    def _bus(self, port):
        return self.settings["buses"][self.settings["ports"].index(port)]

    def environment(self):
        return {"REDISCLI_AUTH": self.settings["password"]}

    def ports(self, name):
        port, = super().ports(name)
        return [port, self._bus(port)]

    def check(self):
        super().check()
        if not self.settings.get("joined"):
            self.run(["redis-cli", "--cluster", "create", *self.addresses(), "--cluster-replicas", "1", "--cluster-yes"])
            self.settings["joined"] = True
            self.remember()
        for port in self.settings["ports"]:
            if "cluster_state:ok" not in self.ask(port, "CLUSTER", "INFO"):
                raise Failure(f"port {port} doesn't see the whole cluster")
            if "master_link_status:down" in self.ask(port, "INFO", "replication"):
                raise Failure(f"port {port} doesn't have its master's data")

    def lines(self):
        return {"WEIR_CACHE_REMOTE_CLUSTER": f"redis-cluster://:{self.settings['password']}@{','.join(self.addresses())}/0"}
