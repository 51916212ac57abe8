"""RabbitMQ: a node of its own beside its own port mapper (epmd), with a user and a virtual host `weir`."""
import secrets
import socket
import struct

from .ports import free_port
from .service import Failure, Service

# Debian's wrappers in sbin insist on the account `rabbitmq`; what they wrap doesn't.
BIN = "/usr/lib/rabbitmq/bin"
ANSWER_SECONDS = 5


class RabbitMq(Service):
    name = "rabbitmq"
    needs = "rabbitmq"
    programs = (f"{BIN}/rabbitmq-server", "erl", "epmd")

    def choose(self):
        return {"port": free_port(), "distribution": free_port(), "epmd": free_port(), "tool": free_port(),
                "password": secrets.token_hex(16)}

    def prepare(self):
        self.write("rabbitmq.conf", f"""listeners.tcp.local = 127.0.0.1:{self.settings['port']}
default_user = weir
default_pass = {self.settings['password']}
default_vhost = weir
log.console = true
log.file = false
""")
        self.write("plugins", "[].\n")
        exports = "".join(f"export {name}='{value}'\n" for name, value in self.environment().items())
        self.write("rabbitmqctl", f"#!/bin/sh\nexport HOME='{self.home}'\n{exports}exec {BIN}/rabbitmqctl \"$@\"\n", 0o700)

    def environment(self):
        port = self.settings
        return {
            "RABBITMQ_NODENAME": "weir@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(port["port"]),
            "RABBITMQ_DIST_PORT": str(port["distribution"]),
            "RABBITMQ_CTL_DIST_PORT_MIN": str(port["tool"]),
            "RABBITMQ_CTL_DIST_PORT_MAX": str(port["tool"]),
            "RABBITMQ_CTL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1}",
            "ERL_EPMD_PORT": str(port["epmd"]),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
            "ERL_FLAGS": "-start_epmd false",
            "RABBITMQ_MNESIA_BASE": f"{self.home}/data",
            "RABBITMQ_LOG_BASE": f"{self.home}/logs",
            "RABBITMQ_PID_FILE": f"{self.home}/pid",
            "RABBITMQ_ENABLED_PLUGINS_FILE": f"{self.home}/plugins",
            "RABBITMQ_CONFIG_FILE": f"{self.home}/rabbitmq.conf",
            "RABBITMQ_ADVANCED_CONFIG_FILE": f"{self.home}/advanced.config",
            "RABBITMQ_CONF_ENV_FILE": f"{self.home}/env.conf",
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none",
            # So the start script becomes the node instead of waiting beside it, and the node reads no input.
            "RABBITMQ_ALLOW_INPUT": "1",
            "RABBITMQ_SERVER_START_ARGS": "-noinput +B i",
        }

    def commands(self):
        # Started by the node (which ERL_FLAGS forbids), epmd would be a daemon that nobody knows.
        return {"epmd": ["epmd", "-port", str(self.settings["epmd"]), "-address", "127.0.0.1"],
                "rabbitmq": [f"{BIN}/rabbitmq-server"]}

    def ports(self, name):
        return [self.settings["epmd"]] if name == "epmd" else [self.settings["port"], self.settings["distribution"]]

    def check(self):
        with socket.create_connection(("127.0.0.1", self.settings["port"]), ANSWER_SECONDS) as connection:
            log_in(connection, "weir", self.settings["password"], "weir")

    def lines(self):
        return {"WEIR_QUEUE_URL_AMQP": f"amqp://weir:{self.settings['password']}@127.0.0.1:{self.settings['port']}/weir"}

    def addresses(self):
        return [f"127.0.0.1:{self.settings['port']}"]


def log_in(connection, user, password, vhost):
    """AMQP 0-9-1 until the virtual host is open, which the server grants only when it can be used."""
    stream = connection.makefile("rb")
    connection.sendall(b"AMQP\0\0\x09\x01")
    expect(stream, 10, 10)  # connection.start
    plain = f"\0{user}\0{password}".encode()
    send(connection, 11, struct.pack(">I", 0) + short(b"PLAIN") + struct.pack(">I", len(plain)) + plain + short(b"en_US"))
    limits = expect(stream, 10, 30)  # connection.tune: channels, frame size, heartbeat
    send(connection, 31, limits[:6] + struct.pack(">H", 0))
    send(connection, 40, short(vhost.encode()) + short(b"") + b"\0")
    expect(stream, 10, 41)  # connection.open-ok
    send(connection, 50, struct.pack(">H", 200) + short(b"bye") + struct.pack(">HH", 0, 0))
    expect(stream, 10, 51)


def short(text):
    return bytes([len(text)]) + text


def send(connection, method, arguments):
    payload = struct.pack(">HH", 10, method) + arguments
    connection.sendall(struct.pack(">BHI", 1, 0, len(payload)) + payload + b"\xce")


def expect(stream, wanted_class, wanted_method):
    """The arguments of the next frame, which must be this method."""
    head = stream.read(7)
    if len(head) < 7:
        raise Failure("the connection was closed")
    payload = stream.read(struct.unpack(">BHI", head)[2] + 1)[:-1]
    found = struct.unpack(">HH", payload[:4])
    if found != (wanted_class, wanted_method):
        raise Failure(f"method {found} instead of {(wanted_class, wanted_method)}: {payload[4:]!r}")
    return payload[4:]
