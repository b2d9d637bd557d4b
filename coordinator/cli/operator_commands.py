"""The verbs of `coop-kafka` that change a group: policy, reset-offsets, delete. The last two need `--execute`."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import javaproperties
import typer

from coordinator.assignment.policies import not_there
from coordinator.cli.command_options import Execute, Group, Json, Redis, connected, print_json, print_next_step, typed
from coordinator.cli.printing import complain, counted, print_lines
from coordinator.cli.tables import print_moves
from coordinator.errors import InvalidOptionError
from coordinator.offset_spec import AtTimestamp, Earliest, Latest, NoMatch
from coordinator.operations.operations import Executed, Operator, Reset
from coordinator.operations.reset_plan import ShiftBy, Target, ToOffset, chosen
from coordinator.redis.operator import OperatorVerbs

RETRIES, RETRY_INTERVAL_MS = 3, 1_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

Bootstrap = Annotated[
    str,
    typer.Option(
        metavar="HOST:PORT,...",
        envvar="COOP_KAFKA",
        help="Brokers: the option `kafka.bootstrap.servers`.",
        show_default=False,
    ),
]
CommandConfig = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Properties file for the Kafka client, as for Kafka's own tools.",
    ),
]


def policy(
    group: Group,
    redis: Redis,
    changes: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Set a policy to true, false, or nothing for the default. Repeatable."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Show or change the group's policies: accept.individual.commit and accept.range.fetch:TOPIC.

    Members apply a change within seconds, without a restart.
    """
    with connected(redis) as client:
        store = OperatorVerbs.of_group(client, group).policies
        wanted = dict(map(_change, changes or ()))
        found = store.set_policy(wanted) if wanted else store.policy()
        strange = not_there(wanted, group, store.topics()) if wanted else ()
    for line in strange:
        complain(f"warning: {line}")
    if as_json:
        print_json(typed(found.fields))
    else:
        print_lines(*(f"{name}={value}" for name, value in found.fields.items()))


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
    as_json: Json = False,
) -> None:
    """Move a group's positions. Refused while members live: stop all its queries first.

    All lanes of a partition move to one offset, the nearest one in the log.
    Checkpoints of the group's queries stay valid: members ignore their positions from before the reset.
    """
    if bool(topic) == all_topics:
        raise typer.BadParameter("pass either --topic, once or more, or --all-topics")
    target = _target(to_earliest, to_latest, to_datetime, to_offset, shift_by)
    wanted = None if all_topics else chosen(topic or ())
    with _operator(context, group, redis, bootstrap_server, command_config) as operator:
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
    as_json: Json = False,
) -> None:
    """Delete a group: all its keys in Redis, and its offsets in Kafka's group of the same name.

    Refused while members live. Delete the checkpoints of its queries too, since they belong to the deleted group.
    """
    with _operator(context, group, redis, bootstrap_server, command_config) as operator:
        found = operator.delete() if execute else operator.remains()
    if as_json:
        print_json({"keys": found.keys, "mirrored": [*map(str, found.mirrored)], "executed": execute})
    else:
        did = "Deleted" if execute else "Would delete"
        partitions = counted(len(found.mirrored), "partition")
        print_lines(f"{did} {counted(found.keys, 'key')} in Redis, and the offsets of {partitions} in Kafka.")
        print_next_step(execute)


@contextmanager
def _operator(
    context: typer.Context, group: str, redis: str, bootstrap: str, command_config: Path | None
) -> Iterator[Operator]:
    from coordinator.kafka.log import KafkaLog  # noqa: PLC0415 - the other verbs need no Kafka client

    arguments = context.obj({**_properties(command_config), "bootstrap.servers": bootstrap})
    with (
        closing(KafkaLog(arguments, retries=RETRIES, retry_interval_ms=RETRY_INTERVAL_MS)) as log,
        connected(redis) as client,
    ):
        yield Operator(client, log, group)


def _properties(file: Path | None) -> dict[str, str]:
    try:
        return dict(javaproperties.loads(file.read_text("utf-8"))) if file else {}
    except (OSError, ValueError) as error:
        raise InvalidOptionError(
            f"--command-config {str(file)!r} cannot be read ({type(error).__name__})",
            "pass a readable file of Java properties in UTF-8, with name=value on each line",
        ) from None


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
        moves = [asdict(m) for m in planned.moves]
        print_json({"executed": done is not None, "reset": done.epoch if done else None, "partitions": moves})
    else:
        print_moves(planned.moves, done=done is not None)
        if done:
            print_lines(f"Moved {counted(len(planned.moves), 'partition')}: this is reset epoch {done.epoch}.")
        print_next_step(done is not None)
    if done and not done.mirrored:
        complain("warning: plain consumers use Kafka's group of the same name, so its offsets were not moved")
