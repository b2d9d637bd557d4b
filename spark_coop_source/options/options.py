"""From a user's options to one checked value.

`DataSource.schema()` calls `validate`, and each reader calls it again, in short-lived processes of the driver host. It
starts nothing, and reads no more than the files of `filter.keys.*`. `declarations` has the rules of single options;
this module and its neighbours have the rules between options.
"""

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import cast

from coordinator.errors import ConflictingOptionsError, InvalidOptionError, MissingOptionError
from coordinator.values.offset_spec import Earliest
from coordinator.values.option_kinds import in_units
from coordinator.values.ranges import OFFSET_MAX, WHOLE
from coordinator.values.record_filter import RecordFilter
from spark_coop_source.options import function_options, group_rules, offset_options
from spark_coop_source.options.cores import cores
from spark_coop_source.options.declarations import OPTION_OF, SLOTS_MAX, SUBSCRIPTION, SourceOptions
from spark_coop_source.options.kafka_options import kafka_arguments
from spark_coop_source.options.names import by_key
from spark_coop_source.options.notices import OF_GROUPS, notices

REDIS_VARIABLE = "COOP_REDIS"
"""The environment variable with the Redis of the command `coop-kafka`, and of queries that set none."""


def validate(options: Mapping[str, str], *, streaming: bool | None) -> SourceOptions:
    """The options as one value; raises `ConfigurationError`s.

    Args:
        options: the user's, names in any spelling that `key_of` knows, values verbatim.
        streaming: None where it is unknown (`DataSource.schema()`): then only options that are invalid for both a
            stream and a batch are refused.
    """
    texts = by_key(options)
    checked = _completed(_parsed(texts, streaming), texts, streaming)
    _check_rates(checked)
    _check_lease(checked)
    function_options.check(checked, streaming=streaming)
    group_rules.check_joined(checked, streaming=streaming)
    if streaming is not None:
        group_rules.check_acknowledgement(checked)
        group_rules.check_standby(checked, streaming=streaming)
    if streaming:
        offset_options.check_stream(checked)
        group_rules.check_group(checked)
        group_rules.check_redundancy(checked)
        group_rules.check_ordering(checked)
    elif streaming is False:
        offset_options.check_batch(checked.starting, checked.ending)
    return checked


def _parsed(texts: Mapping[str, str], streaming: bool | None) -> SourceOptions:
    """Each option by itself."""
    given = frozenset(field for field, option in OPTION_OF.items() if option.names_in(texts))
    without_effect = offset_options.without_effect(given, streaming=streaming)
    without_effect |= _of_no_group(given, texts, streaming)
    values = {field: OPTION_OF[field].value_in(texts) for field in given - without_effect}
    return SourceOptions(kafka=kafka_arguments(texts), given=given, **values)


def _of_no_group(given: frozenset[str], texts: Mapping[str, str], streaming: bool | None) -> set[str]:
    """Options by Kafka's names, where no group reads them: jobs share Kafka's settings with other consumers."""
    if streaming and "group" in given:
        return set()
    names = {field: OPTION_OF[field].names_in(texts) for field in given & (OF_GROUPS | {"group"})}
    return {field for field, spelled in names.items() if all(name.startswith("kafka.") for name in spelled)}


def _completed(parsed: SourceOptions, texts: Mapping[str, str], streaming: bool | None) -> SourceOptions:
    """With the values that several options make, and with defaults that depend on others."""
    batch = streaming is False
    _check_subscription(parsed)
    _check_columns(parsed)
    slots = parsed.slots if "slots" in parsed.given else min(cores(), SLOTS_MAX)
    group, policy = None if batch else parsed.group, parsed.function_on_error
    if batch and "starting_offsets" not in parsed.given:
        parsed = replace(parsed, starting_offsets=Earliest())
    return replace(
        parsed,
        group=group,
        redis_url=None if batch else parsed.redis_url or (_redis_of_the_environment() if group else None),
        slots=slots,
        capacity=parsed.capacity if "capacity" in parsed.given else slots,
        heartbeat_ms=parsed.heartbeat_ms
        if "heartbeat_ms" in parsed.given
        else min(parsed.heartbeat_ms, parsed.session_ms // 3),
        filter=_filter(parsed),
        function_on_error=policy and replace(policy, group=group or ""),
        notices=notices(texts, parsed, batch=batch),
    )


def _redis_of_the_environment() -> str | None:
    """The Redis that `COOP_REDIS` names where the driver runs, as for the command `coop-kafka`."""
    text = os.environ.get(REDIS_VARIABLE)
    if not text:
        return None
    try:
        return cast(str, OPTION_OF["redis_url"].parse(text))
    except InvalidOptionError as error:
        raise InvalidOptionError(f"{error.what}; the value is that of {REDIS_VARIABLE}", error.remedy) from None


def _check_subscription(parsed: SourceOptions) -> None:
    names, chosen = ", ".join(OPTION_OF[field].name for field in SUBSCRIPTION), parsed.names_given(SUBSCRIPTION)
    if not chosen:
        raise MissingOptionError(f"none of the options {names} is set", 'add one, e.g. .option("subscribe", "topic")')
    if len(chosen) > 1:
        raise ConflictingOptionsError(f"the options {' and '.join(chosen)} are both set", f"set exactly one of {names}")


def _check_columns(parsed: SourceOptions) -> None:
    if parsed.named_columns is None:
        return
    for field, remedy in (
        ("include_headers", "name headers among the columns instead"),
        ("function", "the function gets every column, and its own schema has the columns of its rows"),
    ):
        for name in parsed.names_given([field]):
            raise ConflictingOptionsError(
                f"the options columns and {name} are both set", f"remove one of them: {remedy}"
            )


def _filter(parsed: SourceOptions) -> RecordFilter:
    most = parsed.filter_most_bytes
    found = RecordFilter(
        parsed.filter_ranges or (WHOLE,),
        parsed.filter_allow,
        parsed.filter_deny or frozenset(),
        parsed.filter_least_bytes,
        OFFSET_MAX if most is None else most,
    )
    if found.least_bytes > found.most_bytes:
        raise ConflictingOptionsError(
            f"filterRecordBytesMin ({found.least_bytes}) is higher than filterRecordBytesMax ({most})",
            "lower filterRecordBytesMin, or remove one of the two",
        )
    if found.allow is not None and found.allow <= found.deny:
        raise ConflictingOptionsError(
            "filterKeysDeny names every key of filterKeysAllow, so no record passes",
            "remove keys from filterKeysDeny, or remove one of the two",
        )
    return found


def _check_rates(checked: SourceOptions) -> None:
    least, most = checked.min_offsets_per_trigger, checked.max_offsets_per_trigger
    if least is not None and most is not None and least > most:
        raise ConflictingOptionsError(
            f"minOffsetsPerTrigger ({least}) is higher than maxOffsetsPerTrigger ({most})",
            "lower minOffsetsPerTrigger, or remove one of the two",
        )


def _check_lease(checked: SourceOptions) -> None:
    if checked.heartbeat_ms > checked.session_ms // 3:
        raise InvalidOptionError(
            f"option heartbeatInterval = {in_units(checked.heartbeat_ms)}: above a third of sessionTimeout, "
            f"{in_units(checked.session_ms)}, so others could take this query for lost between two heartbeats",
            f"set heartbeatInterval to at most a third of that, {in_units(checked.session_ms // 3)}",
        )
