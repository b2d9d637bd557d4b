"""The store of a group in Redis: its five parts, which share their calls.

    members     the members of the group, and the ranges assigned to each
    positions   positions, and the lane epochs that guard them
    policies    what the group allows, and its copy of the Kafka cluster's policies
    poison      slices under way, strikes of those that a lost member left, and failing records
    reports     values for people, without influence on any decision (rule: reports-decide-nothing)

Every verb may raise a `verdicts.Verdict`. An error of Redis itself is a `StoreError`, an unreadable value in Redis a
`StateFormatError`. An `Answer` also means that the caller's lease was renewed.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coordinator.redis.members import RedisMembers
from coordinator.redis.poison import RedisPoison
from coordinator.redis.policies import RedisPolicies
from coordinator.redis.positions import RedisPositions
from coordinator.redis.reports import RedisReports

if TYPE_CHECKING:
    from coordinator.redis.calls import ScriptCalls


@dataclass(frozen=True, slots=True)
class Store:
    """The state of one group. Safe for two threads (the reader's and its heartbeat)."""

    members: RedisMembers
    positions: RedisPositions
    policies: RedisPolicies
    poison: RedisPoison
    reports: RedisReports


def store_of(calls: "ScriptCalls") -> Store:
    """The store of the group of these calls."""
    return Store(
        RedisMembers(calls), RedisPositions(calls), RedisPolicies(calls), RedisPoison(calls), RedisReports(calls)
    )
