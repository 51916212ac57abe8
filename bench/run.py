#!/usr/bin/env python3
"""Runs the benchmarks by name and shows each result beside its bar.

A benchmark is a module of this folder with a function `measure()` that returns rows
{name, unit, ours, peer, theirs, ratio, bar, ok}; a bar of None is a figure without one.
"""
import importlib
import json
import sys

NAMES = ["read", "flight", "cache", "caches", "counting", "hotlist", "million", "api", "filter", "redis", "cluster"]
# What else belongs to a benchmark, and can be run alone as well.
ALSO = {"cache": ["guard", "hits"]}


def show(rows):
    for row in rows:
        bar = "" if row["bar"] is None else f"  bar {row['bar']:g}  {'ok' if row['ok'] else 'MISSED'}"
        theirs = "" if row["theirs"] is None else f"  {row['peer']} {row['theirs']:,.4g}"
        ratio = "" if row["ratio"] is None else f"  ratio {row['ratio']:.2f}"
        print(f"{row['name']}: {row['ours']:,.4g} {row['unit']}{theirs}{ratio}{bar}", flush=True)


def main():
    name = sys.argv[1] if len(sys.argv) > 1 else "all"
    parts = [part for also in ALSO.values() for part in also]
    if name not in ["all", *NAMES, *parts]:
        print(f"no benchmark {name!r}; there are {', '.join(NAMES + parts)}", file=sys.stderr)
        return 2
    rows = []
    for one in NAMES if name == "all" else [name]:
        for module in [one, *ALSO.get(one, [])]:
            found = importlib.import_module(module).measure()
            show(found)
            rows += found
    if len(sys.argv) > 2:
        with open(sys.argv[2], "w") as out:
            json.dump(rows, out, indent=1)
    return 0 if all(row["ok"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
