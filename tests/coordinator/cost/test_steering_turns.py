"""Batches that the costs do not use: trials of struck lanes, and batches that waited for a trigger."""

import pytest

from bench.workload import TP, WorkClock
from coordinator.cost.quotas import Budget, Why
from coordinator.cost.steering import Steering
from coordinator.key_hash import cuts
from coordinator.plan.planning import Cutting, OwnedRange, OwnedRanges
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.ranges import OffsetRange
from coordinator.telemetry import SliceCost

STRUCK, OTHER = cuts(2)
WORK: OwnedRanges = {TP: (OwnedRange(STRUCK, 0, "e.1", 1), OwnedRange(OTHER, 0, "e.1", 0))}
TRIAL = StreamOffset("g", "m", lanes={TP: (Lane(STRUCK, "e.1", 0, (OffsetRange(0, 1),)),)})


@pytest.fixture
def steering() -> Steering:
    return Steering(WorkClock(), Cutting(2), Budget(10_000, 2))


def test_the_time_of_a_trial_of_a_struck_lane_is_not_the_cost_of_its_record(steering: Steering) -> None:
    before = steering._known.cell((TP, STRUCK))
    ((trial,),) = steering.pack(TRIAL, TRIAL, trial=True)
    steering._clock.wait(60_000)
    cost = SliceCost(TP, trial.hashes, trial.offsets, 1, 0, 0.0, 60_000.0, (), finished=True)
    steering.learn(TRIAL, {trial: cost})
    assert steering._known.cell((TP, STRUCK)) == before


def test_a_trial_of_a_struck_lane_names_no_lane_a_suspect(steering: Steering) -> None:
    steering.grant(WORK, {TP: 100}, (TP, STRUCK))
    assert {q.why for q in steering.quotas} == {Why.CEILING}
