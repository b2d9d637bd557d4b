"""The verbs of `coop-kafka` that move positions from other consumers and back: import, export."""

from typing import Annotated

import typer

from coordinator.errors import UnknownGroupError
from coordinator.tools.cli import documents
from coordinator.tools.cli.command_options import AsJson, Execute, Group, Redis, connected, print_json, print_next_step
from coordinator.tools.cli.kafka_arguments import Bootstrap, CommandConfig, kafka_arguments, kafka_log
from coordinator.tools.cli.printing import counted, print_lines
from coordinator.tools.cli.progress_bar import waiting
from coordinator.tools.cli.table_rows import print_rows
from coordinator.tools.cli.tables import print_places
from coordinator.tools.moving import exporting, sources
from coordinator.tools.moving.exporting import Exported
from coordinator.tools.moving.importing import Importer


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
            "parallel-consumer; share-group:NAME, a share group; or spark-checkpoint:PATH, the checkpoint of a query "
            "with format kafka.",
            show_default=False,
        ),
    ],
    command_config: CommandConfig = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="TOPIC", help="Import this topic only. Repeatable.", show_default=False),
    ] = None,
    execute: Execute = False,
    as_json: AsJson = False,
) -> None:
    """Create a group that begins where another consumer has stopped. Stop the other one first.

    The group must not exist. Start a query of it within a week.
    """
    kind, _, name = source.partition(":")
    if not name or kind not in sources.KINDS:
        raise typer.BadParameter(f"--from {source!r} is not one of {', '.join(f'{k}:NAME' for k in sources.KINDS)}")
    bar = waiting("import", as_json=as_json)
    with bar, kafka_log(context, bootstrap_server, command_config) as log, connected(redis) as client:
        cluster = sources.Cluster(log, kafka_arguments(context, bootstrap_server, command_config))
        found = sources.read(kind, name, cluster)
        wanted = [d for d in found.done if not topic or d.tp.topic in topic]
        if not wanted:
            raise UnknownGroupError(f"{source} has no offset of {', '.join(topic or ()) or 'any topic'}")
        importer = Importer(client, log, group)
        planned = importer.plan(wanted)
        if execute:
            sources.must_be_idle(found, name, cluster)
            importer.execute(planned, source)
    if as_json:
        print_json(documents.of_import(planned, executed=execute))
        return
    print_places(planned.places)
    if found.note:
        print_lines(found.note)
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
    as_json: AsJson = False,
) -> None:
    """Write a group's stable offsets to a consumer group of Kafka, for plain consumers. Stop all queries first."""
    bar = waiting("export", as_json=as_json)
    with bar, kafka_log(context, bootstrap_server, command_config) as log, connected(redis) as client:
        found = exporting.export(client, log, group, to) if execute else exporting.planned(client, group, to)
    if as_json:
        print_json({"executed": execute, "partitions": found})
        return
    print_rows(Exported, found)
    print_next_step(execute)
