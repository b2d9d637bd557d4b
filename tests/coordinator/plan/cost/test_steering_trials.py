"""Lanes on trial keep their hashes, and share no task with others (rule: struck-lane-apart)."""

import pytest

from bench.workload import TP, WorkClock
from coordinator.plan.cost.quotas import Budget
from coordinator.plan.cost.steering import Steering
from coordinator.plan.planning import Cutting, OwnedRange, OwnedRanges, plan
from coordinator.progress.slices import LaneId
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import OffsetRange

STRUCK, *OTHERS = cuts(4)
WORK: OwnedRanges = {TP: tuple(OwnedRange(hashes, 0, "e.1") for hashes in (STRUCK, *OTHERS))}
OFFSETS = OffsetRange(0, 1_000)
END = StreamOffset("g", "m", lanes={TP: tuple(Lane(hashes, "e.1", 0, (OFFSETS,)) for hashes in (STRUCK, *OTHERS))})


@pytest.fixture
def steering() -> Steering:
    return Steering(WorkClock(), Cutting(2, lanes=8), Budget(10_000, 2))


@pytest.mark.parametrize(("on_trial", "whole"), [((), False), (((TP, STRUCK),), True)])
def test_a_lane_on_trial_is_not_cut(steering: Steering, on_trial: tuple[LaneId, ...], whole: bool) -> None:
    ends = {TP: 1_000}
    granted = steering.grant(WORK, ends, on_trial)
    lanes = [lane.hashes for lane in plan(granted.work, ends, granted.cutting)[TP]]
    assert (STRUCK in lanes, len(lanes)) == (whole, 7 if whole else 8)


def test_a_lane_on_trial_has_a_task_of_its_own(steering: Steering) -> None:
    tasks = steering.pack(END, END, apart=((TP, STRUCK),))
    assert [{s.hashes for s in task} for task in tasks if any(s.hashes == STRUCK for s in task)] == [{STRUCK}]
    assert {s.hashes for task in tasks for s in task} == {STRUCK, *OTHERS}
