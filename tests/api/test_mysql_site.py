"""The same site on a real MariaDB: two nodes are one site, counts stay exact, and what happens while the server is away."""
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import threading

import pytest
import requests
from weirserver import BINARY, Person, Server, eventually

PASSWORD = "p@ss/word 堰"
IN_URL = "p%40ss%2Fword%20%E5%A0%B0"


class MariaDb:
    """A private server with an empty database; keeps its port and what was committed over `kill` and `start`."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="weir-mariadb-")
        user = ["--user=root"] if os.getuid() == 0 else []
        subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={self.folder}/data", "--skip-test-db",
                        "--auth-root-authentication-method=normal", *user], check=True, capture_output=True, timeout=60)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"mysql://weir:{IN_URL}@127.0.0.1:{self.port}/weir"
        self.command = ["mariadbd", "--no-defaults", f"--datadir={self.folder}/data", "--socket=server.sock", f"--port={self.port}",
                        "--bind-address=127.0.0.1", "--skip-name-resolve", "--skip-log-bin", "--innodb-flush-log-at-trx-commit=2", *user]
        self.process = None

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert eventually(lambda: self.client("SELECT 1", check=False).returncode == 0, 30)
        return self

    def client(self, statements, check=True):
        return subprocess.run(["mariadb", "--no-defaults", "-h127.0.0.1", f"-P{self.port}", "-uroot", "--default-character-set=utf8mb4", "-N"],
                              input=statements, check=check, capture_output=True, text=True, timeout=60)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def ask(self, statement):
        """The rows of a SELECT in the site's database."""
        return [line.split("\t") for line in self.client(f"USE weir; {statement}").stdout.splitlines()]

    def number(self, statement):
        return int(self.ask(statement)[0][0])

    def empty(self):
        self.client(f"""DROP DATABASE IF EXISTS weir; CREATE DATABASE weir CHARACTER SET utf8mb4 COLLATE utf8mb4_nopad_bin;
                        CREATE USER IF NOT EXISTS weir@'%' IDENTIFIED BY '{PASSWORD}'; GRANT ALL ON weir.* TO weir@'%';""")

    def counts(self, biz, thing):
        row = self.ask(f"SELECT read_count, like_count, collect_count FROM interactions WHERE biz = '{biz}' AND biz_id = {thing}")
        return [int(n) for n in row[0]] if row else [0, 0, 0]


@pytest.fixture(scope="module")
def server_process():
    running = MariaDb()
    try:
        yield running.start()
    finally:
        running.kill()
        shutil.rmtree(running.folder, ignore_errors=True)


@pytest.fixture
def mariadb(server_process):
    server_process.empty()
    return server_process


def site(mariadb, **env):
    return Server(env={"WEIR_STORE_URL": mariadb.url, **env})


def weir(mariadb, tmp_path, *words):
    return subprocess.run([BINARY, *words, "--data", str(tmp_path / "commands")], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "WEIR_STORE_URL": mariadb.url})


def settled(server):
    lag = [value for name, value in server.metrics().items() if name.startswith("weir_queue_lag")]
    return lag and sum(lag) == 0


def side_by_side(*works):
    """Runs them all at once, and raises what the first of them raised."""
    failures = []

    def run(work):
        try:
            work()
        except BaseException as error:  # noqa: BLE001: told below
            failures.append(error)

    threads = [threading.Thread(target=run, args=(work,)) for work in works]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failures:
        raise failures[0]


