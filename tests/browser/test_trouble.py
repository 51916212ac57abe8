"""What goes wrong, and what people do twice: buttons pressed again, a server that refuses or is away, words that
are not saved, fields that are wrong."""
import pytest
from selenium.webdriver.common.keys import Keys

from weirserver import Person, Server

SLOW_MS = 250  # so that the second press falls into the first one's request


def pressed_twice(page, button):
    """What was asked of the API after a double press of this button, once the last answer is there."""
    page.asked()
    page.network(SLOW_MS)
    page.double_click(button)
    seen = []

    def settled():
        events = page.events()
        seen.extend(e for e in events if e["method"].startswith("Network."))
        open_ = {e["params"]["requestId"] for e in seen if e["method"] == "Network.requestWillBeSent"}
        done = {e["params"]["requestId"] for e in seen if e["method"] in ("Network.loadingFinished", "Network.loadingFailed")}
        return open_ and open_ <= done and not events
    page.until(settled, "all answers")
    page.network()
    requests = [e["params"]["request"] for e in seen if e["method"] == "Network.requestWillBeSent"]
    asked = [f'{r["method"]} {r["url"].removeprefix(page.server.url)}' for r in requests]
    return [line for line in asked if "/v1/" in line and "/refresh" not in line]


def test_sign_up_and_in_pressed_twice(page):
    page.get("/signup")
    page.one("#email").send_keys("twice@example.com")
    page.one("#password").send_keys("correct horse")
    assert pressed_twice(page, page.hook("submit")) == ["POST /v1/users", "POST /v1/sessions"]
    page.until_path("/")
    page.fresh(page.server)
    page.get("/signin")
    page.one("#email").send_keys("twice@example.com")
    page.one("#password").send_keys("correct horse")
    assert pressed_twice(page, page.hook("submit")) == ["POST /v1/sessions"]
    page.until_text("who")
    page.one(".menu summary").click()
    assert pressed_twice(page, page.hook("sign-out")) == ["DELETE /v1/sessions"]


@pytest.mark.parametrize("kind, path", [("like", "like"), ("collect", "collection")])
def test_reactions_pressed_twice(page, reader, kind, path):
    article = reader.article("Pressed twice")
    page.sign_in(reader)
    page.get(f"/articles/{article}")
    assert pressed_twice(page, page.hook(kind)) == [f"PUT /v1/interactions/article/{article}/{path}"]
    assert page.hook(kind).get_dom_attribute("aria-pressed") == "true"
    assert pressed_twice(page, page.hook(kind)) == [f"DELETE /v1/interactions/article/{article}/{path}"]
    assert page.hook(kind).get_dom_attribute("aria-pressed") == "false"


def test_saving_and_publishing_pressed_twice(page, reader):
    page.sign_in(reader)
    draft = reader.article("A draft", publish=False)
    page.get(f"/write/{draft}")
    page.hook("content").send_keys("!")
    assert pressed_twice(page, page.hook("save")) == [f"PUT /v1/articles/{draft}"]
    assert pressed_twice(page, page.hook("publish"))[0] == f"POST /v1/articles/{draft}/publish"
    page.until_path(f"/articles/{draft}")
    page.get("/me/articles")
    page.row(draft).find_element("css selector", '[data-testid="withdraw"]').click()
    assert pressed_twice(page, page.hook("confirm")) == [f"POST /v1/articles/{draft}/withdraw"]
    page.row(draft)
    publish = page.one(f'.row[data-id="{draft}"] [data-testid="publish"]')
    assert pressed_twice(page, publish) == [f"POST /v1/articles/{draft}/publish"]


def test_a_new_folder_pressed_twice(page, reader):
    page.sign_in(reader)
    page.get("/me/collections")
    page.hook("new-folder").click()
    page.one("#folder-name").send_keys("Once")
    asked = pressed_twice(page, page.one(".folder-form [type=submit]"))
    assert [line for line in asked if line.startswith("POST")] == ["POST /v1/me/collections"]


def like_now(page):
    """Presses like; what the button says in the same moment, before any answer: count, pressed."""
    return page.script("""
        const button = document.querySelector('[data-testid="like"]');
        button.click();
        return [button.querySelector('.count').textContent, button.getAttribute('aria-pressed')];""")


def goes_back(page):
    page.until_text("reaction-word")
    page.until(lambda: page.hook("like-count").text == "0", "the count goes back")
    assert page.hook("like").get_dom_attribute("aria-pressed") == "false"
    assert not page.hook("like").get_dom_attribute("aria-disabled"), "it can be tried again"


def test_a_like_moves_at_once_and_is_said(page, reader):
    article = reader.article("Liked")
    page.sign_in(reader)
    page.get(f"/articles/{article}")
    page.hook("like")
    assert like_now(page) == ["1", "true"]
    said = "return [...document.querySelectorAll('main [role=status], main [aria-live]')].map(e => e.textContent).join('')"
    page.until(lambda: "1" in page.script(said), "a live region tells the new count")


def test_a_like_that_is_refused_goes_back(page, author, reader):
    page.excused.append("404")
    article = author.article("Withdrawn while it is read")
    page.sign_in(reader)
    page.get(f"/articles/{article}")
    page.hook("like")
    author.post(f"/v1/articles/{article}/withdraw")
    assert like_now(page) == ["1", "true"]
    goes_back(page)


def test_a_like_without_a_server_goes_back(page):
    with Server() as server:
        person = Person(server)
        article = person.article("Nobody is there")
        page.fresh(server)
        page.excused.append("ERR_")
        page.sign_in(person)
        page.get(f"/articles/{article}")
        page.hook("like")
        server.kill()
        assert like_now(page) == ["1", "true"]
        goes_back(page)


