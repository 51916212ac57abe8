"""The whole story as a person lives it, in both languages: from signing up to signing out and in again."""
import re
import time

import pytest

from weirserver import Person, Server, eventually

STORIES = {
    "en": {"name": "Mira", "title": "Why rivers have weirs", "strong": "keeps its level",
           "content": "## A heading\n\nWater **keeps its level** behind a weir.\n\n- one\n- two\n", "folder": "For later"},
    "zh": {"name": "阿堰", "title": "河里为什么要有堰", "strong": "水位就稳",
           "content": "## 小标题\n\n有堰的地方，**水位就稳**。\n\n- 一\n- 二\n", "folder": "以后再读"},
}
READ_SHOWS_SECONDS = 2


@pytest.fixture(scope="module")
def server():
    """A site of its own: what is hot here is only what the story made hot."""
    with Server(env={"WEIR_RANKING_EVERY": "1s"}) as running:
        yield running


@pytest.fixture(scope="module")
def friends(server):
    return [Person(server), Person(server)]


def in_language(page, language):
    """The page is in this language: it says so, and its menu does."""
    tag = page.script("return document.documentElement.lang")
    assert tag == {"en": "en", "zh": "zh-CN"}[language]
    menu = page.one("nav").text
    assert bool(re.search("[\u4e00-\u9fff]", menu)) == (language == "zh"), menu


def fill(page, **fields):
    for field, text in fields.items():
        page.one(f"#{field}").send_keys(text)


def open_menu(page):
    page.one(".menu summary").click()


def sign_up(page, email, name):
    page.get("/")
    page.hook("sign-in-link").click()
    page.one('.beside a[href^="/signup"]').click()
    page.one("#sign-up")
    fill(page, email=email, nickname=name, password="correct horse")
    page.hook("submit").click()
    assert page.until_text("who") == name
    assert page.path == "/"


def write(page, story):
    """Writes a draft, which saves itself; gives its id."""
    page.hook("write-link").click()
    state = page.hook("save-state")
    assert state.get_dom_attribute("data-state") == "new"
    page.hook("title").send_keys(story["title"])
    page.write("#content", story["content"])
    page.until(lambda: page.one('[data-testid="preview"] strong').text == story["strong"], "the preview")
    assert [e.text for e in page.all('[data-testid="preview"] li')] == [story["content"].splitlines()[i][2:] for i in (4, 5)]
    page.until(lambda: page.hook("save-state").get_dom_attribute("data-state") == "saved", "saved by itself")
    assert re.search(r"\d\d:\d\d", page.hook("save-state").text), "tells when it was saved"
    draft = page.until_path("/write/").removeprefix("/write/")
    assert page.server.get(f"/v1/articles/{draft}").status_code == 404, "a draft is nobody else's"
    page.driver.refresh()
    page.until(lambda: page.hook("title").get_property("value") == story["title"], "the draft after a reload")
    assert page.hook("content").get_property("value") == story["content"]
    return draft


def publish_and_read(page, story, draft):
    page.hook("publish").click()
    page.until_path(f"/articles/{draft}")
    began = time.monotonic()
    assert page.one("h1").text == story["title"]
    assert page.one('[data-testid="text"] strong').text == story["strong"]
    assert page.hook("author").text == story["name"]
    counted = eventually(lambda: page.server.get(f"/v1/interactions/article/{draft}").json()["read_count"],
                         READ_SHOWS_SECONDS - (time.monotonic() - began))
    assert counted == 1, "the read was not counted within two seconds"
    page.driver.refresh()
    assert page.hook("reads").get_dom_attribute("title") == "1"


def react(page, kind):
    """Likes or collects; the count moves and stays."""
    page.hook(kind).click()
    page.until(lambda: page.hook(f"{kind}-count").text == "1" and not page.hook(kind).get_dom_attribute("aria-disabled"), kind)
    page.driver.refresh()
    assert page.hook(f"{kind}-count").text == "1"
    assert page.hook(kind).get_dom_attribute("aria-pressed") == "true"


