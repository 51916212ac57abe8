"""LocalCache under load, beside quick_cache, the fastest peer, and the others: keys by Zipf's law, all of them in the
cache. Ratios are of runs that followed each other."""
import statistics
import subprocess

import peer_programs
from common import BUILD, row

ROUNDS = 7
SECONDS = 0.5
# name, arguments, bar of the ratio: FLAT or SHARED values, THREADS, WRITES of four calls
LOADS = [
    ("reads, 1 thread", ("flat", 1, 0), 1.2),
    ("reads, 2 threads", ("flat", 2, 0), 3.0),
    ("75% reads, 1 thread", ("flat", 1, 1), 1.2),
    ("75% reads, 2 threads", ("flat", 2, 1), 1.2),
    ("shared values, reads, 1 thread", ("shared", 1, 0), 1.0),
    ("shared values, reads, 2 threads", ("shared", 2, 0), 1.0),
]
FASTEST = "quick_cache"


def ours(load):
    command = [BUILD / "bench" / "local_cache_bench", *load, SECONDS]
    return float(subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True).stdout)


def beside_the_fastest(name, load, bar):
    pairs = []
    for _ in range(ROUNDS):
        theirs = peer_programs.ask(FASTEST, *load, SECONDS)
        pairs.append((ours(load), theirs))
    rate = statistics.median(pair[0] for pair in pairs)
    if pairs[0][1] is None:
        return row(name, "million/s", rate, f"{FASTEST} (not measured)")
    return row(name, "million/s", rate, FASTEST, statistics.median(pair[1] for pair in pairs),
               statistics.median(mine / theirs for mine, theirs in pairs), bar)


def the_others(name, load):
    """One run of each, to show the order of magnitude."""
    rows = []
    for peer in peer_programs.NAMES:
        if peer != FASTEST and (rate := peer_programs.ask(peer, *load, SECONDS)) is not None:
            rows.append(row(f"{name}: {peer}", "million/s", rate))
    return rows


def measure():
    rows = [beside_the_fastest(*load) for load in LOADS]
    return rows + the_others(*LOADS[0][:2]) + the_others(*LOADS[1][:2])
