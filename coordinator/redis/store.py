"""The store of a group in Redis: its four parts, which share their calls."""

from coordinator.redis.calls import ScriptCalls
from coordinator.redis.members import RedisMembers
from coordinator.redis.poison import RedisPoison
from coordinator.redis.ports import Store
from coordinator.redis.positions import RedisPositions
from coordinator.redis.reports import RedisReports


def store_of(calls: ScriptCalls) -> Store:
    """The store of the group of these calls."""
    return Store(RedisMembers(calls), RedisPositions(calls), RedisPoison(calls), RedisReports(calls))
