"""Writing, publishing, reading, lists."""
import pytest
from conftest import invalid, problem
from weirserver import Person, eventually


def test_the_life_of_an_article(server, ann, bob):
    made = ann.article("Ein Titel 标题 😀", "# Hello\n\nSome *words*.", publish=False)
    problem(server.get(f"/v1/articles/{made}"), 404, "not_found")
    mine = ann.get(f"/v1/me/articles/{made}")
    assert mine.json()["status"] == "draft" and mine.json()["content"] == "# Hello\n\nSome *words*."

    assert ann.post(f"/v1/articles/{made}/publish").status_code == 200
    read = server.get(f"/v1/articles/{made}")
    assert read.status_code == 200
    article = read.json()
    assert article["id"] == made and article["title"] == "Ein Titel 标题 😀"
    assert article["author"] == {"id": ann.id, "nickname": "Ann 安 😀"}
    assert article["interaction"]["biz"] == "article" and article["interaction"]["biz_id"] == made
    assert read.headers["Cache-Control"] == "private, no-cache"
    first_published = article["published_at"]

    # Editing doesn't touch the published copy; publishing again keeps the first date.
    assert ann.put(f"/v1/articles/{made}", {"title": "New", "content": "New words."}).status_code == 200
    assert server.get(f"/v1/articles/{made}").json()["title"] == "Ein Titel 标题 😀"
    assert ann.post(f"/v1/articles/{made}/publish").status_code == 200
    again = server.get(f"/v1/articles/{made}").json()
    assert again["title"] == "New" and again["published_at"] == first_published

    # Others may not touch it.
    for method, path in [("PUT", ""), ("POST", "/publish"), ("POST", "/withdraw"), ("DELETE", "")]:
        body = {"title": "x", "content": ""} if method == "PUT" else None
        problem(bob.request(method, f"/v1/articles/{made}{path}", json=body), 403, "forbidden")
    assert ann.post(f"/v1/articles/{made}/withdraw").status_code == 200
    problem(server.get(f"/v1/articles/{made}"), 404, "not_found")
    assert ann.get(f"/v1/me/articles/{made}").json()["status"] == "withdrawn"
    assert ann.delete(f"/v1/articles/{made}").status_code == 204
    problem(ann.get(f"/v1/me/articles/{made}"), 404, "not_found")


def test_if_match_guards_against_lost_edits(ann):
    made = ann.article(publish=False)
    tag = ann.get(f"/v1/me/articles/{made}").headers["ETag"]
    assert tag.startswith('"')
    body = {"title": "second", "content": ""}
    assert ann.put(f"/v1/articles/{made}", body, headers={"If-Match": tag}).status_code == 200
    problem(ann.put(f"/v1/articles/{made}", body, headers={"If-Match": tag}), 412, "version_mismatch")


def test_an_etag_answers_304(server, ann):
    made = ann.article()
    eventually(lambda: server.get(f"/v1/interactions/article/{made}").json()["read_count"] == 0)
    first = server.get(f"/v1/articles/{made}")
    # The read just counted changes the bytes, so ask until they stand still.
    def unchanged():
        tag = server.request("HEAD", f"/v1/articles/{made}").headers["ETag"]
        return server.request("HEAD", f"/v1/articles/{made}", headers={"If-None-Match": tag}).status_code == 304
    assert eventually(unchanged)
    assert first.headers["ETag"].startswith('"')


@pytest.mark.parametrize("body, field", [
    ({"title": "", "content": ""}, "title"), ({"title": "x" * 10_001, "content": ""}, "title"), ({"content": ""}, "title"),
    ({"title": 5, "content": ""}, "title"), ({"title": "a\u0000b", "content": ""}, "title"),
    ({"title": "t", "content": "a\u0000b"}, "content"), ({"title": "t", "content": ["x"]}, "content"),
    ({"title": "t", "content": "x" * ((2 << 20) - (64 << 10) + 1)}, "content"),
])
def test_bad_fields_are_named(ann, body, field):
    invalid(ann.post("/v1/articles", body), field)


