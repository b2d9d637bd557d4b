"""docs/last-progress.md: our part of `lastProgress`, field by field, and the metrics that become of it."""

from pages.markdown import table
from pages.metrics import PROGRESS
from spark_coop_source.metrics.prometheus import FAMILIES, LOG_ENDS, PREFIX

_HEAD = """# Progress of a query

<!-- Made by scripts/reference-pages from the code. Do not edit. -->

Spark describes each trigger of a query in `query.lastProgress` and `query.recentProgress`, and passes it to listeners.
coop-kafka writes the JSON text `sources[0].latestOffset`:

```json
{"orders": {"0": 120, "1": 95}, "#": {"maxOffsetsBehindLatest": "45", "lanes": 8, "limitedLanes": 1}}
```

- Each topic has the last known log end of each partition, in the form of Spark's own Kafka source.
- The name `#` has the report, with the fields below. A field without a value is absent.
- The three fields `...OffsetsBehindLatest` appear after the query has planned its first batch. They count from the end
  of the last planned batch to the log end.
- A query without a group, or [without order](ordering.md#none), has no fields of lanes.
- Other members of the group have reports of their own. `coop-kafka top` shows all.

## Fields

"""

_LISTENER = """
## Metrics

`ProgressListener` passes our part of each progress to a callback, as a `QueryProgress` with the values in snake case.
An error of the callback is logged, and the query goes on.

```python
from spark_coop_source import ProgressListener


def show(progress):
    print(progress.name, progress.batch_id, progress.max_offsets_behind_latest, progress.limited)


spark.streams.addListener(ProgressListener(show))
```

`ProgressMetrics` is a callback for Prometheus. `pip install "coop-kafka[metrics]"` installs prometheus-client, which
also serves the metrics:

```python
from prometheus_client import start_http_server

from spark_coop_source import ProgressListener, ProgressMetrics

spark.streams.addListener(ProgressListener(ProgressMetrics()))
start_http_server(9400)
```

A scrape returns the last progress of each query that runs in this driver. When a query ends, its metrics
disappear. Counters restart when a query starts. The metrics of failing keys are absent until a first key fails. No
label carries a key.

"""


def markdown() -> str:
    """The whole page."""
    metric_of = {f.field: f"`{PREFIX}{f.name}{'_total' if f.counter else ''}`" for f in FAMILIES}
    rows = ((f"`{m.name}`", m.unit, metric_of.get(m.name, "-"), m.meaning) for m in PROGRESS)
    fields = table(("name", "unit", "metric of Prometheus", "meaning"), rows)
    labels = (
        ("`query`", "name of the query (`queryName`), or its id"),
        ("`group`", "the group; empty without one"),
        ("`source`", "number of the read: 0 is the first `load()` of the query"),
        ("`topic`, `partition`", f"only of `{LOG_ENDS}`, the log end at the last look"),
    )
    return _HEAD + fields + _LISTENER + table(("label", "value"), labels)
