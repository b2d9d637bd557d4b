"""A member accepts only offsets of its group and its topics, within the logs. Pure.

An offset beyond a log end is of a log that was cut, or of another cluster: `DataLossError` under failOnDataLoss,
before any part of it is used (rule: checkpoint-on-resume).
"""

from collections.abc import Iterator
from dataclasses import replace

from coordinator.errors import CheckpointMismatchError, FilterChangedError
from coordinator.member.decision import RETRY_MS, Call, Decision, LookAgain, Seen
from coordinator.member.founding import another
from coordinator.member.kinds import Request
from coordinator.member.log_view import topics_again
from coordinator.member.low_ends import believed
from coordinator.member.requests import LogLine, ReadResetEpoch
from coordinator.member.state import State, unsure
from coordinator.progress import data_loss
from coordinator.progress.data_loss import Beyond
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.subscription import Assigned, Pattern, TopicPartition

LOW_END = "a log ends before an offset that was read, which may be the early answer of a new leader"
"""Why a call looks again before it believes a log end."""


def accept(state: State, seen: Seen, call: Call) -> Decision:
    """Refuse a checkpoint of another group or other topics, and adopt the member id that it names."""
    offset, settings = call.offset, call.setup.settings
    if offset.group != settings.group:
        raise CheckpointMismatchError(
            f"the checkpoint belongs to group {offset.group!r}, this query to group {settings.group!r}",
            "use a new checkpointLocation for another group, or the group of this checkpoint",
        )
    life, founding = state.life, offset.founding or state.life.founding
    if life.founding and founding != life.founding:
        raise another(settings.group, founding, f"this process has joined {life.founding}")
    warnings = tuple(_unknown_topics(state, call))
    if settings.fail_on_data_loss:
        state, within, _ = within_logs(state, offset, seen, call)
        if within is None:
            return Decision(state, (), LookAgain(RETRY_MS, LOW_END))
    member = life.member or offset.member or life.minted
    return Decision(replace(state, life=replace(state.life, member=member, founding=founding)), warnings)


def refuse_other_filter(read: StreamOffset, call: Call) -> None:
    """`FilterChangedError` for records to `read` that were planned with another filter (rule: replay-same-filter)."""
    planned, mine = call.offset.filter, call.setup.settings.filter
    if planned != mine.digest and any(row.offsets for rows in read.rows.values() for row in rows):
        was = f"with the filter of digest {planned}" if planned else "without a filter"
        now = f"the filter {mine.text}" if mine.digest else "none"
        raise FilterChangedError(
            f"the unfinished batch of the checkpoint was planned {was}, and this query has {now}: a replay would "
            "have other records"
        )


def _unknown_topics(state: State, call: Call) -> Iterator[Request[bool]]:
    settings = call.setup.settings
    unknown = sorted({tp.topic for tp in call.offset.lanes} - state.log.topics.keys())
    if not unknown:
        return
    if not isinstance(call.setup.subscription, Pattern):
        raise CheckpointMismatchError(
            f"the checkpoint reads topic {unknown[0]!r}, to which this query does not subscribe",
            "use a new checkpointLocation for other topics, or subscribe to that topic too",
        )
    loss = data_loss.Deleted(unknown[0])
    if settings.fail_on_data_loss:
        raise data_loss.error(loss)
    yield LogLine(f"group {settings.group}: {loss}")


def within_logs(
    state: State, offset: StreamOffset, seen: Seen, call: Call
) -> tuple[State, StreamOffset | None, tuple[Request[bool], ...]]:
    """The offset without partitions whose log ends before it, and a warning for each of them.

    None if such a log end is not believed yet: look again. Reads Kafka only if the last look does not show that the
    logs reach so far.
    """
    if offset == state.losses.within:
        return state, offset, ()
    state, beyond = _beyond(state, offset, seen, call)
    if beyond is None:
        return state, None, ()
    if not beyond:
        return replace(state, losses=replace(state.losses, within=offset)), offset, ()
    settings = call.setup.settings
    if settings.fail_on_data_loss:
        raise data_loss.error(next(iter(beyond.values())))
    warnings = tuple(LogLine(f"group {settings.group}: {loss}; it is not committed") for loss in beyond.values())
    return replace(state, evidence=state.evidence.forgotten()), offset.without(beyond), warnings


def _beyond(
    state: State, offset: StreamOffset, seen: Seen, call: Call
) -> tuple[State, dict[TopicPartition, Beyond] | None]:
    topics, reached = state.log.topics, state.log.reached
    far = {
        tp: until
        for tp, until in data_loss.further(offset, state.log.bounds).items()
        if tp.topic in topics and offset.topic_ids.get(tp.topic) == topics[tp.topic].id  # else it was re-created
        if until > reached.get(tp, 0)
    }
    if not far or offset.reset < seen.of(ReadResetEpoch()):
        return state, {}  # an operator has moved positions since: no part of this offset is used
    state = replace(state, log=topics_again(state.log, seen, call))  # a topic may have grown since
    known = frozenset(state.log.partitions)
    if (unknown := sorted(far.keys() - known)) and not isinstance(call.setup.subscription, Assigned):
        raise CheckpointMismatchError(
            f"the checkpoint reads {unknown[0]}, a partition that its topic does not have",
            "use a new checkpointLocation and an output of its own; the group's positions are in Redis and stay",
        )
    log, wanted = state.log, {tp: until for tp, until in far.items() if tp in known}
    low, ends = believed(log.low, log.bounds, wanted, seen)
    others = {tp: of for tp, of in log.low.items() if tp not in wanted}
    reached = {**log.reached, **{tp: end for tp, end in ends.items() if tp not in unsure(low)}}
    state = replace(state, log=replace(log, reached=reached, low=others | low))
    return state, None if unsure(low) else {tp: Beyond(tp, far[tp], end) for tp, end in ends.items() if far[tp] > end}
