"""Everything by keyboard: what can be pressed is reached by Tab in the order of the page and shows its focus; the
keys of lists; a visit without a mouse."""
import pytest
from selenium.webdriver.common.keys import Keys

MOST_STOPS = 250

# Remembers what can be reached on this page, as far as it is shown, and how it looks without the focus.
REMEMBER = """
    const reachable = 'a[href], button:not([disabled]), summary, input:not([disabled]), textarea, select, [tabindex="0"]';
    window.dress = e => [e, e.parentElement].flatMap(x => [null, '::before', '::after'].map(part => {
        const s = getComputedStyle(x, part);
        return [s.outlineStyle, s.outlineWidth, s.content, s.borderColor, s.boxShadow].join();
    })).join(' ');
    window.stops = [...document.querySelectorAll(reachable)].filter(e => e.checkVisibility());
    window.undressed = stops.map(dress);
    return stops.map(e => e.tagName + ' ' + (e.dataset.testid || e.id || e.textContent.trim()).slice(0, 30));"""
# Where the focus is, and whether one sees it: a ring around the thing or its area (a field may show it otherwise),
# on a box that is in the window.
LOOK = """
    const e = document.activeElement, number = stops.indexOf(e), box = e.getBoundingClientRect();
    const ring = [null, '::before', '::after'].map(part => getComputedStyle(e, part))
        .some(s => s.outlineStyle !== 'none' && parseFloat(s.outlineWidth) >= 2);
    const shows = ring || (e.matches('input, textarea') && dress(e) !== undressed[number]);
    const seen = box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight && box.right > 0;
    return [number, e.tagName, shows && seen];"""


def walk(page):
    """Presses Tab through the whole page; the stops in the order of the page and those visited, as numbers."""
    names = page.script(REMEMBER)
    visited = []
    for _ in range(MOST_STOPS):
        page.press(Keys.TAB)
        number, tag, shows = page.script(LOOK)
        if tag == "BODY" or (visited and number == visited[0]):
            break
        assert shows, f"the focus on {names[number] if number >= 0 else tag} can't be seen"
        if number >= 0:  # what scrolls is a stop too
            visited.append(number)
    return names, visited


@pytest.mark.parametrize("path", ["/newest", "/articles/{wide}", "/signup", "/me/articles", "/me/collections", "/me/history"])
def test_tab_reaches_everything(page, author, path):
    if path != "/signup":
        page.sign_in(author)
        author.put(f"/v1/interactions/article/{author.wide}/collection")
    if path.startswith("/me"):
        page.get("/articles/" + author.wide)  # so that there is a history
        page.until(lambda: author.get("/v1/me/history").json()["items"], "the history")
        page.get(path)
        page.until(lambda: page.all(".row"), "a row")
    else:
        page.get(path.format(wide=author.wide))
    names, visited = walk(page)
    assert [names[i] for i in visited] == names


def test_tab_reaches_everything_while_writing(page, author):
    page.sign_in(author)
    draft = author.article("By keyboard", "Some words.", publish=False)
    page.get(f"/write/{draft}")
    page.one('[data-testid="preview"] p')
    names, visited = walk(page)
    assert [names[i] for i in visited] == names


def test_the_first_stop_skips_to_the_text(page):
    page.get("/")
    page.press(Keys.TAB)
    skip = page.driver.switch_to.active_element
    assert skip.get_dom_attribute("class") == "skip" and skip.location["y"] >= 0
    page.press(Keys.ENTER)
    page.until(lambda: page.script("return document.activeElement.id") == "main", "the text")


def test_j_and_k_walk_a_list_and_enter_opens(page):
    page.get("/")
    rows = page.all(".row-title a")
    addresses = [row.get_property("href") for row in rows]

    def here():
        return page.script("return document.activeElement.href")
    page.until(lambda: page.press("j") or here() == addresses[0], "the first row")
    page.press("j")
    assert here() == addresses[1]
    page.press("j", "k")
    assert here() == addresses[1]
    assert page.script(REMEMBER) and page.script(LOOK)[2], "one sees where one is"
    page.press("k", "k", "k")
    assert here() == addresses[0], "stays at the end"
    page.press("j", Keys.ENTER)
    page.until(lambda: page.driver.current_url == addresses[1], "opened")


def test_the_help_of_keys(page):
    page.get("/")
    page.until(lambda: page.press("?") or page.all("#keys-dialog[open]"), "the keys")
    assert {"j", "k", "?"} <= {k.text for k in page.all("#keys-dialog kbd")}
    assert page.script("return document.querySelector('#keys-dialog').contains(document.activeElement)")
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.all("#keys-dialog[open]"), "closed")
    page.one("#show-keys").send_keys(Keys.ENTER)
    page.one("#keys-dialog button").send_keys(Keys.ENTER)
    page.until(lambda: not page.all("#keys-dialog[open]"), "closed by its button")
    assert page.script("return document.activeElement.id") == "show-keys", "the focus goes back"


def test_keys_are_letters_while_one_types(page):
    page.get("/signin")
    page.one("#email").send_keys("jk?")
    assert page.one("#email").get_property("value") == "jk?"
    assert not page.all("#keys-dialog[open]")


def test_a_visit_without_a_mouse(page, author, reader):
    article = author.article("Without a mouse")
    page.get(f"/signin?next=/articles/{article}")
    page.one("#email").send_keys(reader.email, Keys.TAB, reader.password, Keys.ENTER)
    page.until_path(f"/articles/{article}")
    page.hook("like").send_keys(Keys.SPACE)
    page.until(lambda: reader.get(f"/v1/interactions/article/{article}").json()["liked"], "liked")
    assert page.driver.switch_to.active_element == page.hook("like"), "the focus stays on the button"
    page.hook("write-link").send_keys(Keys.ENTER)
    page.until_path("/write")
    page.until(lambda: page.script("return document.activeElement.id") == "title", "ready to write")
    page.press("Typed", Keys.ENTER, "text")
    page.chord(Keys.CONTROL, "s")
    page.until(lambda: page.hook("save-state").get_dom_attribute("data-state") == "saved", "saved by a key")
    assert page.hook("content").get_property("value") == "text"
    page.one(".menu summary").send_keys(Keys.ENTER)
    page.hook("sign-out")
    page.press(Keys.ESCAPE)
    page.until(lambda: not page.all(".menu[open]"), "the menu closes")
    assert page.script("return document.activeElement.tagName") == "SUMMARY"
    page.press(Keys.ENTER)
    page.hook("sign-out").send_keys(Keys.ENTER)
    page.hook("sign-in-link")
