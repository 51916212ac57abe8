"""LocalCache under load, beside quick_cache, the fastest peer: keys by Zipf's law, all of them in the cache."""
import shutil
import subprocess

from common import BUILD, ROOT, folder, in_turn, row

ROUNDS = 5
SECONDS = 0.7
# name, arguments, bar of the ratio: FLAT or SHARED values, THREADS, WRITES of four calls
LOADS = [
    ("reads, 1 thread", ("flat", 1, 0), 1.2),
    ("reads, 2 threads", ("flat", 2, 0), 3.0),
    ("75% reads, 1 thread", ("flat", 1, 1), 1.2),
    ("75% reads, 2 threads", ("flat", 2, 1), 1.2),
    ("shared values, reads, 1 thread", ("shared", 1, 0), 1.0),
    ("shared values, reads, 2 threads", ("shared", 2, 0), 1.0),
]


def rate(program, load):
    out = subprocess.run([str(program), *map(str, load), str(SECONDS)], capture_output=True, text=True, check=True)
    return float(out.stdout)


def quick_cache(where):
    """The peer's program, or None where there is no Rust."""
    if shutil.which("cargo") is None:
        return None
    source = ROOT / "bench" / "peers" / "quick_cache"
    subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "--target-dir", str(where)], cwd=source, check=True)
    return where / "release" / "quick-cache-peer"


def measure():
    ours = BUILD / "bench" / "local_cache_bench"
    rows = []
    with folder() as where:
        peer = quick_cache(where)
        for name, load, bar in LOADS:
            loads = {"weir": lambda load=load: rate(ours, load)}
            if peer is not None:
                loads["quick_cache"] = lambda load=load: rate(peer, load)
            rates = in_turn(ROUNDS, **loads)
            if peer is None:
                rows.append(row(name, "million/s", rates["weir"], "quick_cache (not measured: no cargo)"))
                continue
            rows.append(row(name, "million/s", rates["weir"], "quick_cache", rates["quick_cache"],
                            rates["weir"] / rates["quick_cache"], bar))
    return rows
