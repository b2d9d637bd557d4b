"""A section of docs/reference.md: our part of `lastProgress`, field by field, and the metrics that become of it."""

from pages.markdown import table
from pages.metrics import PROGRESS
from spark_coop_source.metrics.prometheus import FAMILIES, LOG_ENDS, PREFIX

_FIELDS = """
### Progress of a query

The fields of `#` in `lastProgress.sources[0].latestOffset` ([how to read it](monitoring.md#progress-of-a-query)).
A field without a value is absent.

"""

_LABELS = """
The metrics of Prometheus have these labels:

"""


def markdown() -> str:
    """The whole section."""
    metric_of = {f.field: f"`{PREFIX}{f.name}{'_total' if f.counter else ''}`" for f in FAMILIES}
    rows = ((f"`{m.name}`", m.unit, metric_of.get(m.name, "-"), m.meaning) for m in PROGRESS)
    fields = table(("name", "unit", "metric of Prometheus", "meaning"), rows)
    labels = (
        ("`query`", "name of the query (`queryName`), or its id"),
        ("`group`", "the group; empty without one"),
        ("`source`", "number of the read: 0 is the first `load()` of the query"),
        ("`topic`, `partition`", f"only of `{LOG_ENDS}`, the end offset at the last look"),
    )
    return _FIELDS + fields + _LABELS + table(("label", "value"), labels)