def rank(page, article):
    page.get("/")
    ranks = page.all(f'.row[data-id="{article}"] .rank')
    return int(ranks[0].text) if ranks else None


def climbs_the_hot_list(page, article, rival, friends):
    """With its one like it stands behind the rival's two; two more put it first."""
    page.until(lambda: (rank(page, rival) or 99) < (rank(page, article) or 0), "the rival is ahead")
    for friend in friends:
        assert friend.put(f"/v1/interactions/article/{article}/like").status_code == 204
    page.until(lambda: rank(page, article) == 1, "first of the hot list")
    assert page.all('[data-testid="computed"] time'), "tells when it was computed"


def withdraw_and_publish(page, title, article):
    """From the list of one's own articles."""
    page.get("/me/articles")
    row = page.row(article)
    assert title in row.text
    status = page.hook("status").text
    page.hook("withdraw").click()
    page.hook("cancel").click()
    assert page.server.get(f"/v1/articles/{article}").status_code == 200, "asked, and answered no"
    page.hook("withdraw").click()
    assert title in page.hook("ask").text
    page.hook("confirm").click()
    page.until(lambda: page.hook("status").text != status, "withdrawn")
    assert page.until_text("said")
    assert page.server.get(f"/v1/articles/{article}").status_code == 404
    page.hook("publish").click()
    page.until(lambda: page.hook("status").text == status, "published again")
    assert page.server.get(f"/v1/articles/{article}").status_code == 200


def sort_into_folder(page, article, name):
    page.get("/me/collections")
    page.row(article)
    page.hook("new-folder").click()
    page.one("#folder-name").send_keys(name + "\n")
    page.until(lambda: any(name in b.text for b in page.all('[data-testid="folders"] [aria-pressed="true"]')), "the new folder")
    page.hook("empty")
    page.one('[data-testid="folders"] button').click()
    page.row(article).find_element("css selector", "select").send_keys(name)
    page.until(lambda: not page.all(f'.row[data-id="{article}"]'), "moved away")
    next(b for b in page.all('[data-testid="folders"] button') if name in b.text).click()
    page.row(article)


def find_in_history(page, title, article):
    def listed():
        page.get("/me/history")
        return title in page.row(article).text
    page.until(listed, "the history")


def sign_out_and_in(page, email, article):
    open_menu(page)
    page.hook("sign-out").click()
    page.hook("sign-in-link")
    assert page.path == "/"
    page.get("/me/articles")
    assert page.until_path("/signin") == "/signin?next=%2Fme%2Farticles"
    fill(page, email=email, password="correct horse")
    page.hook("submit").click()
    page.until_path("/me/articles")
    page.row(article)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_person_s_story(page, server, friends, language):
    page.fresh(server, language)
    story, email = STORIES[language], f"{language}@example.com"
    rival = friends[0].article("A rival 对手")
    for friend in friends:
        friend.put(f"/v1/interactions/article/{rival}/like")

    sign_up(page, email, story["name"])
    in_language(page, language)
    article = write(page, story)
    in_language(page, language)
    publish_and_read(page, story, article)
    in_language(page, language)
    react(page, "like")
    react(page, "collect")
    climbs_the_hot_list(page, article, rival, friends)
    withdraw_and_publish(page, story["title"], article)
    in_language(page, language)
    sort_into_folder(page, article, story["folder"])
    find_in_history(page, story["title"], article)
    sign_out_and_in(page, email, article)


def test_the_language_is_chosen_and_remembered(page, friends):
    article = friends[0].article("Words 字")
    page.get(f"/articles/{article}")
    in_language(page, "en")
    open_menu(page)
    page.one('a[href^="/pages/language/zh"]').click()
    page.until(lambda: page.script("return document.documentElement.lang") == "zh-CN", "Chinese")
    assert page.path == f"/articles/{article}", "back where one was"
    page.get("/newest")
    in_language(page, "zh")
    open_menu(page)
    page.one('a[href^="/pages/language/en"]').click()
    page.until(lambda: page.script("return document.documentElement.lang") == "en", "English")
