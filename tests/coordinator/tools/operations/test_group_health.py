"""The verdict of a probe: members at work, lag and age against their limits."""

from dataclasses import replace

import pytest

from coordinator.redis.group_state import LONGEST_BATCH, GroupState
from coordinator.redis.lane_lines import CostKind, LaneLine
from coordinator.tools.operations.group_health import CheckLimits, CheckStatus, Health, health
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition

TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
NOW = 1_000_000
LINE = LaneLine(TP, WHOLE, 5, 45, 12, False, 3.5, 100.0, CostKind.SURE, 9, "budget")
IDLE = replace(LINE, tp=OTHER, position=7, lag=0, lag_s=99)
STATE = GroupState(
    now_ms=NOW,
    meta={"nonce": "n"},
    leases_ms={"m-1": NOW + 9_000},
    members={"m-1": {LONGEST_BATCH: "60000"}},
    topics={},
    segments={TP: ((WHOLE, 5),), OTHER: ((WHOLE, 7),)},
    owners={TP: ((WHOLE, "n.1", "m-1"),)},
    stable={TP: 5, OTHER: 7},
    ends={TP: 50, OTHER: 7},
    lanes={"m-1": (LINE, IDLE)},
)
LOOSE = CheckLimits(lag=45, age_s=12)
GOOD = Health("g", CheckStatus.OK, "PreparingRebalance", 1, 45, 12.0, wanted_slots=1)


def test_a_group_within_its_limits_is_ok() -> None:
    assert health("g", STATE, LOOSE) == GOOD
    assert health("g", STATE, CheckLimits()) == GOOD


def test_a_group_that_recovers_has_the_time_left() -> None:
    recovering = replace(STATE, meta={"nonce": "n", "recovering_until": str(NOW + 2_500)})
    assert health("g", recovering, LOOSE) == replace(GOOD, recovering_ms=2_500)


@pytest.mark.parametrize(
    ("limits", "reasons"),
    [
        pytest.param(CheckLimits(lag=44), ("the lag is above --max-lag 44",), id="lag"),
        pytest.param(CheckLimits(age_s=11), ("the age is above --max-age 11",), id="age"),
        pytest.param(CheckLimits(0, 0), ("the lag is above --max-lag 0", "the age is above --max-age 0"), id="both"),
    ],
)
def test_a_limit_that_is_exceeded_fails(limits: CheckLimits, reasons: tuple[str, ...]) -> None:
    assert health("g", STATE, limits) == replace(GOOD, status=CheckStatus.FAILING, reasons=reasons)


@pytest.mark.parametrize(
    "state",
    [
        pytest.param(replace(STATE, leases_ms={"m-1": NOW - 1}), id="its lease has ended"),
        pytest.param(replace(STATE, leases_ms={}), id="there is none"),
        pytest.param(replace(STATE, hung_ms={"m-1": NOW - 1}), id="it hangs"),
        pytest.param(replace(STATE, leaving=frozenset({"m-1"})), id="it leaves"),
        pytest.param(replace(STATE, standbys={"m-1": "standby"}), id="it stands by"),
    ],
)
def test_without_a_working_member_the_group_fails_whatever_it_reported(state: GroupState) -> None:
    found = health("g", state, CheckLimits())
    assert (found.status, found.working, found.reasons) == (CheckStatus.FAILING, 0, ("no member works",))


def test_a_record_grows_older_while_its_batch_runs() -> None:
    running = replace(STATE, hung_ms={"m-1": NOW + 60_000 - 30_000})
    assert health("g", running, CheckLimits(age_s=41)).age_s == 42.0
    assert health("g", running, CheckLimits(age_s=41)).status is CheckStatus.FAILING


def test_an_age_that_is_a_lower_bound_is_marked() -> None:
    older = replace(LINE, lag_s=20, lag_at_least=True)
    found = health("g", replace(STATE, lanes={"m-1": (LINE, older)}), CheckLimits())
    assert (found.age_s, found.age_at_least) == (20.0, True)


def test_the_report_of_a_lost_member_does_not_count() -> None:
    lost = replace(STATE, lanes={"m-1": (LINE,), "m-0": (replace(LINE, lag_s=900),)})
    assert health("g", lost, LOOSE) == GOOD


def test_a_group_that_has_read_everything_has_no_age() -> None:
    read = replace(STATE, ends={TP: 5, OTHER: 7}, lanes={})
    assert health("g", read, CheckLimits(0, 0)) == replace(GOOD, lag=0, age_s=0.0, wanted_slots=0)


@pytest.mark.parametrize(
    ("state", "limits", "reason"),
    [
        pytest.param(replace(STATE, ends={TP: 50}), CheckLimits(lag=100), "the lag is not known", id="an end"),
        pytest.param(replace(STATE, lanes={}), CheckLimits(age_s=100), "the age is not known", id="the age"),
    ],
)
def test_an_unknown_value_cannot_be_judged(state: GroupState, limits: CheckLimits, reason: str) -> None:
    found = health("g", state, limits)
    assert (found.status, found.reasons[0].partition(":")[0]) == (CheckStatus.UNKNOWN, reason)
    assert health("g", state, CheckLimits()).status is CheckStatus.OK, "without the limit nothing has to be judged"
