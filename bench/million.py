"""Serving 1,000,000 articles against 1,000: latency of a cached read, idle memory, time to ready."""
import json
import subprocess

from common import WEIR, Weir, folder, get, row, wrk

CACHE_MIB = 256  # the default budget of the local cache


def seeded(where, articles):
    data = where / str(articles)
    subprocess.run([str(WEIR), "seed", "--data", str(data), "--articles", str(articles), "--users", "1000", "--likes", "1000", "--password",
                    "a long password"], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return data


def serve(data):
    with Weir(data) as weir:
        hot = json.loads(get(weir.url + "/v1/articles?limit=1"))["items"][0]["id"]
        import time
        time.sleep(15)  # the filter fills and the hot list is made in the background
        idle = weir.resident_mib()
        wrk(f"{weir.url}/v1/articles/{hot}", seconds=2)
        runs = [wrk(f"{weir.url}/v1/articles/{hot}", seconds=4) for _ in range(3)]
        middle = sorted(runs, key=lambda r: r["p99"])[1]
        return {"ready": weir.ready_seconds, "idle": idle, **middle}


def measure():
    with folder() as where:
        small, large = serve(seeded(where, 1_000)), serve(seeded(where, 1_000_000))
    # The same within the noise of the machine: a fifth for the median, two fifths for the 99th percentile.
    return [
        row("median of a cached read, 1,000,000 articles", "s", large["p50"], "1,000 articles", small["p50"], large["p50"] / small["p50"], 1.2, at_most=True),
        row("p99 of a cached read, 1,000,000 articles", "s", large["p99"], "1,000 articles", small["p99"], large["p99"] / small["p99"], 1.4, at_most=True),
        row("idle memory with 1,000,000 articles", "MiB", large["idle"], bar=60, at_most=True),
        row("ready after start with 1,000,000 articles", "s", large["ready"], bar=1.0, at_most=True),
    ]
