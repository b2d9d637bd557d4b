"""A running `coop-kafka ui`, and Chromium that looks at it."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager

from playwright.sync_api import Browser, Page, sync_playwright

from broker_jars import ROOT

PATIENCE_S = 30
CHROMIUM = shutil.which("chromium")
NO_CHROMIUM = "no chromium on this host's PATH: apt-get install chromium, as .ci/run does"


class Site:
    """The process, and the address that it has printed."""

    def __init__(self, process: "subprocess.Popen[str]", url: str) -> None:
        self.process, self.url = process, url

    def end(self, number: signal.Signals = signal.SIGTERM) -> tuple[int, str]:
        """A signal; the exit code, and stderr."""
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=PATIENCE_S)
        return self.process.returncode, err


@contextmanager
def site(redis_url: str, *arguments: str) -> Iterator[Site]:
    """The page on a free port of this host."""
    command = [sys.executable, "-m", "spark_coop_source.command_line", "ui", "--listen", "127.0.0.1:0"]
    process = subprocess.Popen(
        [*command, "--redis", redis_url, *arguments],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        found = re.fullmatch(r"Groups at http://[\d.]+:(\d+)/\n", line)
        assert found, (line, process.stderr and process.stderr.read())
        yield Site(process, f"http://127.0.0.1:{found[1]}/")
    finally:
        process.kill()
        process.communicate()


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


def screenshot(page: Page, name: str) -> None:
    """The page as a picture. With `COOP_SCREENSHOTS=1`, the test makes that of the docs."""
    picture = page.screenshot(full_page=True)
    assert picture.startswith(b"\x89PNG")
    if os.environ.get("COOP_SCREENSHOTS"):
        (ROOT / "docs" / f"{name}.png").write_bytes(picture)
