"""GETs a second: 64 coroutines on one connection against redis-benchmark's 64 connections without pipelining, in turn,
on one server."""
import re
import subprocess

from common import LOAD_CPU, SERVER_CPU, folder, free_port, in_turn, program, row, running

ROUNDS = 5
SECONDS = 2
REQUESTS = 100_000


def redis_benchmark(port):
    command = ["taskset", "-c", str(LOAD_CPU), "redis-benchmark", "-h", "127.0.0.1", "-p", str(port), "-c", "64",
               "-n", str(REQUESTS), "-t", "get", "-q"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(re.findall(r"GET: ([\d.]+) requests per second", out)[-1])


def ours(port, what):
    return program("redis_bench", port, SECONDS, what, cpu=LOAD_CPU)["rate"]


def measure():
    port = free_port()
    with folder() as data:
        command = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", data, "--save", "", "--appendonly", "no"]
        with running(command, port, cpu=SERVER_CPU):
            rates = in_turn(ROUNDS, ours=lambda: ours(port, "get"), theirs=lambda: redis_benchmark(port),
                            remote=lambda: ours(port, "remote"))
    peer = "redis-benchmark -c 64"
    return [
        row("GET, 64 coroutines on one connection", "1/s", rates["ours"], peer, rates["theirs"], rates["ours"] / rates["theirs"], 2),
        row("RemoteCache::get, with what is left of the TTL", "1/s", rates["remote"], peer, rates["theirs"],
            rates["remote"] / rates["theirs"]),
    ]
