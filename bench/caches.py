"""What the site's caches are worth: a crowd of made-up readers against `weir serve`, then the hit ratio, the loads and the
memory of each cache by /metrics. These are figures without bars: another site's readers will have other habits.

The site: the posts of Hacker News where WEIR_TEST_DATA has them, else as many made-up articles. The readers: RATE requests
a second for SECONDS, the kinds of requests by the shares below, articles by Zipf's law with the exponent 0.99 in an order
that has nothing to do with their age.
"""
import bisect
import collections
import http.client
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import threading
import time
import urllib.parse

from common import WEIR, Weir, folder, get, post, row

ARTICLES = 20_000
READERS = 8  # connections at once
RATE = 800
SECONDS = 90
AUTHORS = 12  # people who sign in, and write a dozen articles each
SEED = 1
PASSWORD = "a long password"

SHARES = {
    "article": 40,         # an article by the API
    "article page": 20,    # the same as a page: text laid out, author's name, counts
    "counts": 8,           # reads, likes and collections of one article
    "hot list": 8,         # by the API; its page is "front page"
    "front page": 6,
    "newest": 4,           # the list by the API, and as a page with names and counts
    "newest page": 4,
    "me": 3,               # a signed-in reader's own profile
    "own list": 2,         # an author looks at his list and opens what he sees
    "own article": 2,
    "invented": 2,         # ids that nobody ever created
    "like": 0.6,
    "edit": 0.3,           # an author changes an article and publishes it
    "sign-in": 0.1,
}

CACHES = ["article", "page_text", "user", "interaction", "author_list", "author_article", "ranking"]


class Zipf:
    def __init__(self, items, exponent=0.99):
        self.items = items
        self.sums = list(itertools.accumulate(1 / rank ** exponent for rank in range(1, len(items) + 1)))

    def pick(self, chance):
        return self.items[min(bisect.bisect_left(self.sums, chance.random() * self.sums[-1]), len(self.items) - 1)]


