"""The page of `coop-kafka ui` in a real Chromium, of groups in a real Redis. `test_watching.py` has real drivers."""

from contextlib import closing
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import redis
from playwright.sync_api import Browser, expect

from coordinator.progress.failing import FailingRecord
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GroupKeys
from coordinator.redis.store import store_of
from coordinator.values.key_hash import cuts
from coordinator.values.subscription import Topic, TopicPartition
from own_valkey import OwnValkey
from sites import CHROMIUM, NO_CHROMIUM, looking, site
from watched_groups import SLOW, at_work, live

pytestmark = [
    pytest.mark.server,
    pytest.mark.skipif(not CHROMIUM, reason=NO_CHROMIUM),
    pytest.mark.xdist_group("browser"),  # one for all
]

GROUP, TP = "orders-to-lake", TopicPartition("orders", 0)
PARTITIONS, LANES = 1_000, 10


def partitions(valkey: OwnValkey, group: str, number: int, lanes: int) -> None:
    """A group with many partitions: partition p lacks p records of 1,000, and its lanes are 5 offsets apart."""
    keys, tps = GroupKeys(group), [TopicPartition("orders", p) for p in range(number)]
    with closing(RedisClient(valkey.address)) as client, closing(redis.Redis.from_url(valkey.address)) as plain:
        store = store_of(ScriptCalls(client, group, session_ms=60_000, longest_ms=60_000, retention_ms=600_000))
        store.positions.create("aa", {"orders": Topic("orders", "id-1", tuple(range(number)))}, dict.fromkeys(tps, 0))
        pipeline = plain.pipeline(transaction=False)
        for tp in tps:
            first = 1_000 - tp.partition
            pipeline.delete(keys.segments(tp))
            for n, hashes in enumerate(cuts(lanes)):
                pipeline.hset(keys.segments(tp), str(hashes), str(first + 5 * n))
            pipeline.hset(keys.stable("orders"), str(tp.partition), str(first))
            pipeline.hset(keys.end("orders"), str(tp.partition), "1000")
        pipeline.execute()


def test_a_slow_key_is_behind_its_partition_and_a_parked_one_is_marked(valkey: OwnValkey, browser: Browser) -> None:
    at_work(valkey.address, GROUP)
    with site(valkey.address) as running, looking(browser, running.url) as page:
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.wait_for_selector("#plane text.slow:has-text('furthest behind')")
        assert "5,800 offsets behind" in page.inner_text("#lag")
        assert {f"done m{n}" for n in range(3)} <= set(
            page.locator("#plane rect").evaluate_all("all => all.map(r => r.getAttribute('class'))")
        )
        assert page.locator("#plane circle.failing.parked").count() == 1
        assert page.locator("#plane rect.working").count() > 1  # one of them in the legend
        first = page.inner_text("#lanes tbody tr")
        assert [word in first for word in (str(SLOW), "m-3f1c", "150", "budget")] == [True] * 4
        assert "ValueError: amount is 'NaN'" in page.inner_text("#failing tbody tr")
        page.fill("#key", "customer-7")
        page.press("#key", "Enter")
        page.wait_for_selector("#owners td:has-text('worker-')")
        page.wait_for_selector("#events td:has-text('assigned')")
        assert asked
        assert all(url.startswith(running.url) for url in asked), "it needs no other host"


@pytest.mark.long
def test_names_of_others_are_texts(valkey: OwnValkey, browser: Browser) -> None:
    evil = "<img src=x onerror='window.hacked=1'><script>window.hacked=1</script>\x1b[31m\u202e'\"&"
    live(valkey.address, evil, "orders", host=evil)
    with closing(redis.Redis.from_url(valkey.address)) as plain:
        bad = FailingRecord(TP, 2**61, 7, 3, 0, True, "ValueError", evil)
        plain.hset(GroupKeys(evil).failing, bad.field, bad.text)
    with site(valkey.address) as running, looking(browser, running.url) as page:
        page.wait_for_selector("#plane svg")
        page.wait_for_selector("#events td")
        assert page.evaluate("[...document.querySelectorAll('#groups option')].map(o => o.value)") == [evil]
        assert "<script>window.hacked=1</script>" in (page.text_content("#members") or "")
        assert "<script>window.hacked=1</script>" in (page.text_content("#failing") or "")
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img").count() == page.locator("main script").count() == 0


