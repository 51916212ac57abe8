"""What the tests of scripts/services share: a folder of their own for the servers, and looks at what is left of it."""
import os
import pathlib
import re
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import urllib.parse

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts/services"
COULD_NOT_BE_FETCHED = 3
JARS = pathlib.Path(os.environ.get("WEIR_SERVICES_JARS") or SCRIPT.parents[1] / "build/kafka")


class Services:
    """`scripts/services` with a folder of its own. At its end everything in the folder is stopped, whatever happened."""

    def __init__(self, script=SCRIPT, **env):
        self.parent = pathlib.Path(tempfile.mkdtemp(prefix="weir-services-test-"))
        self.folder = self.parent / "servers"
        self.script = script
        self.env = {**os.environ, "WEIR_SERVICES_DIR": str(self.folder), **env}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self("down")
        for pid in self.processes():  # after a failure
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.parent)

    def __call__(self, *arguments):
        """Runs it to its end. The pipes are read until nobody holds them, so this returns only if no server does."""
        return subprocess.run([self.script, *arguments], env=self.env, capture_output=True, text=True, timeout=200)

    def begin(self, *arguments):
        return subprocess.Popen([self.script, *arguments], env=self.env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def up(self, *names):
        """The lines of an `up` that must succeed: name to value."""
        done = self("up", *names)
        assert done.returncode == 0, done.stderr
        return settings(done.stdout)

    def pids(self, *names):
        """The processes that `status` names."""
        found = re.findall(r" pid ([\d ]+?)(?= since|$)", self("status", *names).stdout, re.MULTILINE)
        return [int(pid) for some in found for pid in some.split()]

    def processes(self):
        """All processes of this machine that were started for the folder: they work in it, or their home is in it."""
        found = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if entry.name.isdigit() and (os.readlink(entry / "cwd").startswith(f"{self.folder}/")
                                             or f"HOME={self.folder}/".encode() in (entry / "environ").read_bytes()):
                    found.append(int(entry.name))
            except OSError:  # it ended meanwhile
                pass
        return found

    def left(self):
        """What is left of them: processes and folders."""
        return self.processes() + ([self.folder] if self.folder.exists() else [])


def settings(text):
    lines = text.splitlines()
    assert all(re.fullmatch(r"WEIR_[A-Z_]+=\S+", line) for line in lines), text
    return dict(line.split("=", 1) for line in lines)


def port_of(url):
    return urllib.parse.urlsplit(url).port


def password_of(url):
    return urllib.parse.urlsplit(url).password


def listening(pids):
    """The addresses on which these processes listen, as the kernel writes them (hexadecimal), without the port."""
    inodes = set()
    for pid in pids:
        for descriptor in pathlib.Path(f"/proc/{pid}/fd").iterdir():
            if found := re.fullmatch(r"socket:\[(\d+)\]", os.readlink(descriptor)):
                inodes.add(found[1])
    rows = [line.split() for table in ("tcp", "tcp6") for line in pathlib.Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
    return [row[1].split(":")[0] for row in rows if row[3] == "0A" and row[9] in inodes]


def use_database(lines):
    """Writes and reads a row as the user that `up` has told, and is refused as others."""
    url = lines["WEIR_STORE_URL"]
    assert url.startswith("mysql://weir:") and url.endswith("/weir")
    client = ["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{port_of(url)}", "--default-character-set=utf8mb4", "-N", "weir"]
    made = "CREATE TABLE t (words VARCHAR(20)); INSERT INTO t VALUES ('堰 🌊'); SELECT * FROM t; DROP TABLE t"
    assert tool(*client, "-uweir", "-e", made, env={"MYSQL_PWD": password_of(url)}) == "堰 🌊\n"
    for user, password in (("weir", "wrong"), ("root", ""), ("nobody", "")):
        refused = subprocess.run([*client, f"-u{user}", "-e", "SELECT 1"], env={**os.environ, "MYSQL_PWD": password}, capture_output=True,
                                 text=True, timeout=60)
        assert "Access denied" in refused.stderr, user


def use_rabbitmq(lines):
    """Logs in as the user that `up` has told, with the client's side of the protocol written down, and is refused as another."""
    url = lines["WEIR_QUEUE_URL_AMQP"]
    assert url.startswith("amqp://weir:") and url.endswith("/weir")
    assert amqp_answer(port_of(url), "weir", password_of(url)) == (10, 30)  # connection.tune
    assert amqp_answer(port_of(url), "weir", "wrong") is None
    assert amqp_answer(port_of(url), "guest", "guest") is None


def amqp_answer(port, user, password):
    """The class and method with which the broker answers a login; None if it closes the connection."""
    with socket.create_connection(("127.0.0.1", port), 10) as connection:
        stream = connection.makefile("rb")
        connection.sendall(b"AMQP\0\0\x09\x01")
        size = struct.unpack(">BHI", stream.read(7))[2]
        stream.read(size + 1)
        plain = f"\0{user}\0{password}".encode()
        start_ok = struct.pack(">HHI", 10, 11, 0) + b"\x05PLAIN" + struct.pack(">I", len(plain)) + plain + b"\x05en_US"
        connection.sendall(struct.pack(">BHI", 1, 0, len(start_ok)) + start_ok + b"\xce")
        try:
            head = stream.read(7)
        except ConnectionResetError:  # the broker doesn't read what came after the login it refuses
            return None
        return struct.unpack(">HH", stream.read(4)) if len(head) == 7 else None


def tool(*command, env=None, given=None):
    """The output of a program that must succeed."""
    done = subprocess.run([str(word) for word in command], env={**os.environ, **(env or {})}, input=given, capture_output=True, text=True,
                          timeout=60)
    assert done.returncode == 0, f"{command[0]}: {done.stdout}{done.stderr}"
    return done.stdout


def kafka_tool(main, *words, given=None):
    """The output of one of Kafka's own programs."""
    jars = next(JARS.glob("*/kafka-clients-*.jar")).parent
    return tool("java", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData", "-cp", f"{jars}/*", f"org.apache.kafka.tools.{main}", *words, given=given)
