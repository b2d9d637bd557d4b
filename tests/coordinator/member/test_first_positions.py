"""First positions: of a new group, and of partitions that appear later."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.errors import StateLostError
from coordinator.member.decision import Decision, LookAgain, Return
from coordinator.member.first_positions import first_positions
from coordinator.member.kinds import Request
from coordinator.member.owning import follow
from coordinator.member.requests import (
    CreatePositions,
    Event,
    LogLine,
    LookAtGroup,
    Mirror,
    ReadGroupOffsets,
    ReadLogEnds,
    ReadResetEpoch,
    ReadStable,
    ReadStatus,
    ResolveOffsets,
)
from coordinator.member.state import LogView, Mirrored, Owning, Shown, State
from coordinator.progress.mirror import entry
from coordinator.redis.group_state import KnownTopic
from coordinator.redis.replies import Status
from coordinator.values.offset_spec import AtOffsets, Earliest, Latest, OffsetSpec
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import Assigned, Bounds, TopicPartition
from coordinator.values.verdicts import Absent, Lost
from states import (
    FRESH,
    GROWN,
    GROWN_LOG,
    LOG,
    NONCE,
    NOW,
    ORDERS,
    RECREATED,
    TP,
    TP1,
    Answer,
    asks,
    call,
    decided,
    fails,
    joined,
    like,
    look,
    owning,
)

NEW = joined(life=FRESH)
GRACE_MS = 600_000
MIRROR = Mirror((TP,), ("orders",)), True
FOUNDING = ""
"""Of the group, where it decides nothing."""


def reads_on(at: int = 42, unused: str = "", *, info: bool = True) -> tuple[Request[Any], ...]:
    """The line and the event of a query without a checkpoint in a group with positions."""
    why = f"a query without a checkpoint reads on where the group stands: orders-0 at {at}{unused}"
    remedy = (
        "to read all records again, as for a full refresh, stop the queries of the group and run coop-kafka "
        "reset-offsets g --all-topics --to-earliest --execute before the start; to read from another start as well, "
        "use another group."
    )
    return LogLine(f"group g: {why}. Remedy: {remedy}", info=info), Event("continue", why)


def status(topics: int = 1, reset: int = 0) -> Status:
    """A group that knows `orders` with so many partitions, or no topic."""
    return Status(reset, {"orders": KnownTopic("id-1", topics)} if topics else {})


def shown(state: State, **changes: object) -> State:
    return replace(state, shown=Shown(start_used=True), **changes)  # type: ignore[arg-type]


def test_a_new_group__create_positions_at_the_starting_offsets_then_the_mirror() -> None:
    decision = decided(
        first_positions,
        NEW,
        call(),
        (ReadGroupOffsets(), {}),
        (ReadStatus(), None),
        (ResolveOffsets(Latest(), (TP,)), {TP: 100}),
        (CreatePositions({"orders": ORDERS}, {TP: 100}, GRACE_MS, create=True), "f1"),
        (Mirror((TP,), ("orders",), "f1"), True),
    )
    found = replace(NEW, life=replace(NEW.life, founding="f1"))
    assert decision == Decision(shown(found, mirrored=Mirrored()), (), Return(None))


def test_a_new_group_beside_offsets_of_a_plain_consumer__begin_at_these() -> None:
    decision = decided(
        first_positions,
        NEW,
        call(),
        (ReadGroupOffsets(), {TP: (42, "")}),
        (ReadStatus(), None),
        (ResolveOffsets(Latest(), (TP,)), {TP: 100}),
        (CreatePositions({"orders": ORDERS}, {TP: 42}, GRACE_MS, create=True), FOUNDING),
        MIRROR,
    )
    assert decision == Decision(shown(NEW, mirrored=Mirrored()), reads_on()[:1], Return(None))


def test_a_mirror_without_a_group_in_redis__a_loss_and_never_a_new_group() -> None:
    decision = decided(
        first_positions, NEW, call(), (ReadGroupOffsets(), {TP: entry(42, 0, "id-1", None)}), (ReadStatus(), None)
    )
    assert decision == Decision(
        joined(life=replace(FRESH, verdict=like(Absent, "Redis holds nothing of this group"))), (), LookAgain()
    )


def test_a_mirror_of_a_later_reset_than_redis_knows__a_loss() -> None:
    decision = decided(
        first_positions,
        NEW,
        call(),
        (ReadGroupOffsets(), {TP: entry(42, 2, "id-1", None)}),
        (ReadStatus(), status(reset=1)),
    )
    lost = like(Lost, "Kafka's own group knows of a reset that Redis does not")
    assert decision == Decision(joined(life=replace(FRESH, verdict=lost)), (), LookAgain())


def test_a_mirror_of_another_topic_id__is_no_new_group_and_no_proof() -> None:
    state = joined(life=FRESH, log=replace(LOG, topics={"orders": RECREATED}))
    old = (ReadGroupOffsets(), {TP: entry(42, 0, "id-1", None)})
    refused = fails(StateLostError, "another topic 'orders' (topic id id-1, here id-2)")
    assert decided(first_positions, state, call(), old, (ReadStatus(), None)) == Decision(state, (), refused)


@pytest.mark.parametrize(
    ("answer", "then"),
    [
        pytest.param(True, Mirrored(allowed=True, behind=False), id="mirrored"),
        pytest.param(False, Mirrored(allowed=False, behind=False), id="plain consumers live in the group"),
        pytest.param(None, Mirrored(behind=True), id="it failed"),
    ],
)
def test_no_mirror_yet__write_it(answer: bool | None, then: Mirrored) -> None:
    state = joined(life=FRESH, mirrored=Mirrored(behind=True))
    decision = decided(
        first_positions,
        state,
        call(),
        (ReadGroupOffsets(), {}),
        (ReadStatus(), status()),
        (ReadStable(("orders",)), {TP: 42}),
        (Mirror((TP,), ("orders",)), answer),
    )
    assert decision == Decision(shown(state, mirrored=then), reads_on(), Return(None))


def test_a_topic_that_the_group_has_read_has_grown__new_partitions_begin_at_earliest() -> None:
    state = joined(life=FRESH, log=GROWN_LOG)
    decision = decided(
        first_positions,
        state,
        call(),
        (ReadGroupOffsets(), {TP: (42, ""), TP1: (7, "")}),
        (ReadStatus(), status()),
        (ReadStable(("orders",)), {TP: 42}),
        (ResolveOffsets(Earliest(), (TP1,)), {TP1: 0}),
        (CreatePositions({"orders": GROWN}, {TP1: 7}, GRACE_MS), FOUNDING),
        (Mirror((TP, TP1), ("orders",)), True),
    )
    assert decision.outcome == Return(None)


def test_a_topic_that_is_new_to_the_group__the_starting_offsets_for_its_partitions_alone() -> None:
    starting = AtOffsets({TP: 5, TP1: 6})
    decision = decided(
        first_positions,
        NEW,
        call(starting=starting),
        (ReadGroupOffsets(), {TP: (42, "")}),
        (ReadStatus(), Status(0, {"other": KnownTopic("id-9", 1)})),
        (ReadStable(("other",)), {TopicPartition("other", 0): 3}),
        (ResolveOffsets(AtOffsets({TP: 5}), (TP,)), {TP: 5}),
        (CreatePositions({"orders": ORDERS}, {TP: 42}, GRACE_MS), FOUNDING),
        MIRROR,
    )
    assert decision.outcome == Return(None)


def test_starting_offsets_of_a_new_group__are_resolved_as_the_user_wrote_them() -> None:
    """For a partition that is not there this is a mistake, which the log refuses."""
    starting = AtOffsets({TP: 5, TP1: 6})
    answers: tuple[Answer, ...] = (ReadGroupOffsets(), {}), (ReadStatus(), None)
    assert decided(first_positions, NEW, call(starting=starting), *answers) == asks(
        NEW, ResolveOffsets(starting, (TP,))
    )


def test_partitions_of_assign__a_growth_is_recorded_too() -> None:
    decision = decided(
        first_positions,
        NEW,
        call(subscription=Assigned({TP: (WHOLE,)})),
        (ReadGroupOffsets(), {TP: (42, "")}),
        (ReadStatus(), None),
        (ResolveOffsets(Latest(), (TP,)), {TP: 100}),
        (CreatePositions({"orders": ORDERS}, {TP: 42}, GRACE_MS, create=True), FOUNDING),
        MIRROR,
    )
    assert decision.outcome == Return(None)


@pytest.mark.parametrize(
    ("before", "option", "notices"),
    [
        pytest.param(Shown(), None, reads_on(), id="first"),
        pytest.param(
            Shown(), "startingOffsets", reads_on(unused="; option startingOffsets is not used"), id="the user's start"
        ),
        pytest.param(Shown(start_used=True), None, (), id="once only"),
    ],
)
def test_a_query_without_a_checkpoint_in_a_group_with_positions__say_where_it_reads_on(
    before: Shown, option: str | None, notices: tuple[Request[Any], ...]
) -> None:
    state = replace(NEW, shown=before)
    decision = decided(
        first_positions,
        state,
        call(starting_option=option),
        (ReadGroupOffsets(), {TP: entry(42, 0, "id-1", None)}),
        (ReadStatus(), status()),
        (ReadStable(("orders",)), {TP: 42}),
    )
    assert decision == Decision(shown(state), notices, Return(None))


@pytest.mark.parametrize(
    ("starting", "begins", "warns"),
    [
        pytest.param(Earliest(), 42, False, id="from earliest, and no record is older"),
        pytest.param(Earliest(), 41, True, id="from earliest, and one is"),
        pytest.param(Latest(), None, False, id="from latest"),
        pytest.param(AtOffsets({TP: 42}), None, True, id="from an offset"),
    ],
)
def test_where_a_query_reads_on__a_warning_only_if_it_reads_less_than_its_start_promises(
    starting: OffsetSpec, begins: int | None, warns: bool
) -> None:
    decision = decided(
        first_positions,
        NEW,
        call(starting=starting, starting_option="startingOffsets"),
        (ReadGroupOffsets(), {TP: entry(42, 0, "id-1", None)}),
        (ReadStatus(), status()),
        (ReadStable(("orders",)), {TP: 42}),
        *[(ResolveOffsets(starting, (TP,)), {TP: begins})] * (begins is not None),
    )
    assert decision.effects == reads_on(unused="; option startingOffsets is not used", info=not warns)


def test_where_a_query_reads_on__a_leader_that_does_not_answer_is_not_asked() -> None:
    decision = decided(
        first_positions,
        replace(NEW, log=replace(LOG, silent=frozenset({TP}))),
        call(starting=Earliest()),
        (ReadGroupOffsets(), {TP: entry(42, 0, "id-1", None)}),
        (ReadStatus(), status()),
        (ReadStable(("orders",)), {TP: 42}),
    )
    assert decision.effects == reads_on(info=False)


def test_the_group_has_positions_of_other_topics_only__no_warning() -> None:
    others = Status(0, {"other": KnownTopic("id-9", 1)})
    stable: Answer = ReadStable(("other",)), {TopicPartition("other", 0): 3}
    answers: tuple[Answer, ...] = (
        (ReadGroupOffsets(), {}),
        (ReadStatus(), others),
        stable,
        (ResolveOffsets(Latest(), (TP,)), {TP: 100}),
        (CreatePositions({"orders": ORDERS}, {TP: 100}, GRACE_MS), FOUNDING),
        MIRROR,
    )
    decision = decided(first_positions, NEW, call(starting_option="startingOffsets"), *answers)
    assert decision.effects == ()


def test_a_new_group_whose_pattern_means_no_topic_yet__create_it_all_the_same() -> None:
    state = joined(life=FRESH, log=LogView(asked_ms=NOW))
    answers: tuple[Answer, ...] = (
        (ReadGroupOffsets(), {}),
        (ReadStatus(), None),
        (CreatePositions({}, {}, GRACE_MS, create=True), FOUNDING),
    )
    assert decided(first_positions, state, call(), *answers) == Decision(shown(state), (), Return(None))


def placed(*partitions: object, at: str = NONCE) -> Owning:
    return replace(owning(), placed=frozenset(partitions), placed_at=at)  # type: ignore[arg-type]


NOTHING_KNOWN: tuple[Answer, ...] = (
    (ReadStable(("orders",)), {}),
    (ReadResetEpoch(), 0),
    (ReadGroupOffsets(), {}),
)


def test_a_partition_that_this_life_sees_first__its_stable_offset_or_earliest() -> None:
    state = joined(log=GROWN_LOG, owning=Owning())
    decision = decided(
        follow,
        state,
        call(),
        (ReadStable(("orders",)), {TP: 42}),
        (ReadResetEpoch(), 0),
        (ReadGroupOffsets(), {}),
        (ReadLogEnds((TP1,)), {TP1: Bounds(3, 50)}),
        (CreatePositions({"orders": GROWN}, {TP: 42, TP1: 3}, GRACE_MS), FOUNDING),
    )
    assert decision == asks(state, LookAtGroup())


def test_partitions_that_were_placed_at_this_nonce__are_not_placed_again() -> None:
    state = joined(log=GROWN_LOG, owning=placed(TP))
    assert decided(follow, state, call(), *NOTHING_KNOWN) == asks(state, ReadLogEnds((TP1,)))


WIDE = replace(LOG, topics={"orders": replace(ORDERS, total=2)})


def test_a_topic_has_more_partitions_than_those_of_assign__tell_the_group() -> None:
    """Whoever sees a growth records it, also if it does not read the new partitions."""
    state = joined(log=WIDE, owning=placed(TP))
    create = CreatePositions(WIDE.topics, {TP: 42}, GRACE_MS)
    answers: tuple[Answer, ...] = (
        (ReadStable(("orders",)), {TP: 42}),
        (create, 0),
    )
    assert decided(follow, state, call(), *answers) == asks(state, LookAtGroup())
    state = joined(log=WIDE, owning=placed(TP, TP1))
    assert decided(follow, state, call()) == asks(state, LookAtGroup())


def test_after_a_loss_of_state__all_partitions_are_placed_again() -> None:
    state = joined(log=GROWN_LOG, owning=placed(TP, TP1, at="n-0"))
    assert decided(follow, state, call(), *NOTHING_KNOWN) == asks(state, ReadLogEnds((TP, TP1)))


def test_a_leader_does_not_answer__its_partition_is_placed_once_it_does() -> None:
    state = joined(log=GROWN_LOG, owning=placed(TP))
    silent = decided(follow, state, call(), *NOTHING_KNOWN, (ReadLogEnds((TP1,)), {}))
    waiting = replace(state, owning=replace(state.owning, unplaced=frozenset({TP1})))
    assert silent == asks(state, LookAtGroup())
    assert decided(follow, waiting, call(), (ReadLogEnds((TP1,)), {})) == asks(waiting, LookAtGroup())
    answers = (ReadLogEnds((TP1,)), {TP1: Bounds(3, 50)}), *NOTHING_KNOWN
    create = CreatePositions({"orders": GROWN}, {TP1: 3}, GRACE_MS)
    assert decided(follow, waiting, call(), *answers) == asks(waiting, create)
    acquires = decided(follow, waiting, call(), (ReadLogEnds((TP1,)), {}), (LookAtGroup(), look({TP: (WHOLE,)})))
    assert acquires.state.owning.unplaced == {TP1}


@pytest.mark.parametrize("starting", [Earliest(), Latest()])
def test_a_leader_is_silent_at_the_founding__its_beginning_can_wait_and_no_other_start(starting: OffsetSpec) -> None:
    state = joined(life=FRESH, log=replace(GROWN_LOG, silent=frozenset({TP1})))
    answers: tuple[Answer, ...] = (ReadGroupOffsets(), {}), (ReadStatus(), None)
    asked = (TP,) if starting == Earliest() else (TP, TP1)
    wanted = ResolveOffsets(starting, asked)
    assert decided(first_positions, state, call(starting=starting), *answers) == asks(state, wanted)


def test_every_partition_is_placed__look_at_the_group() -> None:
    state = joined(owning=owning())
    assert decided(follow, state, call()) == asks(state, LookAtGroup())
    assert decided(follow, state, call(), (LookAtGroup(), look())).state.owning.placed == {TP}
