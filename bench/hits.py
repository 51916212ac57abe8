"""Hit ratios on real traces, by `weir cache replay`, beside the peers on the same keys: percent of get-else-put, each
bounded by entries. The traces are those of WEIR_TEST_DATA."""
import gzip
import json
import os
import pathlib
import subprocess

import peer_programs
from common import WEIR, row

TRACES = {
    "oltp": [250, 1_000, 2_000],
    "loop": [250, 500, 750],
    "multi3": [500, 1_000, 2_000],
    "sprite": [100, 500],
    "2_pools": [500, 1_000],
    "web07": [500, 2_000],
    "orm-busy": [1_000, 10_000],
}


def weir(trace, sizes):
    command = [str(WEIR), "cache", "replay", str(trace), "--capacity", ",".join(map(str, sizes)), "--json"]
    return {one["capacity"]: one for one in json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)}


def numbered(trace):
    """The keys as numbers, a line each, which all peers read."""
    known = {}
    with gzip.open(trace, "rt") as lines:
        return "".join(f"{known.setdefault(line, len(known))}\n" for line in lines)


def measured(folder):
    """[(name, ours, {peer: theirs})] by trace and size."""
    found = []
    for name, sizes in TRACES.items():
        trace = folder / f"{name}.keys.gz"
        ours, keys = weir(trace, sizes), numbered(trace)
        for size in sizes:
            theirs = {"LRU": ours[size]["lru"]}
            for peer in peer_programs.NAMES:
                ratio = peer_programs.ask(peer, "replay", size, keys=keys)
                if ratio is not None:
                    theirs[peer] = ratio
            found.append((f"{name}, {size:,} entries", ours[size]["weir"], theirs))
    return found


def measure():
    folder = pathlib.Path(os.environ.get("WEIR_TEST_DATA", "")) / "traces"
    if not folder.is_dir():
        return [row("hit ratios: not measured, there are no traces in WEIR_TEST_DATA", "", 0)]
    found = measured(folder)
    rows = []
    for name, ours, theirs in found:
        best = max(theirs, key=theirs.get)
        rows.append(row(f"hit ratio, {name}", "%", ours, best, theirs[best]))
    rows.append(row("hit ratio, mean of all rows", "%", sum(ours for _, ours, _ in found) / len(found), bar=53.4))
    for peer in peer_programs.NAMES:
        if all(peer in theirs for _, _, theirs in found):
            rows.append(row(f"hit ratio, mean of all rows, {peer}", "%", sum(theirs[peer] for _, _, theirs in found) / len(found)))
            if peer == "Caffeine":
                rows.append(row("hit ratio, the worst row against Caffeine", "points", min(ours - theirs[peer] for _, ours, theirs in found), bar=-0.3))
        else:
            rows.append(row(f"hit ratio, {peer}: not measured", "%", 0))
    rows.append(row("hit ratio, the worst row against the best peer", "points", min(ours - max(theirs.values()) for _, ours, theirs in found), bar=-1))
    return rows
