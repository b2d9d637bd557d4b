"""Positions where there are none: of a new group, of new partitions, after a loss; and the mirror that proves them.

Start (spec 7): Redis decides, then Kafka's own group offsets, then the starting offsets; set if
absent, so that `latest` cannot be resolved twice. A mirror without Redis is a loss, never a new group.
Part of the service, on its thread.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence

from coordinator.errors import CoopKafkaError, KafkaAccessError
from coordinator.member.evidence import Evidence
from coordinator.member.log_view import LogView
from coordinator.offset_spec import Earliest, OffsetSpec, within
from coordinator.ports import Log
from coordinator.progress import mirror as mirroring
from coordinator.progress.data_loss import Aged, Cut, Loss, Recreated, Truncated
from coordinator.progress.growth import Growth
from coordinator.progress.leader_epochs import Extents, extents_of, parsed
from coordinator.progress.ownership import Fact, Facts
from coordinator.progress.stream_offset import StreamOffset
from coordinator.quoting import VALUE, bounded
from coordinator.ranges import WHOLE
from coordinator.redis.calls import Caller
from coordinator.redis.store import Acquired, RedisStore, Status
from coordinator.settings import GroupSettings
from coordinator.subscription import Bounds, TopicPartition
from coordinator.verdicts import Absent, Lost, Verdict

_log = logging.getLogger(__name__)
MIRROR_MS = 10_000  # how often Kafka's own group is told
NOBODY = Caller()


class Founding:
    """Gives positions their first and their recovered values; see the module."""

    def __init__(
        self,
        settings: GroupSettings,
        starting: OffsetSpec,
        store: RedisStore,
        log: Log,
        view: LogView,
        evidence: Evidence,
    ) -> None:
        self._settings, self._starting, self._store = settings, starting, store
        self._log, self._view, self._evidence = log, view, evidence
        self._mirrored_at: int | None = None
        self._mirror_allowed, self._behind = True, False
        self._reported: object = None  # the ends and extents that Redis holds, and at which nonce
        self._starting_option = settings.starting_option  # None once its line is logged
        self.extents: Extents = {}  # what the mirror told of leader epochs at a recovery
        self.growths: tuple[Growth, ...] = ()  # as Redis last held them

    def first_positions(self) -> None:
        """Positions for every subscribed partition that has none, by the rules of Start; then the mirror."""
        offsets = mirroring.usable(self._group_offsets(), self._view.topics)
        self._first(self._store_status(offsets), offsets)
        if any(tp not in offsets for tp in self._view.partitions):
            self.mirror()

    def place(self, partitions: Sequence[TopicPartition]) -> None:
        """Positions for partitions that appeared later: their stable offset if Redis holds one, else earliest."""
        stable = self._store.stable({tp.topic for tp in partitions})
        earliest = self._log.resolve(Earliest(), partitions)
        self._found({tp: stable.get(tp, earliest[tp]) for tp in partitions}, nonce="")

    def recover(self, caller: Caller, why: str) -> None:
        """Begin again after a loss of state, with whatever proves positions (spec 7, Recovering)."""
        _log.warning("group %s: %s; positions are recovered from what proves them", self._settings.group, why)
        partitions, offsets, known = self._view.partitions, self._group_offsets(), self._evidence.known
        reset = max(self._store.reset_epoch(), mirroring.latest_reset(offsets), known.reset)
        proofs = mirroring.mirrored(mirroring.since_reset(offsets, reset), self._view.topics)
        facts = self._facts_of_these_topics() if known.reset == reset else {}
        proven = mirroring.proven(partitions, proofs, facts)
        self._remember_growths(offsets)
        self.extents = mirroring.extents(mirroring.since_reset(offsets, reset), self._view.topics)
        if self._settings.on_state_loss == "earliest":
            earliest = self._log.resolve(Earliest(), partitions)
            proven = {tp: earliest[tp] if position is None else position for tp, position in proven.items()}
        self._store.recover(caller, self._nonce(), why, reset, self._view.topics, proven, self.growths)

    def _remember_growths(self, offsets: mirroring.GroupOffsets) -> None:
        """What the mirror tells of growths and this process does not know, to be recorded again."""
        known = {g.field for g in self.growths}
        told = mirroring.growths(offsets, self._view.topics) | self._unseen_growths(offsets)
        self.growths += tuple(g for g in sorted(told, key=lambda g: g.field) if g.field not in known)

    def _unseen_growths(self, offsets: mirroring.GroupOffsets) -> frozenset[Growth]:
        """Those that came while nobody was there to record them: the mirror is of fewer partitions than there are."""
        if self._view.partitions_are_given:
            return frozenset()
        now, topics = self._store.now_ms(), self._view.topics
        until = now + self._settings.growth_grace_ms
        return frozenset(
            Growth(name, topics[name].id, old, len(topics[name].partitions), now, until)
            for name, old in mirroring.outgrown(offsets, topics)
        )

    def _facts_of_these_topics(self) -> Facts:
        """What is known of a topic proves nothing of the one that replaced it."""
        ids, topics = self._evidence.known.topic_ids, self._view.topics
        return {
            tp: f
            for tp, f in self._evidence.facts.items()
            if tp.topic in topics and ids.get(tp.topic) == topics[tp.topic].id
        }

    def assert_known(self) -> None:
        """Assert what this process may of the last offset that reached it."""
        self.claim(self._evidence.known, self._evidence.facts)

    def growths_with(self, recorded: tuple[Growth, ...]) -> tuple[Growth, ...]:
        """What is recorded of growth, and what this process knows besides: that was lost, and is recorded again."""
        fields = {g.field for g in recorded}
        lost = tuple(g for g in self.growths if g.field not in fields)
        if lost:
            self._store.grow(lost)
        self.growths = recorded + lost
        return self.growths

    def claim(self, offset: StreamOffset, facts: Facts) -> None:
        """Assert facts without the fence."""
        if facts:
            self._store.claim(NOBODY, offset, facts)

    def accept(self, found: Iterable[Loss], state: StreamOffset, bounds: Mapping[TopicPartition, Bounds]) -> None:
        """failOnDataLoss=false: move on to what is left; recorded as an event, and logged.

        `state` names reset and topic ids.
        """
        for loss in found:
            _log.warning("group %s lost records: %s", self._settings.group, loss)
            match loss:
                case Aged(tp, _, beginning):
                    self.claim(state, {tp: (Fact(WHOLE, beginning),)})
                case Truncated(tp, _, end) | Cut(
                    tp, _, end
                ):  # lanes ahead of the others may repeat; none of them may skip
                    lowest = self._store.stable({tp.topic}).get(tp, end)
                    self._store.recreate(NOBODY, self._view.topics, {tp: min(lowest, end)})
                case Recreated(topic, _, _):
                    beginnings = {tp: b.beginning for tp, b in bounds.items() if tp.topic == topic}
                    self._store.recreate(NOBODY, self._view.topics, beginnings)
            self._store.event("loss", str(loss))
        self.mirror()

    def committed(self) -> None:
        """Positions have moved: the mirror is behind."""
        self._behind = True

    def mirror_if_due(self, now_ms: int) -> None:
        """Tell Kafka's own group what is new, at most every ten seconds."""
        if self._behind and (self._mirrored_at is None or now_ms - self._mirrored_at >= MIRROR_MS):
            self._mirrored_at = now_ms
            self.mirror()

    def report_ends(self, bounds: Mapping[TopicPartition, Bounds], acquired: Acquired, nonce: str) -> None:
        """Show the log ends in Redis, for those who look; and keep what was seen of the logs of which we own something.

        Before anything is planned by these bounds, and after they were checked for logs that were cut.
        """
        ids, owned = acquired.topic_ids, {tp: bounds[tp] for tp, p in acquired.progress.items() if p.segments}
        extents = {tp: x.text(acquired.reset, ids[tp.topic]) for tp, x in extents_of(owned).items()}
        report = {tp: b.end for tp, b in bounds.items()}, extents
        if (nonce, *report) != self._reported:
            self._store.report_ends(*report)
            self._reported = (nonce, *report)

    # ------------------------------------------------------------------------------------------

    def _store_status(self, offsets: mirroring.GroupOffsets) -> Status | None:
        try:
            status = self._store.status(NOBODY)
        except Absent:
            if mirroring.is_mirror(offsets):
                raise  # a loss: the caller recovers, and asks again
            return None
        if status.reset < mirroring.latest_reset(offsets):
            raise Lost("Kafka's own group knows of a reset that Redis does not")
        return status

    def _first(self, status: Status | None, offsets: mirroring.GroupOffsets) -> None:
        known = self._store.stable(status.topics) if status else {}
        self._warn_of_unused_start({tp.topic for tp in (*known, *offsets)})
        new = [tp for tp in self._view.partitions if tp not in known]
        if new or not status:
            positions = self._wished(new, {tp.topic for tp in known} | (status.topics.keys() if status else set()))
            first = {tp: offsets[tp][0] if tp in offsets else position for tp, position in positions.items()}
            self._found(first, nonce="" if status else self._nonce())

    def _warn_of_unused_start(self, topics: Collection[str]) -> None:
        """One line where the user's start does not count, because positions are there."""
        option, self._starting_option = self._starting_option, None
        if option is not None and (held := sorted(set(topics) & self._view.topics.keys())):
            group, among = self._settings.group, bounded(", ".join(held), VALUE)
            _log.warning(
                "option %s is not used: group %s has positions in %s. Remedy: to move the group, stop its queries and "
                "run coop-kafka reset-offsets; to read from another start beside it, use another group.",
                *(option, group, among),
            )

    def _wished(self, new: Sequence[TopicPartition], known_topics: Collection[str]) -> dict[TopicPartition, int]:
        """The starting offsets of new topics; earliest for new partitions of a topic that the group has read before."""
        grown = [tp for tp in new if tp.topic in known_topics]
        added = [tp for tp in new if tp.topic not in known_topics]
        # A wish for more partitions than there are is a mistake, but not where the others have positions already.
        starting = within(self._starting, added) if known_topics else self._starting
        return self._log.resolve(Earliest(), grown) | (self._log.resolve(starting, added) if added else {})

    def _found(self, positions: Mapping[TopicPartition, int], nonce: str) -> None:
        """Set positions if absent; without a nonce the group must exist: a late call must not found it after a loss."""
        grace_ms = None if self._view.partitions_are_given else self._settings.growth_grace_ms
        self._store.create_positions(NOBODY, nonce, self._view.topics, positions, grace_ms=grace_ms)

    def _group_offsets(self) -> mirroring.GroupOffsets:
        """What Kafka's own group holds; nothing if we may not look.

        A Kafka that does not answer is an error: not to know of a mirror would found the group anew.
        """
        try:
            return self._log.group_offsets(self._settings.group)
        except KafkaAccessError as error:
            _log.warning("Kafka's own group %s cannot be read: %s", self._settings.group, error)
            return {}

    def mirror(self) -> None:
        """Tell Kafka's own group the stable offsets; a failure is only logged.

        A reset between our read and our write would leave an old offset: look again, and write again.
        """
        try:
            before = None
            while self._mirror_allowed and (status := self._store.status(NOBODY)).reset != before:
                before = status.reset
                self._write_mirror(status)
        except (CoopKafkaError, Verdict) as error:
            _log.warning("Kafka's own group %s was not told the stable offsets: %s", self._settings.group, error)

    def _write_mirror(self, status: Status) -> None:
        partitions = frozenset(self._view.partitions)
        stable = {tp: o for tp, o in self._store.stable(self._view.topics).items() if tp in partitions}
        waiting = [g for g in self._store.growths() if g.kept and not g.passed(stable)]
        came = {(tp, g.topic_id): g for g in waiting for tp in g.newer}
        stable = {tp: o for tp, o in stable.items() if tp.topic in status.topics}  # the others are to be recovered
        ids = {tp: status.topics[tp.topic].id for tp in stable}
        known = parsed(
            self._store.extents(self._view.topics), status.reset, {t: k.id for t, k in status.topics.items()}
        )
        entries = {
            tp: mirroring.entry(o, status.reset, ids[tp], came.get((tp, ids[tp])), known.get(tp))
            for tp, o in stable.items()
        }
        self._mirror_allowed = self._log.commit_group_offsets(self._settings.group, entries)
        self._behind = False
        if not self._mirror_allowed:
            _log.warning(
                "plain Kafka consumers live in group %s: stable offsets are not mirrored", self._settings.group
            )

    def _nonce(self) -> str:
        return self._settings.tokens(4)
