"""The pages without their scripts, the pages of what isn't there, and texts that would like to be scripts."""
import pytest

from weirserver import Person

HOSTILE_TITLE = "</title></script><script>window.hacked=1</script><img src=x onerror=window.hacked=2>\"'><svg onload=window.hacked=3>"
HOSTILE_NAME = "\"><script>window.hacked=4</script><b onmouseover='x'>"
HOSTILE_TEXT = """<script>window.hacked = 5</script>

<img src="x" onerror="window.hacked = 6"> <svg/onload=window.hacked=7> <style>body { display: none }</style>

[a](javascript:window.hacked=8) [b](JaVaScRiPt:window.hacked=9) [c](data:text/html,<script>window.hacked=10</script>)
[d]( java&#115;cript:window.hacked=11) <javascript:window.hacked=12> [e](vbscript:x "t' onmouseover='window.hacked=13")

![f](javascript:window.hacked=14) <iframe srcdoc="<script>parent.hacked=15</script>"></iframe>

<form action="https://example.com"><input name="password"><button>Sign in</button></form>

```"onload="window.hacked=16
</code></pre><script>window.hacked=17</script>
```

| <script>window.hacked=18</script> |
| --- |
| <a href="javascript:window.hacked=19">x</a> |

## <img src=x onerror=window.hacked=20> heading {onclick=x}

<div
onclick="window.hacked=21">

[ref]: javascript:window.hacked=22
[ref]
"""
# What of a text became something that acts.
ACTING = """
    const all = [...document.querySelectorAll('*')];
    const handlers = all.flatMap(e => [...e.attributes].filter(a => a.name.startsWith('on')).map(a => e.tagName + ' ' + a.name));
    const links = all.flatMap(e => ['href', 'src', 'action'].map(n => e.getAttribute(n)).filter(v => v && /^\\s*(javascript|vbscript|data:text)/i.test(v)));
    const tags = all.filter(e => e.closest('.text, .row, h1, .meta, .menu summary') &&
                            e.matches('script, style, iframe, form, object, embed, input:not([type=checkbox]), img[src]:not([src=""]), svg[onload]'));
    return [window.hacked ?? null, handlers, links, tags.map(e => e.outerHTML.slice(0, 60))];"""


@pytest.fixture
def plain(page):
    page.cdp("Emulation.setScriptExecutionDisabled", value=True)
    return page


def meta(page, name):
    return page.all(f'meta[name="{name}"], meta[property="{name}"]')[0].get_dom_attribute("content")


def test_front_page_and_lists_without_scripts(plain):
    for path, at_least in {"/": 30, "/newest": 30}.items():
        plain.get(path)
        rows = plain.all(".row")
        assert len(rows) >= at_least
        for row in rows[:3]:
            assert row.find_element("css selector", "h2 a").text and len(row.find_elements("css selector", ".meta > *")) == 5
        for name in ("description", "og:title", "og:description", "og:type", "og:url", "og:image", "og:site_name", "og:locale"):
            assert meta(plain, name), name
    plain.one('a[rel="next"]').click()
    plain.until(lambda: "before=" in plain.path, "older ones, by a link")
    assert plain.all(".row")


def test_an_article_without_scripts(plain, author):
    article = author.article("A title & more", "The first words of it.\n\n## Heading\n\nThe *last* ones.")
    plain.get(f"/articles/{article}")
    assert plain.driver.title == "A title & more · Weir"
    assert plain.one("h1").text == "A title & more"
    assert plain.hook("text").text.endswith("The last ones.")
    assert meta(plain, "og:type") == "article" and meta(plain, "og:title") == "A title & more"
    assert "The first words of it." in meta(plain, "description") and "The first words" in meta(plain, "og:description")
    assert meta(plain, "og:url") == plain.server.url + f"/articles/{article}"
    assert meta(plain, "article:published_time")
    plain.hook("like").click()
    assert plain.until_path("/signin") == f"/signin?next=%2Farticles%2F{article}", "a button is a link for who isn't signed in"


