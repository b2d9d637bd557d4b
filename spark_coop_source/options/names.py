"""Every name of an option, and the errors for an unknown name and for two spellings of one. Knows no values."""

import difflib
from collections.abc import Mapping

from coordinator.errors import ConflictingOptionsError, UnknownOptionError
from coordinator.values.options import key_of, named
from spark_coop_source.options.declarations import OPTION_OF
from spark_coop_source.options.kafka_table import KAFKA_NAMES, REFUSED_FAMILIES

_LONGEST_NAME = 100  # characters up to which a near name is looked for

NAMES = {key_of(name): name for option in OPTION_OF.values() for name in (*option.also, option.name)} | {
    f"kafka.{name}": f"kafka.{name}" for name in KAFKA_NAMES
}
"""The name in the docs, by the key of every known name."""

# Spark adds the first two for load(path), and the next two for CREATE TABLE (measured on PySpark 4.3).
# The last is an option of Spark's Kafka sink.
_TABLE = "use CREATE TEMPORARY VIEW ... USING instead of CREATE TABLE: Spark passes a table's options to no reader"
_MAKE = (
    "set what map_records, map_keys or map_batches makes: function, functionSchema, functionTakes, functionConcurrency "
    "and functionOnError"
)
_MISPLACED = {
    "path": "call load() without a path: the option subscribe names the topics",
    "paths": "call load() without paths: the option subscribe names the topics",
    "owner": _TABLE,
    "provider": _TABLE,
    "gapmaxwaitms": "set sessionTimeout: it is the length of the lease with any ordering",
    "maxnumrangestocommit": "pass max_ranges to Acknowledger",
    **dict.fromkeys(
        ("mapinread", "mapinreadschema", "mapinreadperkey", "mapinreadconcurrency", "mapinreadonerror"), _MAKE
    ),
    "topic": "the option subscribe names the topics to read; topic is an option of Spark's Kafka sink",
}


def by_key(options: Mapping[str, str]) -> dict[str, str]:
    """The texts by the keys of their names; raises for an unknown name, and for an option that is spelt twice."""
    found: dict[str, str] = {}
    for name, text in options.items():
        check_name(name)
        if key_of(name) in found:
            raise ConflictingOptionsError(f"option {named(name)} is set twice, in two spellings", "remove one of them")
        found[key_of(name)] = text
    return found


def check_name(name: str) -> None:
    """Raise `UnknownOptionError` for a name (any case) that is in no table, suggesting the nearest one."""
    given = key_of(name)
    if given in NAMES or given.startswith(tuple(f"kafka.{family}" for family in REFUSED_FAMILIES)):
        return  # `kafka_arguments` refuses these families by their own remedy
    remedy = _TABLE if name.lower().startswith("option.") else _MISPLACED.get(given)
    if remedy is None:
        near = _nearest(given)
        remedy = f"did you mean {near}" if near else "see docs/options.md for all options"
    raise UnknownOptionError(f"option {named(name)} does not exist", remedy)


def _nearest(given: str) -> str | None:
    """The most similar known name. The prefix `kafka.` does not count for the similarity."""
    if len(given) > _LONGEST_NAME:
        return None
    if f"kafka.{given}" in NAMES:
        return NAMES[f"kafka.{given}"]
    prefix = "kafka." if given.startswith("kafka.") else ""
    names = KAFKA_NAMES if prefix else NAMES
    near = difflib.get_close_matches(given.removeprefix(prefix), names, 1, 0.55)
    return NAMES[prefix + near[0]] if near else None
