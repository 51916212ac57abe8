"""What operators and tools look at; starting and stopping."""
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import time

import pytest
from conftest import problem
from weirserver import BINARY, Person, Server, eventually


def weir(*args, env=None, cwd=None):
    return subprocess.run([BINARY, *args], capture_output=True, text=True, timeout=120, cwd=cwd or tempfile.gettempdir(),
                          env={"PATH": "/usr/bin:/bin", **(env or {})})


def test_health_and_metrics(server):
    assert server.get("/healthz").status_code == 200
    ready = server.get("/readyz")
    assert ready.status_code == 200 and ready.json()["status"] in ("ready", "degraded") and ready.json()["checks"]
    text = server.get("/metrics").text
    for name in ["weir_http_request_duration_seconds", "weir_cache_lookups_total", "weir_cache_loads_total", "weir_cache_coalesced_total",
                 'weir_queue_published_total{topic="read_events"}', 'weir_queue_dropped_total{topic="read_events"} 0',
                 "weir_duplicates_dropped_total", 'weir_job_duration_seconds_count{job="ranking:hot"', "weir_store_queries_total"]:
        assert name in text, name
    for group in ("interaction", "history"):
        assert any(f'group="{group}"' in line for line in text.splitlines() if line.startswith("weir_queue_lag{")), group


def test_the_document_tells_every_route(server):
    document = server.get("/v1/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    for path, methods in {"/v1/users": ["post"], "/v1/sessions": ["post", "delete"], "/v1/sessions/refresh": ["post"], "/v1/me": ["get", "patch"],
                          "/v1/articles": ["get", "post"], "/v1/articles/{id}": ["get", "put", "delete"], "/v1/articles/{id}/publish": ["post"],
                          "/v1/articles/{id}/withdraw": ["post"], "/v1/me/articles": ["get"], "/v1/me/articles/{id}": ["get"],
                          "/v1/interactions/{biz}/{biz_id}": ["get"], "/v1/interactions/{biz}": ["get"],
                          "/v1/interactions/{biz}/{biz_id}/reads": ["post"], "/v1/interactions/{biz}/{biz_id}/like": ["put", "delete"],
                          "/v1/interactions/{biz}/{biz_id}/collection": ["put", "delete"], "/v1/me/collections": ["get", "post"],
                          "/v1/me/collections/{id}": ["patch", "delete"], "/v1/me/collections/{id}/items": ["get"],
                          "/v1/me/history": ["get", "delete"], "/v1/rankings/{name}": ["get"]}.items():
        assert set(methods) <= set(document["paths"][path]), path
    assert server.get("/docs").headers["Content-Type"].startswith("text/html")


def test_unknown_paths_and_methods(server):
    problem(server.get("/v1/nothing"), 404, "not_found")
    answer = server.request("DELETE", "/v1/articles")
    problem(answer, 405, "method_not_allowed")
    assert "GET" in answer.headers["Allow"] and "POST" in answer.headers["Allow"]
    problem(server.get("/v1/courses"), 404, "not_found")


def test_bad_bodies(server, ann):
    headers = {"Content-Type": "application/json", **ann.headers}
    def post(data, content_type="application/json"):
        return server.request("POST", "/v1/articles", data=data, headers={**headers, "Content-Type": content_type})
    problem(post(b'{"title": '), 400, "malformed_json")
    problem(post(b"[" * 100 + b"]" * 100), 400, "malformed_json")
    problem(post(b'{"title": "\xff\xfe"}'), 400, "malformed_json")
    problem(post(b'{"title": "\\ud800"}'), 400, "malformed_json")
    assert post(b"[1]").status_code in (400, 422)
    problem(post(b"title=x", "application/x-www-form-urlencoded"), 415, "unsupported_media_type")
    problem(post(b'{"title": "' + b"x" * (2 << 20) + b'"}'), 413, "body_too_large")


def raw(server, data, seconds=5.0):
    """Sends bytes and reads until the server closes or is silent."""
    with socket.create_connection(("127.0.0.1", server.port), timeout=seconds) as s:
        s.sendall(data)
        answer = b""
        try:
            while chunk := s.recv(65536):
                answer += chunk
        except socket.timeout:
            return answer, False
        return answer, True


@pytest.mark.parametrize("request_bytes", [
    b"POST /v1/users HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost: x\r\nX: a\r\n b\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n",
    b"GET /healthz HTTP/1.1\r\n\r\n",
    b"POST /v1/users HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"nonsense\r\n\r\n",
])
def test_requests_that_could_be_read_in_two_ways_are_refused_and_closed(server, request_bytes):
    answer, closed = raw(server, request_bytes)
    assert b" 400 " in answer.split(b"\r\n")[0] and closed, answer


