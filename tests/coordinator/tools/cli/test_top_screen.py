"""The screen of `coop-kafka top`, key by key; `test_lane_commands.py` runs it on a terminal, with a real Redis."""

import asyncio
import xml.etree.ElementTree as ET
from collections.abc import Callable
from dataclasses import replace
from itertools import groupby

import pytest

from broker_jars import ROOT
from coordinator.errors import RedisUnavailableError
from coordinator.redis.group_state import GroupEvent, GroupState
from coordinator.redis.lane_lines import CostKind
from coordinator.tools.cli.tables import lag_text
from coordinator.tools.cli.top_screen import TopLook, TopScreen
from coordinator.tools.operations.group_look import GroupLook
from coordinator.tools.operations.top_view import top_view
from coordinator.values.subscription import TopicPartition
from watched_groups import END, FAILING, HOSTS, ORDERS, OWNED, POSITIONS, SLOW, begun, lanes

SIZE, PICTURE = (130, 40), ROOT / "docs" / "top.svg"
BILLS = TopicPartition("bills", 3)
AT_MS = 1_795_000_000_000
STATE = GroupState(
    now_ms=AT_MS,
    meta={"nonce": "aa", "protocol": "grouped 1", "generation": "1"},
    leases_ms=dict.fromkeys(HOSTS, AT_MS + 9_000),
    members={member: {"host": host} for member, host in HOSTS.items()},
    topics={},
    segments={ORDERS: tuple(sorted(POSITIONS.items())), BILLS: tuple((hashes, 5) for hashes in OWNED.values())},
    owners={ORDERS: tuple((hashes, "aa.1", member) for member, hashes in OWNED.items())},
    stable={ORDERS: 3_200, BILLS: 5},
    ends={ORDERS: END, BILLS: 105},
    ends_ms={"orders": AT_MS - 2_000, "bills": AT_MS},
    assignment={member: {ORDERS: (hashes,)} for member, hashes in OWNED.items()},
    lanes={member: lanes(member) for member in HOSTS},
    working={member: begun(member) for member in HOSTS},
)
EVENTS = (
    GroupEvent(f"{AT_MS - 3_000}-0", "plan", "m-3f1c", "generation 1 by grouped 1 for 3 members"),
    GroupEvent(f"{AT_MS - 2_000}-0", "assigned", "m-3f1c", "lane epoch aa.1"),
)


def look(state: GroupState = STATE) -> TopLook:
    seen = GroupLook("orders-to-lake", state, FAILING)
    return TopLook(seen, top_view(seen), EVENTS)


def screens(*keys: str, looks: Callable[[], TopLook] = look, size: tuple[int, int] = SIZE) -> list[str]:
    """The screen as text at the start and after each key."""
    app, drawn = TopScreen(looks, 3_600.0), []

    async def pressed() -> None:
        async with app.run_test(size=size) as pilot:
            for key in ("", *keys):
                await pilot.press(*([key] if key else []))
                await app.workers.wait_for_complete()
                await pilot.pause()
                drawn.append(app.export_screenshot())

    asyncio.run(pressed())
    return [text_of(picture) for picture in drawn]


def text_of(picture: str) -> str:
    """The lines of a screen that was saved as SVG."""
    pieces = [
        (float(t.attrib["y"]), float(t.attrib["x"]), "".join(t.itertext()).replace("\u00a0", " "))
        for t in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")
        if "y" in t.attrib and t.attrib.get("class", "").rpartition("-")[2] != "title"
    ]
    return "\n".join("".join(text for *_, text in line).rstrip() for _, line in groupby(sorted(pieces), lambda p: p[0]))


def cells(screen: str, number: int = 0) -> list[list[str]]:
    """The rows of the table, as words."""
    lines = screen.splitlines()
    first = next(n for n, line in enumerate(lines) if line.lstrip().startswith("PARTITION"))
    rows = [line.split() for line in lines[first + 1 :]]
    return rows[: next(n for n, row in enumerate(rows) if not row or row[0].startswith("\u2500"))]


def test_it_begins_with_the_lane_that_is_worst_and_its_partition() -> None:
    (screen,) = screens()
    assert screen.splitlines()[0] == (
        "Group 'orders-to-lake': Stable, 3 members, lag 1,706 records, 5,900 offsets (seen 2 s ago), "
        "1 key tried again, 1 parked"
    )
    assert "orders-0  stable 3,200  end 9,000  lag 5,800   m-3f1c  m-8a20  m-c4d7" in screen
    plane = [line for line in screen.splitlines() if line.startswith("\u2588\u2588")]
    assert len(plane) == 11
    behind = [line.count("\u2588") for line in plane]
    assert behind.count(min(behind)) == 1, "the slow lane"
    assert cells(screen)[0] == ["orders-0", str(SLOW), "m-3f1c", "58", "290", "6.6", "9", "150", "40", "budget"]