def fill(data):
    """How many articles the site has."""
    posts = pathlib.Path(os.environ.get("WEIR_TEST_DATA", "")) / "hn-posts-2016.csv.gz"
    if "WEIR_TEST_DATA" in os.environ and posts.exists():
        command = ["import", "hn", "--shift", posts, "--data", data]
    else:
        command = ["seed", "--articles", ARTICLES, "--users", 1000, "--likes", 20_000, "--password", PASSWORD, "--data", data]
    subprocess.run([str(WEIR), *map(str, command)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


class Site:
    """What the readers know: the articles' ids, and the authors with what is theirs."""

    def __init__(self, weir):
        self.ids = []
        more = ""
        while more is not None:
            page = json.loads(get(weir.url + "/v1/articles?limit=100" + more))
            self.ids += [item["id"] for item in page["items"]]
            more = f"&cursor={page['next_cursor']}" if page.get("next_cursor") else None
        self.authors = [self.author(weir, number) for number in range(AUTHORS)]
        random.Random(SEED).shuffle(self.ids)
        self.zipf = Zipf(self.ids)

    @staticmethod
    def author(weir, number):
        token = weir.sign_up(f"author{number}@example.com")
        own = []
        for article in range(12):
            made = post(weir.url + "/v1/articles", {"title": f"Article {article} of {number}", "content": "Words of the river. " * 60}, token)["id"]
            post(f"{weir.url}/v1/articles/{made}/publish", {}, token)
            own.append(made)
        return {"email": f"author{number}@example.com", "token": token, "articles": own}


class Reader(threading.Thread):
    """One connection that asks at its times and counts what it was answered."""

    def __init__(self, url, site, number):
        super().__init__()
        address = urllib.parse.urlsplit(url)
        self.connection = http.client.HTTPConnection(address.hostname, address.port)
        self.site, self.number, self.chance = site, number, random.Random(SEED + number)
        self.asked, self.failed = 0, collections.Counter()

    def send(self, method, path, body=None, token=None):
        headers = {"Authorization": "Bearer " + token} if token else {}
        data = None
        if body is not None:
            data, headers["Content-Type"] = json.dumps(body), "application/json"
        self.connection.request(method, path, data, headers)
        answer = self.connection.getresponse()
        answer.read()
        self.asked += 1
        if answer.status == 429 or answer.status >= 500:
            self.failed[f"{answer.status} for {method} {path}"] += 1

    def ask(self, kind):
        article, author = self.site.zipf.pick(self.chance), self.chance.choice(self.site.authors)
        own = self.chance.choice(author["articles"])
        if kind == "edit":
            self.send("PUT", f"/v1/articles/{own}", {"title": "Edited", "content": "Other words. " * 80}, author["token"])
            return self.send("POST", f"/v1/articles/{own}/publish", {}, author["token"])
        if kind == "sign-in":
            return self.send("POST", "/v1/sessions", {"email": author["email"], "password": PASSWORD})
        if kind == "like":
            return self.send("PUT", f"/v1/interactions/article/{article}/like", token=author["token"])
        invented = self.chance.choice([len(self.site.ids) + 1_000 + self.chance.randrange(50), 10 ** 12 + self.chance.randrange(10 ** 6)])
        path = {
            "article": f"/v1/articles/{article}",
            "article page": f"/articles/{article}",
            "counts": f"/v1/interactions/article/{article}",
            "hot list": "/v1/rankings/hot?limit=30",
            "front page": "/",
            "newest": "/v1/articles?limit=20",
            "newest page": "/newest",
            "me": "/v1/me",
            "own list": "/v1/me/articles?limit=20",
            "own article": f"/v1/me/articles/{own}",
            "invented": f"/v1/articles/{invented}",
        }[kind]
        return self.send("GET", path, token=author["token"] if kind in ("me", "own list", "own article") else None)

    def run(self):
        kinds, weights = list(SHARES), list(SHARES.values())
        begin = time.monotonic()
        for turn in itertools.count():
            due = begin + turn * READERS / RATE
            if due - begin > SECONDS:
                return
            time.sleep(max(0, due - time.monotonic()))
            self.ask(self.chance.choices(kinds, weights)[0])


def sum_of(series, name, cache, **labels):
    wanted = [f'cache="{cache}"', *(f'{key}="{value}"' for key, value in labels.items())]
    return sum(value for line, value in series.items() if line.startswith(name + "{") and all(label in line for label in wanted))


def rows_of(before, after):
    rows = []
    for cache in CACHES:
        def grown(name, **labels):
            return sum_of(after, name, cache, **labels) - sum_of(before, name, cache, **labels)

        looks = grown("weir_cache_lookups_total", level="local")
        if looks == 0:
            continue
        misses = grown("weir_cache_lookups_total", level="local", result="miss")
        rows.append(row(f"{cache}: looks", "", looks))
        rows.append(row(f"{cache}: hit ratio", "%", 100 * (1 - misses / looks)))
        rows.append(row(f"{cache}: loads", "", grown("weir_cache_loads_total")))
        rows.append(row(f"{cache}: answered by the filter", "", grown("weir_cache_lookups_total", level="filter", result="filtered")))
        rows.append(row(f"{cache}: joined another's load", "", grown("weir_cache_coalesced_total")))
        rows.append(row(f"{cache}: entries", "", sum_of(after, "weir_cache_entries", cache)))
        rows.append(row(f"{cache}: memory", "KiB", sum_of(after, "weir_cache_weight_bytes", cache) / 1024))
    looks = 'weir_id_filter_looks_total{filter="article"}'
    rows.append(row("id filter: looks at the highest id", "", after[looks] - before[looks]))
    rows.append(row("id filter: memory", "KiB", after['weir_id_filter_bytes{filter="article"}'] / 1024))
    return rows


def measure():
    with folder() as data:
        fill(data)
        with Weir(data, cpu=None) as weir:
            site = Site(weir)
            weir.settle()
        with Weir(data, cpu=None) as weir:  # anew: getting to know the site has filled the caches
            before = weir.metrics()
            readers = [Reader(weir.url, site, number) for number in range(READERS)]
            began = time.monotonic()
            for reader in readers:
                reader.start()
            for reader in readers:
                reader.join()
            rate = sum(reader.asked for reader in readers) / (time.monotonic() - began)
            rows = rows_of(before, weir.metrics())
            memory = weir.resident_mib()
    failed = sum((reader.failed for reader in readers), collections.Counter())
    for what, times in failed.items():
        print(f"caches: {times} x {what}", file=sys.stderr)
    return [row("articles", "", len(site.ids)), row("requests", "1/s", rate), row("requests that failed", "", failed.total(), bar=0, at_most=True),
            *rows, row("memory of the whole program", "MiB", memory)]
