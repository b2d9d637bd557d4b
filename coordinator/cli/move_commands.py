"""The verbs of `coop-kafka` that move positions from other consumers and back: import, export."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.cli import documents
from coordinator.cli.command_options import Execute, Group, Json, Redis, connected, print_json, print_next_step
from coordinator.cli.kafka_arguments import Bootstrap, CommandConfig, kafka_log
from coordinator.cli.printing import complain, counted, print_lines
from coordinator.cli.progress_bar import waiting
from coordinator.cli.tables import print_exported, print_places
from coordinator.errors import GroupBusyError, UnknownGroupError
from coordinator.moving import exporting, parallel_consumer, spark_checkpoint
from coordinator.moving.importing import Importer
from coordinator.moving.progress import Done
from coordinator.progress.mirror import is_mirror
from coordinator.subscription import TopicPartition

if TYPE_CHECKING:
    from coordinator.kafka.log import KafkaLog

_Commits = dict[TopicPartition, tuple[int, str]]


def import_positions(  # noqa: PLR0913, PLR0917 - an option each
    context: typer.Context,
    group: Group,
    redis: Redis,
    bootstrap_server: Bootstrap,
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="KIND:NAME",
            help="kafka-group:NAME, the offsets of a consumer group; parallel-consumer:NAME, the group of Confluent's "
            "parallel-consumer; or spark-checkpoint:PATH, the checkpoint of a query with format kafka.",
            show_default=False,
        ),
    ],
    command_config: CommandConfig = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC", help="Import this topic only. Repeatable.", show_default=False),
    ] = None,
    execute: Execute = False,
    as_json: Json = False,
) -> None:
    """Create a group that begins where another consumer has stopped. Stop the other one first.

    The group must not exist. Start a query of it within a week.
    """
    kind, colon, name = source.partition(":")
    if not colon or not name or kind not in _READERS:
        raise typer.BadParameter(f"--from {source!r} is not one of {', '.join(f'{k}:NAME' for k in _READERS)}")
    bar = waiting("import", as_json=as_json)
    with bar, kafka_log(context, bootstrap_server, command_config) as log, connected(redis) as client:
        done, note, must_be_idle = _READERS[kind](log, name)
        wanted = [d for d in done if not topic or d.tp.topic in topic]
        if not wanted:
            raise UnknownGroupError(f"{source} has no offset of {', '.join(topic or ()) or 'any topic'}")
        importer = Importer(client, log, group)
        planned = importer.plan(wanted)
        if execute:
            must_be_idle()
            importer.execute(planned, source)
    if as_json:
        print_json(documents.of_import(planned, executed=execute))
        return
    print_places(planned.places)
    print_lines(*note)
    if planned.without:
        print_lines(
            f"{counted(len(planned.without), 'partition')} without an offset: the group begins at earliest there."
        )
    print_next_step(execute)


def export(
    context: typer.Context,
    group: Group,
    redis: Redis,
    bootstrap_server: Bootstrap,
    to: Annotated[str, typer.Option(metavar="NAME", help="Name of the consumer group in Kafka.", show_default=False)],
    command_config: CommandConfig = None,
    execute: Execute = False,
    as_json: Json = False,
) -> None:
    """Write a group's stable offsets to a consumer group of Kafka, for plain consumers. Stop all queries first."""
    bar = waiting("export", as_json=as_json)
    with bar, kafka_log(context, bootstrap_server, command_config) as log, connected(redis) as client:
        found = exporting.planned(client, group, to)
        if execute:
            found = exporting.export(client, log, group, to)
    if as_json:
        print_json(documents.of_export(found, executed=execute))
        return
    print_exported(found)
    print_next_step(execute)


_Found = tuple[list[Done], list[str], Callable[[], None]]
"""The progress, lines for people, and a check before the import that the other consumer has stopped."""


def _of_group(log: "KafkaLog", name: str) -> _Found:
    commits = _commits(log, name)
    return (
        [Done(tp, offset) for tp, (offset, _) in sorted(commits.items())],
        [],
        lambda: _must_be_idle(log, name, commits),
    )


def _of_parallel_consumer(log: "KafkaLog", name: str) -> _Found:
    commits = _commits(log, name)
    done = [parallel_consumer.done(tp, *commit) for tp, commit in sorted(commits.items())]
    return done, [], lambda: _must_be_idle(log, name, commits)


def _of_checkpoint(_: "KafkaLog", path: str) -> _Found:
    done, begun = spark_checkpoint.done(Path(path))
    note = [f"Batch {begun} is not finished: the group reads its records again."] if begun is not None else []
    return done, note, lambda: None


_READERS: dict[str, Callable[["KafkaLog", str], _Found]] = {
    "kafka-group": _of_group,
    "parallel-consumer": _of_parallel_consumer,
    "spark-checkpoint": _of_checkpoint,
}


def _commits(log: "KafkaLog", name: str) -> _Commits:
    commits = log.group_offsets(name)
    if not commits:
        raise UnknownGroupError(f"Kafka has no offsets of a group {name!r}")
    if is_mirror(commits):
        complain(f"warning: Kafka's group {name!r} mirrors a group of coop-kafka, whose lanes may be further")
    return commits


def _must_be_idle(log: "KafkaLog", name: str, commits: _Commits) -> None:
    """Kafka refuses to set the offsets of a group with consumers. These are the same offsets."""
    if not log.commit_group_offsets(name, commits):
        raise GroupBusyError(f"Kafka's group {name!r} has live consumers", "stop them, then import again")
