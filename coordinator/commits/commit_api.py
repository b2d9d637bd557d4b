"""The Commit API: a member that acknowledges records by itself commits offset ranges.

Any Python process can use it, with or without Spark: the user's driver, a worker, a service beside it. It neither
joins the group nor holds a lease: the member's own process does. It uses no Kafka client.
"""

import json
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, NoReturn, Self

from coordinator.assignment.policies import GROUP_POLICY, TOPIC_POLICY, setting
from coordinator.assignment.settings import GroupSettings, MemberOptions
from coordinator.errors import (
    CheckpointMismatchError,
    CommitBeforeEndsError,
    CommitBeyondReadError,
    CommitError,
    CorruptCommitError,
    FencedMemberError,
    GroupRecoveringError,
    IndividualCommitNotAllowedError,
    IndividualCommitTooOldError,
    MaxIndividualCommitReachedError,
    StateFormatError,
    TooManyRangesError,
    TopicRangeFetchNotAllowedError,
    UnknownGroupError,
)
from coordinator.progress.ownership import Owned, Ownership
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.commits import CommitOutcome, CommitVerbs, Reservation, ReservedTurn, Standing
from coordinator.redis.replies import Caller
from coordinator.values import verdicts
from coordinator.values.hash_map import overlap
from coordinator.values.ranges import HashRange, OffsetRange, Offsets, is_number, union
from coordinator.values.subscription import TopicPartition

_log = logging.getLogger(__name__)
RANGES_MAX = 60_000  # of one call: 1 MB at 16 bytes a range
NO_OFFSET = -1
TIMEOUT_S = 10.0  # of a call of Redis: no lease depends on it, and 60,000 ranges take long


@dataclass(frozen=True, slots=True)
class Committed:
    """The answer to a commit."""

    stable: int  # the partition's stable offset: all records before it are done
    held: int  # individual commits that the partition holds now
    duplicates: int  # ranges of the call that were committed before
    refused: tuple[HashRange, ...]  # not committed: the member no longer owns these hashes at that lane epoch


