"""How the pages look: nothing is wider than the window, light and dark, the chosen colours without a flash, and
little enough to be quick."""
import pytest

PAGES = ["/", "/newest", "/articles/{wide}", "/write/{wide}", "/me/articles", "/me/collections", "/me/history", "/write",
         "/articles/999999", "/signin", "/signup"]
SIZES = {"320 px": (320, 640, 1), "200% zoom of a small laptop": (640, 400, 2), "a tablet": (768, 1024, 1)}

# How far the page is too wide, and what sticks out of the window without a box of its own that scrolls.
TOO_WIDE = """
    const scrolls = e => e && e !== document.body && (['auto', 'scroll'].includes(getComputedStyle(e).overflowX) || scrolls(e.parentElement));
    const hidden = e => e.closest('.sr, .skip, svg');
    const out = [...document.querySelectorAll('body *')].filter(e => e.checkVisibility() && !hidden(e) && !scrolls(e) &&
        (e.getBoundingClientRect().right > innerWidth + 1 || e.getBoundingClientRect().left < -1));
    return [document.scrollingElement.scrollWidth - innerWidth,
            out.map(e => e.tagName + '.' + e.className + ' ' + Math.round(e.getBoundingClientRect().right))];"""

# The contrast of each text that is shown, below `least`.
PALE = """
    const canvas = new OffscreenCanvas(1, 1).getContext('2d', {willReadFrequently: true});
    const rgba = color => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
                            return [...canvas.getImageData(0, 0, 1, 1).data]; };
    const light = c => { const [r, g, b] = c.slice(0, 3).map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
                         return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const paper = e => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] > 250) return c; } return [255, 255, 255]; };
    const [least, where] = arguments, seen = [];
    for (const e of document.querySelectorAll(where)) {
        const text = [...e.childNodes].filter(n => n.nodeType === 3 && n.textContent.trim()).map(n => n.textContent.trim()).join(' ');
        if (!text || !e.checkVisibility() || e.closest('.sr, .skip, .anchor, [disabled], [aria-disabled=true]')) continue;
        const a = light(rgba(getComputedStyle(e).color)), b = light(paper(e));
        const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        seen.push([contrast, text.slice(0, 30)]);
    }
    return [seen.length, seen.filter(([contrast]) => contrast < least)];"""

BACKGROUND = "return getComputedStyle(document.documentElement).backgroundColor"
# The background of each frame from the first on; runs before anything of the page does.
FRAMES = """
    window.frames_seen = [];
    (function look() {
        requestAnimationFrame(look);
        if (document.body) frames_seen.push(getComputedStyle(document.documentElement).backgroundColor);
    })();"""


def brightness(color):
    """Of "rgb(1, 2, 3)", 0 to 255."""
    return sum(int(part) for part in color[color.index("(") + 1:-1].split(",")[:3]) / 3


def ready(page):
    """A page's list or editor is there."""
    if page.all("#app"):
        page.until(lambda: page.all("#app .row, #app [data-testid=empty], #app [data-testid=editor]"), "the page's content")


@pytest.fixture
def signed_in(page, author):
    """As the author with the widest name, who collected the widest article."""
    author.put(f"/v1/interactions/article/{author.wide}/collection")
    page.sign_in(author)
    page.excused.append("404")
    return page


@pytest.mark.parametrize("language", ["en", "zh"])
def test_nothing_is_wider_than_the_window(signed_in, author, language):
    page, faults = signed_in, []
    page.cookie("weir_lang", language)
    for path in PAGES:
        if path == "/signin":
            page.cdp("Network.clearBrowserCookies")
            page.cookie("weir_lang", language)
        page.get(path.format(wide=author.wide))
        ready(page)
        for name, (width, height, scale) in SIZES.items():
            page.size(width, height, scale)
            for menu in (False, True):
                page.script("document.querySelector('.menu').open = arguments[0]", menu)
                wide, out = page.script(TOO_WIDE)
                if wide > 0 or out:
                    faults.append(f"{path} at {name}{' with its menu' * menu}: {wide} px too wide: {out[:4]}")
            page.script("document.querySelector('.menu').open = false")
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_large_letters_are_large_and_fit(signed_in, author, language):
    """For who told the browser to use letters twice as large."""
    page, faults = signed_in, []
    page.cookie("weir_lang", language)
    page.cdp("Page.setFontSizes", fontSizes={"standard": 32, "fixed": 26})
    try:
        for path in ["/", "/newest", "/articles/{wide}", "/articles/999999"]:
            page.get(path.format(wide=author.wide))
            assert page.script("return parseFloat(getComputedStyle(document.documentElement).fontSize)") >= 34
            for width in (320, 390, 800, 1280, 1800):
                page.size(width, 800)
                for menu in (False, True):
                    page.script("document.querySelector('.menu').open = arguments[0]", menu)
                    wide, out = page.script(TOO_WIDE)
                    if wide > 0 or out:
                        faults.append(f"{path} at {width} px{' with its menu' * menu}: {wide} px too wide: {out[:4]}")
    finally:
        page.cdp("Page.setFontSizes", fontSizes={"standard": 16, "fixed": 13})
    assert not faults, "\n".join(faults)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_can_be_read_in_light_and_dark(signed_in, author, scheme):
    page = signed_in
    page.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    for path in PAGES:
        page.get(path.format(wide=author.wide))
        ready(page)
        paper = brightness(page.script(BACKGROUND))
        assert paper > 230 if scheme == "light" else paper < 40, path
        page.script("const menu = document.querySelector('.menu'); if (menu) menu.open = true")
        count, pale = page.script(PALE, 4.5, "body *")
        assert count > 5 and not pale, f"{path}: {pale}"
    page.get(f"/articles/{author.wide}")
    count, pale = page.script(PALE, 7, "h1, .text > p, .text h2, .text pre code")
    assert count >= 4 and not pale, pale


