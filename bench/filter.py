"""Look-ups in the Bloom filter beside crates for Rust and a bare cache miss, and false positives beside the formula."""
import os
import shutil
import subprocess
import sys

from common import BUILD, ROOT, program, row

CRATES = ROOT / "bench" / "peers" / "filters"


def peers():
    """The peers' library, or None where it can't be built: then they are reported as not measured."""
    if shutil.which("cargo") is None:
        print("filter: sbbf-rs and fastbloom are not measured: there is no cargo", file=sys.stderr)
        return None
    target = BUILD / "peers" / "filters"
    built = subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "--target-dir", str(target)], cwd=CRATES,
                           env={**os.environ, "CARGO_TERM_COLOR": "never"}, stderr=subprocess.PIPE, text=True, check=False)
    if built.returncode != 0:
        print(f"filter: sbbf-rs and fastbloom are not measured: cargo failed\n{built.stderr}", file=sys.stderr)
        return None
    return target / "release" / "libfilters.so"


def measure():
    library = peers()
    extra = [] if library is None else [library]
    rows = program("filter_bench", "speed", 10_000_000, 12, *extra)
    if library is None:
        rows.append(row("a look-up, sbbf-rs and fastbloom: not measured", "ns", 0))
    for keys in (10_000_000, 100_000_000):
        rows += program("filter_bench", "rates", keys)
    return rows