class CommitApi(AbstractContextManager["CommitApi"]):
    """Commits of one life of one member; safe for several threads.

    It keeps the lane epochs of the moment at which you make it. Make one for each batch (`of_offset`), or a new one
    after ranges moved (`of_member`). Redis refuses commits for lanes that the member has lost since.
    """

    def __init__(self, client: RedisClient, verbs: CommitVerbs, standing: Standing, fields: Mapping[str, str]) -> None:
        self._client, self._verbs, self._standing = client, verbs, standing
        self._most = _number(fields, "max.individual.commits", MemberOptions().max_individual_commits)

    @classmethod
    def of_offset(cls, redis_url: str, offset: str | Mapping[str, Any]) -> Self:
        """For the lanes of a batch: `offset` is the JSON of its end, as in the checkpoint's `offsets` folder.

        Raises `CheckpointMismatchError`, `CommitWithoutOrderError`, `UnknownGroupError`, `StoreError`.
        """
        end = _parsed(offset)
        if not end.group or not end.member:
            raise UnknownGroupError(
                "this offset names no group or no member", "pass the offset of a batch of a query with a group"
            )
        return cls._opened(redis_url, end.group, end.member, lambda _, caller: Standing.of_batch(caller, end))

    @classmethod
    def of_member(cls, redis_url: str, group: str, member: str) -> Self:
        """For all ranges that a member owns at this moment, up to the log ends in Redis.

        Raises `CommitWithoutOrderError`, `UnknownGroupError`, `StoreError`.
        """
        return cls._opened(redis_url, group, member, lambda verbs, caller: verbs.standing(caller))

    @classmethod
    def _opened(
        cls, redis_url: str, group: str, member: str, standing: Callable[[CommitVerbs, Caller], Standing]
    ) -> Self:
        client = RedisClient(redis_url, TIMEOUT_S)
        verbs = CommitVerbs(ScriptCalls.of(client, GroupSettings(group)))
        with ExitStack() as opened:
            opened.callback(client.close)
            caller, fields = verbs.member(member)
            commits = cls(client, verbs, standing(verbs, caller), fields)
            opened.pop_all()
        return commits

    @property
    def lanes(self) -> Ownership:
        """The hash ranges, with their lane epochs, that commits are for."""
        return self._standing.lanes

    @property
    def caller(self) -> tuple[str, str]:
        """The group and the member."""
        return self._verbs.group, self._standing.caller.member

    def commit(
        self,
        tp: TopicPartition,
        ranges: Sequence[OffsetRange],
        *,
        offset: int = NO_OFFSET,
        lanes: Iterable[Owned] | None = None,
    ) -> Committed:
        """Commit offset ranges of a partition, for `lanes` or for all lanes.

        Ranges are half-open, and at most 60,000 after touching ranges are joined. Without ranges, all offsets before
        `offset` are done; with ranges, `offset` must be -1 (`CorruptCommitError`). The call commits all or nothing,
        except for lost lanes (`refused`). A lane takes only offsets that its batch reads.
        A repeated commit changes nothing; it is counted and logged.
        Raises `CommitBeyondReadError` for offsets that the member cannot have read, `CommitBeforeEndsError` with the
        offset of a batch whose tasks may end early, unless it runs and all of them have ended, 88
        `IndividualCommitNotAllowedError`, 89 `TopicRangeFetchNotAllowedError`, 91
        `IndividualCommitTooOldError` (`stable` is the offset to go on from), 92 `MaxIndividualCommitReachedError`,
        `TooManyRangesError`, `FencedMemberError`, `GroupRecoveringError`, `CommitWithoutOrderError`, `StoreError`.
        """
        wanted = _offsets(ranges, offset)
        of_lanes = _disjoint(self.lanes.get(tp, ()) if lanes is None else lanes)
        with self._verdicts():
            outcome = self._verbs.commit_ranges(self._standing, tp, of_lanes, wanted, self._most)
        if outcome.word != "COMMITTED":
            self._refuse(tp, wanted, outcome)
        if outcome.repeated:
            _log.warning("%s: %d ranges were committed before", self._named(tp), outcome.repeated)
        return Committed(outcome.stable, outcome.held, outcome.repeated, tuple(lane.hashes for lane in outcome.refused))

    def reserve(self, tp: TopicPartition, wanted: Reservation, state: str, lease_ms: int) -> ReservedTurn:
        """Make, renew or end a reservation of `ordered_commits`. The answer contains whether its turn has come."""
        _disjoint(wanted.lanes)
        with self._verdicts():
            turn = self._verbs.reserve(self._standing, tp, wanted, state, lease_ms)
        if turn.word in {"BEYOND", "NOT_OWNED"}:
            self._refuse(tp, (wanted.offsets,), CommitOutcome(turn.word, turn.stable, 0, 0, (), int(turn.who or 0)))
        return turn

    def close(self) -> None:
        """Drop the connections."""
        self._client.close()

    def __exit__(self, *_: object) -> None:
        self.close()

    @contextmanager
    def _verdicts(self) -> Iterator[None]:
        group, member = self.caller
        try:
            yield
        except verdicts.Fenced:
            raise FencedMemberError(
                f"another life of member {member} of group {group!r} has joined",
                "make a new CommitApi from a later offset of the member",
            ) from None
        except verdicts.Verdict as verdict:
            self._verbs.check_ordering()
            raise GroupRecoveringError(
                f"group {group!r} is recovering from a loss of state ({verdict or 'all members join again'})",
                "make a new CommitApi from a later offset; commits that Redis still holds stay valid",
            ) from None

    def _refuse(self, tp: TopicPartition, wanted: Offsets, outcome: CommitOutcome) -> NoReturn:
        what = f"{self._named(tp)}: [{wanted[0]}{' ...' if len(wanted) > 1 else ''}]"
        match outcome.word:
            case "BEYOND":
                raise self._beyond(what, outcome.reach)
            case "UNSEALED":
                raise CommitBeforeEndsError(
                    f"{what}: a task may end before the offsets that this batch planned, and Redis does not know where"
                )
            case "NOT_ALLOWED":
                raise IndividualCommitNotAllowedError(
                    f"{what}: the group's policy forbids individual commits",
                    f"allow them: {setting(self._verbs.group, GROUP_POLICY)}",
                )
            case "TOPIC_NOT_ALLOWED":
                raise TopicRangeFetchNotAllowedError(
                    f"{what}: the policy {TOPIC_POLICY} of the topic forbids individual commits",
                    f"allow them: {setting(self._verbs.group, f'{TOPIC_POLICY}:{tp.topic}')}",
                )
            case "TOO_OLD":
                _log.warning("%s lies wholly below the stable offset %d", what, outcome.stable)
                raise IndividualCommitTooOldError(
                    f"{what} lies wholly below the stable offset {outcome.stable}", stable=outcome.stable
                )
            case "FULL":
                raise MaxIndividualCommitReachedError(
                    f"{what} exceeds the limit of {self._most} individual commits: the partition holds {outcome.held}",
                    f"commit the missing offsets from the stable offset {outcome.stable} on first; "
                    "or raise maxIndividualCommits",
                )
        raise FencedMemberError(
            f"{what}: member {self._standing.caller.member} owns none of these hashes at the lane epochs of the call",
            "leave them to their new owner, or make a new CommitApi for what the member owns now",
        )

    def _beyond(self, what: str, reach: int) -> CommitBeyondReadError:
        if self._standing.reads is not None:
            return CommitBeyondReadError(
                f"{what} includes offset {reach}, and the lanes of this batch end before it",
                "commit only offsets of this batch; commit later ones with the offset of the batch that reads them",
                reach,
            )
        why = f" includes offset {reach}, which is not below the end offset in Redis"
        return CommitBeyondReadError(
            what + (why if reach else ": Redis has no end offset of this partition"), reach=reach
        )

    def _named(self, tp: TopicPartition) -> str:
        return f"commit of {tp} in group {self._verbs.group!r}"


