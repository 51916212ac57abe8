"""What several nodes pay for being several: a read that hits the shared cache, beside a bare GET there."""
import re
import subprocess

from common import LOAD_CPU, SERVER_CPU, folder, free_port, in_turn, program, row, running

ROUNDS = 5
SECONDS = 2
REQUESTS = 60_000
CONNECTIONS = [1, 16]
VALUE_BYTES = 100


def redis_benchmark(port, test, connections, requests):
    command = ["taskset", "-c", str(LOAD_CPU), "redis-benchmark", "-h", "127.0.0.1", "-p", str(port), "-c", str(connections),
               "-n", str(requests), "-d", str(VALUE_BYTES), "-t", test, "-q"]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return float(re.findall(r"([\d.]+) requests per second", out)[-1])


def remote_reads(port, connections):
    rates = in_turn(ROUNDS, ours=lambda: program("remote_read_bench", port, SECONDS, connections, cpu=LOAD_CPU)["rate"],
                    theirs=lambda: redis_benchmark(port, "get", connections, REQUESTS))
    return row(f"a read that hits Redis and not the local cache, {connections} connection(s), none pipelined", "1/s", rates["ours"],
               "GET by redis-benchmark", rates["theirs"], rates["ours"] / rates["theirs"], 0.6)


def measure():
    port = free_port()
    with folder() as data:
        command = ["redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", data, "--save", "", "--appendonly", "no"]
        with running(command, port, cpu=SERVER_CPU):
            redis_benchmark(port, "set", 1, 1)
            return [remote_reads(port, connections) for connections in CONNECTIONS]
