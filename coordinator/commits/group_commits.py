"""Commits of rows by their column `acknowledgement`, from any process that reaches Redis.

The texts name member, lanes and offsets. So this class needs the group only, and serves all of its members.
"""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from itertools import chain
from typing import Self

from coordinator.assignment.settings import GroupSettings
from coordinator.commits.commit_api import TIMEOUT_S, CommitApi
from coordinator.errors import (
    CommitError,
    CoopKafkaError,
    FencedMemberError,
    GroupRecoveringError,
    IndividualCommitTooOldError,
    MaxIndividualCommitReachedError,
    UnknownGroupError,
)
from coordinator.progress.acknowledgement import Acknowledgement
from coordinator.progress.ownership import Owned
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.commits import CommittedOffsets, CommitVerbs, Standing
from coordinator.redis.replies import Caller
from coordinator.values.ranges import HashRange, OffsetRange
from coordinator.values.subscription import TopicPartition

_OF_ONE_LANE = CommitError, FencedMemberError, MaxIndividualCommitReachedError
_Lane = tuple[str, int, str, TopicPartition, Owned]  # member, reset epoch, topic id, ...
_Done = tuple[int, tuple[HashRange, ...]]


class GroupCommits(AbstractContextManager["GroupCommits"]):
    """Acknowledges rows of a group; safe for several threads."""

    def __init__(self, client: RedisClient, verbs: CommitVerbs) -> None:
        self._client, self._verbs = client, verbs
        self._members: dict[str, tuple[Caller, Mapping[str, str]]] = {}

    @classmethod
    def of_group(cls, redis_url: str, group: str) -> Self:
        """For the rows of all members of a group. Raises `StoreError`."""
        client = RedisClient(redis_url, TIMEOUT_S)
        return cls(client, CommitVerbs(ScriptCalls.of(client, GroupSettings(group))))

    def acknowledge(self, texts: str | Iterable[str]) -> dict[TopicPartition, int]:
        """Commit rows by their `acknowledgement`. Returns the stable offset of each partition.

        It is one call of Redis for each range of hashes that one member reads together. A repeated acknowledgement
        changes nothing. If Redis refuses some lanes, the others are committed all the same; then the first refusal is
        raised: `FencedMemberError`, `CommitBeyondReadError`, `CommitWithoutOrderError`, 92
        `MaxIndividualCommitReachedError`.
        Raises before any commit `CorruptAcknowledgementError` and `CommitError` for a row of another group; at once 88
        `IndividualCommitNotAllowedError`, `GroupRecoveringError`, `StoreError`.
        """
        stable, refused = dict[TopicPartition, int](), list[CoopKafkaError]()
        for lane, offsets in self._lanes([texts] if isinstance(texts, str) else texts).items():
            tp = lane[3]
            try:
                done, lost = self._commit(lane, offsets)
                stable[tp] = max(stable.get(tp, 0), done)
                refused.extend(_refusals(lane, lost))
            except _OF_ONE_LANE as error:
                refused.append(error)
        if refused:
            raise refused[0]
        return stable

    def committed(self, tp: TopicPartition) -> CommittedOffsets:
        """The stable offset of a partition, and position, individual commits and owner of each range of its hashes.

        Raises `UnknownGroupError`, `StoreError`.
        """
        return self._verbs.committed(tp)

    def _lanes(self, texts: Iterable[str]) -> dict[_Lane, list[OffsetRange]]:
        lanes: dict[_Lane, list[OffsetRange]] = {}
        for a in chain.from_iterable(map(Acknowledgement.parse, texts)):
            if a.group != self._verbs.group:
                raise CommitError(
                    f"the acknowledgement is of a row of group {a.group!r}, and this object is for group "
                    f"{self._verbs.group!r}",
                    "make a GroupCommits for each group",
                )
            lanes.setdefault((a.member, a.reset, a.topic_id, a.tp, a.lane), []).append(a.offsets)
        return lanes

    def _commit(self, lane: _Lane, offsets: list[OffsetRange]) -> _Done:
        """The stable offset and lost hashes. If another life of the member has joined, it counts as the same one."""
        known = lane[0] in self._members
        try:
            return self._commit_as(lane, offsets)
        except (FencedMemberError, GroupRecoveringError):
            self._members.pop(lane[0], None)
            if not known:
                raise
        return self._commit_as(lane, offsets)

    def _commit_as(self, lane: _Lane, offsets: list[OffsetRange]) -> _Done:
        member, reset, topic_id, tp, owned = lane
        found = self._members.get(member) or self._joined(member)  # another thread may remove it meanwhile
        self._members[member] = caller, fields = found
        standing = Standing(caller, reset, {tp.topic: topic_id}, {tp: (owned,)})
        try:
            committed = CommitApi(self._client, self._verbs, standing, fields).commit(tp, offsets, lanes=[owned])
        except IndividualCommitTooOldError as error:  # all of it is done
            return error.stable, ()
        return committed.stable, committed.refused

    def _joined(self, member: str) -> tuple[Caller, Mapping[str, str]]:
        try:
            return self._verbs.member(member)
        except UnknownGroupError as departed:  # its rows are refused, and those of other members are not
            raise FencedMemberError(departed.what, "leave its rows to the new owner of their hashes") from None

    def close(self) -> None:
        """Drop the connections."""
        self._client.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def _refusals(lane: _Lane, lost: tuple[HashRange, ...]) -> Iterable[FencedMemberError]:
    """An error if the member no longer owns all hashes of the lane: rows of the lost ones are not committed."""
    if lost:
        yield FencedMemberError(
            f"acknowledgements of {lane[3]}: member {lane[0]} no longer owns {' '.join(map(str, lost))}",
            "leave these hashes to their new owner, which reads their records again; the others are committed",
        )
