"""Weir nodes that share a store, a cache and a queue, behind nginx."""
import contextlib
import pathlib
import shutil
import socket
import subprocess
import tempfile

from weirserver import Server, eventually

CONNECT_SECONDS = 1   # nginx goes on to another node after it
ANSWER_SECONDS = 15   # longer than any deadline inside Weir


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Nginx:
    """A round robin over the nodes. A node that doesn't answer is left alone for two seconds."""

    def __init__(self, ports):
        self.where = pathlib.Path(tempfile.mkdtemp(prefix="weir-nginx-"))
        self.port = free_port()
        temporary = "".join(f"{kind}_temp_path {self.where}/{kind};\n" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        nodes = "".join(f"server 127.0.0.1:{port} max_fails=1 fail_timeout=2s;\n" for port in ports)
        (self.where / "nginx.conf").write_text(f"""
worker_processes 1; daemon off; pid {self.where}/pid; error_log {self.where}/error.log warn;
events {{ worker_connections 1024; }}
http {{
access_log off;
{temporary}
upstream nodes {{ {nodes} keepalive 32; keepalive_timeout 30s; }}
server {{
  listen 127.0.0.1:{self.port};
  location / {{
    proxy_pass http://nodes;
    proxy_http_version 1.1;
    proxy_set_header Connection "";
    proxy_connect_timeout {CONNECT_SECONDS}s;
    proxy_read_timeout {ANSWER_SECONDS}s;
    proxy_next_upstream error timeout;
  }}
}}
}}
""")

    def __enter__(self):
        self.process = subprocess.Popen(["nginx", "-p", self.where, "-c", self.where / "nginx.conf"], stderr=subprocess.DEVNULL)
        assert eventually(self._open)
        return self

    def _open(self):
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 0.2):
            return True

    def __exit__(self, *_):
        self.process.terminate()  # killed, it would leave its worker behind
        self.process.wait()
        shutil.rmtree(self.where, ignore_errors=True)


class Node(Server):
    """A server that keeps its port over `kill` and `start`, as an upstream must."""

    def __init__(self, env, args=()):
        super().__init__(env=env, args=args)
        self.port = free_port()
        self.listen = f"127.0.0.1:{self.port}"
