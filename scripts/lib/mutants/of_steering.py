"""Faults in the steering of batches by the clock: Spark's own time, chance, and the search for slow lanes."""

from mutants.fault import Edit, Fault

_STEERING, _TRIALS = "coordinator/plan/cost/steering.py", "coordinator/plan/cost/trials.py"
_SEARCH = "coordinator/plan/cost/search.py"
_PACE, _OF_PACE = "coordinator/plan/cost/pace.py", ("tests/coordinator/plan/cost/test_pace.py",)
_BATCH_COST, _OF_FILTERED = (
    "coordinator/plan/cost/batch_cost.py",
    ("tests/coordinator/plan/cost/test_filtered_costs.py",),
)
_OF_STEERING, _OF_SEARCH = (
    ("tests/coordinator/plan/cost/test_steering.py",),
    ("tests/coordinator/plan/cost/test_search.py",),
)

FAULTS = (
    Fault(
        "a suspect of a topic in order waits (against rule: partition-order)",
        (Edit(_TRIALS, "if q.span and q.tp.topic not in in_order}", "if q.span}"),),
        ("tests/coordinator/plan/cost/test_trials.py",),
    ),
    Fault(
        "Spark's own time counts as work on records",
        (Edit(_PACE, "beside_ms, noise_ms = then.overhead_ms,", "beside_ms, noise_ms = 0.0,"),),
        _OF_PACE,
    ),
    Fault(
        "what buffers hold is forgotten",
        (Edit(_PACE, "if self.dear(budget_ms):", "if False:"),),
        _OF_PACE,
    ),
    Fault(
        "a batch of dear records is many times as large as the one before",
        (Edit(_PACE, "return min(left_ms / self.rate_ms, GROWTH * self.reached)", "return left_ms / self.rate_ms"),),
        _OF_PACE,
    ),
    Fault(
        "time until tasks pass on records counts as work",
        (Edit(_STEERING, "took - min(took, batch.start_ms or 0.0)", "took"),),
        _OF_STEERING,
    ),
    Fault(
        "one batch that was held up is noise for all",
        (Edit(_PACE, "        off = median(", "        off = max("),),
        _OF_PACE,
    ),
    Fault(
        "a batch of mostly Spark's own time decides the cost of a record",
        (Edit(_PACE, " if took > CLEAR * beside_ms)", ")"),),
        _OF_PACE,
    ),
    Fault(
        "the start of workers counts as work",
        (Edit(_TRIALS, "        if not batch.warm:\n", "        if False:\n"),),
        _OF_STEERING,
    ),
    Fault(
        "a wait for a trigger counts as work",
        (Edit(_STEERING, "waited=on_trigger or waited", "waited=False"),),
        _OF_STEERING,
    ),
    Fault(
        "one quick batch clears suspects, however little they have read",
        (Edit(_SEARCH, "if group.quick < search.patience:", "if False:"),),
        _OF_SEARCH,
    ),
    Fault(
        "suspects that were cleared read all that waits at once",
        (Edit(_TRIALS, "        self._small[lane] = GROWTH * max(1, span)\n\n    def _part", "\n    def _part"),),
        _OF_STEERING,
    ),
    Fault(
        "chance proves a suspect slow",
        (Edit(_SEARCH, "SAME * healthy_ms) + noise_ms", "SAME * healthy_ms)"),),
        _OF_SEARCH,
    ),
    Fault(
        "a suspect's claim grows with other delays of its batch",
        (
            Edit(
                _SEARCH,
                "    return min(search.claims[lane], CostClaim.of(",
                "    return max(search.claims[lane], CostClaim.of(",
            ),
        ),
        _OF_SEARCH,
    ),
    Fault(
        "a lane of one key that was away reads nothing",
        (
            Edit(
                _TRIALS,
                "max(1, int(rows / self._costs.cell(lane).density))",
                "int(rows / self._costs.cell(lane).density)",
            ),
        ),
        ("tests/coordinator/plan/cost/test_trials.py",),
    ),
    Fault(
        "a group without offsets to read is cleared",
        (Edit(_SEARCH, "    if not loads:\n", "    if False:\n"),),
        _OF_SEARCH,
    ),
    Fault(
        "a batch of cheap records that fills its budget makes its lanes suspects",
        (Edit(_TRIALS, "full and self.pace.dear(self._budget_ms) and", "full and"),),
        ("tests/coordinator/plan/cost/test_steering.py",),
    ),
    Fault(
        "records that the filter drops cost nothing",
        (Edit(_BATCH_COST, "DROPPED = 0.1", "DROPPED = 0.0"),),
        _OF_FILTERED,
    ),
    Fault(
        "a record that the filter drops counts as much as any other",
        (Edit(_BATCH_COST, "DROPPED = 0.1", "DROPPED = 1.0"),),
        _OF_FILTERED,
    ),
    Fault(
        "dropped records are those of the task that fetched them",
        (
            Edit(
                _BATCH_COST,
                "    part = dropped * (load.span * load.lane[1].size / plane)",
                "    part = load.cost.filtered",
            ),
        ),
        _OF_FILTERED,
    ),
    Fault(
        "dropped records of a batch that read no offset end its query",
        (Edit(_BATCH_COST, "(dropped and load.cost and load.span)", "(dropped and load.cost)"),),
        _OF_FILTERED,
    ),
    Fault(
        "buffers hold dropped records",
        (Edit(_PACE, "return BUFFERED * self.thinned", "return BUFFERED"),),
        _OF_FILTERED,
    ),
    Fault(
        "the line about reading as the bottleneck comes after each batch",
        (
            Edit(
                "coordinator/member/committing.py",
                "if line.reading_bound and not shown.limit_logged and not ended.failures.kafka_away:",
                "if line.reading_bound:",
            ),
        ),
        ("tests/coordinator/member/test_committing.py",),
    ),
    Fault(
        "processing counts as reading",
        (
            Edit(
                "coordinator/member/lane_report.py",
                "load.cost.read_ms if load.cost else 0.0)",
                "load.cost.read_ms + load.cost.function_ms if load.cost else 0.0)",
            ),
        ),
        ("tests/coordinator/member/test_lane_report.py",),
    ),
    Fault(
        "a key alone in its lane is as dear as if its task worked on nothing else",
        (
            Edit(
                _BATCH_COST,
                "key.ms if key.ms > self._function_ms[load.task] / concurrency else",
                "key.ms if key.ms else",
            ),
        ),
        ("tests/coordinator/plan/cost/test_concurrent_costs.py",),
    ),
    Fault(
        "a key that its task waited for costs one thread of many",
        (
            Edit(
                _BATCH_COST,
                "key.ms if key.ms > self._function_ms[load.task] / concurrency else",
                "0.0 if not key.ms else",
            ),
        ),
        ("tests/coordinator/plan/cost/test_concurrent_costs.py",),
    ),
)
