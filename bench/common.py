"""What the benchmarks share: servers pinned to one core, wrk pinned to the other, rows of results."""
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "release"
WEIR = BUILD / "weir"
CPUS = sorted(os.sched_getaffinity(0))
SERVER_CPU, LOAD_CPU = CPUS[0], CPUS[-1]


def row(name, unit, ours, peer=None, theirs=None, ratio=None, bar=None, at_most=False):
    """A result; `ok` when the ratio (or, without one, our figure) reaches the bar, or stays under it."""
    value = ours if ratio is None else ratio
    ok = bar is None or (value <= bar if at_most else value >= bar)
    return {"name": name, "unit": unit, "ours": ours, "peer": peer, "theirs": theirs, "ratio": ratio, "bar": bar, "ok": ok}


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=30) as answer:
        return answer.read()


def post(url, body, token=None, method="POST"):
    headers = {"Content-Type": "application/json"}
    if token:
        headers["Authorization"] = "Bearer " + token
    request = urllib.request.Request(url, json.dumps(body).encode(), headers, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        data = answer.read()
        return json.loads(data) if data else None


def wait_until_open(port, process):
    for _ in range(400):
        if process.poll() is not None:
            raise RuntimeError(f"{process.args} ended with {process.returncode}")
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.2):
            return
        time.sleep(0.025)
    raise RuntimeError(f"{process.args} does not listen")


@contextlib.contextmanager
def running(command, port, cpu=SERVER_CPU, **kwargs):
    """A server pinned to a core, stopped by its process id."""
    process = subprocess.Popen(["taskset", "-c", str(cpu), *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **kwargs)
    try:
        wait_until_open(port, process)
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


class Weir:
    """The program with default settings, pinned to a core; `url`, `pid`, `ready_seconds`."""

    def __init__(self, data, cpu=SERVER_CPU, env=None):
        began = time.monotonic()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
        pin = ["taskset", "-c", str(cpu)] if cpu is not None else []
        self.process = subprocess.Popen([*pin, str(WEIR), "serve", "--listen", "127.0.0.1:0", "--data", str(data)],
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={**environment, **(env or {})})
        for line in self.process.stdout:
            if found := re.match(r"listening on (http://\S+)", line):
                self.url = found[1]
                break
        else:
            raise RuntimeError("weir did not start")
        get(self.url + "/healthz")
        self.ready_seconds = time.monotonic() - began
        self.pid = self.process.pid

    def metrics(self):
        series = {}
        for line in get(self.url + "/metrics").decode().splitlines():
            if line and not line.startswith("#"):
                name, value = line.rsplit(" ", 1)
                series[name] = float(value)
        return series

    def resident_mib(self):
        for line in pathlib.Path(f"/proc/{self.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) / 1024
        return 0.0

    def settle(self, seconds=60):
        """Waits until the queue's groups have read everything."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if sum(v for k, v in self.metrics().items() if k.startswith("weir_queue_lag")) == 0:
                return
            time.sleep(0.2)

    def sign_up(self, email="bench@example.com"):
        post(self.url + "/v1/users", {"email": email, "password": "a long password"})
        return post(self.url + "/v1/sessions", {"email": email, "password": "a long password"})["access_token"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


@contextlib.contextmanager
def folder():
    path = pathlib.Path(tempfile.mkdtemp(prefix="weir-bench-"))
    try:
        yield path
    finally:
        shutil.rmtree(path, ignore_errors=True)


UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


def wrk(url, seconds=5, connections=64, script=None, args=()):
    """Load from the other core: requests a second, total requests, errors, latency percentiles in seconds."""
    command = ["taskset", "-c", str(LOAD_CPU), "wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency"]
    if script:
        command += ["-s", str(script)]
    out = subprocess.run([*command, url, *args], capture_output=True, text=True, check=True).stdout
    result = {"rate": float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]), "requests": int(re.search(r"(\d+) requests in", out)[1])}
    errors = re.search(r"Non-2xx or 3xx responses: (\d+)", out)
    result["errors"] = int(errors[1]) if errors else 0
    for percent in ("50", "99"):
        value, unit = re.search(rf"{percent}%\s+([\d.]+)(us|ms|s)", out).groups()
        result["p" + percent] = float(value) * UNITS[unit]
    return result


def in_turn(rounds, after_each=lambda: None, **loads):
    """Runs the loads in turn, round after round, so that drift of the machine hits all alike; medians by name.
    `after_each` waits for what a load has left to do."""
    rates = {name: [] for name in loads}
    for _ in range(rounds):
        for name, load in loads.items():
            rates[name].append(load())
            after_each()
    return {name: statistics.median(values) for name, values in rates.items()}


def busy(cpu, work):
    """What `work` returns, and the part of its time in which the core was busy."""
    def ticks():
        line = next(x for x in pathlib.Path("/proc/stat").read_text().splitlines() if x.startswith(f"cpu{cpu} "))
        fields = [int(x) for x in line.split()[1:9]]
        return sum(fields), fields[3] + fields[4]
    (total, idle), result, (total_after, idle_after) = ticks(), work(), ticks()
    return result, 1 - (idle_after - idle) / max(1, total_after - total)


def side_by_side(rounds, ours, settle, **peers):
    """Runs our load right before each peer's, round after round: {peer: (our rate, its rate, the ratio)}, medians. A
    ratio is of two neighbours in time, because machines that others share drift, and jump, from minute to minute; and of
    two whose core was busy, because otherwise the load was the limit and not the server (a peer may be quicker than the
    load and us). More rounds are run, up to three times as many, until there are enough of those. `settle` waits for what our load has left to do."""
    fair = {name: [] for name in peers}
    unfair = {name: [] for name in peers}
    for _ in range(3 * rounds):
        for name, load in peers.items():
            if len(fair[name]) >= rounds:
                continue
            rate, our_core = busy(SERVER_CPU, ours)
            settle()
            theirs, its_core = busy(SERVER_CPU, load)
            valid = our_core > 0.9 and (its_core > 0.9 or theirs > rate)
            (fair if valid else unfair)[name].append((rate, theirs))
    median = statistics.median
    return {name: (median(a for a, _ in seen), median(b for _, b in seen), median(a / b for a, b in seen))
            for name, seen in ((name, fair[name] or unfair[name]) for name in peers)}


def program(name, *args, cpu=None, env=None):
    """Runs a C++ benchmark of build/release/bench, pinned to a core if one is named, that prints its rows as JSON."""
    pin = ["taskset", "-c", str(cpu)] if cpu is not None else []
    out = subprocess.run([*pin, str(BUILD / "bench" / name), *map(str, args)], capture_output=True, text=True, check=True,
                         env={**os.environ, **(env or {})}).stdout
    return json.loads(out)