def test_language_and_colours_are_chosen_without_scripts(plain):
    plain.get("/newest")
    plain.one(".menu summary").click()
    plain.one('a[href^="/pages/language/zh"]').click()
    plain.until(lambda: plain.all('html[lang="zh-CN"]'), "Chinese")
    plain.one(".menu summary").click()
    plain.one('a[data-theme-choice="dark"]').click()
    plain.until(lambda: plain.all('html[data-theme="dark"]'), "dark")
    assert plain.path == "/newest"


@pytest.mark.parametrize("path", ["/", "/newest", "/articles/{wide}", "/signin", "/signup", "/write", "/me/articles",
                                  "/me/collections", "/me/history", "/articles/999999"])
def test_each_page_has_its_frame(plain, author, path):
    """One h1, a title, landmarks, a language, labels; where a script is needed it says so."""
    plain.excused.append("404")
    if path.startswith(("/me", "/write")):
        plain.sign_in(author)
    plain.get(path.format(wide=author.wide))
    assert len(plain.all("h1")) == 1 and plain.all("h1")[0].get_property("textContent")
    assert plain.driver.title.endswith("Weir")
    assert [len(plain.all(tag)) for tag in ("html[lang]", "body > header", "main", "body > footer")] == [1, 1, 1, 1]
    assert plain.all("nav[aria-label]")
    for field in plain.all("input, textarea, select"):
        name = field.get_dom_attribute("id")
        assert field.get_property("type") == "checkbox" or plain.all(f'label[for="{name}"]') or field.get_dom_attribute("aria-label")
    if path in ("/signup", "/write") or path.startswith("/me"):
        assert plain.one("main .note").text, "says that it needs a script"


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("path", ["/nothing/here", "/articles/999999", "/articles/abc", "/articles/0", "/write/abc", "/newest?before=x"])
def test_what_is_not_there_is_a_page_too(server, author, language, path):
    answer = author.get(path, headers={"Accept-Language": language, "Accept": "text/html"})
    assert answer.status_code == 404
    assert answer.headers["Content-Type"].startswith("text/html")
    assert f'<html lang="{"zh-CN" if language == "zh" else "en"}"' in answer.text
    assert 'data-testid="error"' in answer.text and 'href="/"' in answer.text


def test_the_page_of_what_is_not_there(page, reader):
    page.excused.append("404")
    page.sign_in(reader)
    page.get("/articles/999999")
    assert page.hook("error").find_element("css selector", "h1").text
    assert page.hook("menu").text.startswith("Reader 读者"), "one is still oneself"
    page.hook("error").find_element("css selector", "a").click()
    page.until(lambda: page.path == "/" and page.all(".row"), "the way back")


@pytest.fixture(scope="module")
def villain(server):
    person = Person(server, nickname=HOSTILE_NAME)
    person.trap = person.article(HOSTILE_TITLE, HOSTILE_TEXT)
    person.put(f"/v1/interactions/article/{person.trap}/collection")
    return person


@pytest.mark.parametrize("path", ["/newest", "/articles/{trap}", "/me/articles", "/me/collections", "/me/history", "/write/{trap}"])
def test_hostile_texts_stay_texts(page, villain, path):
    """That the policy stops a script would be heard in the console, which the fixture listens to: nothing even tries."""
    page.sign_in(villain)
    if path == "/me/history":
        page.get(f"/articles/{villain.trap}")
        page.until(lambda: villain.get("/v1/me/history").json()["items"], "the history")
    page.get(path.format(trap=villain.trap))
    if path.startswith("/write"):
        page.until(lambda: page.all('[data-testid="preview"] h2'), "the preview")
    elif path.startswith("/articles"):
        assert page.one("h1").text == HOSTILE_TITLE
        assert page.hook("author").text == HOSTILE_NAME
    else:
        assert HOSTILE_TITLE in page.row(villain.trap).text
    assert page.script(ACTING) == [None, [], [], []]


def test_the_policy_of_each_page(server):
    for path in ("/", "/newest", "/signin", "/articles/999999"):
        policy = server.get(path, headers={"Accept": "text/html"}).headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "script-src 'self'" in policy, path
        assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
