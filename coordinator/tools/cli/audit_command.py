"""The verb `coop-kafka audit`: is each record that the group has processed in the sink, once and in order?"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from typing import Annotated

import typer

from coordinator.tools.audit.report import Audit, PartitionAudit
from coordinator.tools.cli import documents
from coordinator.tools.cli.command_options import AsJson, Group, Redis, connected, print_json
from coordinator.tools.cli.kafka_arguments import RETRIES, RETRY_INTERVAL_MS, Bootstrap, CommandConfig, kafka_arguments
from coordinator.tools.cli.printing import print_lines
from coordinator.tools.cli.progress_bar import waiting
from coordinator.tools.cli.table_rows import print_rows, print_table
from coordinator.tools.operations.group_look import look_at
from coordinator.tools.operations.reset_plan import chosen

FAULTY = 3
"""The exit code of an audit that found faults."""

MOST_SHOWN = 20
"""Faults in the table; JSON has more."""

_FAULTS = ("lost", "repeated", "out_of_order")


def audit(  # noqa: PLR0913, PLR0917 - an option each
    context: typer.Context,
    group: Group,
    redis: Redis,
    bootstrap_server: Bootstrap,
    topic: Annotated[
        list[str], typer.Option(metavar="TOPIC[:P,...]", help="A topic, or some of its partitions. Repeatable.")
    ],
    sink: Annotated[
        str,
        typer.Option(metavar="parquet:PATH", help="The folder, or the URI of a folder, that the query writes."),
    ],
    column: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=COLUMN",
            help="The sink's own name of the column partition, offset, topic, batch or query. Repeatable.",
        ),
    ] = None,
    from_offset: Annotated[
        int, typer.Option(min=0, metavar="N", help="Begin at this offset, for a group that began there.")
    ] = 0,
    dead_letters: Annotated[
        str | None,
        typer.Option(
            metavar="TOPIC", help="The dead-letter topic. Without it, the one that members of the group write to now."
        ),
    ] = None,
    command_config: CommandConfig = None,
    as_json: AsJson = False,
) -> None:
    """Compare a Parquet sink with Kafka: name records that are lost, repeated or out of order. Changes nothing.

    The sink must have each record that the group has processed, once and in the order of its key.
    Members may continue to work. Exit code 3: there are faults.
    """
    from coordinator.kafka.log import KafkaLog  # noqa: PLC0415
    from coordinator.tools.audit.audit import AuditRequest, Kafka  # noqa: PLC0415 - others need no Kafka
    from coordinator.tools.audit.audit import audit as audited  # noqa: PLC0415
    from coordinator.tools.audit.parquet_sink import ParquetSink, shown  # noqa: PLC0415

    wanted = AuditRequest(chosen(topic), from_offset, dead_letters)
    arguments = {"isolation_level": "read_committed", **kafka_arguments(context, bootstrap_server, command_config)}
    read = ParquetSink(sink, _columns(column or ()))
    with connected(redis) as client:
        positions = look_at(client, group, batches=0)
    with (
        waiting("audit", as_json=as_json),
        closing(KafkaLog(arguments, retries=RETRIES, retry_interval_ms=RETRY_INTERVAL_MS)) as log,
    ):
        found = audited(positions, shown(sink), read, Kafka(arguments, log, context.obj.key_columns), wanted)
    if as_json:
        print_json(documents.of_audit(found))
    else:
        print_audit(found)
    if not found.good:
        raise typer.Exit(FAULTY)


def _columns(texts: Iterable[str]) -> Mapping[str, str]:
    pairs = [text.partition("=") for text in texts]
    for name, _, own in pairs:
        if not (name and own):
            raise typer.BadParameter(f"--column {name!r} is not NAME=COLUMN, such as offset=kafka_offset")
    return {name: own for name, _, own in pairs}


def print_audit(found: Audit) -> None:
    """The verdict in a line, a table of the partitions, and one of the first faults."""
    print_lines(_verdict(found))
    print_rows(PartitionAudit, found.partitions)
    named = ((p, fault) for p in found.partitions for fault in p.faults)
    faults = [(p.topic, p.partition, f.offsets, f.kind, ", ".join(f.batches), f.why) for p, f in named]
    if faults:
        print_lines(f"The first {MOST_SHOWN} of {len(faults)} faults:" if len(faults) > MOST_SHOWN else "Faults:")
        print_table("TOPIC, PARTITION, OFFSETS, FAULT, BATCH, WHY", faults[:MOST_SHOWN])
    print_lines(*_notes(found))


def _verdict(found: Audit) -> str:
    numbers = ", ".join(f"{found.total(count):,} {count.replace('_', ' ')}" for count in _FAULTS)
    once = ", each exactly once in the sink" if found.good and not found.total("dead_lettered") else ""
    return f"{found.total('records'):,} records done{once}: {numbers}."


def _notes(found: Audit) -> Iterator[str]:
    for why in sorted({p.unordered for p in found.partitions if p.unordered}):
        yield f"The order is not checked in full: {why}."
    yield from found.notes
