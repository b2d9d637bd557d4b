"""The command `scripts/screens`: runs two queries on one partition, and draws docs/page.png and docs/top.svg of them.

docs/page.png is what Chromium shows of `coop-kafka ui`, docs/top.svg the screen of `coop-kafka top`. One key is slow,
and two keys fail.
"""

import argparse
import asyncio
import contextlib
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from pathlib import Path

from kafka import KafkaAdminClient
from kafka.admin import NewTopic
from playwright.sync_api import Page, sync_playwright
from pyspark.sql import Row, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

import processes
import servers
from broker_jars import ROOT
from coordinator.errors import CoopKafkaError
from coordinator.redis.client import RedisClient
from coordinator.redis.events import last_events
from coordinator.tools.cli.top_screen import TopLook, TopScreen
from coordinator.tools.operations.group_look import look_at
from coordinator.tools.operations.top_view import top_view
from picture import CHEAP_US, DEAR_US, GROUP, SLOTS, SLOW_KEY, SLOW_US, session
from spark_coop_source import OnError, map_records
from topics import Kafka, Record

TOPIC, WIDTH, SIZE, EVENTS = "orders", 1_280, (130, 40), 100
KEYS, BROKEN_KEY, UNREACHED_KEY, A_SECOND = 30, 13, 29, 300  # ten records of each key a second
_CURVE_S, _PATIENCE_S = 75.0, 240.0


def charged(record: Row) -> dict[str, bytes]:
    """The work: wait as many microseconds as the value; one record cannot be processed, one cannot be yet."""
    if record.value == b"unreached":
        raise OSError("no answer from the ledger")
    time.sleep(int(record.value) / 1_000_000)
    return {"key": record.key}


def main() -> int:
    """Draw both screens; 0 if they were written, 1 if the group never reached a state worth drawing."""
    parser = argparse.ArgumentParser(prog="scripts/screens", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--output", type=Path, default=ROOT / "docs", help="the folder to write to, default docs")
    output = parser.parse_args().output.resolve()
    if not shutil.which("chromium"):
        parser.error("no chromium on this host's PATH")
    with processes.ending_politely(), ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="coop-kafka-screens-")))
        kafka, redis = stack.enter_context(servers.kafka_and_valkey(folder))
        stack.enter_context(_fed(Kafka(kafka.address)))
        stack.enter_context(_running(kafka.address, redis.address, folder))
        page = stack.enter_context(_page(stack.enter_context(_site(kafka.address, redis.address))))
        client = stack.enter_context(closing(RedisClient(redis.address)))
        if not _worth_drawing(client, page):
            print("The group never had a slow lane and two failing keys: run it again.", file=sys.stderr)
            return 1
        with ThreadPoolExecutor(1) as apart:  # this thread has the event loop of the browser
            (output / "top.svg").write_text(apart.submit(_top, client).result(), encoding="utf-8")
        (output / "page.png").write_bytes(page.screenshot(full_page=True))
    print(f"Wrote {output / 'top.svg'} and {output / 'page.png'}")
    return 0


def _records(numbers: range) -> Iterator[Record]:
    for number in numbers:
        key = number * 7_919 % KEYS
        cost = SLOW_US if key == SLOW_KEY else DEAR_US if key % 10 == 3 else CHEAP_US
        values = {BROKEN_KEY: b"NaN", UNREACHED_KEY: b"unreached"} if number > 20 * A_SECOND else {}
        yield Record(values.get(key, str(cost).encode()), b"customer-%d" % key)


@contextlib.contextmanager
def _fed(kafka: Kafka) -> Iterator[None]:
    """Records every second, until the end of the block."""
    admin = KafkaAdminClient(bootstrap_servers=kafka.bootstrap)
    admin.create_topics([NewTopic(TOPIC, num_partitions=1, replication_factor=1)])
    admin.close()
    ended = threading.Event()

    def feed() -> None:
        for second in range(int(_PATIENCE_S)):
            kafka.produce(TOPIC, _records(range(second * A_SECOND, (second + 1) * A_SECOND)))
            if ended.wait(1.0):
                return

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        yield
    finally:
        ended.set()
        feeder.join()


