"""Kafka as the driver sees it (`coordinator.values.log.Log`): topics, ends, starting offsets, Kafka's own groups.

Knows Spark's rules for starting offsets; `offsets` and `connection` send the requests. Runs in the driver's reader
process, one thread at a time.
"""

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from kafka import errors
from kafka.protocol.consumer import IsolationLevel
from kafka.structs import OffsetAndMetadata
from kafka.structs import TopicPartition as KafkaTopicPartition

from coordinator.errors import InvalidOptionError, LogError, StartingOffsetError
from coordinator.errors.quoting import quoted
from coordinator.kafka import internals
from coordinator.kafka.connection import SHORT_PATIENCE_MS, KafkaConnection, Session
from coordinator.kafka.errors import other_group_type, unknown_partitions
from coordinator.kafka.matching import Matching
from coordinator.kafka.offsets import (
    NO_OFFSET,
    LookedUp,
    Wanted,
    describe,
    ends_of_epochs,
    leader_racks,
    look_up,
    look_up_now,
)
from coordinator.kafka.policy_topic import PolicyTopic
from coordinator.kafka.record_times import first_times
from coordinator.kafka.silence import Silence
from coordinator.kafka.watch import LogWatch
from coordinator.values.offset_spec import (
    EARLIEST,
    LATEST,
    AtOffsets,
    AtTimestamp,
    AtTimestamps,
    Earliest,
    Latest,
    NoMatch,
    OffsetSpec,
)
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import NO_ID, Assigned, Bounds, Pattern, Subscription, Topic, TopicPartition

_log = logging.getLogger(__name__)

LISTED_IN_ERRORS = 10  # partitions; an error counts the rest

_CONSUMERS_LIVE_THERE = {
    errors.UnknownMemberIdError,
    errors.IllegalGenerationError,
    errors.RebalanceInProgressError,
    errors.StaleMemberEpochError,
    errors.FencedMemberEpochError,
}
_OTHER_KINDS = {"share", "streams"}
_NOT_THERE = {errors.UnknownTopicOrPartitionError, errors.UnknownTopicIdError}


