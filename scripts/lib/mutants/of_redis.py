"""Faults of a Redis that does not answer, or is not ready."""

from mutants.fault import Edit, Fault

_CLIENT = "coordinator/redis/client.py"
_REPLIES = "coordinator/redis/error_replies.py"
_NAMED = ("tests/coordinator/redis/test_error_replies.py",)

FAULTS = (
    Fault(
        "after a failover the client keeps its connections, which lead to the former primary",
        (Edit(_CLIENT, "used, self._redis = self._redis, None", "used = None"),),
        ("tests/coordinator/member/test_one_address.py",),
    ),
    Fault(
        "a server that lacks replicas has the generic text",
        (Edit(_REPLIES, '"NOREPLICAS "', '"NO REPLICAS "'),),
        _NAMED,
    ),
    Fault(
        "a script that redis-py had to load is the cause of every later error",
        (Edit(_REPLIES, " and not isinstance(e, redis.exceptions.NoScriptError)", ""),),
        _NAMED,
    ),
)