@contextlib.contextmanager
def _running(bootstrap: str, redis_url: str, folder: Path) -> Iterator[None]:
    """Two queries of the group."""
    with contextlib.chdir(folder):  # Python workers import from it first, and must import the installed modules
        spark = session(folder)
        queries = [_query(spark, bootstrap, redis_url, folder / name) for name in ("a", "b")]
        try:
            yield
        finally:
            for query in queries:
                query.stop()
            spark.stop()


def _query(spark: SparkSession, bootstrap: str, redis_url: str, checkpoint: Path) -> StreamingQuery:
    on_error = OnError(attempts=50, backoff="3s", then="park", retry_on=(OSError,))
    options = {
        "kafka.bootstrap.servers": bootstrap,
        "subscribe": TOPIC,
        "startingOffsets": "earliest",
        "group": GROUP,
        "redisUrl": redis_url,
        "slots": str(SLOTS // 2),
        "batchTimeBudget": "2s",
        "allowSeveralQueries": "true",
        "memberLabels": f"app={checkpoint.name}",
    }
    rows = spark.readStream.format("coop-kafka").options(
        **options, **map_records(charged, "key binary", on_error=on_error)
    )
    return rows.load().writeStream.format("noop").option("checkpointLocation", str(checkpoint)).start()


@contextlib.contextmanager
def _site(bootstrap: str, redis_url: str) -> Iterator[str]:
    """The address of the page."""
    command = [sys.executable, "-m", "spark_coop_source.command_line", "ui", "--listen", "127.0.0.1:0"]
    command += ["--redis", redis_url, "--bootstrap-server", bootstrap]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        try:
            yield (process.stdout.readline() if process.stdout else "").split()[-1]
        finally:
            process.terminate()


@contextlib.contextmanager
def _page(address: str) -> Iterator[Page]:
    """The page in Chromium."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        page = browser.new_page(viewport={"width": WIDTH, "height": 1_000})
        page.goto(address)
        try:
            yield page
        finally:
            browser.close()


def _worth_drawing(client: RedisClient, page: Page) -> bool:
    """Whether, after a while of the curve, a single key is last, one key is parked, and one is tried again."""
    began = time.monotonic()
    while (waited := time.monotonic() - began) < _PATIENCE_S:
        page.wait_for_timeout(500)
        with contextlib.suppress(CoopKafkaError):  # no such group yet
            if waited > _CURVE_S and _is_typical(client):
                page.fill("#key", f"customer-{SLOW_KEY}")
                page.press("#key", "Enter")
                page.wait_for_selector("#owners td")
                page.evaluate("document.activeElement.blur()")
                return True
    return False


def _is_typical(client: RedisClient) -> bool:
    look = look_at(client, GROUP)
    ((tp, segments),) = look.state.segments.items()
    last = [hashes for hashes, position in segments if position == min(position for _, position in segments)]
    members = {line.member for line in top_view(look).lanes}
    failing = {record.parked for record in look.failing}
    return len(members) == 2 and failing == {True, False} and last[0].share < 1 / 64 and tp.partition == 0


def _top(client: RedisClient) -> str:
    """The screen of `top` as SVG."""

    def look() -> TopLook:
        seen = look_at(client, GROUP)
        return TopLook(seen, top_view(seen), tuple(last_events(client, GROUP, EVENTS)))

    drawn = asyncio.run(_screenshot(look))
    return re.sub(r"@font-face {.*?}\n", "", drawn, flags=re.DOTALL)


async def _screenshot(look: Callable[[], TopLook]) -> str:
    screen = TopScreen(look, every_s=3_600.0)
    async with screen.run_test(size=SIZE) as pilot:
        await screen.workers.wait_for_complete()
        await pilot.pause()
        return screen.export_screenshot()


if __name__ == "__main__":
    sys.exit(main())