class KafkaLog:
    """Sends a request to a broker at each call; connects at the first.

    With `fail_on_data_loss`, a starting or ending offset outside the log is an error here. Without it, the offset stays
    as it is, and the planner or the task counts the lost records.
    """

    def __init__(
        self,
        kafka: Mapping[str, object],
        *,
        retries: int,
        retry_interval_ms: int,
        fail_on_data_loss: bool = True,
        patience_ms: int = SHORT_PATIENCE_MS,
    ) -> None:
        """`kafka` holds kafka-python's keyword arguments; `retries` are `fetchOffset.numRetries`.

        `patience_ms`: how long brokers may be away. Each failed request is sent again, at least until then.
        """
        self._kafka = kafka
        self._connection = KafkaConnection(
            kafka, retries=retries, retry_interval_ms=retry_interval_ms, patience_ms=patience_ms
        )
        self._silence = Silence(patience_ms)
        self._isolation = IsolationLevel.build_from(kafka.get("isolation_level", "read_uncommitted"))
        self._fail_on_data_loss = fail_on_data_loss
        self._warned = False  # that a pattern matches no topic
        self._without_ids = False  # warned that topics have none
        self._matching = Matching()
        self._policies = PolicyTopic(kafka, self._connection)
        self._watch = LogWatch(kafka, self._isolation)

    def topics(self, subscription: Subscription, *, quick: bool = False) -> dict[str, Topic]:
        """The topics that `subscription` means now, by name; for `Assigned` with the assigned partitions only.

        `quick`: of a pattern perhaps without new ones, see `matching`.
        """
        found = self._connection.ask("topics", lambda session: self._described(session, subscription, quick=quick))
        topics = {topic.name: topic for topic in found}
        if isinstance(subscription, Pattern) and not topics and not self._warned:
            self._warned = True
            _log.warning(
                "option subscribePattern = %s matches no topic, so nothing is read until one appears; check the "
                "pattern, and that the user may describe the topics",
                quoted(subscription.regex),
            )
        self._warn_without_ids(topics)
        return _only_assigned(topics, subscription) if isinstance(subscription, Assigned) else topics

    def _warn_without_ids(self, topics: Mapping[str, Topic]) -> None:
        without = sorted(name for name, topic in topics.items() if topic.id == NO_ID)
        if without and not self._without_ids:
            self._without_ids = True
            _log.warning(
                "Kafka names no topic ids, as before 2.8. If %s are deleted and created again, coop-kafka does not "
                "see it, and skips records of the new topic up to the positions of the old one. Remedy: before you "
                "delete a topic, stop its queries; afterwards run coop-kafka reset-offsets --to-earliest",
                _listed(without),
            )

    def _described(self, session: Session, subscription: Subscription, *, quick: bool) -> list[Topic]:
        match subscription:
            case Pattern():
                return self._matching.topics(session, _compiled(subscription.regex), quick=quick)
            case Assigned():
                return describe(session, {tp.topic for tp in subscription.partitions})
            case _:
                return describe(session, subscription.names)

    def bounds(
        self, partitions: Iterable[TopicPartition], beginnings: Wanted | None = None
    ) -> dict[TopicPartition, Bounds]:
        """Beginning and end of each partition's log; the end is the last stable offset under read_committed.

        If the caller knows the `beginnings`, only the ends are requested.
        """
        wanted = list(partitions)
        latest = dict.fromkeys(wanted, LATEST)
        if beginnings is None:
            first, ends = self._with_epochs(dict.fromkeys(wanted, EARLIEST), latest)
            beginnings = {tp: at.offset for tp, at in first.items()}
        else:
            (ends,) = self._with_epochs(latest)
        return {tp: Bounds(beginnings[tp], *ends[tp]) for tp in wanted}

    def bounds_now(
        self, partitions: Iterable[TopicPartition], beginnings: Wanted | None = None
    ) -> dict[TopicPartition, Bounds]:
        """The same of the partitions whose leader answers within a second, or has answered since the last look.

        Raises `KafkaUnavailableError` once the leader of another has been away for longer than the patience.
        """
        wanted = list(partitions)
        questions = {LATEST: wanted} if beginnings is not None else {EARLIEST: wanted, LATEST: wanted}
        found, missing = self._connection.ask(
            f"offsets of {len(wanted)} partitions", lambda session: look_up_now(session, questions, self._isolation)
        )
        self._silence.noticed(wanted, missing)
        if beginnings is None:
            beginnings = {tp: at.offset for tp, at in found[EARLIEST].items()}
        return {tp: Bounds(beginnings[tp], *found[LATEST][tp]) for tp in wanted if tp not in missing}

    def watch(self, ends: Mapping[TopicPartition, int], wake: Callable[[], None]) -> int:
        """Call `wake`, in another thread, once one of these logs has a record at its end; see `watch`."""
        return self._watch.begin(self._connection.leaders, ends, wake)

    def leader(self, tp: TopicPartition) -> int:
        """The id of the broker that leads a partition, by the last answer."""
        return self._connection.ask(f"the leader of {tp}", lambda session: session.leaders[tp])

    def ends_of_epochs(self, epochs: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """The end, in each current log, of the records of that leader epoch and of older ones (OffsetForLeaderEpoch).

        Partitions whose leader does not support leader epochs are left out.
        """
        what = f"leader epochs of {len(epochs)} partitions"
        return self._connection.ask(what, lambda session: ends_of_epochs(session, epochs))

    def high_watermarks(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The end of each partition's log, under any isolation level: past the records of open transactions."""
        wanted = list(partitions)
        return self._look_up(dict.fromkeys(wanted, LATEST), IsolationLevel.READ_UNCOMMITTED)

    def high_watermarks_now(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The same of the partitions whose leader answers within a second, or has answered since the last look."""
        return self._now(partitions, IsolationLevel.READ_UNCOMMITTED)

    def ends_now(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Likewise the ends that can be read. Unlike `bounds_now`, it has patience with the others for ever."""
        return self._now(partitions, self._isolation)

    def _now(self, partitions: Iterable[TopicPartition], level: IsolationLevel) -> dict[TopicPartition, int]:
        wanted = list(partitions)
        what = f"offsets of {len(wanted)} partitions"
        found, missing = self._connection.ask(what, lambda session: look_up_now(session, {LATEST: wanted}, level))
        return {tp: at.offset for tp, at in found[LATEST].items() if tp not in missing}

    def resolve(self, spec: OffsetSpec, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """The offset that `spec` means in each partition, by the rules of Spark's Kafka source.

        `AtOffsets` and `AtTimestamps` must name exactly `partitions`; else, and for a time that no
        record reached where the strategy is `error`, a `StartingOffsetError`.
        """
        wanted = list(partitions)
        match spec:
            case Earliest():
                return self._look_up(dict.fromkeys(wanted, EARLIEST))
            case Latest():
                return self._look_up(dict.fromkeys(wanted, LATEST))
            case AtOffsets():
                _must_cover(spec.offsets, wanted, "offset", "-2 means its beginning, -1 its end")
                return self._at_offsets(spec.offsets)
            case AtTimestamp():
                return self._at_times(dict.fromkeys(wanted, spec.timestamp_ms), spec.no_match)
            case AtTimestamps():
                _must_cover(spec.timestamps_ms, wanted, "timestamp", "startingTimestamp is one time for all")
                return self._at_times(spec.timestamps_ms, spec.no_match)

    def first_times(self, stretches: Mapping[TopicPartition, OffsetRange]) -> dict[TopicPartition, int | None]:
        """The time, in milliseconds, of the first remaining record in each stretch; None where there is none.

        Without the partitions whose leader does not answer.
        """
        what = f"the times of records in {len(stretches)} partitions"
        return self._connection.ask(what, lambda _: first_times(self._kafka, stretches))

    def leader_racks(self, topics: Iterable[str]) -> dict[TopicPartition, str]:
        """The rack of each partition's leader (`broker.rack`), without unknown topics and brokers without a rack."""
        names = sorted(set(topics))
        return self._connection.ask(f"the racks of {len(names)} topics", lambda session: leader_racks(session, names))

    def must_hold_offsets(self, group: str) -> None:
        """Raise `GroupTypeError` if Kafka's own group of that name cannot hold offsets, or not ours."""
        what = f"the type of group {group!r}"
        listed = self._connection.ask(what, lambda session: internals.groups_of_coordinator(session.admin, group))
        kinds = {found["protocol_type"] for found in listed if found["group_id"] == group}
        if other := kinds & _OTHER_KINDS:
            raise other_group_type(group, min(other))

    def group_offsets(self, group: str, *, patient: bool = True) -> dict[TopicPartition, tuple[int, str]]:
        """The commits of Kafka's own group, offset and metadata text; empty if the group does not exist.

        A failure is not tried again unless the caller is `patient`.
        """
        answers = self._connection.ask(
            f"the offsets of group {group!r}",
            lambda session: session.admin.list_group_offsets(group)[group],
            patient=patient,
        )
        return {TopicPartition(*tp): (at.offset, at.metadata) for tp, at in answers.items() if at.offset >= 0}

    def commit_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, tuple[int, str]], *, patient: bool = True
    ) -> bool:
        """Commit to Kafka's own group. False, without a commit, if the group has plain consumers.

        A failure is not tried again unless the caller is `patient`.
        """
        entries = {KafkaTopicPartition(*tp): OffsetAndMetadata(at, text, -1) for tp, (at, text) in offsets.items()}
        return self._connection.ask(
            f"a commit of offsets to group {group!r}",
            lambda session: _committed(session.admin.alter_group_offsets(group, entries), group),
            patient=patient,
        )

    def delete_group_offsets(self, group: str, partitions: Iterable[TopicPartition]) -> None:
        """Delete the commits of Kafka's own group for `partitions`, and the group itself if no commit remains."""
        unwanted = [KafkaTopicPartition(*tp) for tp in partitions]
        if not unwanted:
            return

        def forget(session: Session) -> None:
            if group not in session.admin.list_group_offsets(group):
                return
            for result in session.admin.delete_group_offsets(group, unwanted).values():
                if result is not errors.NoError and result not in _NOT_THERE:
                    raise result
            if not any(at.offset >= 0 for at in session.admin.list_group_offsets(group)[group].values()):
                outcome = session.admin.delete_groups([group])[group]
                if outcome not in ("OK", errors.GroupIdNotFoundError.__name__):
                    raise LogError(
                        f"Kafka refused to delete group {group!r} ({outcome})",
                        "end the consumers of Kafka's group of that name, and permit DELETE on it, then try again",
                    )

        self._connection.ask(f"to delete offsets of group {group!r}", forget)

    def cluster_policies(self) -> tuple[str, dict[str, str]]:
        """The policies of the Kafka cluster by name, with their version; see `policy_topic`."""
        return self._policies.read()

    def set_cluster_policies(self, changes: Mapping[str, str]) -> None:
        """Write policies of the Kafka cluster; an empty value ends one. Creates the topic if it does not exist."""
        self._policies.write(changes)

    def close(self) -> None:
        """Close the connection; a later request would open another."""
        self._watch.close()
        self._connection.close()

    def _look_up(self, wanted: Wanted, isolation: IsolationLevel | None = None) -> dict[TopicPartition, int]:
        (answers,) = self._with_epochs(wanted, isolation=isolation)
        return {tp: at.offset for tp, at in answers.items()}

    def _with_epochs(
        self, *questions: Wanted, isolation: IsolationLevel | None = None
    ) -> Sequence[Mapping[TopicPartition, LookedUp]]:
        partitions = len({tp for wanted in questions for tp in wanted})
        level = self._isolation if isolation is None else isolation
        what = f"offsets of {partitions} partitions"
        return self._connection.ask(what, lambda session: look_up(session, questions, level))

    def _at_offsets(self, offsets: Wanted) -> dict[TopicPartition, int]:
        words = {tp: offset for tp, offset in offsets.items() if offset in (EARLIEST, LATEST)}
        numbers = {tp: offset for tp, offset in offsets.items() if tp not in words}
        if self._fail_on_data_loss:
            marks = self.high_watermarks(numbers)  # records of open transactions are in the log too
            bounds = {tp: b._replace(end=marks[tp]) for tp, b in self.bounds(numbers).items()}
            _must_be_readable(numbers, bounds)
        return {**offsets, **self._look_up(words)}

    def _at_times(self, times_ms: Wanted, no_match: NoMatch) -> dict[TopicPartition, int]:
        found = self._look_up(times_ms)
        later = {tp: time for tp, time in times_ms.items() if found[tp] == NO_OFFSET}
        if later and no_match is NoMatch.ERROR:
            asked = _listed(f"{tp} at {time_ms}" for tp, time_ms in sorted(later.items()))
            raise StartingOffsetError(
                f"no record has this timestamp or a later one: {asked}",
                "set an earlier time, or set startingOffsetsByTimestampStrategy=latest to start at the end there",
            )
        return {**found, **self._look_up(dict.fromkeys(later, LATEST))}


def _compiled(regex: str) -> re.Pattern[str]:
    try:
        return re.compile(regex)
    except re.error as error:
        raise InvalidOptionError(
            f"subscribePattern {regex!r} is not a regular expression ({error})",
            "set subscribePattern to a regular expression of Python's `re`",
        ) from None


def _only_assigned(topics: Mapping[str, Topic], assigned: Assigned) -> dict[str, Topic]:
    missing = {tp for tp in assigned.partitions if tp.partition not in topics[tp.topic].partitions}
    if missing:
        raise unknown_partitions(missing)
    read = {name: tuple(n for n in t.partitions if (name, n) in assigned.partitions) for name, t in topics.items()}
    return {name: replace(topic, partitions=read[name], total=topic.count) for name, topic in topics.items()}


def _committed(results: Mapping[KafkaTopicPartition, type[errors.KafkaError]], group: str) -> bool:
    refusals = {result for result in results.values() if result is not errors.NoError}
    if refusals & _CONSUMERS_LIVE_THERE:
        return False
    if errors.GroupIdNotFoundError in refusals:
        raise other_group_type(group)
    if unknown := {TopicPartition(*tp) for tp, result in results.items() if result in _NOT_THERE}:
        raise unknown_partitions(unknown)
    if refusals:
        raise next(iter(refusals))
    return True


def _must_cover(given: Wanted, wanted: Sequence[TopicPartition], noun: str, hint: str) -> None:
    """Spark's rule: every partition that is read, and no other."""
    missing, surplus = sorted(set(wanted) - given.keys()), sorted(given.keys() - set(wanted))
    if missing or surplus:
        wrong = {"missing": missing, "not read": surplus}
        which = "; ".join(f"{why}: {_listed(tps)}" for why, tps in wrong.items() if tps)
        raise StartingOffsetError(
            f"the {noun}s do not name exactly the partitions that the query reads ({which})",
            f"set one {noun} for each of these partitions; {hint}",
        )


def _must_be_readable(offsets: Wanted, bounds: Mapping[TopicPartition, Bounds]) -> None:
    outside = [
        f"{tp} at {offset}, where {bounds[tp].beginning} to {bounds[tp].end} are possible"
        for tp, offset in sorted(offsets.items())
        if not bounds[tp].beginning <= offset <= bounds[tp].end
    ]
    if outside:
        raise StartingOffsetError(
            f"an offset is not in the log: {_listed(outside)}",
            "set an offset within the log, or -2 for its beginning and -1 for its end",
        )


def _listed(things: Iterable[object]) -> str:
    texts = [str(thing) for thing in things]
    more = len(texts) - LISTED_IN_ERRORS
    return ", ".join(texts[:LISTED_IN_ERRORS]) + (f" and {more} more" if more > 0 else "")