def test_the_chosen_colours_are_remembered_and_never_flash(page):
    page.get("/")
    page.one(".menu summary").click()
    page.one('[data-theme-choice="dark"]').click()
    assert page.path == "/"
    page.until(lambda: brightness(page.script(BACKGROUND)) < 40, "dark at once")
    script = page.cdp("Page.addScriptToEvaluateOnNewDocument", source=FRAMES)["identifier"]
    page.network(latency=80)  # what the page's scripts would do comes late
    try:
        for path in ["/", "/newest", "/signin"]:
            page.get(path)
            frames = page.until(lambda: len(page.script("return frames_seen")) > 5 and page.script("return frames_seen"))
            assert all(brightness(color) < 40 for color in frames), f"{path} flashes: {frames}"
    finally:
        page.cdp("Page.removeScriptToEvaluateOnNewDocument", identifier=script)
        page.network()
    page.one(".menu summary").click()
    page.one('[data-theme-choice="system"]').click()
    page.until(lambda: brightness(page.script(BACKGROUND)) > 230, "the system's choice again")


def test_the_chosen_colours_come_with_the_document(server):
    for theme in ("light", "dark"):
        html = server.get("/", headers={"Cookie": f"weir_theme={theme}"}).text
        assert f'data-theme="{theme}"' in html[:html.index("<head")], "before anything that could be painted"


def test_the_first_page_is_small(page):
    page.cdp("Network.clearBrowserCache")
    page.get("/")
    urls, sizes = {}, {}

    def all_there():
        for event in page.events():
            about = event["params"]
            if event["method"] == "Network.requestWillBeSent":
                urls[about["requestId"]] = about["request"]["url"]
            elif event["method"] == "Network.loadingFinished":
                sizes[about["requestId"]] = about["encodedDataLength"]
        return urls.keys() == sizes.keys() and any("favicon" in url for url in urls.values())
    page.until(all_there, "the whole page with its icon")
    assert len(page.all(".row")) >= 30, "a full page is measured"
    assert all(url.startswith(page.server.url) for url in urls.values()), urls
    assert len(urls) >= 4 and 5_000 < sum(sizes.values()) < 100_000, [(urls[i], sizes[i]) for i in urls]


def test_no_motion_for_who_wants_none(page):
    page.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-reduced-motion", "value": "reduce"}])
    page.get("/")
    moving = """return [...document.querySelectorAll('*')].map(e => getComputedStyle(e))
                .filter(s => parseFloat(s.transitionDuration) > 0 || s.animationName !== 'none').length"""
    assert page.script(moving) == 0
    page.cdp("Emulation.setEmulatedMedia", features=[])
    assert page.script(moving) > 0, "else this test would see nothing"


def test_times_are_the_reader_s(page):
    title = "return document.querySelector('.row time').title"
    seen = []
    for zone in ("Asia/Shanghai", "America/New_York"):
        page.cdp("Emulation.setTimezoneOverride", timezoneId=zone)
        page.get("/")
        exact = page.script("""const t = new Date(document.querySelector('.row time').dateTime);
            const two = n => String(n).padStart(2, '0');
            return `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())} ${two(t.getHours())}:${two(t.getMinutes())}`""")
        page.until(lambda: page.script(title) == exact, f"the time in {zone}")
        seen.append(exact)
    page.cdp("Emulation.setTimezoneOverride", timezoneId="")
    assert seen[0] != seen[1]
