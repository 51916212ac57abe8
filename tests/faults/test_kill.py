"""kill -9 at random moments during a stream of reads: each answered one is counted, none twice."""
import os
import random
import threading

import requests
from weirserver import Person, Server, eventually

ROUNDS = 5


class Load(threading.Thread):
    """Sends requests until the server dies. Counts the answers, and the requests whose fate nobody knows."""

    def __init__(self, send):
        super().__init__()
        self.send, self.answered, self.unknown = send, 0, 0

    def run(self):
        session = requests.Session()
        while True:
            try:
                code = self.send(session)
            except requests.RequestException:
                self.unknown += 1
                return
            if code in (200, 202):
                self.answered += 1


def test_every_answered_read_is_counted_once_through_kills():
    seed = int(os.environ.get("WEIR_SEED", random.randrange(1 << 32)))
    print("seed", seed)
    chance = random.Random(seed)
    with Server() as server:
        made = Person(server).article()
        gets = posts = unknown_gets = unknown_posts = 0
        ids = set()
        for number in range(ROUNDS):
            counter = iter(range(1 << 30))
            lock = threading.Lock()
            tried = []

            def get(session):
                return session.get(f"{server.url}/v1/articles/{made}", timeout=10).status_code

            def post(session):
                with lock:
                    event = f"{number}-{next(counter)}"
                tried.append(event)
                code = session.post(f"{server.url}/v1/interactions/video/5/reads", json={"event_id": event}, timeout=10).status_code
                if code == 202:
                    ids.add(event)
                return code

            load = [Load(get) for _ in range(3)] + [Load(post) for _ in range(3)]
            for thread in load:
                thread.start()
            threading.Event().wait(chance.uniform(0.2, 1.2))
            server.kill()
            for thread in load:
                thread.join()
            gets += sum(t.answered for t in load[:3])
            posts += sum(t.answered for t in load[3:])
            unknown_gets += sum(t.unknown for t in load[:3])
            unknown_posts += sum(t.unknown for t in load[3:])
            server.start()
            # Sent again, as a client would who got no answer: still once each.
            for event in tried[-20:]:
                assert server.post("/v1/interactions/video/5/reads", {"event_id": event}).status_code == 202
                ids.add(event)

        assert gets > 50 and posts > 20, (gets, posts)

        def settled():
            lag = [v for k, v in server.metrics().items() if k.startswith("weir_queue_lag")]
            return lag and sum(lag) == 0

        assert eventually(settled, 30)
        article = server.get(f"/v1/interactions/article/{made}").json()["read_count"]
        video = server.get("/v1/interactions/video/5").json()["read_count"]
        # A request that was cut off may have been counted before the kill; never more than that.
        assert gets <= article <= gets + unknown_gets, (gets, article, unknown_gets)
        assert len(ids) <= video <= len(ids) + unknown_posts, (len(ids), video, unknown_posts)
