"""Values for the tests of steps: member `m-1` of group `g`, which reads partition 0 of the topic `orders`.

joined(...)     the state of a member that has joined, and has just looked at Kafka
owns(...)       what it owns of the partition
end_of(...)     an offset of the query: the start of a batch, or its end
call(...)       a call of Spark, with settings by name
decided(...)    the decision of a step; it fails if the step asks for anything else than the given answers

Every builder takes changes of its value by name. Each state that a step gets or makes is checked for its invariants.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from coordinator.assignment.rebalance import owned_ranges
from coordinator.assignment.settings import GroupSettings
from coordinator.member.decision import Ask, Call, Decision, Fail, Seen, Setup, Step, decide
from coordinator.member.evidence import NOTHING
from coordinator.member.invariants import check
from coordinator.member.kinds import Request
from coordinator.member.limits import Limits
from coordinator.member.state import Life, LogView, Owning, State
from coordinator.plan.planning import Cutting
from coordinator.plan.poison import Strike
from coordinator.progress.ownership import Owned, Ownership
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.replies import Acquired, Joining, Look
from coordinator.values.offset_spec import Latest, OffsetSpec
from coordinator.values.ranges import WHOLE, HashRange, OffsetRange
from coordinator.values.subscription import Bounds, Subscription, Topic, TopicPartition, Topics
from coordinator.values.verdicts import Verdict
from progresses import starting_at

NOW = 100_000
MEMBER, NONCE, EPOCH, NEXT_EPOCH = "m-1", "n-1", "a1.1", "a1.2"
TP, TP1 = TopicPartition("orders", 0), TopicPartition("orders", 1)
LEFT, RIGHT = WHOLE.cut((2**62,))

ORDERS, GROWN, RECREATED = Topic("orders", "id-1", (0,)), Topic("orders", "id-1", (0, 1)), Topic("orders", "id-2", (0,))
FRESH = Life("i-1", "m-minted")
LIFE = Life("i-1", "m-minted", MEMBER, NONCE, NONCE, seq=5, lease_end_ms=NOW + 45_000, reached=True)
LOG = LogView({"orders": ORDERS}, (TP,), NOW, {TP: 0}, {TP: Bounds(0, 100)}, reached={TP: 100})
GROWN_LOG = LogView(
    {"orders": GROWN},
    (TP, TP1),
    NOW,
    {TP: 0, TP1: 0},
    {TP: Bounds(0, 100), TP1: Bounds(0, 50)},
    reached={TP: 100, TP1: 50},
)

Answer = tuple[Request[Any], Any]


def joined(**changes: Any) -> State:
    """A member that has joined, with topics and log ends that it has just read: 100 offsets in the partition."""
    return replace(State(LIFE, LOG), **changes)


def refused(verdict: Verdict, life: Life = LIFE, **changes: Any) -> State:
    """A member that Redis has just refused something."""
    return joined(life=replace(life, verdict=verdict), **changes)


def owned(hashes: HashRange = WHOLE, epoch: str = EPOCH) -> Ownership:
    """One range of the partition."""
    return {TP: (Owned(hashes, epoch),)}


def held(position: int = 10, hashes: HashRange = WHOLE, epoch: str = EPOCH) -> Acquired:
    """The answer of Redis to an acquisition: one range of the partition, at one position."""
    mine, whole = starting_at(position, hashes), starting_at(position)
    return Acquired(0, {"orders": "id-1"}, owned(hashes, epoch), {TP: mine}, {TP: whole})


def owning(acquired: Acquired | None = None, **changes: Any) -> Owning:
    """The ranges of an acquisition, as of generation 1; partitions have positions, and the listener knows."""
    acquired = acquired or held()
    ranges, there = owned_ranges(acquired.ownership), frozenset(acquired.ownership)
    known = Owning(acquired, ranges, (NONCE, 1), placed=there, placed_at=NONCE)
    return replace(known, **changes)


def owns(position: int = 10, hashes: HashRange = WHOLE, epoch: str = EPOCH, **changes: Any) -> State:
    """A member that has acquired one range of the partition."""
    return joined(owning=owning(held(position, hashes, epoch)), **changes)


def look(mine: Mapping[TopicPartition, tuple[HashRange, ...]] | None = None, **changes: Any) -> Look:
    """The assignment as the member sees it: generation 1, the whole partition."""
    known = Look(1, {TP: (WHOLE,)} if mine is None else mine, "", (MEMBER,), protocol="grouped 1", now_ms=NOW)
    return replace(known, **changes)


def end_of(start: int = 10, until: int = 20, hashes: HashRange = WHOLE, **changes: Any) -> StreamOffset:
    """An offset of one lane that reads from `start` to `until`; of an idle lane if they are equal."""
    reads = (OffsetRange(start, until),) if until > start else ()
    lanes = {TP: (Lane(hashes, EPOCH, start, reads),)}
    return replace(StreamOffset("g", MEMBER, 0, {"orders": "id-1"}, lanes), **changes)


FIRST = StreamOffset("g")
"""The initial offset of a query: it names no member."""


def struck(start: int = 10, until: int = 20, hashes: HashRange = WHOLE, *, count: int = 1, **changes: Any) -> Strike:
    """A strike for offsets of the partition."""
    return replace(Strike(TP, hashes, OffsetRange(start, until), count), **changes)


SUBSCRIBED, LATEST, UNCUT, ME = Topics(("orders",)), Latest(), Cutting(1), Joining({})


def call(
    offset: StreamOffset = NOTHING,
    limits: Limits | None = None,
    *,
    subscription: Subscription = SUBSCRIBED,
    starting: OffsetSpec = LATEST,
    cutting: Cutting = UNCUT,
    me: Joining = ME,
    **settings: Any,
) -> Call:
    """A call of Spark on a member of group `g`; `settings` are those of the group."""
    setup = Setup(GroupSettings("g", **settings), subscription, starting, cutting, me)
    return Call(setup, offset, limits or Limits())


def decided(step: Step, state: State, of: Call, *answers: Answer, now_ms: int = NOW) -> Decision:
    """The decision of a step that has asked for all of these answers, in whatever order, and for nothing else."""
    check(state)
    seen, left = tuple[Answer, ...](), [*answers]
    while True:
        decision = decide(step, state, Seen(now_ms, seen), of)
        asked = [answer for answer in left if decision == asks(state, answer[0])]
        if not asked:
            break
        seen, left = (*seen, asked[0]), [answer for answer in left if answer is not asked[0]]
    assert not left, f"it does not ask for {[request for request, _ in left]}, and decides {decision}"
    check(decision.state)
    return decision


def asks(state: State, request: Request[Any]) -> Decision:
    """The decision of a step that needs an answer first."""
    return Decision(state, (request,), Ask())


@dataclass(frozen=True, slots=True, eq=False)
class _Like:
    kind: type[Exception]
    words: str

    def __eq__(self, other: object) -> bool:
        return type(other) is self.kind and self.words in str(other)

    __hash__ = None  # type: ignore[assignment]  # it equals many


def like(kind: type[Exception], words: str = "") -> Any:
    """Equals every error or verdict of this type with these words in its text."""
    return _Like(kind, words)


def fails(kind: type[Exception], words: str) -> Fail:
    """The outcome of a call that ends with such an error."""
    return Fail(like(kind, words))