def test_too_many_headers_are_431(server):
    fields = b"".join(b"X-%d: y\r\n" % i for i in range(500))
    answer, closed = raw(server, b"GET /healthz HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n")
    assert b" 431 " in answer.split(b"\r\n")[0] and closed


def test_pipelined_answers_come_in_order(server):
    data = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /v1/nothing HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answer, closed = raw(server, data)
    codes = re.findall(rb"HTTP/1\.1 (\d+)", answer)
    assert codes == [b"200", b"404", b"200"] and closed


def test_a_slow_header_is_cut_off_by_a_deadline_over_the_whole():
    with Server(env={"WEIR_HTTP_HEADER_DEADLINE": "1s"}) as server:
        began = time.monotonic()
        with socket.create_connection(("127.0.0.1", server.port), timeout=10) as s:
            try:
                for byte in b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * 200:
                    s.sendall(bytes([byte]))
                    time.sleep(0.05)
                    if time.monotonic() - began > 8:
                        break
            except OSError:
                pass
            assert time.monotonic() - began < 5, "each byte renewed the deadline"


def test_a_second_signal_ends_it_at_once():
    with Server() as server, socket.create_connection(("127.0.0.1", server.port), timeout=10) as s:
        s.sendall(b"GET /healthz HTTP/1.1\r\n")  # unfinished: the graceful stop waits for it
        time.sleep(0.2)
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        eventually(lambda: "stopping" in "".join(server.log))
        server.process.send_signal(signal.SIGINT)
        assert server.process.wait(8) == 130 and time.monotonic() - began < 8


def test_a_graceful_stop_exits_0_and_a_port_in_use_is_an_error():
    with Server() as server:
        Person(server)
        with tempfile.TemporaryDirectory() as other:
            taken = weir("serve", "--listen", f"127.0.0.1:{server.port}", "--data", other)
            assert taken.returncode == 1 and str(server.port) in taken.stderr, taken.stderr
        in_use = weir("serve", "--listen", "127.0.0.1:0", "--data", server.data)
        assert in_use.returncode == 1 and "in use" in in_use.stderr, in_use.stderr
        assert server.stop() == 0


def test_logs_are_json_lines(server):
    for line in server.log:
        json.loads(line)


def test_the_command_line_refuses_unknown_words():
    for words, guess in [(["sevre"], "serve"), (["serve", "--lissten", "x"], "--listen"), (["job", "rnu"], "run"), (["admin", "grnat"], "grant")]:
        done = weir(*words)
        assert done.returncode == 2 and guess in done.stderr, done.stderr
    assert weir("--help").returncode == 0 and weir("serve", "--help").returncode == 0
    assert weir("version").stdout.strip()
    assert weir().returncode == 2


def test_admins_are_made_and_unmade_beside_a_running_server(tmp_path):
    with Server() as server:
        ann = Person(server, email="ann@example.com")
        def admin(verb, email):
            return weir("admin", verb, email, "--data", server.data)
        def roles():
            ann.sign_in()
            return ann.get("/v1/me").json()["roles"]
        assert roles() == []
        for _ in range(2):
            done = admin("grant", "Ann@example.com")
            assert done.returncode == 0 and "administrator" in done.stdout, done.stderr
            assert roles() == ["admin"]
        for _ in range(2):
            assert admin("revoke", "ann@example.com").returncode == 0
            assert roles() == []
        for verb in ("grant", "revoke"):
            nobody = admin(verb, "bob@example.com")
            assert nobody.returncode == 1 and "bob@example.com" in nobody.stderr and not nobody.stdout, nobody.stderr
        assert weir("admin", "grant", "--data", server.data).returncode == 2
    elsewhere = tmp_path / "elsewhere"
    missing = weir("admin", "grant", "ann@example.com", "--data", str(elsewhere))
    assert missing.returncode == 1 and str(elsewhere) in missing.stderr and not elsewhere.exists()


