"""Signing up and in, tokens, profiles."""
import base64
import concurrent.futures
import hashlib
import hmac
import json
import time

import pytest
from conftest import invalid, problem
from weirserver import Person, Server


def test_sign_up_answers_the_id_and_a_second_one_is_refused(server):
    body = {"email": "First@Example.com", "password": "long enough"}
    answer = server.post("/v1/users", body)
    assert answer.status_code == 201
    assert answer.json()["id"].isdigit()
    problem(server.post("/v1/users", body), 409, "email_taken")
    problem(server.post("/v1/users", {**body, "email": "first@example.COM"}), 409, "email_taken")


@pytest.mark.parametrize("change, field", [
    ({"email": None}, "email"), ({"email": "nobody"}, "email"), ({"email": "a b@c.d"}, "email"), ({"email": 7}, "email"),
    ({"email": "a\u0000@b.c"}, "email"), ({"password": "short"}, "password"), ({"password": "x" * 1025}, "password"),
    ({"password": "nul\u0000inside"}, "password"), ({"nickname": "n" * 65}, "nickname"), ({"nickname": ""}, "nickname"),
    ({"nickname": "a\u0000b"}, "nickname"),
])
def test_sign_up_names_the_bad_field(server, change, field):
    body = {"email": "good@example.com", "password": "long enough", **change}
    invalid(server.post("/v1/users", {k: v for k, v in body.items() if v is not None}), field)


def test_of_many_sign_ups_with_one_email_exactly_one_wins(server):
    body = {"email": "race@example.com", "password": "long enough"}
    with concurrent.futures.ThreadPoolExecutor(24) as pool:
        answers = list(pool.map(lambda _: server.post("/v1/users", body), range(24)))
    codes = sorted(a.status_code for a in answers)
    assert codes == [201] + [409] * 23


def test_sign_in(server, ann):
    assert set(ann.tokens) == {"access_token", "refresh_token", "token_type", "expires_in"}
    assert ann.tokens["token_type"] == "Bearer" and ann.tokens["expires_in"] == 1800
    problem(server.post("/v1/sessions", {"email": ann.email, "password": "wrong password"}), 401, "bad_credentials")
    problem(server.post("/v1/sessions", {"email": "nobody@example.com", "password": "wrong password"}), 401, "bad_credentials")


def test_me(ann):
    me = ann.get("/v1/me").json()
    assert me["id"] == ann.id and me["email"] == ann.email and me["nickname"] == "Ann 安 😀"
    assert me["roles"] == [] or isinstance(me["roles"], list)
    assert me["created_at"].endswith("Z")


def test_a_profile_changes_field_by_field(server):
    person = Person(server)
    answer = person.request("PATCH", "/v1/me", json={"nickname": "Новое 名字 🌊", "about": "x" * 1024, "birthday": "2000-02-29"})
    assert answer.status_code == 200, answer.text
    person.request("PATCH", "/v1/me", json={"about": "still"})
    me = person.get("/v1/me").json()
    assert (me["nickname"], me["about"], me["birthday"]) == ("Новое 名字 🌊", "still", "2000-02-29")
    invalid(person.request("PATCH", "/v1/me", json={"birthday": "2001-02-29"}), "birthday")
    invalid(person.request("PATCH", "/v1/me", json={"about": "x" * 1025}), "about")
    invalid(person.request("PATCH", "/v1/me", json={"nickname": 1}), "nickname")


def test_a_refresh_token_works_once_and_showing_a_used_one_ends_the_session(server):
    person = Person(server)
    first = person.tokens["refresh_token"]
    renewed = server.post("/v1/sessions/refresh", {"refresh_token": first})
    assert renewed.status_code == 200, renewed.text
    second = renewed.json()["refresh_token"]
    assert second != first
    problem(server.post("/v1/sessions/refresh", {"refresh_token": first}), 401, "unauthenticated")
    problem(server.post("/v1/sessions/refresh", {"refresh_token": second}), 401, "unauthenticated")
    problem(server.post("/v1/sessions/refresh", {"refresh_token": "nonsense"}), 401, "unauthenticated")


def test_signing_out_ends_the_refresh_token_now(server):
    person = Person(server)
    assert person.delete("/v1/sessions").status_code == 204
    problem(server.post("/v1/sessions/refresh", {"refresh_token": person.tokens["refresh_token"]}), 401, "unauthenticated")


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def token(header, claims, secret=b"x" * 32):
    head = b64(json.dumps(header, separators=(",", ":")).encode()) + "." + b64(json.dumps(claims).encode())
    return head + "." + b64(hmac.new(secret, head.encode(), hashlib.sha256).digest())


def test_bad_tokens_are_401_each(server, ann):
    good = ann.tokens["access_token"]
    claims = json.loads(base64.urlsafe_b64decode(good.split(".")[1] + "=="))
    bad = {
        "foreign": token({"alg": "HS256", "typ": "JWT"}, claims),
        "none": b64(b'{"alg":"none"}') + "." + good.split(".")[1] + ".",
        "truncated": good[:-5],
        "tampered": good[:-2] + ("AA" if good[-2:] != "AA" else "BB"),
        "no signature": good.rsplit(".", 1)[0] + ".",
        "nonsense": "nonsense",
        "empty parts": "..",
        "long": "a" * 4000,
    }
    for name, value in bad.items():
        answer = server.get("/v1/me", headers={"Authorization": "Bearer " + value})
        assert problem(answer, 401, "unauthenticated"), name
        assert "WWW-Authenticate" in answer.headers
    problem(server.get("/v1/me"), 401, "unauthenticated")
    problem(server.get("/v1/me", headers={"Authorization": "Basic abc"}), 401, "unauthenticated")


def test_an_expired_token_is_401():
    with Server(env={"WEIR_AUTH_ACCESS_TTL": "1s"}) as server:
        person = Person(server)
        assert person.get("/v1/me").status_code == 200
        time.sleep(2.1)
        problem(person.get("/v1/me"), 401, "unauthenticated")


def test_a_page_gets_a_cookie_and_writes_only_with_the_page_header(server, ann):
    import requests
    session = requests.Session()
    answer = session.post(server.url + "/v1/sessions", json={"email": ann.email, "password": ann.password}, headers={"X-Weir-Page": "1"})
    assert answer.status_code == 200, answer.text
    assert "access_token" not in answer.text
    cookie = answer.headers["Set-Cookie"]
    for part in ("weir_session=", "HttpOnly", "SameSite=Strict"):
        assert part in cookie, cookie
    assert session.get(server.url + "/v1/me").json()["id"] == ann.id
    problem(session.post(server.url + "/v1/articles", json={"title": "t", "content": ""}), 403, "forbidden")
    made = session.post(server.url + "/v1/articles", json={"title": "t", "content": ""}, headers={"X-Weir-Page": "1"})
    assert made.status_code == 201, made.text
    assert session.delete(server.url + "/v1/sessions", headers={"X-Weir-Page": "1"}).status_code == 204
    problem(session.get(server.url + "/v1/me"), 401, "unauthenticated")


def test_a_hundred_reads_of_a_profile_load_it_once(server):
    person = Person(server)
    before = server.sum_of("weir_cache_loads_total", cache="user")
    for _ in range(100):
        assert person.get("/v1/me").status_code == 200
    assert server.sum_of("weir_cache_loads_total", cache="user") - before <= 1
