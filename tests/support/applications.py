"""Applications of one group that take turns: each commits its last batch and begins the next, without Spark."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from coordinator.assignment.settings import GroupSettings
from coordinator.member.service import Service
from coordinator.progress.slices import Slice
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.group_state import GroupState
from coordinator.values.log import Log
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Subscription, TopicPartition
from group_services import UNLIMITED, Group, slices_read

SESSION_MS = 6_000
SOON_S = 30


@dataclass
class Application:
    """A query: its member's service, the offset that its sink completed, and all slices that it was to read."""

    service: Service
    done: StreamOffset
    read: list[Slice] = field(default_factory=list)

    def step(self) -> None:
        """One call of `latestOffset`, and the batch that it plans, if it does."""
        end = self.service.next_offset(self.done, UNLIMITED)
        if end is not None:
            self.read += slices_read(self.service, end)
            self.done = end

    @property
    def member(self) -> str:
        """Its member id; empty before its first step."""
        return self.service.member


def settings(group: Group, **changes: object) -> GroupSettings:
    """Settings of a member with a lease that outlives a slow machine's pauses."""
    return GroupSettings(**({"group": group.name, "session_ms": SESSION_MS} | changes))  # type: ignore[arg-type]


def application(
    group: Group,
    subscription: Subscription,
    *,
    fields: Mapping[str, str] | None = None,
    log: Log | None = None,
    **changes: object,
) -> Application:
    """A query that has started: the group exists, the member has not joined yet."""
    service = group.service(subscription, settings=settings(group, **changes), fields=fields, log=log)
    service.check_policies()
    service.first_positions()
    return Application(service, StreamOffset(group.name))


def restarted(group: Group, old: Application, subscription: Subscription, **changes: object) -> Application:
    """The query stopped politely, and started again on its checkpoint with other settings."""
    old.service.leave()
    service = group.service(subscription, settings=settings(group, **changes))
    service.check_policies()
    return Application(service, old.done, old.read)


def take_turns(applications: Sequence[Application], until: Callable[[], bool], what: str) -> None:
    """Let each do a step after the other, until a condition holds."""
    deadline = time.monotonic() + SOON_S
    while not until():
        assert time.monotonic() < deadline, f"not in {SOON_S} s: {what}"
        for each in applications:
            each.step()


def owners(state: GroupState) -> dict[TopicPartition, list[str]]:
    """The owners of each owned partition, by hash; neighbours of one member once."""
    found: dict[TopicPartition, list[str]] = {}
    for tp, ranges in state.owners.items():
        for _, _, member in ranges:
            if found.setdefault(tp, [])[-1:] != [member]:
                found[tp].append(member)
    return found


def all_whole(state: GroupState) -> bool:
    """Whether every partition is owned, and each by one member, as with plain Kafka consumers."""
    owned = [state.owners.get(tp, ()) for tp in state.stable]
    return all(
        sum(h.size for h, _, _ in ranges) == WHOLE.size and len({m for _, _, m in ranges}) == 1 for ranges in owned
    )


def times_read(applications: Sequence[Application], tp: TopicPartition) -> Fraction:
    """The number of delivered records of a partition, if keys are spread evenly; a whole number if none repeats."""
    slices = [s for each in applications for s in each.read if s.topic_partition == tp]
    return Fraction(sum(len(s.offsets) * s.hashes.size for s in slices), WHOLE.size)
