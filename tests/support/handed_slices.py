"""Members of a group without order in a `World`, and short words for the slices that they get."""

from coordinator.progress.ownership import Facts
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.replies import Caller, HandedOut
from coordinator.values.ranges import WHOLE
from store_world import TP, World


def join(world: World, member: str, incarnation: str = "i1", ordering: str = "none", nonce: str = "bb") -> Caller:
    """A member of a group without order."""
    return world.joining(member, incarnation, ordering=ordering, next_nonce=nonce)


def hand_out(world: World, caller: Caller, most: int = 100, *, end: int = 50, size: int = 100) -> HandedOut:
    """The next slices of the partition, whose log ends there."""
    return world.store.positions.hand_out(caller, {TP: end}, most, size).value


def offset_of(member: str, handed: HandedOut, topic_id: str = "id-1") -> StreamOffset:
    """The offset of a batch that reads all slices of an answer."""
    lanes = {tp: (Lane(WHOLE, handed.epoch, o[0].start, o),) for tp, o in handed.slices.items()}
    return StreamOffset("g", member, handed.reset, {"orders": topic_id}, lanes, by_key=False)


def commit(world: World, caller: Caller, handed: HandedOut) -> Facts:
    """Commit all slices of an answer; the refused facts."""
    return world.commit(caller, offset_of(caller.member, handed))


def slices(handed: HandedOut) -> str:
    """The offsets of the partition, both ends included."""
    return " ".join(map(str, handed.slices.get(TP, ())))
