"""A running `coop-kafka ui`, and Chromium that looks at it."""

import shutil
from collections.abc import Iterator
from contextlib import closing, contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from served import Served, served

CHROMIUM = shutil.which("chromium")
NO_CHROMIUM = "no chromium on this host's PATH: apt-get install chromium, as .ci/run does"


class Site(Served):
    """The process, and its address."""

    @property
    def url(self) -> str:
        """The address on this host."""
        return f"http://127.0.0.1:{self.port}/"


@contextmanager
def site(redis_url: str, *arguments: str) -> Iterator[Site]:
    """The page on a free port."""
    with served("ui", r"Groups at http://[\d.]+:(\d+)/\n", "--redis", redis_url, *arguments) as running:
        yield Site(running.process, running.port)


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser. While it runs, this thread has an event loop of its own."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def looking(browser: Browser, url: str, *, width: int = 1280, expected: str = "") -> Iterator[Page]:
    """The page in a new window. Fails if the browser's console has an error, but for answers of an expected status."""
    errors: list[str] = []
    with closing(browser.new_context(viewport={"width": width, "height": 1_400})) as window:
        page = window.new_page()
        page.on("console", lambda said: errors.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.goto(url)
        yield page
    assert not [e for e in errors if not (expected and expected in e)], errors
