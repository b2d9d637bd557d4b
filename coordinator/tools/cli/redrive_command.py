"""The verb `coop-kafka redrive`: sends dead letters back to the topic that they came from."""

import time
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.errors import MissingOptionError, StoreError
from coordinator.redis.group_state import GroupState
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.snapshot import read_group
from coordinator.tools.cli import documents
from coordinator.tools.cli.command_options import (
    AsJson,
    Execute,
    Group,
    Redis,
    connected,
    key_bytes,
    print_json,
    print_next_step,
)
from coordinator.tools.cli.kafka_arguments import Bootstrap, CommandConfig, kafka_arguments, kafka_log
from coordinator.tools.cli.printing import complain, counted, print_lines
from coordinator.tools.cli.progress_bar import waiting
from coordinator.tools.cli.table_rows import print_rows
from coordinator.tools.cli.tables import MOST_LIMITED, only_first
from coordinator.tools.operations.redrive_view import LateKey, RedriveView, redrive_view

if TYPE_CHECKING:
    from coordinator.tools.operations.redrive import Tell

PROGRESS_S = 5.0
"""Time between two lines of progress, on stderr."""


def redrive(  # noqa: PLR0913, PLR0917 - an option each
    context: typer.Context,
    group: Group,
    redis: Redis,
    bootstrap_server: Bootstrap,
    topic: Annotated[
        str, typer.Option(metavar="TOPIC", help="The topic that the records came from.", show_default=False)
    ],
    dead: Annotated[
        str | None,
        typer.Option(
            "--from",
            metavar="TOPIC",
            help="The dead-letter topic. Without it, the one that members of the group write to now.",
        ),
    ] = None,
    key: Annotated[str | None, typer.Option(metavar="KEY", help="Only this key, as text (UTF-8).")] = None,
    as_hex: Annotated[bool, typer.Option("--hex", help="KEY is in hex digits, two for each byte.")] = False,
    command_config: CommandConfig = None,
    execute: Execute = False,
    as_json: AsJson = False,
) -> None:
    """Send dead letters of the group back to their topic. Members may continue to work.

    The records come at the end of their partitions, so after later records of their keys.
    Without --execute, the command reads TOPIC and reports the keys that this concerns.
    Safe to repeat: it continues where the last run stopped.
    """
    from coordinator.tools.operations.redrive import Redrive, RedriveRequest  # noqa: PLC0415 - others need no Kafka

    data = None if key is None else key_bytes(key, as_hex)
    arguments = kafka_arguments(context, bootstrap_server, command_config)
    with waiting("redrive", as_json=as_json), connected(redis) as client:
        state = read_group(client, group)
        failing = OperatorVerbs.of_group(client, group).poison.failing()
    parked = sum(record.parked and record.tp.topic == topic for record in failing)
    wanted = RedriveRequest(group, topic, dead or _dead_letter_topic(group, state), data)
    with (
        waiting("redrive", as_json=as_json) as bar,
        kafka_log(context, bootstrap_server, command_config) as log,
    ):
        redriving = Redrive(arguments, log, wanted, bar or _lines())
        if execute:
            seen = redrive_view(redriving.execute(), None)
            if seen.records:
                _record(redis, group, f"{counted(seen.records, 'record')} from {wanted.dead!r} to {topic!r}")
        else:
            redriving.check()
            planned = redriving.plan()
            seen = redrive_view(planned, redriving.order(planned))
    if as_json:
        print_json(documents.of_redrive(seen, wanted.dead, topic, parked=parked, executed=execute))
    else:
        _print(seen, wanted.dead, topic, execute)
        if parked:
            keys = f"{counted(parked, 'key')} of {topic!r} {'is' if parked == 1 else 'are'} parked"
            print_lines(f"{keys}. They are not dead letters: coop-kafka release reads them in order.")
        print_next_step(execute)


def _record(redis: str, group: str, what: str) -> None:
    """Write the event `redrive`. The records are in the topic already, so an outage is only a warning."""
    try:
        with connected(redis) as client:
            OperatorVerbs.of_group(client, group).calls.event("redrive", what)
    except StoreError as error:
        complain(f"warning: Redis has no event of this redrive: {error}")


def _dead_letter_topic(group: str, state: GroupState) -> str:
    found = state.dead_letter_topics
    if len(found) != 1:
        which = f"several dead-letter topics, {', '.join(found)}" if found else "no dead-letter topic"
        raise MissingOptionError(f"the members of group {group!r} name {which}", "pass one by --from")
    return found[0]


def _lines() -> "Tell":
    """Prints a line on stderr every few seconds, where there is no bar."""
    last = time.monotonic()

    def tell(what: str, number: int, of: int) -> None:
        nonlocal last
        if time.monotonic() - last >= PROGRESS_S:
            last = time.monotonic()
            complain(f"{what}: {counted(number, 'record')} so far")

    return tell


def _print(seen: RedriveView, dead: str, topic: str, executed: bool) -> None:
    did = "Redrove" if executed else "Would redrive"
    print_lines(f"{did} {counted(seen.records, 'record')} of {counted(seen.keys, 'key')} from {dead!r} to {topic!r}.")
    if seen.others or seen.strange:
        others = counted(seen.others, "dead letter")
        print_lines(f"Left out: {others} of other groups or topics, and {counted(seen.strange, 'other record')}.")
    if seen.late_keys:
        print_lines(
            f"{counted(seen.out_of_order, 'record')} of {counted(len(seen.late_keys), 'key')} would come out of order: "
            f"later records of the key are in the topic already{only_first(seen.late_keys)}:"
        )
        print_rows(LateKey, seen.late_keys[:MOST_LIMITED])
    elif seen.late_keys is not None and seen.records:
        print_lines("Every key would stay in order: the topic has no later record of them.")