def test_a_cost_that_was_derived_is_marked_as_in_the_table() -> None:
    guessed = tuple(replace(line, cost=CostKind.GUESSED) for line in lanes("m-3f1c") if line.hashes == SLOW)
    (screen,) = screens(looks=lambda: look(replace(STATE, lanes={"m-3f1c": guessed})))
    assert cells(screen)[0][7] == "~150"


def test_a_terminal_cannot_misread_names_of_others() -> None:
    evil = "\x1b[31m[red]evil\n"
    lines = {evil: lanes("m-3f1c")}
    state = replace(STATE, lanes=lines, leases_ms={evil: AT_MS + 9_000}, members={evil: {}})
    seen = replace(look(state), events=(GroupEvent(f"{AT_MS}-0", "plan", evil, evil),))
    (screen,) = screens(looks=lambda: seen)
    assert screen.count(r"\x1b[31m[red]evil\n") == 2 + len(lines[evil])


def test_the_lag_of_the_group_has_the_units_of_lanes_and_of_partitions() -> None:
    top = look().top
    assert lag_text(top) == f"{sum(lane.lag for lane in top.lanes):,} records, 5,900 offsets"
    assert lag_text(replace(top, lanes=())) == "5,900 offsets"
    assert lag_text(replace(top, lanes=(), lag=None)) == "unknown"


def test_the_picture_of_the_docs_has_the_words_of_this_screen() -> None:
    """`scripts/screens` draws it of a real group."""
    (screen,) = screens()
    shown = text_of(PICTURE.read_text("utf-8"))
    assert shown.startswith("Group 'orders-to-lake': Stable")
    heads, keys = (
        [next(line.split() for line in each.splitlines() if word in line) for each in (screen, shown)]
        for word in ("MS/RECORD", "Quit")
    )
    assert heads[0] == heads[1]
    assert keys[0] == keys[1]


def test_tab_shows_partitions__enter_the_lanes_of_one__escape_all() -> None:
    _, partitions, down, entered, everything = screens("tab", "down", "enter", "escape")
    assert cells(partitions) == [
        ["orders-0", "5,800", "3,200", "9,000", "8", "11", "3"],
        ["bills-3", "100", "5", "105", "0", "3", "0"],
    ]
    assert "bills-3  stable 5  end 105  lag 100" in down, "the plane of the row under the cursor"
    assert cells(entered) == [], "no member is at its lanes"
    assert len(cells(everything)) == len(POSITIONS)


def test_s_sorts_by_one_column_after_the_other() -> None:
    first, by_lag, *_, last = screens("s", "s", "s", "s", "s", "s", "s")
    assert cells(first)[0][1] == str(SLOW)
    assert "LAG \u25bc" in by_lag
    assert cells(by_lag)[0][3] == max((row[3] for row in cells(by_lag)), key=int)
    assert cells(last) == cells(first)


def test_a_filter_leaves_the_rows_with_its_words() -> None:
    *_, filtered = screens("/", "8", "A", "2", "0", "enter")
    assert {row[2] for row in cells(filtered)} == {"m-8a20"}


def test_a_server_that_does_not_answer_is_a_red_line_and_the_last_look_stays() -> None:
    answers = iter([look()])

    def looks() -> TopLook:
        try:
            return next(answers)
        except StopIteration:
            raise RedisUnavailableError("Redis does not answer", "look at it") from None

    app = TopScreen(looks, 3_600.0)

    async def pressed() -> str:
        async with app.run_test(size=SIZE) as pilot:
            app.look_again()
            await app.workers.wait_for_complete()
            await pilot.pause()
            return text_of(app.export_screenshot())

    screen = asyncio.run(pressed())
    assert "REDIS_UNAVAILABLE: Redis does not answer" in screen
    assert len(cells(screen)) == len(POSITIONS)


def test_a_group_without_lanes_at_work_begins_with_its_partitions() -> None:
    (screen,) = screens(looks=lambda: look(replace(STATE, lanes={}, working={})))
    assert [row[0] for row in cells(screen)] == ["orders-0", "bills-3"]


@pytest.mark.parametrize("size", [(40, 12), (80, 24), (250, 60)])
def test_any_terminal_is_large_enough(size: tuple[int, int]) -> None:
    assert "Group 'orders-to-lake'" in screens("tab", "down", size=size)[0]
