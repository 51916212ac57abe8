"""Reads, likes, collections, history, the hot list."""
import concurrent.futures

import pytest
from conftest import invalid, problem
from weirserver import Person, Server, eventually


def counts(server, made, biz="article"):
    answer = server.get(f"/v1/interactions/{biz}/{made}")
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_reads_are_counted_within_two_seconds_and_head_is_none(server, ann):
    made = ann.article()
    for _ in range(10):
        assert server.get(f"/v1/articles/{made}").status_code == 200
    for _ in range(5):
        assert server.request("HEAD", f"/v1/articles/{made}").status_code == 200
    assert eventually(lambda: counts(server, made)["read_count"] == 10, 2), counts(server, made)
    assert server.get(f"/v1/articles/{made}").json()["interaction"]["read_count"] == 10


def test_a_304_counts_too(server, ann):
    made = ann.article()
    tag = server.request("HEAD", f"/v1/articles/{made}").headers["ETag"]
    assert server.get(f"/v1/articles/{made}", headers={"If-None-Match": tag}).status_code == 304
    assert eventually(lambda: counts(server, made)["read_count"] == 1, 2)


def test_posted_reads_count_once_for_each_event_id(server):
    for event in ["a", "b", "a", "a", "!~", "x" * 128]:
        answer = server.post("/v1/interactions/video/7/reads", {"event_id": event})
        assert answer.status_code == 202, answer.text
    for _ in range(3):
        assert server.post("/v1/interactions/video/7/reads").status_code == 202
    assert eventually(lambda: counts(server, 7, "video")["read_count"] == 7, 3), counts(server, 7, "video")
    # Unique for its biz and biz_id only.
    assert server.post("/v1/interactions/video/8/reads", {"event_id": "a"}).status_code == 202
    assert eventually(lambda: counts(server, 8, "video")["read_count"] == 1, 3)


@pytest.mark.parametrize("event", ["", "x" * 129, "é", "a\nb", 5, "a\u0000"])
def test_a_bad_event_id_is_422(server, event):
    invalid(server.post("/v1/interactions/video/7/reads", {"event_id": event}), "event_id")


def test_likes_change_the_count_once(server, ann, bob):
    made = ann.article()
    path = f"/v1/interactions/article/{made}/like"
    for _ in range(3):
        assert bob.put(path).status_code == 204
        mine = bob.get(f"/v1/interactions/article/{made}").json()
        assert mine["like_count"] == 1 and mine["liked"] is True and mine["collected"] is False
    assert ann.put(path).status_code == 204
    assert counts(server, made)["like_count"] == 2
    assert "liked" not in counts(server, made)
    for _ in range(3):
        assert bob.delete(path).status_code == 204
    assert bob.get(f"/v1/articles/{made}").json()["interaction"]["liked"] is False
    assert counts(server, made)["like_count"] == 1
    assert ann.delete(path).status_code == 204
    assert ann.delete(path).status_code == 204
    assert counts(server, made)["like_count"] == 0


def test_likes_at_once_end_in_one(server, ann, bob):
    made = ann.article()
    path = f"/v1/interactions/article/{made}/like"
    with concurrent.futures.ThreadPoolExecutor(16) as pool:
        codes = list(pool.map(lambda i: (bob.put if i % 2 else bob.delete)(path).status_code, range(64)))
    assert codes == [204] * 64
    bob.put(path)
    assert counts(server, made)["like_count"] == 1


def test_what_is_not_there_can_not_be_liked(server, bob):
    problem(bob.put("/v1/interactions/article/99999999/like"), 404, "not_found")
    problem(server.get("/v1/interactions/article/99999999"), 404, "not_found")
    problem(server.request("PUT", "/v1/interactions/article/1/like"), 401, "unauthenticated")
    assert counts(server, 99999999, "video") == {"biz": "video", "biz_id": "99999999", "read_count": 0, "like_count": 0, "collect_count": 0}


@pytest.mark.parametrize("biz", ["Article", "1a", "a" * 33, "a-b", "%20"])
def test_a_bad_biz_is_404(server, biz):
    assert server.get(f"/v1/interactions/{biz}/1").status_code in (404, 422)


