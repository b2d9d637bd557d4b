"""The verbs of `coop-kafka` that change a group, with `--execute`: policy, reset-offsets, delete."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.assignment.policies import (
    TOPIC_POLICY,
    Policy,
    checked_topic,
    cluster_policy,
    not_there,
    of_all_groups,
)
from coordinator.errors import LogError, UnknownTopicError
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.replica_sets import first_of, siblings
from coordinator.redis.snapshot import list_groups
from coordinator.tools.cli import documents
from coordinator.tools.cli.command_options import (
    AsJson,
    Execute,
    Group,
    Redis,
    connected,
    named,
    print_json,
    print_next_step,
)
from coordinator.tools.cli.kafka_arguments import Bootstrap, CommandConfig, kafka_log
from coordinator.tools.cli.printing import complain, counted, print_lines
from coordinator.tools.cli.progress_bar import waiting
from coordinator.tools.cli.tables import print_moves
from coordinator.tools.operations.operations import Executed, Operator, Reset
from coordinator.tools.operations.reset_plan import ShiftBy, Target, ToOffset, chosen
from coordinator.values.offset_spec import AtTimestamp, Earliest, Latest, NoMatch
from coordinator.values.subscription import Topics

if TYPE_CHECKING:
    from coordinator.kafka.log import KafkaLog

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def policy(  # noqa: PLR0913, PLR0917 - an option each
    context: typer.Context,
    group: Annotated[
        str | None,
        typer.Argument(
            metavar="GROUP",
            help="Name of the group; none with --cluster or --topic.",
            show_default=False,
            callback=named,
        ),
    ] = None,
    redis: Annotated[
        str | None,
        typer.Option(
            "--redis",
            metavar="URL",
            envvar="COOP_REDIS",
            help="Redis of the group: the option `redisUrl`.",
            show_default=False,
        ),
    ] = None,
    cluster: Annotated[bool, typer.Option("--cluster", help="The policy of all groups of the Kafka cluster.")] = False,
    topic: Annotated[
        str | None, typer.Option(metavar="TOPIC", help="The policy of this topic in all groups.", show_default=False)
    ] = None,
    bootstrap_server: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT,...", envvar="COOP_KAFKA", help="Brokers; for --cluster and --topic.", show_default=False
        ),
    ] = None,
    command_config: CommandConfig = None,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Set a policy to true, false, or nothing for the default. Repeatable."
        ),
    ] = None,
    execute: Execute = False,
    as_json: AsJson = False,
) -> None:
    """Show or change policies of a group, of all groups (--cluster), or of a topic in all groups (--topic).

    A group has accept.individual.commit and accept.range.fetch:TOPIC, the cluster accept.individual.commit, and a topic
    accept.range.fetch. The strictest level holds. Members apply a change within seconds, without a restart.
    """
    if (group is not None) + cluster + (topic is not None) != 1:
        raise typer.BadParameter("pass exactly one of GROUP, --cluster and --topic")
    wanted = dict(map(_change, changes or ()))
    if group is not None:
        if redis is None:
            raise typer.BadParameter("GROUP needs --redis: its policies are there")
        with waiting("policy", as_json=as_json):
            found = _of_group(group, redis, wanted, execute=execute)
    else:
        if bootstrap_server is None:
            raise typer.BadParameter("--cluster and --topic need --bootstrap-server: their policies are in Kafka")
        named_topic = None if topic is None else checked_topic(topic)
        with waiting("policy", as_json=as_json), kafka_log(context, bootstrap_server, command_config) as log:
            found = _of_all_groups(log, named_topic, wanted, execute=execute)
    before, after = found
    if as_json:
        print_json(documents.of_policy(after, executed=execute and bool(wanted)))
        return
    print_lines(*(_line(name, before.get(name, "true"), after.get(name, "true")) for name in {**before, **after}))
    if wanted:
        print_next_step(execute)


_Fields = Mapping[str, str]


def _line(name: str, before: str, after: str) -> str:
    return f"{name}={after}" if before == after else f"{name}={after} (now {before})"


def _of_group(group: str, redis: str, wanted: _Fields, *, execute: bool) -> tuple[_Fields, _Fields]:
    """The policies as they are, and as they are or would be with the changes."""
    with connected(redis) as client:
        store, groups = OperatorVerbs.of_group(client, group).policies, list_groups(client)
        if wanted and (first := first_of(group, groups)):
            raise typer.BadParameter(f"{group!r} is a replica set of {first!r}; a policy holds in all sets: pass that")
        if execute and wanted:
            before = after = store.set_policy(wanted)
            for name in siblings(group, groups):
                OperatorVerbs.of_group(client, name).policies.set_policy(wanted)
        else:
            after = (before := store.policy()).changed(wanted)
        strange = not_there((name for name, value in wanted.items() if value), group, store.topics())
    for line in strange:
        complain(f"warning: {line}")
    return before.fields, after.fields


def _of_all_groups(log: "KafkaLog", topic: str | None, wanted: _Fields, *, execute: bool) -> tuple[_Fields, _Fields]:
    changes = of_all_groups(wanted, topic)
    if changes and execute:
        log.set_cluster_policies(changes)
    if changes:
        _check_name(log, topic)
    before = cluster_policy(log.cluster_policies()[1])
    after = before if execute else before.changed(changes)
    if topic is None:
        return before.fields, after.fields
    return _of_topic(before, topic), _of_topic(after, topic)


def _of_topic(found: Policy, topic: str) -> _Fields:
    return {TOPIC_POLICY: "false" if found.in_order(topic) else "true"}


def _check_name(log: "KafkaLog", topic: str | None) -> None:
    try:
        if topic is not None:
            log.topics(Topics((topic,)))
    except UnknownTopicError:
        complain(f"warning: Kafka has no topic {topic!r}: its policy waits until there is one. Check the name")
    except LogError:  # who may set policies need not have rights on the topic
        return


def reset_offsets(  # noqa: PLR0913, PLR0917 - an option each
    context: typer.Context,
    group: Group,
    redis: Redis,
    bootstrap_server: Bootstrap,
    command_config: CommandConfig = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC[:P,...]", help="A topic, or some of its partitions. Repeatable."),
    ] = None,
    all_topics: Annotated[bool, typer.Option("--all-topics", help="All topics of the group.")] = False,
    to_earliest: Annotated[bool, typer.Option("--to-earliest", help="To the beginning of the log.")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest", help="To the end of the log.")] = False,
    to_datetime: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="To the first record at or after this time, or to the end if there is none. For example "
            "2026-01-31T12:00:00.000, in UTC unless it names a zone.",
        ),
    ] = None,
    to_offset: Annotated[int | None, typer.Option(min=0, metavar="N", help="To this offset.")] = None,
    shift_by: Annotated[
        int | None, typer.Option(metavar="N", help="N offsets after the stable offset; before it if negative.")
    ] = None,
    execute: Execute = False,
    as_json: AsJson = False,
) -> None:
    """Move a group's positions. Refused while members are active: stop all its queries first.

    All lanes of a partition move to one offset, the nearest one in the log.
    Checkpoints of the group's queries stay valid: members ignore their positions from before the reset.
    """
    if bool(topic) == all_topics:
        raise typer.BadParameter("pass either --topic, once or more, or --all-topics")
    target = _target(to_earliest, to_latest, to_datetime, to_offset, shift_by)
    wanted = None if all_topics else chosen(topic or ())
    bar = waiting("reset-offsets", as_json=as_json)
    with bar, _operator(context, group, redis, bootstrap_server, command_config) as operator:
        planned = operator.plan_reset(wanted, target)
        done = operator.reset(planned) if execute else None
    _print_reset(planned, done, as_json)


def delete(
    context: typer.Context,
    group: Group,
    redis: Redis,
    bootstrap_server: Bootstrap,
    command_config: CommandConfig = None,
    execute: Execute = False,
    as_json: AsJson = False,
) -> None:
    """Delete a group: all its keys in Redis, and its offsets in Kafka's group of the same name.

    Refused while members are active. Delete the checkpoints of its queries too, since they belong to the deleted group.
    """
    bar = waiting("delete", as_json=as_json)
    with bar, _operator(context, group, redis, bootstrap_server, command_config) as operator:
        found = operator.delete() if execute else operator.remains()
    if as_json:
        print_json(documents.of_remains(found, executed=execute))
    else:
        did = "Deleted" if execute else "Would delete"
        partitions = counted(len(found.mirrored), "partition")
        print_lines(f"{did} {counted(found.keys, 'key')} in Redis, and the offsets of {partitions} in Kafka.")
        print_next_step(execute)


@contextmanager
def _operator(
    context: typer.Context, group: str, redis: str, bootstrap: str, command_config: Path | None
) -> Iterator[Operator]:
    with kafka_log(context, bootstrap, command_config) as log, connected(redis) as client:
        yield Operator(client, log, group)


def _target(earliest: bool, latest: bool, at: str | None, offset: int | None, shift: int | None) -> Target:
    targets: list[Target] = [Earliest()] if earliest else []
    targets += [Latest()] if latest else []
    targets += [AtTimestamp(_time_ms(at), NoMatch.LATEST)] if at is not None else []
    targets += [ToOffset(offset)] if offset is not None else []
    targets += [ShiftBy(shift)] if shift is not None else []
    if len(targets) != 1:
        raise typer.BadParameter(
            "pass exactly one of --to-earliest, --to-latest, --to-datetime, --to-offset, --shift-by"
        )
    return targets[0]


def _time_ms(text: str) -> int:
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        raise typer.BadParameter(f"--to-datetime {text!r} is not a time such as 2026-01-31T12:00:00.000") from None
    since = (time if time.tzinfo else time.replace(tzinfo=UTC)) - _EPOCH
    if since < timedelta(0):  # to Kafka, times below 0 are not times: -1 is the end of the log
        raise typer.BadParameter(f"--to-datetime {text!r} is before 1970: Kafka has no records of that time")
    return -(-since // timedelta(milliseconds=1))  # up: a record of the millisecond before is not at or after it


def _change(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals:
        raise typer.BadParameter(f"--set {text!r} is not NAME=VALUE")
    return name.strip(), value


def _print_reset(planned: Reset, done: Executed | None, as_json: bool) -> None:
    if as_json:
        print_json(documents.of_reset(planned, done))
    else:
        print_moves(planned.moves, done=done is not None)
        if done:
            print_lines(f"Moved {counted(len(planned.moves), 'partition')}: this is reset epoch {done.epoch}.")
        print_next_step(done is not None)
    if done and not done.mirrored:
        complain("warning: plain consumers use Kafka's group of the same name, so its offsets were not moved")