def _parsed(offset: str | Mapping[str, Any]) -> StreamOffset:
    try:
        return StreamOffset.from_json(json.loads(offset) if isinstance(offset, str) else dict(offset))
    except (ValueError, RecursionError):
        raise CheckpointMismatchError(
            f"{str(offset)[:80]!r} is not the JSON of an offset",
            "pass the last line of the file offsets/<batch id> in the query's checkpoint",
        ) from None


def _number(fields: Mapping[str, str], name: str, default: int) -> int:
    text = fields.get(name, str(default))
    if not is_number(text):
        raise StateFormatError(f"a member's {name} is recorded as {text!r}, not a whole number")
    return int(text)


def _offsets(ranges: Sequence[OffsetRange], offset: int) -> Offsets:
    if ranges and offset != NO_OFFSET:
        raise CorruptCommitError(f"the commit has offset ranges and also offset {offset}")
    if not ranges and offset < 1:
        raise CorruptCommitError(f"the commit has no offset ranges, and {offset} is not an offset")
    wanted = union(ranges) if ranges else (OffsetRange(0, offset),)
    if len(wanted) > RANGES_MAX:
        raise TooManyRangesError(f"the commit has {len(wanted)} offset ranges; the limit of one call is {RANGES_MAX}")
    return wanted


def _disjoint(lanes: Iterable[Owned]) -> tuple[Owned, ...]:
    ascending = tuple(sorted(lanes))
    if wrong := overlap(lane.hashes for lane in ascending):
        raise CommitError(f"lanes {wrong[0]} and {wrong[1]} overlap", "name each hash in one lane")
    return ascending
