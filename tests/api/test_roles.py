"""Nodes that do a part of the work each."""
import subprocess
import tempfile
import time

import pytest

from weirserver import BINARY, Person, Server, eventually


def hot(server):
    return server.get("/v1/rankings/hot").json()


def test_a_job_node_computes_what_a_web_node_shows():
    with tempfile.TemporaryDirectory() as shared:
        env = {"WEIR_STORE_URL": f"sqlite:{shared}/weir.db", "WEIR_RANKING_EVERY": "1s"}
        with Server(env, args=["--role", "web,consumer"]) as web:
            author = Person(web)
            made = author.article()
            assert web.post(f"/v1/interactions/article/{made}/reads").status_code == 202
            assert eventually(lambda: web.get(f"/v1/interactions/article/{made}").json()["read_count"] == 1)
            time.sleep(2.5)
            assert hot(web)["computed_at"] is None
            with Server(env, args=["--role", "job"]) as job:
                assert eventually(lambda: [item["id"] for item in hot(web)["items"]] == [made])
                assert job.get("/healthz").status_code == 200
                ready = job.get("/readyz")
                assert ready.status_code == 200 and set(ready.json()["checks"]) == {"store"}
                assert job.sum_of("weir_job_duration_seconds_count", job="ranking:hot", outcome="ok") > 0
                for path in ("/", "/v1/articles", f"/v1/articles/{made}", "/v1/rankings/hot"):
                    assert job.get(path).status_code == 404, path
                assert job.stop() == 0


@pytest.mark.parametrize("role,told", [("web", "embedded:"), ("consumer,job", "embedded:"), ("wbe", "did you mean \"web\""), ("", "none of all")])
def test_a_role_that_cant_be_is_refused(role, told):
    with tempfile.TemporaryDirectory() as data:
        done = subprocess.run([BINARY, "serve", "--data", data, "--role", role], capture_output=True, text=True, timeout=60)
        assert done.returncode == 2 and told in done.stderr, done.stderr