def leaves_with_a_question(page):
    """Leaves by a link. The driver answers the browser's question by itself, with yes, and tells that there was one."""
    page.events()
    page.one(".brand").click()
    page.until(lambda: page.path == "/", "the front page")
    return "beforeunload" in [e["params"]["type"] for e in page.events() if e["method"] == "Page.javascriptDialogOpening"]


def test_unsaved_words_ask_before_they_are_left(page, reader):
    page.sign_in(reader)
    page.get("/write")
    page.hook("title")
    assert not leaves_with_a_question(page), "nothing is written yet"
    page.get("/write")
    page.hook("content").send_keys("Words without a title, which are not saved")
    assert leaves_with_a_question(page)
    page.get("/write")
    page.hook("content").send_keys("Words with a title")
    page.hook("title").send_keys("A title")
    page.until(lambda: page.hook("save-state").get_dom_attribute("data-state") == "saved", "saved")
    assert not leaves_with_a_question(page), "everything is saved"


def test_words_are_kept_while_the_server_is_away(page, reader):
    page.excused.append("ERR_INTERNET_DISCONNECTED")
    draft = reader.article("Kept", publish=False)
    page.sign_in(reader)
    page.get(f"/write/{draft}")
    state = page.hook("save-state")
    page.network(offline=True)
    page.hook("content").send_keys(" More.")
    page.until(lambda: state.get_dom_attribute("data-state") == "failed", "says that it is not saved")
    assert state.text
    page.network()
    page.until(lambda: state.get_dom_attribute("data-state") == "saved", "tries again by itself")
    assert reader.get(f"/v1/me/articles/{draft}").json()["content"] == "Some words. More."


def test_a_change_from_elsewhere_is_not_overwritten(page, reader):
    page.excused.append("412")
    draft = reader.article("Two windows", publish=False)
    page.sign_in(reader)
    page.get(f"/write/{draft}")
    page.hook("content")
    reader.put(f"/v1/articles/{draft}", {"title": "Two windows", "content": "From the other one."})
    page.hook("content").send_keys(" From here.")
    page.until(lambda: page.hook("save-state").get_dom_attribute("data-state") == "conflict", "a conflict")
    assert reader.get(f"/v1/me/articles/{draft}").json()["content"] == "From the other one."
    page.one(".note.warn button").click()  # keep what is here
    page.until(lambda: page.hook("save-state").get_dom_attribute("data-state") == "saved", "saved")
    assert reader.get(f"/v1/me/articles/{draft}").json()["content"] == "Some words. From here."


@pytest.mark.parametrize("path", ["/me/articles", "/me/collections", "/me/history"])
def test_a_list_that_fails_says_so_and_can_be_tried_again(page, reader, path):
    page.excused.append("ERR_BLOCKED_BY_CLIENT")
    page.sign_in(reader)
    page.cdp("Network.setBlockedURLs", urls=[f"*/v1{path}*"])
    page.get(path)
    note = page.one(".note.bad")
    assert note.text
    page.cdp("Network.setBlockedURLs", urls=[])
    note.find_element("css selector", "button").click()
    page.until(lambda: not page.all(".note.bad") and (page.all(".row") or page.has("empty")), "the list")


def faulty(page, field):
    """The field is named: it is marked, it has the focus, and words stand beside it."""
    page.until(lambda: page.hook(f"{field}-error").text, f"words beside {field}")
    element = page.one(f"#{field}")
    assert element.get_dom_attribute("aria-invalid") == "true"
    assert element.get_dom_attribute("aria-describedby") == f"{field}-error"
    page.until(lambda: page.driver.switch_to.active_element.get_dom_attribute("id") == field, f"the focus on {field}")


@pytest.mark.parametrize("email, nickname, password, field", [
    ("", "", "correct horse", "email"), ("not an address", "", "correct horse", "email"),
    ("new@example.com", "", "short", "password"), ("new@example.com", "n" * 65, "correct horse", "nickname"),
])
def test_signing_up_names_the_bad_field(page, email, nickname, password, field):
    page.get("/signup")
    for name, value in {"email": email, "nickname": nickname, "password": password}.items():
        page.write(f"#{name}", value)
    page.asked()
    page.one("#password").send_keys(Keys.ENTER)
    faulty(page, field)
    assert not page.asked(), "nothing is sent"
    page.one(f"#{field}").send_keys("x")
    page.until(lambda: not page.one(f"#{field}").get_dom_attribute("aria-invalid"), "forgiven while it is corrected")


def test_what_the_server_finds_wrong_is_named_too(page, reader):
    page.excused += ["409", "401"]
    page.get("/signup")
    page.write("#email", reader.email)
    page.write("#password", "correct horse")
    page.hook("submit").click()
    faulty(page, "email")
    page.get("/signin")
    page.write("#email", reader.email)
    page.write("#password", "battery staple")
    page.hook("submit").click()
    assert page.until_text("form-word")


def test_writing_names_the_missing_title(page, reader):
    page.sign_in(reader)
    page.get("/write")
    page.hook("content").send_keys("No title")
    page.hook("publish").click()
    page.until(lambda: page.one("#title-error").text, "words beside the title")
    assert page.hook("title").get_dom_attribute("aria-invalid") == "true"
    assert page.driver.switch_to.active_element.get_dom_attribute("id") == "title"
    page.hook("title").send_keys("T")  # and leaves without a question
    page.until(lambda: page.hook("save-state").get_dom_attribute("data-state") == "saved", "saved")
