"""Debian's Chromium without a window, as a reader uses it: finds things by their hooks, waits for what should
happen, and remembers what the browser complained about and what it asked the server for."""
import json
import tempfile

from selenium import webdriver
from selenium.common.exceptions import NoSuchElementException, StaleElementReferenceException
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

FLAGS = ("--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
         "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars --lang=en-US").split()
WAIT_SECONDS = 10  # for a busy machine; what has a promise of its own is measured by the test
ACCEPT = {"en": "en-US,en;q=0.9", "zh": "zh-CN,zh;q=0.9,en;q=0.5"}
DESKTOP = (1280, 860)

SHOWN = "return [...document.querySelectorAll(arguments[0])].find(e => e.checkVisibility({visibilityProperty: true})) ?? null"


class Chromium:
    def __init__(self):
        self.profile = tempfile.TemporaryDirectory(prefix="weir-chromium-", ignore_cleanup_errors=True)
        options = webdriver.ChromeOptions()
        options.binary_location = "/usr/bin/chromium"
        for flag in [*FLAGS, "--user-data-dir=" + self.profile.name]:
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))
        self.agent = self.script("return navigator.userAgent")
        self.cdp("Network.enable")

    def close(self):
        self.driver.quit()
        self.profile.cleanup()

    def fresh(self, server, language="en"):
        """A new reader of this server, who prefers this language: no cookies, nothing stored, a quick network."""
        self.server = server
        self.excused = []
        self.driver.get("about:blank")
        self.cdp("Network.clearBrowserCookies")
        self.cdp("Storage.clearDataForOrigin", origin=server.url, storageTypes="all")
        self.cdp("Emulation.setUserAgentOverride", userAgent=self.agent, acceptLanguage=ACCEPT[language])
        self.cdp("Emulation.setScriptExecutionDisabled", value=False)
        self.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "light"}])
        self.network()
        self.size(*DESKTOP)
        self.complaints()
        self.asked()

    def cdp(self, command, **parameters):
        return self.driver.execute_cdp_cmd(command, parameters)

    def script(self, code, *arguments):
        return self.driver.execute_script(code, *arguments)

    def size(self, width, height, scale=1):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False)

    def network(self, latency=0, offline=False):
        """Milliseconds that each request takes longer."""
        self.cdp("Network.emulateNetworkConditions", offline=offline, latency=latency, downloadThroughput=-1,
                 uploadThroughput=-1)

    def cookie(self, name, value):
        self.cdp("Network.setCookie", url=self.server.url, name=name, value=value, path="/")

    def sign_in(self, person):
        """By cookie, as the page would get it; the page itself is tried by the story."""
        answer = self.server.post("/v1/sessions", {"email": person.email, "password": person.password},
                                  headers={"X-Weir-Page": "1"})
        assert answer.status_code == 200, answer.text
        self.cookie("weir_session", answer.cookies["weir_session"])

    def get(self, path):
        self.driver.get(self.server.url + path)

    @property
    def path(self):
        return self.driver.current_url.removeprefix(self.server.url)

    # What is on the page.

    def all(self, css):
        return self.driver.find_elements(By.CSS_SELECTOR, css)

    def one(self, css):
        """The first that is shown; waits for it."""
        return self.until(lambda: self.script(SHOWN, css), css)

    def hook(self, name):
        return self.one(f'[data-testid="{name}"]')

    def has(self, name):
        return bool(self.all(f'[data-testid="{name}"]'))

    def until(self, check, what=""):
        wait = WebDriverWait(self.driver, WAIT_SECONDS, poll_frequency=0.03,
                             ignored_exceptions=[NoSuchElementException, StaleElementReferenceException])
        return wait.until(lambda _: check(), what)

    def until_text(self, name):
        """The words of a hook, when it has some."""
        return self.until(lambda: self.one(f'[data-testid="{name}"]').text, name)

    def until_path(self, start):
        return self.until(lambda: self.path.startswith(start) and self.path, start)

    def row(self, article):
        """A list's row."""
        return self.one(f'.row[data-id="{article}"]')

    # What a reader does.

    def press(self, *keys):
        ActionChains(self.driver, duration=0).send_keys(*keys).perform()

    def chord(self, modifier, key):
        ActionChains(self.driver, duration=0).key_down(modifier).send_keys(key).key_up(modifier).perform()

    def double_click(self, element):
        ActionChains(self.driver, duration=0).double_click(element).perform()

    def write(self, css, text):
        """Puts a text into a field at once, line ends and all, as a paste does."""
        self.script("arguments[0].focus(); arguments[0].select(); document.execCommand('insertText', false, arguments[1])",
                    self.one(css), text)

    # What the browser said and asked.

    def complaints(self):
        """Errors on the console since the last look, those that the test announced in `excused` left out."""
        return [entry["message"] for entry in self.driver.get_log("browser")
                if entry["level"] == "SEVERE" and not any(part in entry["message"] for part in self.excused)]

    def events(self):
        """The network's events since the last look."""
        return [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]

    def asked(self):
        """The requests since the last look, as "POST /v1/articles"."""
        requests = [e["params"]["request"] for e in self.events() if e["method"] == "Network.requestWillBeSent"]
        return [f'{r["method"]} {r["url"].removeprefix(self.server.url)}' for r in requests]
