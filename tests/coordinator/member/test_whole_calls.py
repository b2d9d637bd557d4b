"""Whole calls of latestOffset: which requests a member makes, in which order."""

from dataclasses import replace
from typing import Any

from coordinator.assignment.policies import NO_POLICY
from coordinator.member import requests
from coordinator.member.limits import Limits
from coordinator.member.requests import Join
from coordinator.member.service import ALIVE, NEXT_OFFSET
from coordinator.member.state import State
from coordinator.member.turns import Turns
from coordinator.plan.cost.steering import Allowance
from coordinator.plan.planning import Cutting
from coordinator.redis import replies
from coordinator.redis.lane_lines import LaneReport
from coordinator.values.subscription import Bounds
from coordinator.values.verdicts import Lost
from states import (
    FIRST,
    FRESH,
    NONCE,
    NOW,
    ORDERS,
    TP,
    call,
    end_of,
    held,
    look,
)
from written_worlds import SESSION_MS, ByKind, Hands, answered, turns

TOPICS = {"orders": ORDERS}
JOINED = replies.JoinReply(replies.SeenState(NONCE, 1), NOW + SESSION_MS, {})


def granted(request: Any) -> Allowance:
    """All of it, in one lane."""
    return Allowance(request.arguments["work"], (), Cutting(1))


def group(**changes: Any) -> ByKind:
    """A group of one member, whose partition has positions at 10 and a log end of 100."""
    answers = {
        "ReadTopics": TOPICS,
        "ReadLogEnds": {TP: Bounds(0, 100)},
        "ReadStable": {TP: 10},
        "CreatePositions": "",
        "ReadWorking": frozenset(),
        "Join": JOINED,
        "LookAtGroup": answered(look(), seq=2),
        "Acquire": answered(held(10), seq=3),
        "Mirror": True,
        "ReadClusterPolicies": ("", NO_POLICY),
        "CopyPolicies": None,
        "Notify": True,
        "ReportEnds": None,
        "ReadStrikes": (),
        "ReadFailing": (),
        "Grant": granted,
        "Learn": None,
        "DescribeLanes": LaneReport(),
        "ShowLanes": True,
        "LogLine": True,
        "WatchLogs": 0,
        **changes,
    }
    return ByKind({getattr(requests, name): answer for name, answer in answers.items()})


def test_the_first_call_of_a_member__joins_acquires_and_plans() -> None:
    world = group()
    member = turns(world, State(FRESH))
    end = member.run(NEXT_OFFSET, call(FIRST))
    assert end == replace(end_of(10, 100), member="m-minted")
    assert world.names() == (
        "ReadTopics Learn ReadWorking Join ReadClusterPolicies CopyPolicies ReadStable CreatePositions "
        "LookAtGroup Acquire Notify "
        "ReadLogEnds ReportEnds ReadWorking ReadStrikes ReadFailing Grant DescribeLanes ShowLanes ReadTopics"
    )


def idle() -> tuple[ByKind, Hands, Turns]:
    """A member that has found nothing to read."""
    world, clock = group(Acquire=answered(held(100), seq=3)), Hands()
    member = turns(world, State(FRESH), clock)
    assert member.run(NEXT_OFFSET, call(FIRST)) is None
    world.names()
    return world, clock, member


def test_an_idle_look__rests_and_asks_redis_once() -> None:
    world, clock, member = idle()
    assert member.run(NEXT_OFFSET, call(FIRST)) is None
    assert (world.names(), clock.waits) == ("Learn WatchLogs LookAtGroup ReadLogEnds", [250])


def test_new_records_after_an_idle_look__acquire_again_before_the_plan() -> None:
    world, _, member = idle()
    world.of[requests.ReadLogEnds] = {TP: Bounds(0, 120)}
    assert member.run(NEXT_OFFSET, call(FIRST)) == replace(end_of(100, 120), member="m-minted")
    assert world.names() == (
        "Learn WatchLogs LookAtGroup ReadLogEnds ReportEnds Grant LookAtGroup Acquire ReadLogEnds ReadWorking "
        "ReadFailing ReadTopics"
    )


def test_lost_in_the_middle_of_a_look__recover_join_again_and_plan() -> None:
    world = group(
        Acquire=[Lost("the run id of Redis has changed"), answered(held(10), "n-2", 3)],
        Join=[JOINED, replace(JOINED, seen=replies.SeenState("n-2", 1))],
        LookAtGroup=[answered(look(), seq=2), answered(look(), "n-2", 2)],
        ReadGroupOffsets={},
        ReadResetEpoch=0,
        Recover=None,
    )
    member = turns(world, State(FRESH))
    assert member.run(NEXT_OFFSET, call(FIRST)) == replace(end_of(10, 100), member="m-minted")
    assert world.names() == (
        "ReadTopics Learn ReadWorking Join ReadClusterPolicies CopyPolicies ReadStable CreatePositions "
        "LookAtGroup Acquire ReadGroupOffsets ReadResetEpoch Recover LogLine ReadWorking Join CopyPolicies "
        "ReadStable CreatePositions LookAtGroup Acquire Notify "
        "ReadLogEnds ReportEnds ReadWorking ReadStrikes ReadFailing Grant DescribeLanes ShowLanes ReadTopics"
    )
    assert member.state.life.nonce == "n-2"


def test_lease_over_before_the_plan__heartbeat_and_look_again() -> None:
    """Others may have acquired the ranges meanwhile."""
    world, clock = group(Heartbeat=answered(None, seq=4)), Hands()

    def slow(request: Any) -> Allowance:
        clock.wait(SESSION_MS)
        return granted(request)

    world.of[requests.Grant] = slow
    member = turns(world, State(FRESH), clock)
    member.run(NEXT_OFFSET, call(FIRST))
    assert world.names().endswith(
        "Grant DescribeLanes ShowLanes Heartbeat ReadTopics Mirror ReadClusterPolicies LookAtGroup ReadLogEnds "
        "ReportEnds ReadStrikes ReadFailing ReadTopics"
    )
    assert member.state.life.lease_end_ms > clock.now


def test_alive__a_verdict_is_handled_before_anything_else() -> None:
    """The steps of all calls begin with those that handle verdicts."""
    names = [step.__name__ for step in ALIVE]
    assert names == [
        "outage",
        "see_topics",
        "fenced",
        "replaced",
        "recover",
        "prove",
        "assert_positions",
        "busy",
        "held",
    ]
    assert NEXT_OFFSET[: len(ALIVE)] == ALIVE


def test_trigger_once__reads_everything() -> None:
    world = group()
    turns(world, State(FRESH)).run(NEXT_OFFSET, call(FIRST, Limits(everything=True)))
    (asked,) = [r for r in world.requests if r.kind is requests.Grant]
    assert asked.arguments["everything"]
    assert Join not in {r.kind for r in world.requests[:3]}
