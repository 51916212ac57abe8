"""The caches of others, as small programs on their released packages: built where the toolchain is there.

Each takes `flat|shared THREADS WRITES_OF_4 SECONDS`, `memory ENTRIES`, and `replay ENTRIES` with keys on its standard
input, and prints one number.
"""
import functools
import os
import shutil
import subprocess
import sys

from common import BUILD, ROOT

SOURCES = ROOT / "bench" / "peers"
TARGET = BUILD / "peers"
NAMES = ["quick_cache", "moka", "otter", "Caffeine"]


def crates():
    target = TARGET / "crates"
    subprocess.run(["cargo", "build", "--quiet", "--release", "--locked", "--target-dir", str(target)], cwd=SOURCES / "crates",
                   env={**os.environ, "CARGO_TERM_COLOR": "never"}, check=True, capture_output=True, text=True)
    return target / "release"


def otter():
    target = TARGET / "otter"
    subprocess.run(["go", "build", "-mod=readonly", "-o", str(target), "."], cwd=SOURCES / "otter", check=True, capture_output=True, text=True)
    return [str(target)]


def caffeine():
    target = TARGET / "caffeine"
    subprocess.run(["mvn", "-q", "-B", f"-Dpeer.target={target}", "package"], cwd=SOURCES / "caffeine", check=True, capture_output=True, text=True)
    return ["java", "-cp", f"{target}/classes:{target}/libraries/*", "CaffeinePeer"]


BUILDERS = {
    "quick_cache": (["cargo"], lambda: [str(crates() / "quick_cache")]),
    "moka": (["cargo"], lambda: [str(crates() / "moka")]),
    "otter": (["go"], otter),
    "Caffeine": (["java", "javac", "mvn"], caffeine),
}


@functools.cache
def command(name):
    """What runs the peer; None where it can't be built, which is told once."""
    tools, build = BUILDERS[name]
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        print(f"{name} is not measured: there is no {' and no '.join(missing)}", file=sys.stderr)
        return None
    try:
        return build()
    except subprocess.CalledProcessError as failure:
        print(f"{name} is not measured: {failure.cmd[0]} failed\n{failure.stderr}", file=sys.stderr)
        return None


def ask(name, *args, keys=None):
    """The number that the peer answers, or None where there is no such peer."""
    program = command(name)
    if program is None:
        return None
    return float(subprocess.run([*program, *map(str, args)], input=keys, capture_output=True, text=True, check=True).stdout)
