"""How many statements the store sees: the promise of the guarded read, counted."""
from weirserver import Person, Server


def statements(server, module):
    return server.sum_of("weir_store_queries_total", module=module)


def test_a_thousand_cached_reads_ask_the_store_nothing():
    with Server() as server:
        made = Person(server).article()
        session = __import__("requests").Session()
        for _ in range(3):
            session.get(f"{server.url}/v1/articles/{made}")
        before = {m: statements(server, m) for m in ("article", "user", "interaction")}
        for _ in range(1000):
            assert session.get(f"{server.url}/v1/articles/{made}").status_code == 200
        after = {m: statements(server, m) for m in before}
        assert after == before


def test_a_thousand_likes_cost_a_fixed_number_each():
    with Server() as server:
        author = Person(server)
        made = author.article()
        session = __import__("requests").Session()
        def like(times):
            before = statements(server, "interaction")
            for i in range(times):
                method = session.put if i % 2 == 0 else session.delete
                assert method(f"{server.url}/v1/interactions/article/{made}/like", headers=author.headers).status_code == 204
            return statements(server, "interaction") - before
        one = like(2) / 2
        assert like(1000) == 1000 * one
        assert one <= 4, one
