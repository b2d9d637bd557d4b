"""Faults against the rules of positions and losses: first positions, proofs, resets, recoveries, lost records."""

from mutants.changes import Begins, Fails, Holds, Put, Without
from mutants.fault import Fault

_LUA, _SHARED = "coordinator/redis/lua/", "coordinator/redis/lua/shared/"
_PRELUDE, _LEASES, _RECOVER = f"{_SHARED}prelude.lua", f"{_SHARED}leases.lua", f"{_LUA}recover.lua"
_CREATE, _FIRST = f"{_LUA}create_positions.lua", "coordinator/member/first_positions.py"
_LOSING = "coordinator/member/losing.py"

_MEMBER, _REDIS = "tests/coordinator/member/test_", "tests/coordinator/redis/test_"
_PROGRESS = "tests/coordinator/progress/test_"

FAULTS = (
    Fault(
        "first-positions",
        "first positions are set twice",
        Put(_CREATE, ")) and redis.call('EXISTS', segments) == 0", "))"),
        "tests/rules/test_positions.py::test_first_positions__they_are_set_once",
    ),
    Fault(
        "create-once",
        "a call that places new partitions creates the group",
        Fails(_CREATE, "A.nonce == ''"),
        "tests/rules/test_positions.py::test_create_once__a_call_that_only_places_partitions_creates_no_group",
    ),
    Fault(
        "checkpoint-on-resume",
        "a part of a checkpoint beyond the log is used",
        Fails("coordinator/member/accepting.py:accept", "settings.fail_on_data_loss"),
        f"{_MEMBER}accepting.py::test_a_log_that_ends_before_it_for_seconds__data_loss",
    ),
    Fault(
        "assert-beginnings",
        "a skipped part of a replay is asserted as done",
        Put(
            "coordinator/progress/ownership.py:asserted",
            "lane.position) for h in missing",
            "lane.until) for h in missing",
        ),
        f"{_PROGRESS}ownership.py::test_the_end_of_a_slice_is_asserted_where_this_process_authorised_it_and_only_there",
    ),
    Fault(
        "mirror-after-reset",
        "the mirror is written once, also if a reset or a cut came between",
        Put("coordinator/member/apply.py:World.mirror", "while allowed", "for _ in (allowed,)"),
        f"{_MEMBER}mirrored_cuts.py::test_a_mirror_that_is_written_late_gives_way_to_a_cut_that_was_accepted_meanwhile",
    ),
    Fault(
        "mirror-refresh",
        "the mirror of an idle group is never written again",
        Put("coordinator/member/mirroring.py:REFRESH_MS", "30_000", "3_000_000"),
        "tests/rules/test_positions.py::test_mirror_refresh__every_30_s_also_if_no_position_moved",
    ),
    Fault(
        "reset-epoch",
        "an assertion of an older reset epoch is taken",
        Fails(f"{_LUA}claim.lua", "~= A.reset"),
        "tests/rules/test_positions.py::test_reset_epoch__facts_of_before_a_reset_are_refused_and_ignored",
    ),
    Fault(
        "reset-epoch",
        "a fact of a newer reset epoch than Redis has is no loss",
        Fails(f"{_PRELUDE}:before_reset", "less(redis.call"),
        "tests/rules/test_positions.py::test_reset_epoch__a_newer_one_than_redis_has_is_a_loss_of_state",
    ),
    Fault(
        "available-now",
        "AvailableNow ends when its own hashes are done",
        Holds("coordinator/member/planning.py:end_run", "seen.done(Finish"),
        schedules=60,
    ),
    Fault(
        "growth-order",
        "a new partition waits for one older partition only",
        Put("coordinator/progress/growth.py:levels", "*chain.from_iterable(older)", "*next(older, ())"),
        "tests/rules/test_positions.py::test_growth_order__a_hash_of_a_new_partition_waits_for_every_older_one",
    ),
    # Losses
    Fault(
        "loss-of-state",
        "a restarted Redis passes for the old one",
        Fails(f"{_PRELUDE}:lost", "run_id()"),
        "tests/rules/test_losses.py::test_recovering_session__epochs_are_void_and_only_assertions_are_taken",
    ),
    Fault(
        "loss-of-state",
        "a Redis that went back is not noticed",
        Fails(f"{_PRELUDE}:lost", "less(m[3], call.seq)"),
        "tests/rules/test_losses.py::test_loss_of_state__an_earlier_copy_is_seen_by_its_commit_sequence",
    ),
    Fault(
        "loss-of-state",
        "a mirror without Redis is a new group",
        Fails(f"{_FIRST}:_loss", "if mirror"),
        f"{_MEMBER}first_positions.py::test_a_mirror_without_a_group_in_redis__a_loss_and_never_a_new_group",
    ),
    Fault(
        "one-founding",
        "a script ignores the founding that its caller knows",
        Without(f"{_PRELUDE}:lost", "'REPLACED'"),
        "tests/rules/test_losses.py::test_one_founding__a_member_of_another_one_is_refused",
    ),
    Fault(
        "recover-by-proof",
        "a partition that Redis does not know begins at earliest, though its reader proves a position",
        Put(f"{_FIRST}:place", "**proofs.positions,", ""),
        f"{_MEMBER}proving.py::test_a_partition_that_redis_does_not_know_and_this_process_has_read__its_proof",
    ),
    Fault(
        "proofs-add-up",
        "of two proofs of one hash the lower one counts",
        Put(f"{_RECOVER}:added_up", "less(one, other)", "less(other, one)"),
        "tests/rules/test_losses.py::test_proofs_add_up__two_members_prove_a_half_each",
    ),
    Fault(
        "policies-survive",
        "a loss of state ends the policies of a group",
        Fails(f"{_SHARED}policies.lua:recover_policies", "value == 'false'"),
        "tests/rules/test_losses.py::test_policies_survive__the_strictest_evidence_holds",
    ),
    Fault(
        "recovering-session",
        "work goes on at once after a loss of state",
        Begins(f"{_LEASES}:recovering", "return nil"),
        "tests/rules/test_losses.py::test_recovering_session__epochs_are_void_and_only_assertions_are_taken",
    ),
    Fault(
        "redis-outage",
        "a write that Redis has refused counts as done",
        Put(
            "coordinator/member/turns.py:Turns._apply",
            "replace(before, life=refused",
            "replace(self.state, life=refused",
        ),
        f"{_MEMBER}turns.py::test_redis_refuses_an_effect__the_state_is_the_one_before_the_step",
    ),
    Fault(
        "leader-epoch-facts",
        "an older copy of Redis gets a newer leader epoch, which hides a cut of the log",
        Put(f"{_LUA}show.lua", "local bad = lost()", "local bad = other_schema()"),
        "tests/rules/test_losses.py::test_loss_of_state__an_earlier_copy_gets_no_newer_leader_epoch",
    ),
    Fault(
        "named-data-loss",
        "lost records are skipped without a word",
        Fails(f"{_LOSING}:settle_losses", "fail_on_data_loss"),
        "tests/rules/test_losses.py::test_named_data_loss__records_that_are_gone_end_the_query_or_are_skipped_on_request",
    ),
    Fault(
        "silent-leader",
        "the log of a leader that does not answer counts as checked for a cut",
        Holds(f"{_LOSING}:_answered_epochs", "tp not in state.log.silent"),
        f"{_MEMBER}losing.py::test_a_newer_leader_epoch_of_a_silent_leader__is_checked_once_it_answers",
    ),
    Fault(
        "low-end",
        "one low log end is a data loss",
        Holds("coordinator/member/low_ends.py:believed", ">= LOW_MS"),
        "tests/rules/test_losses.py::test_low_end__the_early_answer_of_a_new_leader_is_no_loss",
    ),
    Fault(
        "leader-epoch-facts",
        "a log that was cut and has grown again looks whole",
        Put(f"{_LOSING}:_found", "data_loss.cuts(own, own_ends)", "{}"),
        f"{_MEMBER}losing.py::test_the_log_was_cut_below_the_last_batch__data_loss",
    ),
    Fault(
        "leader-epoch-facts",
        "a cut that this process knows hides a deeper one that Redis shows",
        Put("coordinator/progress/data_loss.py:lowest", ", **both", ""),
        f"{_MEMBER}losing.py::test_redis_knows_an_earlier_cut_that_is_deeper__move_back_to_that",
    ),
    Fault(
        "leader-epoch-facts",
        "an assertion of an older leader epoch than the stored one is taken",
        Holds(f"{_LUA}claim.lua:is_of_this_log", "has_newer_leader_epoch"),
        "tests/rules/test_losses.py::test_leader_epoch_facts__an_assertion_of_an_older_one_is_ignored",
    ),
    Fault(
        "leader-epoch-facts",
        "a recovery stores a newer leader epoch for a position that Redis still has",
        Fails(f"{_RECOVER}:stores_extent", "less(proof"),
        f"{_REDIS}recovery.py::test_a_recovery_stores_the_leader_epoch_of_its_proofs_with_the_positions",
    ),
    Fault(
        "leader-epoch-facts",
        "a recovery compares the position of a lane with the proof of another one",
        Put(f"{_RECOVER}:stores_extent", "p.right and p.right.a or '0'", "proven[1] and proven[1].a or '0'"),
        f"{_REDIS}recovery.py::test_a_recovery_stores_the_leader_epoch_of_its_proofs_with_the_positions",
    ),
    Fault(
        "leader-epoch-facts",
        "a recovery stores positions without the leader epoch of their proofs",
        Without(_RECOVER, "p.extent then"),
        f"{_REDIS}recovery.py::test_a_recovery_stores_the_leader_epoch_of_its_proofs_with_the_positions",
    ),
)
