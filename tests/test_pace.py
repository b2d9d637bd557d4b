"""How far a batch reads: log ends, AvailableNow's targets, and the limits that Spark passes."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from coordinator.key_hash import cuts
from coordinator.member.pace import IDLE_MS, Limits, Pace
from coordinator.plan.planning import OwnedRange, OwnedRanges
from coordinator.ranges import WHOLE
from coordinator.subscription import Bounds, TopicPartition

TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
LOG = {TP: Bounds(0, 100), OTHER: Bounds(0, 100)}
LOWER, UPPER = cuts(2)
UNLIMITED = Limits()


@dataclass
class StandingClock:
    """Stands still unless it is moved; remembers the waits."""

    now: int = 1_000
    waits: list[int] = field(default_factory=list)

    def now_ms(self) -> int:
        return self.now

    def wall_ms(self) -> int:
        return self.now

    def wait(self, ms: int) -> None:
        self.waits.append(ms)


def at(position: int, other: int) -> OwnedRanges:
    return {TP: (OwnedRange(WHOLE, position, "a.1"),), OTHER: (OwnedRange(WHOLE, other, "a.1"),)}


def pace(targets: Mapping[TopicPartition, int] | None = None) -> Pace:
    made = Pace(StandingClock())
    made.targets = targets
    return made


@pytest.mark.parametrize(
    ("targets", "limits", "expected"),
    [
        pytest.param(None, UNLIMITED, {TP: 100, OTHER: 100}, id="without limits to the end of the log"),
        pytest.param({TP: 70, OTHER: 80}, UNLIMITED, {TP: 70, OTHER: 80}, id="AvailableNow ends at its targets"),
        pytest.param({TP: 300, OTHER: 80}, UNLIMITED, {TP: 100, OTHER: 80}, id="never beyond the log"),
        pytest.param({TP: 70}, UNLIMITED, {TP: 70, OTHER: 0}, id="a partition that came after the start is not read"),
        pytest.param(None, Limits(max_offsets=60), {TP: 60, OTHER: 80}, id="a limit is shared by backlog"),
        pytest.param(
            {TP: 20, OTHER: 90}, Limits(max_offsets=10), {TP: 20, OTHER: 70}, id="targets leave more to others"
        ),
        pytest.param(None, Limits(max_offsets=1), {TP: 21, OTHER: 61}, id="each partition reads at least one offset"),
        pytest.param(None, Limits(max_offsets=120), {TP: 100, OTHER: 100}, id="a limit of the whole backlog is none"),
    ],
)
def test_until(
    targets: Mapping[TopicPartition, int] | None, limits: Limits, expected: Mapping[TopicPartition, int]
) -> None:
    assert pace(targets).until(at(20, 60), LOG, limits) == expected


def test_until_raises_the_lanes_furthest_behind_first() -> None:
    work = {TP: (OwnedRange(LOWER, 10, "a.1"), OwnedRange(UPPER, 50, "a.1"))}
    assert pace().until(work, {TP: LOG[TP]}, Limits(max_offsets=15)) == {TP: 40}


WAITING = Limits(min_offsets=500, max_delay_ms=60_000)


@pytest.mark.parametrize(
    ("limits", "planned_ms_ago", "targets", "expected"),
    [
        pytest.param(WAITING, None, None, 100, id="the first batch of a query never waits"),
        pytest.param(WAITING, 59_999, None, 0, id="too little waits for more"),
        pytest.param(WAITING, 60_000, None, 100, id="but not longer than maxTriggerDelay"),
        pytest.param(Limits(min_offsets=120), 1, None, 100, id="enough is read at once"),
        pytest.param(Limits(min_offsets=121), 1, None, 0, id="one offset too few waits"),
        pytest.param(WAITING, 1, {TP: 100, OTHER: 100}, 100, id="AvailableNow waits for nothing"),
        pytest.param(
            Limits(min_offsets=120, max_offsets=2), 1, None, 21, id="maxOffsets bounds what minOffsets let go"
        ),
    ],
)
def test_min_offsets(
    limits: Limits, planned_ms_ago: int | None, targets: Mapping[TopicPartition, int] | None, expected: int
) -> None:
    clock = StandingClock()
    pace = Pace(clock)
    pace.targets = targets
    if planned_ms_ago is not None:
        pace.planned()
        clock.now += planned_ms_ago
    until = pace.until(at(20, 60), LOG, limits)
    assert until[TP] == expected
    assert pace.anything(at(20, 60), until) == (expected > 0)


@pytest.mark.parametrize(
    ("own", "raised", "bounds", "expected"),
    [
        pytest.param(None, {TP: 90}, LOG, None, id="who runs for ever takes no targets of others"),
        pytest.param({TP: 50, OTHER: 60}, {}, LOG, {TP: 50, OTHER: 60}, id="alone it keeps its own"),
        pytest.param({TP: 50, OTHER: 60}, {TP: 90, OTHER: 60}, LOG, {TP: 90, OTHER: 60}, id="the group's are taken"),
        pytest.param(
            {TP: 50, OTHER: 60}, {}, LOG | {TP: Bounds(0, 30)}, {TP: 30, OTHER: 60}, id="a cut log lowers its target"
        ),
        pytest.param({TP: 50}, {TP: 90}, {TP: Bounds(0, 70)}, {TP: 70}, id="the group's too"),
        pytest.param({TP: 50, OTHER: 60}, {}, {TP: Bounds(0, 100)}, {TP: 50}, id="a topic that is gone has no target"),
    ],
)
def test_adopt(
    own: Mapping[TopicPartition, int] | None,
    raised: Mapping[TopicPartition, int],
    bounds: Mapping[TopicPartition, Bounds],
    expected: Mapping[TopicPartition, int] | None,
) -> None:
    adopting = pace(own)
    adopting.adopt(raised, {}, bounds)
    assert adopting.targets == expected


def test_who_found_nothing_waits_before_the_next_look_and_others_do_not() -> None:
    clock = StandingClock()
    pace = Pace(clock)
    work = at(20, 60)
    pace.rest()
    assert not pace.anything(work, {TP: 20, OTHER: 60})
    clock.now += 100
    pace.rest()
    assert pace.anything(work, {TP: 21, OTHER: 60})
    pace.rest()
    assert clock.waits == [IDLE_MS - 100]


def test_a_partition_that_appeared_later_is_read_for_the_other_members_and_not_waited_for() -> None:
    adopting = pace({TP: 20})
    adopting.adopt({}, {TP: 90, OTHER: 30}, LOG)
    assert adopting.targets == {TP: 20}
    assert adopting.ends(LOG) == {TP: 20, OTHER: 30}


def test_members_that_ask_for_more_one_after_the_other_never_wait_for_each_other() -> None:
    members = [pace({TP: 8}), pace({TP: 10, OTHER: 0}), pace({TP: 22, OTHER: 3})]
    for member in members:
        member.adopt({}, {TP: 22, OTHER: 3}, LOG)
    for n, waits in enumerate(members):
        for reads in members[n:]:  # those before it have ended
            assert all(reads.ends(LOG)[tp] >= target for tp, target in (waits.targets or {}).items())
