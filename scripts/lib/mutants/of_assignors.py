"""Faults in assignors: racks."""

from mutants.fault import Edit, Fault

_RACK_AWARE, _TESTS = (
    "coordinator/assignment/assignors/rack_aware.py",
    ("tests/coordinator/assignment/assignors/test_rack_aware.py",),
)

FAULTS = (
    Fault(
        "racks come before capacity",
        (Edit(_RACK_AWARE, "near = Grouped().assign(members, partitions, wish)", "near = wish"),),
        _TESTS,
    ),
    Fault(
        "a group moves ranges that come no nearer to their leaders",
        (Edit(_RACK_AWARE, "max(alone, near, key", "max(near, alone, key"),),
        _TESTS,
    ),
    Fault(
        "a member's label counts before its own rack",
        (Edit(_RACK_AWARE, '("rack", "label.rack", "label.zone")', '("label.zone", "label.rack", "rack")'),),
        _TESTS,
    ),
    Fault(
        "the computing member does not ask for racks",
        (Edit("coordinator/member/assigning.py", "if isinstance(assignor, RackAware) else", "if False else"),),
        ("tests/coordinator/member/test_assigning.py",),
    ),
)
