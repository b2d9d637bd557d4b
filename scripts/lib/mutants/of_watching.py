"""Faults in what people see of a group: log ends, lists, metrics."""

from mutants.fault import Edit, Fault

_LOG_ENDS = "coordinator/operations/log_ends.py"

FAULTS = (
    Fault(
        "log ends that did not change get no new time",
        (
            Edit(
                "coordinator/member/losing.py",
                "return state.shown.ends_ms is not None and seen.now_ms",
                "return state.shown.ends_ms is None and seen.now_ms",
            ),
        ),
        ("tests/coordinator/member/test_losing.py",),
    ),
    Fault(
        "a log end that Kafka does not have stays as a member saw it",
        (Edit(_LOG_ENDS, "replace(state, ends=mine,", "replace(state, ends={**state.ends, **mine},"),),
        ("tests/coordinator/operations/test_log_ends.py",),
    ),
    Fault(
        "log ends of Kafka have the age of the last look of a member",
        (Edit(_LOG_ENDS, ", ends_ms={tp.topic: state.now_ms for tp in mine})", ")"),),
        ("tests/coordinator/operations/test_log_ends.py",),
    ),
    Fault(
        "groups list counts members whose lease has ended",
        (Edit("coordinator/operations/group_list.py", "m.lease_left_ms > 0", "m.lease_left_ms >= 0"),),
        ("tests/coordinator/operations/test_group_list.py",),
    ),
)
