"""Faults in replica sets: the choice of a set, and members that move."""

from mutants.fault import Edit, Fault

_PURE, _REDIS = "coordinator/assignment/replica_sets.py", "coordinator/redis/replica_sets.py"
_SERVICE = "coordinator/member/service.py"
_SESSION = "spark_coop_source/driver/redundant_session.py"
_RULES = ("tests/coordinator/assignment/test_replica_sets.py",)
_STORE = ("tests/coordinator/redis/test_replica_sets.py",)

FAULTS = (
    Fault("a new member joins the fullest set", (Edit(_PURE, "return min(sets, key", "return max(sets, key"),), _RULES),
    Fault("the only member of a set moves", (Edit(_PURE, "if len(members) > 1 and", "if members and"),), _RULES),
    Fault(
        "members disagree on the one that moves",
        (Edit(_PURE, "(members[member], member)), empty[0])", "members[member]), empty[0])"),),
        _RULES,
    ),
    Fault(
        "a member that cannot move is chosen",
        (Edit(_PURE, "min(members.keys() - staying, key", "min(members, key"),),
        _RULES,
    ),
    Fault(
        "members that start at once choose one set",
        (Edit(_REDIS, "if sets[name] or redis.set", "if True or redis.set"),),
        _STORE,
    ),
    Fault("a set is held for ever", (Edit(_REDIS, "px=hold_ms", "px=10**9"),), _STORE),
    Fault(
        "members whose lease has ended count",
        (Edit(_REDIS, "if end >= state.now_ms]", "if end]"),),
        _STORE,
    ),
    Fault(
        "the replay of a first batch stays in the set that its process has chosen",
        (Edit(_SESSION, "and offset.group != self._set:", "and self._session is None:"),),
        ("tests/spark_coop_source/driver/test_redundant_session.py",),
    ),
    Fault(
        "a member that moves does not commit",
        (Edit(_SERVICE, "(*COMMIT, settled)", "(*ALIVE, settled)"),),
        _STORE,
    ),
)
