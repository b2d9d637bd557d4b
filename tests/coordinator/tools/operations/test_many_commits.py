"""The time of members and views for individual commits grows with their number, not with its square.

Counted in executed lines: these do not depend on the machine.
"""

import gc
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import pytest

from coordinator.progress.segments import Progress, Rectangle
from coordinator.redis.group_state import GroupState
from coordinator.tools.operations.gaps import gaps, progress
from coordinator.tools.operations.group_look import GroupLook
from coordinator.tools.operations.key_owner import key_owners
from coordinator.tools.operations.top_view import top_view
from coordinator.tools.operations.views import view
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import TopicPartition
from progresses import added, ics_text, positions_text, starting_at

TP = TopicPartition("orders", 0)
FEW, TIMES = 200, 4


def on_one_segment(n: int) -> GroupState:
    """Every second offset is committed, for all keys."""
    return picture(1, [(0, 6 + 2 * i) for i in range(n)])


def on_one_segment_backwards(n: int) -> GroupState:
    return picture(1, [(0, 6 + 2 * i) for i in reversed(range(n))])


def one_for_each_segment(n: int) -> GroupState:
    """As many lanes as commits, each of a member of its own."""
    return picture(n, [(i, 6 + 2 * i) for i in range(n)])


def picture(lanes: int, commits: list[tuple[int, int]]) -> GroupState:
    hashes = cuts(lanes)
    ics = tuple(Rectangle(hashes[i], OffsetRange(offset, offset + 1)) for i, offset in commits)
    return GroupState(
        now_ms=0,
        meta={},
        leases_ms={},
        members={},
        topics={},
        segments={TP: tuple((h, 5) for h in hashes)},
        owners={TP: tuple((h, f"aa.{i}", f"m-{i}") for i, h in enumerate(hashes))},
        stable={TP: 5},
        ends={TP: 10**6},
        ics={TP: ics},
    )


def parsed(state: GroupState) -> Progress:
    """As a member reads it."""
    found = progress(state, TP)
    return Progress.parse(positions_text(found), ics_text(found))


VIEWS: dict[str, Callable[[GroupState], object]] = {
    "describe": lambda state: view("g", state),
    "gaps": gaps,
    "top": lambda state: top_view(GroupLook("g", state)),
    "owner": lambda state: key_owners(state, "orders", b"key"),
    "a member": parsed,
}


@pytest.mark.parametrize("state", [on_one_segment, on_one_segment_backwards, one_for_each_segment])
@pytest.mark.parametrize("look", VIEWS)
def test_four_times_the_commits_take_about_four_times_the_work(look: str, state: Callable[[int], GroupState]) -> None:
    few, many = (lines(VIEWS[look], state(n)) for n in (FEW, FEW * TIMES))
    assert few < many < few * TIMES * 1.25


def test_the_work_is_counted() -> None:
    """The count sees a square where there is one: commits that are added one by one."""

    def one_by_one(state: GroupState) -> None:
        found = starting_at(5, WHOLE)
        for rectangle in state.ics[TP]:
            found = added(found, rectangle)

    few, many = (lines(one_by_one, on_one_segment(n)) for n in (50, 200))
    assert many > 10 * few


def lines(look: Callable[[GroupState], object], state: GroupState) -> int:
    """The number of executed lines of Python, without those of finalizers that run by chance."""
    count = 0
    gc.collect()
    gc.disable()

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "line"
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        look(state)
    finally:
        sys.settrace(before)
        gc.enable()
    return count
