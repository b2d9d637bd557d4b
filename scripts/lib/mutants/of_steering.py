"""Faults in the steering of batches by the clock: Spark's own time, chance, and the search for slow lanes."""

from mutants.fault import Edit, Fault

_STEERING, _MODEL = "coordinator/cost/steering.py", "coordinator/cost/model.py"
_OVERHEAD, _SEARCH = "coordinator/cost/overhead.py", "coordinator/cost/search.py"
_STALLS, _OF_STALLS = "coordinator/cost/stalls.py", ("tests/coordinator/cost/test_stalls.py",)
_OF_STEERING, _OF_SEARCH = ("tests/coordinator/cost/test_steering.py",), ("tests/coordinator/cost/test_search.py",)
_OF_OVERHEAD = ("tests/coordinator/cost/test_overhead.py",)

FAULTS = (
    Fault(
        "Spark's own time counts as work on records",
        (Edit(_STEERING, "work_ms=max(0.0, rest - self._model.overhead_ms)", "work_ms=float(took)"),),
        _OF_STEERING,
    ),
    Fault(
        "time until tasks pass on records counts as work",
        (Edit(_STEERING, "rest = took - self._started(batch, took)", "rest = float(took)"),),
        _OF_STEERING,
    ),
    Fault(
        "a single batch decides the estimate of Spark's own time",
        (Edit(_OVERHEAD, "median(met)), GROWTH * max(before_ms, LEAST_MS))", "median(met)), max(met))"),),
        _OF_OVERHEAD,
    ),
    Fault(
        "one batch that was held up is noise for all",
        (Edit(_OVERHEAD, "    off = median(", "    off = max("),),
        _OF_OVERHEAD,
    ),
    Fault(
        "a batch of mostly Spark's own time decides the cost of a record",
        (Edit(_OVERHEAD, " if took > 1.25 * overhead_ms]", "]"),),
        _OF_OVERHEAD,
    ),
    Fault(
        "the start of workers counts as work",
        (Edit(_MODEL, "if not batch.warm or self._unclear == 1:", "if self._unclear == 1:"),),
        _OF_STEERING,
    ),
    Fault(
        "a wait for a trigger counts as work",
        (Edit(_STEERING, "if warm and (on_trigger or self._waited(batch)):", "if False:"),),
        _OF_STEERING,
    ),
    Fault(
        "a batch that is much longer than one with more work counts as a wait",
        (
            Edit(
                _STEERING,
                "abs(batch.work_ms - before.work_ms) <= near * before.work_ms",
                "batch.work_ms >= (1 - near) * before.work_ms",
            ),
        ),
        _OF_STEERING,
    ),
    Fault(
        "a stall is searched for like many slow records",
        (Edit(_MODEL, "elif len(batch.lanes) > 1 and stalled(", "elif False and stalled("),),
        _OF_STEERING,
    ),
    Fault(
        "the trial of a struck lane is the turn of the suspects beside it",
        (
            Edit(_STEERING, "if budgeted and whole is None:", "if self._budget.ms:"),
            Edit(_STEERING, "or flight.trial or (warm", "or (warm"),
        ),
        ("tests/coordinator/cost/test_steering_turns.py",),
    ),
    Fault(
        "suspects of a stall are cleared while much of theirs waits to be read",
        (Edit(_STALLS, "if not bound and (quiet >=", "if (quiet >="),),
        _OF_STALLS,
    ),
    Fault(
        "suspects of a stall in a large batch are suspects until as much has come again",
        (Edit(_STALLS, " or unbound >= UNBOUND)", ")"),),
        _OF_STALLS,
    ),
    Fault(
        "a group of suspects that stalls stays one group",
        (Edit(_STALLS, "return (parts[:middle], parts[middle:]) if middle else (parts,)", "return (parts,)"),),
        _OF_STALLS,
    ),
    Fault(
        "chance proves a suspect slow",
        (Edit(_SEARCH, "rate_ms, healthy_ms) + noise_ms if", "rate_ms, healthy_ms) if"),),
        _OF_SEARCH,
    ),
    Fault(
        "a suspect's claim grows with other delays of its batch",
        (
            Edit(
                _SEARCH, "    return min(search.claims.get(load.lane, now), now, key=", "    return max(now, now, key="
            ),
        ),
        _OF_SEARCH,
    ),
    Fault(
        "a search goes on as long as no group is quick",
        (Edit(_SEARCH, "if search.trials >= MOST_TRIALS:", "if False:"),),
        _OF_SEARCH,
    ),
    Fault(
        "a batch without evidence goes on with the search",
        (Edit(_SEARCH, "    if not loads or not batch.clock_valid:", "    if not loads:"),),
        _OF_SEARCH,
    ),
)
