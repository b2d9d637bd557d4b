"""Faults of a Redis that does not answer, or is not ready."""

from mutants.fault import Edit, Fault

_CLIENT = "coordinator/redis/client.py"
_REPLIES = "coordinator/redis/error_replies.py"
_NAMED = ("tests/coordinator/redis/test_error_replies.py",)

_STATE, _TURNS = "coordinator/member/state.py", "coordinator/member/turns.py"
_CHECK, _EXPORTER = "coordinator/tools/cli/check_command.py", "coordinator/tools/exporter/look.py"
_REFUSED, _RUN = ("tests/coordinator/member/test_refused_writes.py",), ("tests/coordinator/member/test_turns.py",)

FAULTS = (
    Fault(
        "a check is ok while Redis takes no writes",
        (Edit(_CHECK, "if error := refusal(client, group):", "if error := None:"),),
        ("tests/coordinator/tools/cli/test_check_command.py",),
    ),
    Fault(
        "a check does not say that the group recovers",
        (Edit(_CHECK, "if found.recovering_ms else", "if not found.recovering_ms else"),),
        ("tests/coordinator/tools/cli/test_check_command.py",),
    ),
    Fault(
        "the exporter does not say why Redis takes no writes",
        (Edit(_EXPORTER, 'str(refusal(self._client, name) or "")', '"" * bool(refusal(self._client, name))'),),
        ("tests/coordinator/tools/exporter/test_server.py",),
    ),
    Fault(
        "each answered read ends an outage, also while Redis refuses writes",
        (Edit(_STATE, "left = self.unanswered - {kind}", "left = frozenset[Kind[..., Any]]()"),),
        _RUN,
    ),
    Fault(
        "a call that waits says nothing",
        (Edit(_TURNS, "if waited_ms < self._silent_ms or", "if waited_ms >= 0 or"),),
        _REFUSED,
    ),
    Fault(
        "after a failover the client keeps its connections, which lead to the former primary",
        (Edit(_CLIENT, "used, self._redis, self._scripts = self._redis, None, {}", "used = None"),),
        ("tests/coordinator/member/test_one_address.py",),
    ),
    Fault(
        "after an outage the client keeps the scripts of the client before, and with them its connections",
        (
            Edit(
                _CLIENT,
                "used, self._redis, self._scripts = self._redis, None, {}",
                "used, self._redis = self._redis, None",
            ),
        ),
        ("tests/coordinator/redis/test_client.py",),
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