def test_two_nodes_are_one_site(mariadb, tmp_path):
    done = weir(mariadb, tmp_path, "seed", "--articles", "60", "--users", "12", "--likes", "300", "--password", "the same words")
    assert done.returncode == 0 and "seeded 12 users, 60 articles, 300 likes" in done.stdout, done.stderr
    again = weir(mariadb, tmp_path, "seed", "--articles", "60", "--users", "12", "--likes", "300", "--password", "the same words")
    assert "60 of the articles were there already" in again.stdout, again.stderr
    assert mariadb.number("SELECT sum(like_count) FROM interactions") == mariadb.number("SELECT sum(status) FROM likes")
    with site(mariadb) as one, site(mariadb) as two:
        people = [Person(one, nickname="Ann 安 😀")] + [Person(node) for node in (one, two) * 4]
        ann = people[0]
        # Who signed up with one node signs in with the other, and a token is good for both.
        assert two.post("/v1/sessions", {"email": ann.email, "password": ann.password}).status_code == 200
        assert two.get("/v1/me", headers=ann.headers).json()["nickname"] == "Ann 安 😀"
        assert two.post("/v1/users", {"email": ann.email, "password": "another one"}).status_code == 409
        made = ann.article("Water 水 🌊", "Words.\n" * 2000)
        for node in (two, one):
            answer = node.get(f"/v1/articles/{made}")
            assert answer.status_code == 200 and answer.json()["title"] == "Water 水 🌊" and answer.json()["author"]["nickname"] == "Ann 安 😀"
        assert two.get(f"/v1/articles/{int(made) + 1}").status_code == 404

        # Everybody at once, on both nodes: likes given, taken and given again, reads, folders.
        def busy(person, node):
            session = requests.Session()
            for method, path in [("PUT", "like"), ("PUT", "like"), ("DELETE", "like"), ("PUT", "like"), ("PUT", "collection")]:
                answer = session.request(method, f"{node.url}/v1/interactions/article/{made}/{path}", headers=person.headers, timeout=30)
                assert answer.status_code == 204, answer.text
            for _ in range(20):
                assert session.get(f"{node.url}/v1/articles/{made}", headers=person.headers, timeout=30).status_code == 200

        side_by_side(*[lambda person=person, node=node: busy(person, node) for person, node in zip(people, (one, two) * 5)])
        assert mariadb.counts("article", made)[1:] == [len(people)] * 2
        reads = 2 + 20 * len(people)
        assert eventually(lambda: mariadb.counts("article", made)[0] == reads), mariadb.counts("article", made)
        assert eventually(lambda: settled(one) and settled(two)) and mariadb.counts("article", made)[0] == reads
        for node, person in ((one, people[0]), (two, people[1])):
            history = person.request("GET", "/v1/me/history").json()["items"]
            assert [item["biz_id"] for item in history] == [made], history
        ranking = [node.get("/v1/rankings/hot?limit=100").json() for node in (one, two)]
        assert all(eventually(lambda node=node: len(node.get("/v1/rankings/hot?limit=100").json()["items"]) >= 60) for node in (one, two)), ranking
        # The list goes on where the last page ended.
        items, path = [], "/v1/articles?limit=25"
        while path:
            page = two.get(path).json()
            items += [item["id"] for item in page["items"]]
            path = page.get("next_cursor") and f"/v1/articles?limit=25&cursor={page['next_cursor']}"
        assert len(items) == 61 == len(set(items)) and items[0] == made
        # Administrators and the other node's edits.
        assert weir(mariadb, tmp_path, "admin", "grant", ann.email).returncode == 0
        ann.sign_in()
        assert ann.get("/v1/me").json()["roles"] == ["admin"]
        for node in (one, two):
            assert node.stop() == 0
            assert "ERROR" not in "".join(node.log) and PASSWORD not in "".join(node.log)
    assert weir(mariadb, tmp_path, "job", "run", "recount").returncode == 0
    assert mariadb.counts("article", made) == [reads, len(people), len(people)]


def test_nodes_that_start_at_once_make_the_tables_once(mariadb):
    nodes = [site(mariadb) for _ in range(3)]
    try:
        side_by_side(*[node.start for node in nodes])
        ann = Person(nodes[0])
        made = ann.article()
        for node in nodes:
            assert node.get(f"/v1/articles/{made}").status_code == 200
            assert node.get("/v1/me", headers=ann.headers).status_code == 200, "one secret for all"
    finally:
        for node in nodes:
            node.__exit__()


def test_counts_are_exact_after_a_kill(mariadb):
    with site(mariadb) as one, site(mariadb) as two:
        made = Person(one).article()
        answered = [0, 0]
        unknown = [0, 0]

        def load(which, node):
            session = requests.Session()
            for _ in range(400):
                try:
                    if session.get(f"{node.url}/v1/articles/{made}", timeout=10).status_code == 200:
                        answered[which] += 1
                except requests.RequestException:
                    unknown[which] += 1
                    return

        for _ in range(2):
            threads = [threading.Thread(target=load, args=(which, node)) for which, node in enumerate((one, two))]
            for thread in threads:
                thread.start()
            threading.Event().wait(0.1 + secrets.randbelow(300) / 1000)
            one.kill()
            for thread in threads:
                thread.join()
            one.start()
        assert answered[0] > 20 and answered[1] == 800, (answered, unknown)
        assert eventually(lambda: settled(one) and settled(two), 30)
        reads = mariadb.counts("article", made)[0]
        assert sum(answered) <= reads <= sum(answered) + unknown[0], (answered, unknown, reads)


POSTS = """id,title,url,points,comments,author,created_at
101,"A post, with ""quotes"" 堰",http://example.com/a,386,52,user1,2016-08-04T11:52:00Z
102,Ask: no link?,,2,1,user2,2016-08-05T11:52:00Z
103,Ask: Again?,,3,1,User2,2016-08-05T11:52:00Z
"""


def test_importing_twice_adds_nothing(mariadb, tmp_path):
    file = tmp_path / "posts.csv"
    file.write_text(POSTS)
    for told in ("imported 3 of 3 posts", "imported 0 of 3 posts"):
        done = weir(mariadb, tmp_path, "import", "hn", str(file))
        assert done.returncode == 0 and told in done.stdout, done.stderr
    assert mariadb.ask("SELECT nickname FROM users ORDER BY id") == [["user1"], ["user2"], ["User2"]]
    assert mariadb.ask("SELECT max(id), count(*) FROM article_drafts") == [["3", "3"]], "and uses up no ids"
    assert mariadb.ask("SELECT like_count, imported_likes FROM interactions ORDER BY biz_id") == [["386", "386"], ["2", "2"], ["3", "3"]]
    with site(mariadb) as server:
        assert [i["title"] for i in server.get("/v1/articles").json()["items"]] == ["Ask: Again?", "Ask: no link?", 'A post, with "quotes" 堰']


