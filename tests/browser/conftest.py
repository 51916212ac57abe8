import subprocess

import pytest

from chromium import Chromium
from weirserver import BINARY, Person, Server

# Everything that makes a page too wide, at once.
WIDE_NAME = "W" * 64
WIDE_TITLE = "Donaudampfschifffahrtsgesellschaftskapitän" * 3 + " 一二三四五六七八九十" * 6
WIDE_TEXT = f"""A paragraph with [a link](https://example.com/) and `{"code" * 40}`.

## {"Heading" * 20}

https://example.com/{"path/" * 60}

```
{"int main() { return 0; } " * 12}
```

| {" | ".join(f"column {i}" for i in range(14))} |
|{" --- |" * 14}
| {" | ".join("cell" * 3 for _ in range(14))} |

> {"quoted" * 30}

- [x] {"done" * 40}

## Second

### Third

{"Some more words to read here. 再写一些字，好让这一页足够长。" * 40}
"""


@pytest.fixture(scope="session")
def chromium():
    browser = Chromium()
    yield browser
    browser.close()


@pytest.fixture(scope="session")
def seeded():
    """A server with something to read."""
    server = Server(env={"WEIR_RANKING_EVERY": "1s"})
    subprocess.run([BINARY, "seed", "--data", server.data, "--articles", "40", "--users", "8", "--likes", "150",
                    "--random-seed", "7", "--password", "correct horse"], check=True, capture_output=True)
    with server:
        yield server


@pytest.fixture(scope="session")
def server(seeded):
    return seeded


@pytest.fixture(scope="session")
def author(server):
    """Somebody with the widest name there is, who wrote `author.wide`."""
    person = Person(server, nickname=WIDE_NAME)
    person.wide = person.article(WIDE_TITLE, WIDE_TEXT)
    return person


@pytest.fixture(scope="session")
def reader(server):
    return Person(server, nickname="Reader 读者")


@pytest.fixture
def page(chromium, server):
    """The browser as a new reader; afterwards it must have had nothing to complain of."""
    chromium.fresh(server)
    yield chromium
    complaints = chromium.complaints()
    chromium.network()
    assert not complaints, "the browser's console:\n" + "\n".join(complaints)
