"""Faults in what people see of a group: log ends, lists, metrics."""

from mutants.fault import Edit, Fault

_LOG_ENDS = "coordinator/tools/operations/log_ends.py"
_LOOK, _SAMPLES = "coordinator/tools/exporter/look.py", "coordinator/tools/exporter/samples.py"
_SERVED, _SAMPLED = (
    ("tests/coordinator/tools/exporter/test_server.py",),
    ("tests/coordinator/tools/exporter/test_samples.py",),
)

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
        ("tests/coordinator/tools/operations/test_log_ends.py",),
    ),
    Fault(
        "log ends of Kafka have the age of the last look of a member",
        (Edit(_LOG_ENDS, ", ends_ms={tp.topic: state.now_ms for tp in mine})", ")"),),
        ("tests/coordinator/tools/operations/test_log_ends.py",),
    ),
    Fault(
        "list counts members whose lease has ended",
        (Edit("coordinator/tools/operations/views.py", "if end > state.now_ms)", "if end >= state.now_ms)"),),
        ("tests/coordinator/tools/operations/test_group_list.py",),
    ),
    Fault(
        "a scrape without an answer of Kafka has the lag of the last look of a member",
        (Edit(_LOOK, "look.with_ends(ends or {})", "(look.with_ends(ends) if ends else look)"),),
        _SERVED,
    ),
    Fault(
        "a damaged group hides all others from Prometheus",
        (
            Edit(
                _LOOK,
                '            self._tell(f"group {name!r}", str(error))\n            return None',
                '            self._tell(f"group {name!r}", str(error))\n            raise',
            ),
        ),
        _SERVED,
    ),
    Fault(
        "a NUL in a name ends the scrape of all groups",
        (Edit("coordinator/tools/exporter/server.py", 'text.replace("\\0", "\\N{SYMBOL FOR NULL}")', "text"),),
        _SERVED,
    ),
    Fault(
        "a member whose lease has ended counts as a member in Prometheus",
        (Edit(_SAMPLES, "len(live(state))", "len(seen.members)"),),
        _SAMPLED,
    ),
    Fault(
        "a parked key counts as a deferred one that waits",
        (Edit(_SAMPLES, " for r in look.failing if not r.parked]", " for r in look.failing]"),),
        _SAMPLED,
    ),
    Fault(
        "ranges at void lane epochs have an owner in Prometheus",
        (
            Edit(
                "coordinator/tools/operations/views.py",
                "            if state.in_force(epoch):",
                "            if epoch:",
            ),
        ),
        _SAMPLED,
    ),
)
