"""The number for autoscalers, from what members report of themselves."""

from dataclasses import replace

import pytest

from coordinator.redis.group_state import GroupState
from coordinator.tools.operations.wanted_slots import DRAIN_S, wanted_slots

EMPTY = GroupState(1_000, {}, {}, {}, {}, {}, {}, {}, {})
ONE = {"backlog_ms": "1200000", "load_percent": "150"}  # 20 minutes of one slot; 1.5 slots
QUIET = {"backlog_ms": "0", "load_percent": "0"}


@pytest.mark.parametrize(
    ("members", "lag", "drain_s", "wanted"),
    [
        pytest.param([ONE], 9, DRAIN_S, 4, id="1.5 slots for what comes, 2 for the backlog in ten minutes"),
        pytest.param([ONE], 9, 60, 22, id="in one minute"),
        pytest.param([ONE, ONE], 9, DRAIN_S, 7, id="two members: each reports of its own ranges"),
        pytest.param([QUIET], 0, DRAIN_S, 0, id="nothing to do"),
        pytest.param([{"backlog_ms": "1200000"}], 0, DRAIN_S, 0, id="a backlog that was read since the report"),
        pytest.param([QUIET], 3, DRAIN_S, 1, id="a little to do"),
        pytest.param([{"load_percent": "3"}], 0, DRAIN_S, 1, id="little comes, and all of it is read"),
        pytest.param([{}], 9, DRAIN_S, 1, id="a member that knows no cost yet"),
        pytest.param([], 9, DRAIN_S, 1, id="no member: one that finds out"),
        pytest.param([], 0, DRAIN_S, 0, id="no member, and nothing to do"),
        pytest.param([], None, DRAIN_S, 1, id="Kafka does not say whether there is something to do"),
    ],
)
def test_slots_for_what_comes_and_for_what_waits(
    members: list[dict[str, str]], lag: int | None, drain_s: int, wanted: int
) -> None:
    assert wanted_slots(group(*members), lag, drain_s) == wanted


def test_a_member_whose_lease_is_over_does_not_count() -> None:
    state = group(ONE, ONE)
    assert wanted_slots(replace(state, leases_ms={**state.leases_ms, "m-0": state.now_ms}), 9, DRAIN_S) == 4


def group(*members: dict[str, str]) -> GroupState:
    """A group of members with these fields, whose leases run."""
    names = {f"m-{i}": fields for i, fields in enumerate(members)}
    return replace(EMPTY, members=names, leases_ms=dict.fromkeys(names, EMPTY.now_ms + 1))
