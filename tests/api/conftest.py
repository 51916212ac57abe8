import pytest

from weirserver import Person, Server


@pytest.fixture(scope="module")
def server():
    with Server() as running:
        yield running


@pytest.fixture(scope="module")
def ann(server):
    return Person(server, nickname="Ann 安 😀")


@pytest.fixture(scope="module")
def bob(server):
    return Person(server)


def problem(answer, status, code):
    """The answer is this problem; its document."""
    assert answer.status_code == status, f"{answer.status_code} {answer.text}"
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    document = answer.json()
    assert document["status"] == status and document["code"] == code, document
    assert document["title"] and "type" in document
    return document


def invalid(answer, field):
    """The answer refuses this field."""
    document = problem(answer, 422, "invalid_field")
    assert field in [e["field"] for e in document["errors"]], document
    assert all(e["message"] for e in document["errors"])
    return document
