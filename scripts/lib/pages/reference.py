"""docs/reference.md: errors, events and metrics, made from the code that raises and reports them."""

from collections.abc import Iterable
from inspect import cleandoc

from coordinator import errors
from coordinator.errors import CodedError, CoopKafkaError
from pages.event_kinds import EVENT_KINDS
from pages.markdown import table
from pages.metrics import BATCH, COUNTERS, LANE, REASONS, Metric
from pages.progress_page import markdown as progress

Kind = type[CoopKafkaError]

_HEAD = """# Errors, events and metrics

<!-- Made by scripts/reference-pages from the code. Do not edit. -->

- [Errors](#errors) of a query, of the command `coop-kafka` and of the Commit API.
- [Events](#events) that a group records.
- [Metrics](#metrics) of lanes, batches and queries.

Remedies step by step: [troubleshooting](troubleshooting.md).

## Errors

An error is one line: `NAME: what. Remedy: what to do.` Spark prints it among its own lines: search the driver log for
`Remedy:`. The message names the values; the remedy below is the general one. Programs can rely on names and codes.

*Retriable* means that the same call can succeed later without a change. For all other errors, follow
the remedy first.

In Python, `spark_coop_source.errors` has all classes. The base class of a section catches all its errors, and
`CoopKafkaError` catches every error. Spark passes an error of a query on as text. `error_of` finds it there:

```python
from pyspark.errors import StreamingQueryException

from spark_coop_source import error_of

try:
    query.awaitTermination()
except StreamingQueryException as raised:
    error = error_of(raised)  # None if it is not an error of coop-kafka
    if error is None or not error.retriable:
        raise
    print(error.name, error.remedy)
```
"""

_FAMILIES: tuple[tuple[str, Kind, str], ...] = (
    ("Configuration", errors.ConfigurationError, "The query is set up wrongly. It read and committed nothing."),
    ("Kafka", errors.LogError, "Kafka refused a request, did not answer, or lacks records."),
    ("Redis", errors.StoreError, "Redis refused a call, did not answer, or lacks the group's state."),
    ("Group", errors.GroupError, "The group does not allow a member or an operation."),
    ("Policies and limits", CodedError, "A policy or a limit forbids a call. The message has the code: `code 88`."),
    ("Commit API", errors.CommitError, "A call of the [Commit API](commit-api.md) is refused. It committed nothing."),
    (
        "Function inside the read",
        errors.FunctionError,
        "See [functions.md](functions.md#when-it-fails) and [failing-records.md](failing-records.md).",
    ),
    ("Output of the command", errors.OutputError, "The exit code is 1."),
    ("Audits", errors.SinkError, "See [audit a sink](guarantees.md#audit-a-sink). The exit code is 1."),
    ("Usage of the command", errors.WrongUsageError, "The exit code is 2. The command changed nothing."),
)

_EVENTS = """
## Events

A group records its events in the Redis stream `coop:v1:{group}:events`, and keeps about 1,000 of them.
`coop-kafka events GROUP` prints them, and `redis-cli XRANGE` shows the same.

An entry has the fields `event` (the kind), `member`, `why` and, where key ranges change hands, `ranges`.

"""

_METRICS = """
## Metrics

Reports are for people and dashboards. Only `slow_percent` influences a decision.
"""

_IN_LANES = """In the Redis hash `coop:v1:{group}:lanes`: a field for each member, and in it a line for each lane.
A line has topic, partition and key hashes, then the values below.
A member reports at most 256 lanes, once a second. `coop-kafka top` shows them."""
_IN_HISTORY = """In the Redis stream `coop:v1:{group}:history`: an entry for each batch that the sink completed.
It keeps about 1,000 entries."""

_REPORTS: tuple[tuple[str, str, tuple[Metric, ...]], ...] = (
    ("Lanes", _IN_LANES, LANE),
    ("Batches", _IN_HISTORY, BATCH),
    ("Counters", "In Redis hashes of the group.", COUNTERS),
)

_REASONS = """
### Bounds of a lane

The values of `why` and `limited`, and the column WHY of `coop-kafka top`.

"""


def markdown() -> str:
    """The whole page."""
    return "".join([_HEAD, *map(_family, *zip(*_FAMILIES, strict=True)), _EVENTS, _events(), _METRICS, *_metrics()])


def raised(base: Kind) -> Iterable[Kind]:
    """The errors of a family that are raised themselves: each has a remedy of its own class."""
    if vars(base).get("usual_remedy"):
        yield base
    for kind in base.__subclasses__():
        if kind.__bases__[0] is base:  # an error of two families stands in its first
            yield from raised(kind)


def _family(title: str, base: Kind, about: str) -> str:
    rows = sorted((_error(kind) for kind in raised(base)), key=lambda cells: cells[0])
    head = ("name", "class", "meaning", "remedy", "retriable")
    base_class = f" Base class: `{base.__name__}`." if len(rows) > 1 else ""
    return f"\n### {title}\n\n{about}{base_class}\n\n" + table(head, rows)


def _error(kind: Kind) -> tuple[str, ...]:
    name = f"`{kind.name}`" + (f" ({kind.code})" if issubclass(kind, CodedError) else "")
    meaning = cleandoc(kind.__doc__ or "").replace("\n", " ")
    return name, f"`{kind.__name__}`", meaning, _sentence(kind.usual_remedy), "yes" if kind.retriable else "no"


def _events() -> str:
    rows = ((f"`{e.kind}`", e.meaning, e.action) for e in EVENT_KINDS)
    return table(("event", "meaning", "what to do"), rows)


def _metrics() -> Iterable[str]:
    for title, where, metrics in _REPORTS:
        rows = ((f"`{m.name}`", m.unit, m.meaning) for m in metrics)
        yield f"\n### {title}\n\n{where}\n\n" + table(("name", "unit", "meaning"), rows)
    yield progress()
    yield _REASONS + table(("bound", "meaning"), ((f"`{why}`", meaning) for why, meaning in REASONS.items()))


def _sentence(remedy: str) -> str:
    return f"{remedy[0].upper()}{remedy[1:].rstrip('.')}."
