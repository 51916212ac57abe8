"""What the guarded read promises beside speed: memory, no slow call, one load for a crowd, a hit without overhead."""
import statistics

import peer_programs
from common import program, row

ROUNDS = 5


def rounds(*args):
    return [program("guarded_read_bench", *args) for _ in range(ROUNDS)]


def median(results, of):
    return statistics.median(of(one) for one in results)


def memory():
    # What a thread's own store of free blocks holds would count as in use.
    bare = {"GLIBC_TUNABLES": "glibc.malloc.tcache_count=0"}
    million, hundred = (program("guarded_read_bench", "memory", entries, env=bare) for entries in (1_000_000, 100))
    peers = [(peer, peer_programs.ask(peer, "memory", 1_000_000)) for peer in peer_programs.NAMES]
    return [
        # By the allocator's books or by what is resident, whichever is more: what is mapped past the allocator counts as well.
        row("memory of 1,000,000 entries of 8 + 8 bytes, each", "bytes", max(million["allocated"], million["resident"]) / million["entries"],
            bar=56, at_most=True),
        *(row(f"the same of {peer}" + ("" if bytes_each else ": not measured"), "bytes", bytes_each or 0) for peer, bytes_each in peers),
        row("memory of a cache of 100, in all", "KiB", hundred["allocated"] / 1024, bar=32, at_most=True),
    ]


def inserts():
    rows = []
    for kind, name in (("flat", "values in place"), ("shared", "shared values, with a TTL")):
        seen = program("guarded_read_bench", "inserts", kind)
        rows.append(row(f"inserts only, {name}: p99.99 of a call", "ns", seen["p9999"], "median", seen["median"],
                        seen["p9999"] / seen["median"], 50, at_most=True))
        rows.append(row(f"inserts only, {name}: the worst of {seen['calls']:,} calls", "ns", seen["worst"]))
    return rows


def stampede():
    seen = rounds("stampede")
    return [
        row("loads of an expired entry, 10,000 coroutines", "loads", max(one["loads"] for one in seen), bar=1, at_most=True),
        row("the last of them is served after the load's end", "ms", median(seen, lambda one: one["last_ms"]), bar=20, at_most=True),
    ]


def find():
    seen = program("guarded_read_bench", "find")
    return [
        row("ReadThrough::find", "ns", seen["guarded"], "LocalCache::find", seen["bare"], seen["ratio"], 1.5, at_most=True),
        row("LocalCache::find where nothing has a TTL", "ns", seen["timeless"]),
        row("allocations of 15 million finds", "allocations", seen["allocations"], bar=0, at_most=True),
    ]


def measure():
    return memory() + inserts() + stampede() + find()
