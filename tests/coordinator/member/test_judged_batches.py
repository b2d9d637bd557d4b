"""What the duration of a batch shows, and what it does not show."""

from dataclasses import replace

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.member.apply import World
from coordinator.member.inbox import Inbox
from coordinator.plan.cost.quotas import Budget
from coordinator.plan.cost.steering import Steering
from coordinator.plan.cost.telemetry import SliceCost
from coordinator.plan.planning import Cutting
from coordinator.progress.failing import Failures
from coordinator.values.subscription import Topics
from group_services import TestClock
from kafka_logs import kafka_log
from states import end_of


@pytest.mark.parametrize("away", [False, True])
def test_a_batch_whose_tasks_waited_for_a_broker_is_no_cost(away: bool) -> None:
    clock, inbox = TestClock(), Inbox()
    guesses = Steering(clock, Cutting(1), Budget(10_000, 1))
    world = World(GroupSettings("g"), Topics(("orders",)), None, kafka_log("127.0.0.1:1"), guesses, inbox, clock)
    for end in (end_of(10, 20), end_of(20, 30)):  # the first one starts Python workers
        ((of_task,),) = world.pack(end, end)
        clock.skip(60_000)
        report = replace(SliceCost.nothing(of_task), rows=10, read_ms=59_000.0, function_ms=900.0, finished=True)
        inbox.receive([report], clock.now_ms())
        inbox.agree(end.digest, 0, {}, Failures(kafka_away=away))
        ended = world.learn(end)
    assert ended is not None
    assert (ended.failures.kafka_away, round(ended.took_ms, -3)) == (away, 60_000)
    assert (guesses._known.rate_ms is None) == away
