"""Starts and stops the real program for the tests: a free port, a temporary folder, stopped by its process id."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import time

import requests

BINARY = os.environ.get("WEIR_BINARY") or str(pathlib.Path(__file__).resolve().parent.parent / "build/release/weir")
START_SECONDS = 60  # under sanitizers, on a busy machine


class Server:
    """`with Server() as s: s.get("/healthz")`. Keeps its data directory over `kill` and `start`; `env` overrides settings."""

    def __init__(self, env=None, args=(), data=None):
        self.env = {"WEIR_AUTH_SECRET": "", **(env or {})}
        self.args = list(args)
        self.own_data = data is None
        self.data = data or tempfile.mkdtemp(prefix="weir-test-")
        self.listen = "127.0.0.1:0"
        self.process = None
        self.log = []

    def start(self):
        environment = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
        environment.update({k: v for k, v in self.env.items() if v != ""})
        command = [BINARY, "serve", "--listen", self.listen, "--data", self.data, *self.args]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                                        cwd=self.data)
        reader = threading.Thread(target=self._read_log, args=(self.process.stderr,), daemon=True)
        reader.start()
        killer = threading.Timer(START_SECONDS, self.process.kill)
        killer.start()
        for line in self.process.stdout:
            found = re.match(r"listening on (http://(\S+):(\d+))\s*$", line)
            if found:
                killer.cancel()
                self.url, self.port = found[1], int(found[3])
                threading.Thread(target=self.process.stdout.read, daemon=True).start()
                return self
        killer.cancel()
        self.process.wait()
        reader.join(5)
        raise RuntimeError(f"the server did not start (exit code {self.process.returncode}):\n" + "".join(self.log))

    def _read_log(self, stream):
        for line in stream:
            self.log.append(line)

    def kill(self):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def stop(self):
        """A graceful stop; the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=60)

    def __enter__(self):
        try:
            return self.start()
        except BaseException:
            self.__exit__()
            raise

    def __exit__(self, *_):
        if self.process and self.process.poll() is None:
            self.kill()
        if self.own_data:
            shutil.rmtree(self.data, ignore_errors=True)

    def request(self, method, path, **kwargs):
        return requests.request(method, self.url + path, timeout=30, allow_redirects=False, **kwargs)

    def get(self, path, **kwargs):
        return self.request("GET", path, **kwargs)

    def post(self, path, json=None, **kwargs):
        return self.request("POST", path, json={} if json is None else json, **kwargs)

    def metrics(self):
        """All series, name with labels to value."""
        series = {}
        for line in self.get("/metrics").text.splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                series[name] = float(value)
        return series

    def sum_of(self, name, **labels):
        """The sum of a metric's series that have these labels."""
        total = 0.0
        for series, value in self.metrics().items():
            base, _, rest = series.partition("{")
            if base == name and all(f'{k}="{v}"' in rest for k, v in labels.items()):
                total += value
        return total


class Person:
    """Somebody who signed up and in: requests with a bearer token."""

    count = 0

    def __init__(self, server, email=None, password="correct horse", nickname=None):
        Person.count += 1
        self.server = server
        self.email = email or f"person{Person.count}-{os.getpid()}@example.com"
        self.password = password
        body = {"email": self.email, "password": password}
        if nickname:
            body["nickname"] = nickname
        answer = server.post("/v1/users", body)
        assert answer.status_code == 201, answer.text
        self.id = answer.json()["id"]
        self.sign_in()

    def sign_in(self):
        answer = self.server.post("/v1/sessions", {"email": self.email, "password": self.password})
        assert answer.status_code == 200, answer.text
        self.tokens = answer.json()

    @property
    def headers(self):
        return {"Authorization": "Bearer " + self.tokens["access_token"]}

    def request(self, method, path, headers=None, **kwargs):
        return self.server.request(method, path, headers={**self.headers, **(headers or {})}, **kwargs)

    def get(self, path, **kwargs):
        return self.request("GET", path, **kwargs)

    def post(self, path, json=None, **kwargs):
        return self.request("POST", path, json={} if json is None else json, **kwargs)

    def put(self, path, json=None, **kwargs):
        return self.request("PUT", path, json=json, **kwargs) if json is not None else self.request("PUT", path, **kwargs)

    def delete(self, path, **kwargs):
        return self.request("DELETE", path, **kwargs)

    def article(self, title="A title", content="Some words.", publish=True):
        """The id of a new article."""
        answer = self.post("/v1/articles", {"title": title, "content": content})
        assert answer.status_code == 201, answer.text
        made = answer.json()["id"]
        if publish:
            answer = self.post(f"/v1/articles/{made}/publish")
            assert answer.status_code == 200, answer.text
        return made


def eventually(check, seconds=10.0):
    """Calls `check` until it gives something true; its last value."""
    deadline = time.monotonic() + seconds
    while True:
        value = check()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(0.02)
