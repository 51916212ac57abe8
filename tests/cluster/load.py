"""A crowd: threads that read and write through one address, and remember of every request how it went."""
import collections
import dataclasses
import http.client
import json
import random
import threading
import time
import uuid

PAUSE = 0.02          # of a thread between two requests
GIVE_UP = 30.0        # a request that takes longer hangs
RETRY_PAUSE = 0.3     # of a write that must be known to be done
WRITE_SECONDS = 120   # by when it must be


@dataclasses.dataclass
class Done:
    """One request: what it was, when it began, how long it took, and its status; 0 when there was no answer."""
    kind: str
    began: float
    took: float
    status: int


class Line:
    """One thread's connection, made anew when it breaks."""

    def __init__(self, port):
        self.port = port
        self.connection = None

    def ask(self, method, path, body=None, headers=None):
        """Status and document; 0 and why when there is no answer."""
        try:
            if self.connection is None:
                self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=GIVE_UP)
            data = None if body is None else json.dumps(body)
            self.connection.request(method, path, data, {"Content-Type": "application/json", **(headers or {})})
            answer = self.connection.getresponse()
            text = answer.read()
            return answer.status, text
        except (OSError, http.client.HTTPException) as why:
            self.close()
            return 0, repr(why)

    def close(self):
        if self.connection:
            self.connection.close()
        self.connection = None


class Crowd:
    """`with Crowd(port, people, articles) as crowd:` keeps the load up until its end. `people`: bearer tokens.

    Articles that are read aren't the ones whose counts are checked: `counted` get reads that carry an event_id, each sent
    until it is known to be taken, and likes that are set and taken back, so at the end it is known what must be there.
    """

    def __init__(self, port, people, articles, counted, threads=12, seed=None):
        self.port, self.people, self.articles, self.counted = port, people, articles, counted
        self.seed = seed or random.randrange(1 << 32)
        print("seed", self.seed)
        self.done = []
        self.reads = collections.Counter()   # of each counted article, the reads that were taken
        self.likes = {}                      # (person, article): whether it is liked, as far as it is known
        self.unknown = []                    # writes that nobody knows the outcome of
        self._lock = threading.Lock()
        self._stop = threading.Event()
        kinds = [self._read_article, self._read_article, self._hot, self._counts, self._count_read, self._like]
        self._threads = [threading.Thread(target=self._work, args=(kinds[i % len(kinds)], i)) for i in range(threads)]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def between(self, began, ended):
        """The requests that were under way at some moment of this time."""
        with self._lock:
            return [one for one in self.done if one.began < ended and one.began + one.took > began]

    def _work(self, kind, number):
        line, chance = Line(self.port), random.Random(self.seed + number)
        while not self._stop.is_set():
            kind(line, chance)
            self._stop.wait(PAUSE)
        line.close()

    def _ask(self, line, kind, method, path, body=None, headers=None):
        began = time.monotonic()
        status, text = line.ask(method, path, body, headers)
        with self._lock:
            self.done.append(Done(kind, began, time.monotonic() - began, status))
        return status, text

    def _read_article(self, line, chance):
        # Half of them want the same one.
        article = self.articles[0] if chance.random() < 0.5 else chance.choice(self.articles)
        self._ask(line, "GET an article", "GET", f"/v1/articles/{article}")

    def _hot(self, line, chance):
        self._ask(line, "GET the hot list", "GET", "/v1/rankings/hot")

    def _counts(self, line, chance):
        self._ask(line, "GET counts", "GET", f"/v1/interactions/article/{chance.choice(self.articles)}")

    def _insist(self, line, kind, method, path, taken, body=None, headers=None):
        """Sends it until it is known to be done. False when the time was over first."""
        deadline = time.monotonic() + WRITE_SECONDS
        while time.monotonic() < deadline:
            status, text = self._ask(line, kind, method, path, body, headers)
            if status == taken:
                return True
            assert status in (0, 502, 503, 504), f"{method} {path}: {status} {text}"
            time.sleep(RETRY_PAUSE)
        return False

    def _count_read(self, line, chance):
        article = chance.choice(self.counted)
        event = {"event_id": str(uuid.UUID(int=chance.getrandbits(128)))}
        if self._insist(line, "POST a read", "POST", f"/v1/interactions/article/{article}/reads", 202, event):
            with self._lock:
                self.reads[article] += 1
        else:
            self.unknown.append(("read", article))

    def _like(self, line, chance):
        person, article = chance.randrange(len(self.people)), chance.choice(self.counted)
        with self._lock:
            key = (person, article)
            if self.likes.get(key) == "asked":  # by another thread; one at a time, or nobody knows which was last
                return
            liked, self.likes[key] = self.likes.get(key, False), "asked"
        if self._insist(line, "PUT or DELETE a like", "DELETE" if liked else "PUT", f"/v1/interactions/article/{article}/like", 204,
                        headers={"Authorization": f"Bearer {self.people[person]}"}):
            with self._lock:
                self.likes[key] = not liked
        else:
            self.unknown.append(("like", article))

    def likes_of(self, article):
        return sum(1 for (_, which), liked in self.likes.items() if which == article and liked is True)


def table(rows, crowd):
    """What happened to the crowd during each accident, in Markdown."""
    lines = ["| what happened | requests | failed | with | for | slowest |", "| --- | --- | --- | --- | --- | --- |"]
    for name, began, ended in rows:
        seen = crowd.between(began, ended)
        failed = [one for one in seen if one.status == 0 or one.status >= 500]
        how = collections.Counter(f"{one.kind}: {one.status or 'no answer'}" for one in failed)
        lasted = max((one.began + one.took for one in failed), default=0) - min((one.began for one in failed), default=0)
        told = "; ".join(f"{what} ({count})" for what, count in how.most_common()) or "-"
        slowest = max((one.took for one in seen), default=0)
        lines.append(f"| {name} | {len(seen)} | {len(failed)} | {told} | {f'{lasted:.1f} s' if failed else '-'} | {slowest:.2f} s |")
    return "\n".join(lines) + "\n"
