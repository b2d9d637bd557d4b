"""Faults in what operators see: the verdict of `check`, the bar of a command that waits, metrics and log lines."""

from mutants.fault import Edit, Fault

_HEALTH, _BAR = "coordinator/tools/operations/group_health.py", "coordinator/tools/cli/progress_bar.py"
_VIEWS = "coordinator/tools/operations/views.py"
_VERDICT = ("tests/coordinator/tools/operations/test_group_health.py",)

FAULTS = (
    Fault(
        "a member that hangs counts as one at work",
        (Edit(_HEALTH, "len(working(seen.members))", "len(live(state))"),),
        _VERDICT,
    ),
    Fault(
        "a group without members is ok",
        (Edit(_HEALTH, "if not found.working:", "if found.working is None:"),),
        _VERDICT,
    ),
    Fault(
        "a record does not age while its batch runs",
        (Edit(_HEALTH, "line.lag_s + (runs_s(member, state) or 0.0)", "line.lag_s + 0.0"),),
        _VERDICT,
    ),
    Fault(
        "the report of a lost member counts for the age",
        (Edit(_HEALTH, "for member in live(state)\n", "for member in state.lanes\n"),),
        _VERDICT,
    ),
    Fault(
        "a partition whose end is unknown has no lag",
        (Edit(_VIEWS, "if len(known) == len(partitions) else None", "if known else None"),),
        _VERDICT,
    ),
    Fault(
        "a bar is shown with --json",
        (Edit(_BAR, "if as_json or not (", "if not ("),),
        ("tests/coordinator/tools/cli/test_progress_bar.py",),
    ),
    Fault(
        "metrics of a query that has ended stay",
        (Edit("spark_coop_source/metrics/prometheus.py", "if key[0] != run_id}", "if key[0]}"),),
        ("tests/spark_coop_source/metrics/test_prometheus.py",),
    ),
    Fault(
        "log lines come twice where the process has a configuration",
        (Edit("spark_coop_source/logs.py", "if not logging.getLogger().handlers:", "if record:"),),
        ("tests/spark_coop_source/test_logs.py",),
    ),
    Fault(
        "a batch has no log line",
        (Edit("coordinator/member/committing.py", "(ShowBatch(line), LogBatch(line))", "(ShowBatch(line),)"),),
        ("tests/coordinator/member/test_committing.py",),
    ),
)