def test_bad_settings_tell_key_value_allowed_and_place(tmp_path):
    bad = weir("serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path), env={"WEIR_HTTP_MAX_BODY": "2MB"})
    assert bad.returncode == 2 and all(w in bad.stderr for w in ("http.max_body", "2MB", "WEIR_HTTP_MAX_BODY", "allowed")), bad.stderr
    for key, value in [("CORS_ORIGINS", "example.com"), ("TRUSTED_PROXIES", "10.0.0.0/99"), ("LISTEN", "::1:8080"), ("LISTEN", "[127.0.0.1]:80")]:
        bad = weir("config", env={f"WEIR_HTTP_{key}": value})
        assert bad.returncode == 2 and all(w in bad.stderr for w in (f"http.{key.lower()}", value, f"WEIR_HTTP_{key}", "allowed")), bad.stderr
    (tmp_path / "weir.toml").write_text("[queue]\nretention = \"8d\"\n")
    assert "idempotency.inbox" in weir("config", cwd=tmp_path).stderr
    (tmp_path / "weir.toml").write_text("[http]\nlistne = \"x\"\n")
    assert 'did you mean "http.listen"' in weir("config", cwd=tmp_path).stderr
    (tmp_path / "weir.toml").write_text("[auth]\nsecret = \"0123456789abcdef\"\n")
    shown = weir("config", cwd=tmp_path)
    assert shown.returncode == 0 and "0123456789abcdef" not in shown.stdout and "weir.toml:2" in shown.stdout
    long = weir("config", env={"WEIR_AUTH_REFRESH_TTL": "200000000d"})
    assert long.returncode == 2 and "too long" in long.stderr, long.stderr
    unknown = weir("config", env={"WEIR_HTTP_LISTNE": "x"})
    assert unknown.returncode == 0 and "WEIR_HTTP_LISTNE" in unknown.stderr


def test_a_file_that_is_no_database_is_refused(tmp_path):
    (tmp_path / "weir.db").write_bytes(b"this is not a database, not at all" * 100)
    bad = weir("serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path))
    assert bad.returncode == 1 and "weir.db" in bad.stderr, bad.stderr


def test_seeding_is_the_same_for_the_same_seed_and_import_twice_adds_nothing(tmp_path):
    for name in ("a", "b"):
        done = weir("seed", "--data", str(tmp_path / name), "--articles", "20", "--users", "5", "--likes", "30", "--random-seed", "7",
                    "--password", "the same words")
        assert done.returncode == 0, done.stderr
    with Server(data=str(tmp_path / "a")) as a, Server(data=str(tmp_path / "b")) as b:
        titles = [[i["title"] for i in s.get("/v1/articles?limit=100").json()["items"]] for s in (a, b)]
        assert titles[0] == titles[1] and len(titles[0]) == 20
        assert a.post("/v1/sessions", {"email": "user1@example.com", "password": "the same words"}).status_code == 200


POSTS = """id,title,url,points,comments,author,created_at
101,"A post, with ""quotes"" 堰",http://example.com/a,386,52,user1,2016-08-04T11:52:00Z
102,Ask: no link?,,2,1,user2,2016-08-05T11:52:00Z
"""


def test_import_keeps_points_and_times_and_twice_adds_nothing(tmp_path):
    file = tmp_path / "posts.csv"
    file.write_text(POSTS)
    for _ in range(2):
        done = weir("import", "hn", str(file), "--data", str(tmp_path / "data"))
        assert done.returncode == 0, done.stderr
    with Server(data=str(tmp_path / "data")) as server:
        items = server.get("/v1/articles").json()["items"]
        assert [i["title"] for i in items] == ["Ask: no link?", 'A post, with "quotes" 堰']
        assert items[1]["published_at"].startswith("2016-08-04T11:52:00") and items[1]["author"]["nickname"] == "user1"
        assert server.get(f"/v1/interactions/article/{items[1]['id']}").json()["like_count"] == 386
    recount = weir("job", "run", "recount", "--data", str(tmp_path / "data"))
    assert recount.returncode == 0, recount.stderr
    with Server(data=str(tmp_path / "data")) as server:
        assert server.get(f"/v1/interactions/article/{items[1]['id']}").json()["like_count"] == 386
    assert weir("import", "hn", "/nowhere.csv", "--data", str(tmp_path / "data")).returncode == 1
    file.write_text("a,b\n1,2\n")
    assert weir("import", "hn", str(file), "--data", str(tmp_path / "data")).returncode == 1
    assert "recount" in weir("job", "list", "--data", str(tmp_path / "data")).stdout
    assert weir("job", "run", "nothing", "--data", str(tmp_path / "data")).returncode != 0


@pytest.mark.skipif("WEIR_TEST_DATA" not in os.environ, reason="the real posts aren't on this machine")
def test_twenty_thousand_real_posts(tmp_path):
    posts = os.path.join(os.environ["WEIR_TEST_DATA"], "hn-posts-2016.csv.gz")
    data = str(tmp_path / "data")
    first = weir("import", "hn", posts, "--shift", "--data", data)
    assert first.returncode == 0 and "imported 20100 of 20100 posts" in first.stdout, first.stderr
    assert "imported 0 of 20100 posts" in weir("import", "hn", posts, "--shift", "--data", data).stdout
    with Server(data=data) as server:
        assert server.get("/v1/articles?page=1&size=1").json()["total"] == 20100
        hot = eventually(lambda: server.get("/v1/rankings/hot?limit=100").json()["items"])
        scores = [item["score"] for item in hot]
        assert len(hot) == 100 and scores == sorted(scores, reverse=True)