def test_many_at_once_in_the_order_asked(server, ann):
    made = [ann.article() for _ in range(3)]
    asked = [made[2], made[0], made[1]]
    items = server.get("/v1/interactions/article?ids=" + ",".join(asked)).json()["items"]
    assert [i["biz_id"] for i in items] == asked
    invalid(server.get("/v1/interactions/article?ids=" + ",".join(["1"] * 101)), "ids")
    invalid(server.get("/v1/interactions/article?ids=1,x"), "ids")
    invalid(server.get("/v1/interactions/article?ids=007"), "ids")
    invalid(server.get("/v1/interactions/article"), "ids")


def test_collections(server, ann):
    reader = Person(server)
    made = ann.article()
    folder = reader.post("/v1/me/collections", {"name": "读过 📚"})
    assert folder.status_code == 201, folder.text
    folder = folder.json()["id"]
    item = f"/v1/interactions/article/{made}/collection"
    assert reader.put(item, {"collection_id": folder}).status_code == 204
    assert reader.put(item, {"collection_id": folder}).status_code == 204
    assert counts(server, made)["collect_count"] == 1
    assert reader.get(f"/v1/articles/{made}").json()["interaction"]["collected"] is True
    items = reader.get(f"/v1/me/collections/{folder}/items")
    assert items.status_code == 200, items.text
    assert made in str(items.json())
    assert reader.request("PATCH", f"/v1/me/collections/{folder}", json={"name": "renamed"}).status_code in (200, 204)
    names = [c["name"] for c in reader.get("/v1/me/collections").json()["items"]]
    assert "renamed" in names and len(names) == 2  # and the default one
    problem(Person(server).put(item, {"collection_id": folder}), 404, "not_found")
    invalid(reader.put(item, {"collection_id": "x"}), "collection_id")
    invalid(reader.post("/v1/me/collections", {"name": ""}), "name")
    assert reader.delete(item).status_code == 204
    assert reader.delete(item).status_code == 204
    assert counts(server, made)["collect_count"] == 0
    # Without a folder: the default one. Deleting a folder loses nothing of what is in it.
    assert reader.put(item).status_code == 204
    assert reader.put(item, {"collection_id": folder}).status_code == 204
    assert reader.delete(f"/v1/me/collections/{folder}").status_code == 204
    problem(reader.get(f"/v1/me/collections/{folder}/items"), 404, "not_found")


def test_history_is_what_i_read_newest_first(server, ann):
    reader = Person(server)
    made = [ann.article(f"h{i}") for i in range(3)]
    for article in [made[0], made[1], made[2], made[0]]:
        assert reader.get(f"/v1/articles/{article}").status_code == 200
    def read():
        return [i for i in reader.get("/v1/me/history").json()["items"]]
    assert eventually(lambda: len(read()) == 3), read()
    assert made[0] in str(read()[0])
    assert reader.delete("/v1/me/history").status_code == 204
    assert read() == []


def test_the_hot_list_moves():
    with Server(env={"WEIR_RANKING_EVERY": "1s"}) as server:
        people = [Person(server) for _ in range(3)]
        made = [people[0].article(f"hot {i}") for i in range(3)]
        for person in people:
            person.put(f"/v1/interactions/article/{made[0]}/like")
        people[0].put(f"/v1/interactions/article/{made[1]}/like")
        people[1].put(f"/v1/interactions/article/{made[1]}/like")
        def hot():
            return server.get("/v1/rankings/hot?limit=2").json()
        assert eventually(lambda: [i["id"] for i in hot()["items"]] == [made[0], made[1]]), hot()
        board = hot()
        assert board["name"] == "hot" and board["model"] == "hackernews" and board["stale"] is False and board["computed_at"]
        first = board["items"][0]
        assert first["rank"] == 1 and first["like_count"] == 3 and first["title"] == "hot 0" and first["author"]["id"] == people[0].id
        assert set(first) == {"rank", "score", "id", "title", "abstract", "author", "like_count", "published_at"}
        people[0].post(f"/v1/articles/{made[0]}/withdraw")
        assert eventually(lambda: made[0] not in [i["id"] for i in hot()["items"]])
        problem(server.get("/v1/rankings/cold"), 404, "not_found")
        invalid(server.get("/v1/rankings/hot?limit=0"), "limit")
        invalid(server.get("/v1/rankings/hot?limit=101"), "limit")
