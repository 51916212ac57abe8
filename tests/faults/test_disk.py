"""A full disk, a damaged journal: reads go on, nothing whole is lost, the rest is reported."""
import pathlib
import resource

from weirserver import Person, Server, eventually


def limit_of_file_size(server, size):
    """The kernel refuses the process any write past this size: a full disk, without needing one."""
    resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def test_on_a_full_disk_writes_answer_503_and_reads_go_on():
    with Server() as server:
        author = Person(server)
        made = author.article("still here")
        limit_of_file_size(server, 4096)
        for _ in range(20):
            refused = author.post("/v1/articles", {"title": "no room", "content": "x" * 10_000})
            assert refused.status_code == 503, refused.text
            assert refused.json()["code"] == "unavailable" and refused.headers["Retry-After"]
            assert server.get(f"/v1/articles/{made}").json()["title"] == "still here"
            assert server.get("/v1/articles").status_code == 200
        assert author.put(f"/v1/interactions/article/{made}/like").status_code == 503
        assert author.get("/v1/me/collections").json()["items"] == []  # its default folder can't be made yet
        # The sender has a batch in hand that the queue doesn't take: who comes now is told so, not left waiting.
        assert server.post(f"/v1/interactions/article/{made}/reads").status_code == 503
        limit_of_file_size(server, resource.RLIM_INFINITY)
        assert eventually(lambda: author.post("/v1/articles", {"title": "room", "content": "x" * 10_000}).status_code == 201)
        # What was read meanwhile waited in the journal.
        assert eventually(lambda: server.get(f"/v1/interactions/article/{made}").json()["read_count"] >= 20, 15)


def test_a_damaged_journal_loses_only_what_is_damaged():
    with Server() as server:
        made = Person(server).article()
        limit_of_file_size(server, 4096)  # keeps the events in the journal
        for _ in range(100):
            assert server.get(f"/v1/articles/{made}").status_code == 200
        server.kill()
        path = pathlib.Path(server.data) / "journal"
        data = bytearray(path.read_bytes())
        at = -1
        for _ in range(10):
            at = data.find(f"article:{made}".encode(), at + 1)
        assert at > 0
        data[at] ^= 0xFF  # the tenth event's key
        path.write_bytes(data)
        server.start()
        assert eventually(lambda: server.get(f"/v1/interactions/article/{made}").json()["read_count"] >= 99, 15)
        assert server.get(f"/v1/interactions/article/{made}").json()["read_count"] == 99
        assert server.sum_of("weir_queue_damaged_total") >= 1
        assert any("damaged" in line for line in server.log)


def test_a_journal_that_was_cut_off_loses_only_what_was_cut():
    with Server(env={"WEIR_QUEUE_JOURNAL": "1MiB"}) as server:
        made = Person(server).article()
        limit_of_file_size(server, 4096)
        for _ in range(200):
            assert server.get(f"/v1/articles/{made}").status_code == 200
        server.kill()
        path = pathlib.Path(server.data) / "journal"
        data = path.read_bytes()
        cut = -1
        for _ in range(101):
            cut = data.find(b"read_events", cut + 1)
        path.write_bytes(data[:cut])
        server.start()
        assert eventually(lambda: server.get(f"/v1/interactions/article/{made}").json()["read_count"] == 100, 15)
        assert server.sum_of("weir_queue_damaged_total") >= 1


def test_a_full_journal_drops_reads_of_pages_and_refuses_posted_ones():
    with Server(env={"WEIR_QUEUE_JOURNAL": "1MiB"}) as server:
        made = Person(server).article()
        limit_of_file_size(server, 4096)
        session = __import__("requests").Session()
        for _ in range(40_000):
            assert session.get(f"{server.url}/v1/articles/{made}").status_code == 200
            if server.process.poll() is not None:
                raise AssertionError("the server died")
            if _ % 2000 == 0 and server.sum_of("weir_queue_dropped_total", topic="read_events") > 0:
                break
        assert server.sum_of("weir_queue_dropped_total", topic="read_events") > 0
        assert server.post("/v1/interactions/article/%s/reads" % made).status_code == 503