@pytest.mark.long
def test_the_address_names_the_group_that_is_shown(valkey: OwnValkey, browser: Browser) -> None:
    """So a link, as from an alert or a ticket, opens it."""
    groups = ("a first one", "b & second")
    for group in groups:
        live(valkey.address, group, "orders")
    with site(valkey.address) as running:
        with looking(browser, f"{running.url}?{urlencode({'group': groups[1]})}") as page:
            expect(page).to_have_title("b & second - coop-kafka")
            page.select_option("#groups", groups[0])
            expect(page).to_have_title("a first one - coop-kafka")
            assert parse_qs(urlsplit(page.url).query) == {"group": [groups[0]]}
        with looking(browser, f"{running.url}?group=unknown") as page:
            expect(page).to_have_title("a first one - coop-kafka")


@pytest.mark.long
def test_the_keyboard_is_enough(valkey: OwnValkey, browser: Browser) -> None:
    partitions(valkey, GROUP, 3, 2)
    with site(valkey.address) as running, looking(browser, running.url) as page:
        page.wait_for_selector("#plane .title:has-text('orders-2')")
        page.focus("#partitions button:has-text('orders-1')")
        with closing(redis.Redis.from_url(valkey.address)) as plain:
            plain.hset(GroupKeys(GROUP).end("orders"), "0", "1002")  # so that the table changes
        page.wait_for_selector("#partitions td:has-text('1,002')")
        page.keyboard.press("Enter")
        page.wait_for_selector("#plane .title:has-text('orders-1')")
        assert page.evaluate("document.activeElement.dataset.key") == "orders-1"


def test_a_narrow_screen_scrolls_only_within_its_tables(valkey: OwnValkey, browser: Browser) -> None:
    partitions(valkey, GROUP, 3, 2)
    with site(valkey.address) as running, looking(browser, running.url, width=360) as page:
        page.wait_for_selector("#plane svg")
        page.wait_for_selector("#events td")
        assert page.evaluate("document.documentElement.scrollWidth") == 360


@pytest.mark.parametrize(("scheme", "paper"), [("light", "rgb(255, 255, 255)"), ("dark", "rgb(13, 17, 23)")])
def test_it_is_as_dark_as_the_browser_wants(valkey: OwnValkey, browser: Browser, scheme: str, paper: str) -> None:
    partitions(valkey, GROUP, 1, 2)
    with site(valkey.address) as running, looking(browser, running.url) as page:
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        page.wait_for_selector("#plane svg")
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == paper
        assert page.locator("#plane rect.paper").first.evaluate("r => getComputedStyle(r).fill") == paper


@pytest.mark.long
def test_a_thousand_partitions_of_ten_lanes__the_worst_come_first(valkey: OwnValkey, browser: Browser) -> None:
    partitions(valkey, GROUP, PARTITIONS, LANES)
    with site(valkey.address) as running, looking(browser, running.url, expected="404") as page:
        page.wait_for_selector("#plane .title:has-text('orders-999')")
        assert page.inner_text("#more") == "50 of 1,000 partitions"
        assert page.inner_text("#partitions tbody tr").startswith("orders-999")
        page.fill("#number", "3")
        page.press("#number", "Enter")
        page.wait_for_selector("#plane .title:has-text('orders-3')")
        page.fill("#number", "1000")
        page.press("#number", "Enter")
        page.wait_for_selector("#plane p:has-text('the group has no position there')")


def test_redis_goes_away_and_comes_back(valkey: OwnValkey, browser: Browser) -> None:
    live(valkey.address, GROUP, "orders")
    with site(valkey.address) as running, looking(browser, running.url, expected="503") as page:
        page.wait_for_selector("#plane svg")
        valkey.stop()
        page.wait_for_selector("#error:has-text('REDIS_UNAVAILABLE')")
        valkey.restart(emptied=True)
        page.wait_for_selector("#error", state="hidden")
