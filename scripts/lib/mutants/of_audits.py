"""Faults in audits: a fault of a sink that is not found, or a good record that is shown as one."""

from mutants.fault import Edit, Fault

_COMPARISON, _ORDER = "coordinator/tools/audit/comparison.py", "coordinator/tools/audit/order.py"
_EXPECTED, _LOG = "coordinator/tools/audit/expected.py", "coordinator/tools/audit/file_log.py"
_COMPARED = ("tests/coordinator/tools/audit/test_comparison.py",)
_ORDERED = ("tests/coordinator/tools/audit/test_order.py",)

FAULTS = (
    Fault(
        "an audit takes a hole of the log for a record",
        (Edit(_COMPARISON, "done(wanted.progress, of.log) & of.in_kafka", "done(wanted.progress, of.log)"),),
        _COMPARED,
    ),
    Fault(
        "an audit expects records of gaps above the stable offset",
        (Edit(_EXPECTED, "(offsets < positions[segment])", "(offsets >= 0)"),),
        ("tests/coordinator/tools/audit/test_expected.py",),
    ),
    Fault(
        "an audit forgets individual commits",
        (Edit(_EXPECTED, "for commit in of_segment.ics:", "for commit in of_segment.ics[:0]:"),),
        ("tests/coordinator/tools/audit/test_expected.py",),
    ),
    Fault(
        "an audit does not look behind the first of two rows",
        (Edit(_COMPARISON, "np.flatnonzero(of.counts > 1)", "np.flatnonzero(of.counts > 2)"),),
        _COMPARED,
    ),
    Fault(
        "an audit takes dead letters for lost records",
        (Edit(_COMPARISON, "np.flatnonzero(missing & ~dead)", "np.flatnonzero(missing)"),),
        _COMPARED,
    ),
    Fault(
        "an audit compares batch ids of two queries",
        (Edit(_ORDER, "new_key = _changes(hashes) | new_query", "new_key = _changes(hashes)"),),
        _ORDERED,
    ),
    Fault(
        "an audit sorts only keys that fall back between batches",
        (Edit(_ORDER, "    if len(np.setdiff1d(falls, first_of_file)):\n", "    if False:\n"),),
        _ORDERED,
    ),
    Fault(
        "an audit sorts only keys that fall back in a file",
        (Edit(_ORDER, "    mask |= ranks < np.repeat(earlier, sizes)\n", ""),),
        _ORDERED,
    ),
    Fault(
        "an audit does not see a key in two tasks",
        (Edit(_ORDER, "return bool((los[1:] <= tops[:-1]).any())", "return False"),),
        _ORDERED,
    ),
    Fault(
        "an audit compares files that one task may have written side by side",
        (Edit(_LOG, "return same_task and (other_folder", "return False and (other_folder"),),
        ("tests/coordinator/tools/audit/test_file_log.py",),
    ),
    Fault(
        "an audit reads files that Spark's file sink never committed",
        (Edit("coordinator/tools/audit/parquet_sink.py", "(f for f in files if f.committed)", "files"),),
        ("tests/coordinator/tools/audit/test_parquet_sink.py",),
    ),
)
