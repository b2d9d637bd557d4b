"""docs/options.md, made from the option tables."""

import re
from collections.abc import Iterable, Mapping
from typing import Any

from coordinator.values.option_kinds import INT, LONG, Integer, OptionKind
from coordinator.values.options import Option
from pages.markdown import table
from pages.option_meanings import MEANINGS, Meaning, Section
from spark_coop_source.options.declarations import OPTION_OF
from spark_coop_source.options.kafka_table import NO_EFFECT, PASSED, REFUSED, REFUSED_FAMILIES, UNDERSTOOD

_HEAD = """# Options

<!-- Made by scripts/reference-pages from the option tables of the code. Do not edit. -->

A stream needs four options, or two [without a group](getting-started.md#without-a-group). Most jobs set one or two of
the others in this table:

| option | set it when |
|---|---|
| `kafka.bootstrap.servers`, `subscribe`, `group` | always |
| `redisUrl` | always with `group`, unless the driver's environment has it as `COOP_REDIS` |
| `startingOffsets` | a new group should begin at the beginning of the log: `earliest` |
| `slots` | the driver runs on another machine than the executors: the cores of all executors together |
| `maxOffsetsPerTrigger` | the sink needs small batches |
| `maxLaneLead` | the query has a watermark: at most its delay |
| `sessionTimeout` | another application should take over sooner than 45 s after a host or a container died |

Options of Spark's own Kafka source have Spark's names. Case, dots and underscores do not matter: `batchTimeBudget`,
`batch.time.budget` and `.options(batch_time_budget="10s")` are the same option. Names that begin with `kafka.` keep
their dots. Every time span may be written as `500ms`, `45s`, `15m`, `2h` or `7d`; a plain number is milliseconds. Every
size may be written as `64KiB`, `200MiB` or `1GiB`; a plain number is bytes.

An unknown option is an error, which names the nearest option.
A value has at most 1,000,000 characters, unless its row names another limit; `function` has no limit.
An option without effect logs one WARN line when the query starts.
[Migrate](migrate.md#options) compares the options with those of Spark's Kafka source.
"""
_KAFKA = """
## Kafka's own options

Java's names, with the prefix `kafka.`.
"""


_OTHER_NAMES = """
## Other names of the same options

Kafka's names, and those of the KIPs that coop-kafka implements. `accept.individual.commit` and `accept.range.fetch` are
not options of a query, but [policies](ordering.md#policies) of a group, a topic or the cluster.

"""

_EXAMPLE = re.compile(r"(a duration|a size) like [^()]*\([^()]*\)")
"""How durations and sizes are written, which the head of the page says once."""

OPTIONS = tuple(OPTION_OF[field] for fields in MEANINGS.values() for field in fields)
"""All options but `kafka.*`, in the order of the page."""


def markdown() -> str:
    """The whole page."""
    return "".join([_HEAD, *(_section(section) for section in Section), _KAFKA, *_kafka()])


def _section(section: Section) -> str:
    head = ("option", "values", "default", "for", "meaning")
    return f"\n## {section}\n\n" + table(
        head, (_cells(OPTION_OF[field], meaning) for field, meaning in MEANINGS[section].items())
    )


def _cells(option: Option[Any], meaning: Meaning) -> tuple[str, ...]:
    default = meaning.default if option.default is None else f"`{option.default}`"
    return f"`{option.name}`", _values(option.kind), default, meaning.where, meaning.text


def _values(kind: OptionKind[object]) -> str:
    """The allowed values; short for a plain range of a number type."""
    if isinstance(kind, Integer) and kind.most in (INT, LONG):
        return f"whole number, at least {kind.least}"
    return _EXAMPLE.sub(r"\1", kind.limit).replace("][", r"]\[")  # in Markdown, `][` is a link


def _kafka() -> Iterable[str]:
    understood = ((f"`kafka.{name}`", meaning) for name, meaning in UNDERSTOOD.items())
    passed = {name: _values(kind) for name, kind in PASSED.items()}
    refused = REFUSED | {f"{start}*": remedy for start, remedy in REFUSED_FAMILIES.items()}
    also = (
        (
            f"`{name}`",
            f"`{option.name}`",
            "the same" if option.kind_of(name) == option.kind else _values(option.kind_of(name)),
        )
        for option in OPTIONS
        for name in option.also
    )
    yield "\n### Understood here\n\n" + table(("option", "meaning"), understood)
    yield "\n### Passed to kafka-python\n\n" + table(("options", "values"), _by_reason(passed))
    yield "\n### Accepted, without effect\n\n" + table(("options", "why"), _by_reason(NO_EFFECT))
    yield "\n### Refused\n\n" + table(("options", "what to do"), _by_reason(refused))
    yield _OTHER_NAMES + table(("name", "the same as", "values"), also)


def _by_reason(reasons: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    for reason in dict.fromkeys(reasons.values()):
        yield ", ".join(f"`kafka.{name}`" for name in reasons if reasons[name] == reason), reason
