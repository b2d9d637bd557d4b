"""The errors that may end a driver, after the events of its schedule."""

from collections import Counter

from coordinator.errors import (
    CoopKafkaError,
    DataLossError,
    FencedMemberError,
    FilterChangedError,
    FilterMismatchError,
    GroupBusyError,
    GroupNotSharedError,
    InconsistentGroupProtocolError,
    IndividualCommitNotAllowedError,
    KafkaAccessError,
    NotCopartitionedError,
    OverlappingRangesError,
    RedisUnavailableError,
    SinkSkippedBatchError,
    StateLostError,
    TopicRangeFetchNotAllowedError,
)
from simulation import promises
from simulation.checkpoint import Checkpoint
from simulation.sink import Violation
from simulation.wishes import EXCLUSIVE
from simulation.world import World


def expect(world: World, checkpoint: Checkpoint, error: CoopKafkaError) -> None:
    """Raise `Violation` unless an event of this schedule explains the end of the driver."""
    seen: Counter[str] = world.server.seen
    match error:
        case GroupBusyError() | GroupNotSharedError():
            expected = len(world.started) > 1 and (world.alone or isinstance(error, GroupBusyError))
        case FencedMemberError():
            expected = checkpoint.shared or seen["ghost"] > 0
        case RedisUnavailableError():
            expected = (
                seen["outage"] + seen["short_outage"] > 0 or sum(seen[f] for f in ("refused", "lost", "ghost")) > 0
            )
        case InconsistentGroupProtocolError():
            expected = bool(world.pins) or any(wishes.assignors == EXCLUSIVE for wishes in world.started)
        case OverlappingRangesError() | IndividualCommitNotAllowedError() | TopicRangeFetchNotAllowedError():
            expected = bool(world.pins) or _policies_are_lost(world, error)
        case StateLostError():
            of_before = seen["grow"] + seen["topic_again"]  # a copy lacks these partitions, or this topic
            without_them = seen["restore_redis"] > 0 and of_before > 0
            # A query placed a partition that a reset did not know, and another one saw the reset in the mirror only.
            beside_a_reset = seen["half a reset"] > 0
            deleted = seen["empty_redis"] + seen["deleted"] + seen["operator_deletes"] > 0
            expected = deleted or without_them or beside_a_reset
            checkpoint.replaced = "its founding is" in str(error)
            checkpoint.lost = not checkpoint.replaced
            seen["replaced"] += checkpoint.replaced
        case SinkSkippedBatchError():
            # The newer of two drivers may know a batch last that the older one has confirmed, and followed by another.
            expected = checkpoint.skipped or checkpoint.shared
            checkpoint.taken = 0
        case DataLossError():
            promises.no_log_was_cut("the driver failed:", str(error), happened=world.cuts.happened)
            expected = seen["retention"] > 0 or world.cuts.happened
            checkpoint.aged = True
        case _:
            expected = _is_of_growth(world, error) or _of_rights_or_filters(world, checkpoint, error)
    seen[type(error).__name__] += 1
    if not expected:
        raise Violation(f"ERROR: the driver on {checkpoint.name} failed: {error}")


def of_the_latest_life(world: World, checkpoint: Checkpoint, name: str, member: str, error: CoopKafkaError) -> None:
    """Raise `Violation` if an earlier life of a member has fenced the latest one (rule: one-life)."""
    if not isinstance(error, FencedMemberError):
        return
    seen = world.server.seen
    if world.lives.get(member) == name and not (seen["ghost"] or seen["clock_jump"] or seen["entry_lost"]):
        raise Violation(f"LIFE: {name} is the latest life of {member}, and was fenced by an earlier one")
    seen["fenced by a copy"] += checkpoint.copied


def _policies_are_lost(world: World, error: CoopKafkaError) -> bool:
    """Whether a recovery found no evidence of the policies. Then members without order may not share."""
    seen = world.server.seen  # a delete takes the group out of Redis and out of the mirror
    lost = (seen["mirror"] > 0 and seen["empty_redis"] > 0) or seen["deleted"] > 0
    return isinstance(error, IndividualCommitNotAllowedError) and world.without_order and lost


def _is_of_growth(world: World, error: CoopKafkaError) -> bool:
    """Whether a group began anew while its topics grow one by one: one that knows them waits for others."""
    seen = world.server.seen
    anew = seen["empty_redis"] + seen["deleted"] + seen["operator_deletes"] > 0
    return isinstance(error, NotCopartitionedError) and seen["grow_one"] > 0 and anew


def _of_rights_or_filters(world: World, checkpoint: Checkpoint, error: CoopKafkaError) -> bool:
    """Whether this is an expected error of the mirror or of filters.

    After one of filters, the operator ends the unfinished batch with its own filter.
    """
    if isinstance(error, KafkaAccessError):
        return world.server.seen["mirror"] > 0
    if isinstance(error, FilterMismatchError):
        return world.filters.changes
    if not isinstance(error, FilterChangedError):
        return False
    checkpoint.needs = checkpoint.planned_with[-1]
    return checkpoint.shared or checkpoint.needs != checkpoint.filter
