"""The documentation as a site: strict, complete, and searched in a real Chromium. Nothing comes from another host."""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urldefrag, urljoin

import pytest
from playwright.sync_api import Browser

import build_site
from broker_jars import ROOT
from sites import CHROMIUM, NO_CHROMIUM, looking

PROGRAM = [sys.executable, str(ROOT / "scripts" / "lib" / "build_site.py")]

pytestmark = [pytest.mark.xdist_group("browser"), pytest.mark.long]  # one build for all


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site as files."""
    return tmp_path_factory.mktemp("site")


@pytest.fixture(scope="module")
def site(built: Path) -> Iterator[str]:
    """The address of the served site."""
    serving = subprocess.Popen([*PROGRAM, "--output", str(built), "--serve", "0"], stdout=subprocess.PIPE, text=True)
    try:
        assert serving.stdout is not None
        assert serving.stdout.readline() == f"The site is in {built}\n"
        found = re.fullmatch(r"Serving (http://\S+)\n", serving.stdout.readline())
        assert found
        yield found[1]
    finally:
        serving.kill()
        serving.communicate()


@pytest.mark.skipif(not CHROMIUM, reason=NO_CHROMIUM)
@pytest.mark.parametrize(
    ("words", "page", "row"),
    [
        ("batchTimeBudget", "docs/options.html", "batchTimeBudget"),
        ("FENCED_MEMBER", "docs/reference.html", "FENCED_MEMBER"),
        ("coop_kafka_consumer_group_members", "docs/monitoring.html", "coop_kafka_consumer_group_members"),
    ],
)
def test_a_search_lands_on_the_row(site: str, browser: Browser, words: str, page: str, row: str) -> None:
    with looking(browser, site) as window:
        asked: list[str] = []
        window.on("request", lambda request: asked.append(request.url))
        window.click('[data-md-component="search-query"]')
        window.keyboard.type(words)
        window.wait_for_selector(f'.md-search-result__item a[href*="#{row}"]')
        window.keyboard.press("Enter")
        window.wait_for_url(f"**/{page}?**#{row}")
        place = window.locator(f'tr[id="{row}"]').bounding_box()
        assert place is not None
        assert 0 <= place["y"] < 1_400, "it is in the window"
        assert asked
        assert [url for url in asked if not url.startswith((site, "blob:", "data:"))] == []


def links(built: Path, page: str) -> set[str]:
    """The pages that a page links to."""
    found = re.findall(r'<a [^>]*href="([^":]+\.html[^"]*)"', (built / page).read_text(encoding="utf-8"))
    return {urldefrag(urljoin(page, link)).url for link in found}


def test_every_page_is_two_clicks_away(site: str, built: Path) -> None:
    pages = {f"docs/{page.stem}.html" for page in (ROOT / "docs").glob("*.md")}
    assert pages | {"docs/python-api.html", "DESIGN.html", "CHANGELOG.html"} <= links(built, "index.html")


def test_the_python_page_has_every_public_class_and_function(site: str, built: Path) -> None:
    text = (built / "docs" / "python-api.html").read_text(encoding="utf-8")
    assert re.search(r"Commit .*offset", text), "docstrings are there"
    for name in ("CommitApi", "OnError", "CoopKafkaDataSource", "map_records", "run_records", "audit", "error_of"):
        assert re.search(rf'<h[23] id="{name.lower()}"', text), name


MAKE = """
import logging, sys
from pathlib import Path
import build_site
logging.basicConfig()
build_site.make(*map(Path, sys.argv[1:]))
"""


def test_a_link_to_nowhere_ends_the_build(tmp_path: Path) -> None:
    """In a process of its own: the threads of the browser's client disturb Python's parser."""
    pages = tmp_path / "pages"
    build_site.stage(pages)
    with (pages / "docs" / "ordering.md").open("a", encoding="utf-8") as page:
        page.write("[gone](guarantees.md#no-such-place)\n")
    command = [sys.executable, "-c", MAKE, str(pages), str(tmp_path / "site")]
    made = subprocess.run(command, cwd=ROOT / "scripts" / "lib", capture_output=True, text=True, check=False)
    assert made.returncode == 1
    assert "'guarantees.md#no-such-place'" in made.stderr