def test_the_longest_title_and_content_are_taken(server, ann):
    content = "字" * (((2 << 20) - (64 << 10)) // 3)
    import json
    body = json.dumps({"title": "题" * 10_000, "content": content}, ensure_ascii=False).encode()
    answer = ann.request("POST", "/v1/articles", data=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 201, answer.text[:300]
    made = answer.json()["id"]
    assert ann.post(f"/v1/articles/{made}/publish").status_code == 200
    assert server.get(f"/v1/articles/{made}").json()["content"] == content


def test_an_article_over_a_mebibyte_is_served_but_not_cached(server, ann):
    made = ann.article("big", "x" * ((1 << 20) + 1))
    before = server.sum_of("weir_cache_loads_total", cache="article")
    for _ in range(3):
        assert len(server.get(f"/v1/articles/{made}").json()["content"]) == (1 << 20) + 1
    assert server.sum_of("weir_cache_loads_total", cache="article") - before == 3


def ids(answer):
    assert answer.status_code == 200, answer.text
    return [a["id"] for a in answer.json()["items"]]


def test_lists_in_their_three_forms(server):
    author = Person(server)
    made = [author.article(f"Number {i}", f"Words of {i}.", publish=i % 2 == 0) for i in range(30)][::-1]
    assert ids(author.get("/v1/me/articles")) == made[:20]
    assert ids(author.get("/v1/me/articles?limit=7&offset=5")) == made[5:12]
    page = author.get("/v1/me/articles?page=2&size=8")
    assert ids(page) == made[8:16] and page.json()["total"] == 30
    walked, cursor = [], None
    first = author.get("/v1/me/articles?limit=7").json()
    cursor = author.get("/v1/me/articles").json()["next_cursor"]
    walked = made[:20] + ids(author.get("/v1/me/articles", params={"cursor": cursor}))
    assert walked == made and len(first["items"]) == 7

    # A row that comes while one walks is neither skipped into nor repeated.
    published = [m for m in made if author.get(f"/v1/me/articles/{m}").json()["status"] == "published"]
    first = server.get("/v1/articles?limit=6").json()
    author.article("late")
    seen = [a["id"] for a in first["items"] + server_all(server, first["next_cursor"])]
    assert len(seen) == len(set(seen)) and set(published) <= set(seen)
    total = server.get("/v1/articles?page=1&size=1").json()["total"]
    assert total == len(server_all(server))


def server_all(server, cursor=None):
    """All published articles, walked by cursor."""
    found = []
    while True:
        page = server.get("/v1/articles", params={"cursor": cursor, "limit": 7} if cursor else {}).json()
        found += page["items"]
        cursor = page.get("next_cursor")
        if not cursor:
            return found


def test_a_summary_has_an_abstract_and_never_a_content(server, ann):
    made = ann.article("Summary", "# A heading\n\n" + "**bold** [link](http://x) " * 40)
    item = next(a for a in server.get("/v1/articles").json()["items"] if a["id"] == made)
    assert set(item) == {"id", "title", "abstract", "author", "published_at", "updated_at"}
    assert 0 < len(item["abstract"]) <= 128 and "**" not in item["abstract"] and "](" not in item["abstract"]
    mine = next(a for a in ann.get("/v1/me/articles").json()["items"] if a["id"] == made)
    assert mine["status"] == "published"


@pytest.mark.parametrize("query, field", [
    ("limit=0", "limit"), ("limit=101", "limit"), ("limit=-1", "limit"), ("limit=1e1", "limit"), ("limit=x", "limit"),
    ("offset=-1", "offset"), ("page=0", "page"), ("page=1&size=0", "size"), ("page=1&size=101", "size"),
    ("cursor=unknown", "cursor"), ("cursor=%F0%9F%98%80", "cursor"), ("page=1&offset=2", None), ("cursor=x&page=1", None),
    ("cursor=x&offset=3", None),
])
def test_bad_list_parameters_are_422(server, query, field):
    answer = server.get("/v1/articles?" + query)
    if field:
        invalid(answer, field)
    else:
        problem(answer, 422, "invalid_field")


@pytest.mark.parametrize("query", ["offset=18446744073709551616", "page=99999999999999999999"])
def test_what_lies_behind_the_end_is_empty_however_far(server, query):
    assert ids(server.get("/v1/articles?" + query)) == []


def test_a_new_nickname_shows_at_once(server):
    author = Person(server, nickname="before")
    made = author.article()
    assert server.get(f"/v1/articles/{made}").json()["author"]["nickname"] == "before"
    author.request("PATCH", "/v1/me", json={"nickname": "after"})
    assert server.get(f"/v1/articles/{made}").json()["author"]["nickname"] == "after"


@pytest.mark.parametrize("bad", ["-1", "0", "1e3", "007", "9223372036854775808", "abc", "%20", "１"])
def test_an_id_that_is_none_is_404(server, ann, bad):
    problem(server.get(f"/v1/articles/{bad}"), 404, "not_found")
    problem(ann.get(f"/v1/me/articles/{bad}"), 404, "not_found")
    problem(server.get(f"/v1/interactions/article/{bad}"), 404, "not_found")


def test_an_invented_id_costs_at_most_one_load(server):
    before = server.sum_of("weir_cache_loads_total", cache="article")
    for _ in range(20):
        problem(server.get("/v1/articles/123456789"), 404, "not_found")
    assert server.sum_of("weir_cache_loads_total", cache="article") - before <= 1
