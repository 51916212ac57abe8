"""Free ports of 127.0.0.1."""
import pathlib
import random
import socket
import threading

LOWEST = 20000
_given = set()
_lock = threading.Lock()


def taken(port):
    """Whether somebody listens on a port, on 127.0.0.1 or on all addresses."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as the servers do: connections that ended don't count
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def free_port():
    """A port that nobody has, below those that the kernel gives to outgoing connections.

    From among those, a client could take the port of a server that is just being restarted; one that tries the dead
    server again and again would in the end be connected to itself.
    """
    end = int(pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    if end < LOWEST + 1000:
        end = 65536
    with _lock:
        while True:
            port = random.SystemRandom().randrange(LOWEST, end)
            if port not in _given and not taken(port):
                _given.add(port)
                return port