def test_mariadb_restarts_in_the_middle(mariadb):
    with site(mariadb, WEIR_RANKING_EVERY="1s") as server:
        ann = Person(server)
        made = ann.article("Before")
        assert ann.request("PUT", f"/v1/interactions/article/{made}/like").status_code == 204
        assert server.get(f"/v1/articles/{made}").status_code == 200
        assert eventually(lambda: server.get("/v1/rankings/hot").json()["items"])
        assert server.get("/readyz").status_code == 200
        mariadb.kill()
        try:
            answer = eventually(lambda: server.get("/readyz").status_code == 503 and server.get("/readyz"))
            assert answer.status_code == 503 and answer.json()["checks"]["store"] == "down", answer.text
            # What is cached is served, and each read counts later; what needs the store is refused, and soon.
            for _ in range(30):
                assert server.get(f"/v1/articles/{made}").status_code == 200
                hot = server.get("/v1/rankings/hot")
                assert hot.status_code == 200 and hot.json()["items"], hot.text
            refused = ann.post("/v1/articles", {"title": "Meanwhile", "content": "Words."})
            assert refused.status_code == 503 and int(refused.headers["Retry-After"]) >= 1
            assert server.get("/healthz").status_code == 200
        finally:
            mariadb.start()
        assert eventually(lambda: server.get("/readyz").status_code == 200)
        # Each connection that writes is made again at its next use, or within a second.
        words = {"title": "After", "content": "Words."}
        after = eventually(lambda: (answer := ann.post("/v1/articles", words)).status_code == 201 and answer).json()["id"]
        assert eventually(lambda: ann.post(f"/v1/articles/{after}/publish").status_code == 200)
        assert server.get(f"/v1/articles/{after}").json()["title"] == "After"
        assert eventually(lambda: mariadb.counts("article", made)[0] == 31, 30), mariadb.counts("article", made)
        assert eventually(lambda: settled(server)) and mariadb.counts("article", made) == [31, 1, 0]
        assert not [name for name, value in server.metrics().items() if "parked" in name and value > 0]
        assert server.stop() == 0
        assert PASSWORD not in "".join(server.log) and IN_URL not in "".join(server.log)


@pytest.mark.parametrize("url, told", [
    ("mysql://hush:hush@127.0.0.1", "it has no database"),
    ("mysql://127.0.0.1/weir", "it has no user"),
    ("mysql://ann:hush@127.0.0.1:70000/weir", "65535"),
    ("postgres://ann:hush@127.0.0.1/weir", "the scheme isn't mysql"),
    ("weir.db", "sqlite:PATH"),
])
def test_what_cannot_be_used_stops_the_start(tmp_path, url, told):
    run = subprocess.run([BINARY, "serve", "--data", str(tmp_path)], env={**os.environ, "WEIR_STORE_URL": url}, capture_output=True,
                         text=True, timeout=60)
    assert run.returncode == 2, run.stderr
    for words in ("store.url", "WEIR_STORE_URL", "mysql://user[:password]@host[:port]/database", told):
        assert words in run.stderr, run.stderr
    assert "hush" not in run.stderr


def test_the_password_is_not_shown(mariadb):
    run = subprocess.run([BINARY, "config"], env={**os.environ, "WEIR_STORE_URL": mariadb.url}, capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and f'store.url = "mysql://***@127.0.0.1:{mariadb.port}/weir"' in run.stdout, run.stdout


@pytest.mark.parametrize("trouble", ["nobody is there", "the password is wrong", "there is no such database"])
def test_a_store_that_cannot_be_reached_ends_the_start(mariadb, tmp_path, trouble):
    url = mariadb.url
    if trouble == "nobody is there":
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            url = url.replace(str(mariadb.port), str(taken.getsockname()[1]))
    elif trouble == "the password is wrong":
        url = url.replace(IN_URL, IN_URL + "hush")
    else:
        url += "x"
    for words in (["serve"], ["admin", "grant", "ann@example.com"]):
        run = subprocess.run([BINARY, *words, "--data", str(tmp_path)], env={**os.environ, "WEIR_STORE_URL": url}, capture_output=True,
                             text=True, timeout=60)
        assert run.returncode == 1 and "can't connect to mysql://weir@127.0.0.1:" in run.stderr, run.stderr
        assert "hush" not in run.stderr and PASSWORD not in run.stderr and IN_URL not in run.stderr


def test_a_database_that_compares_other_than_bytes_is_refused(mariadb, tmp_path):
    mariadb.client("ALTER DATABASE weir CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci")
    run = subprocess.run([BINARY, "serve", "--data", str(tmp_path)], env={**os.environ, "WEIR_STORE_URL": mariadb.url}, capture_output=True,
                         text=True, timeout=60)
    assert run.returncode == 1 and "utf8mb4_nopad_bin" in run.stderr, run.stderr
