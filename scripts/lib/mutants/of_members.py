"""Faults against the rules of ownership: leases, fences, lives, assignments, policies, standbys, no order."""

from mutants.changes import Fails, Holds, Put, Without
from mutants.fault import Fault

_LUA, _SHARED = "coordinator/redis/lua/", "coordinator/redis/lua/shared/"
_LEASES, _PRELUDE, _PINNED = f"{_SHARED}leases.lua", f"{_SHARED}prelude.lua", f"{_SHARED}pinned.lua"
_JOIN, _HAND_OUT = f"{_LUA}join.lua", f"{_LUA}hand_out.lua"

_MEMBER, _REDIS = "tests/coordinator/member/test_", "tests/coordinator/redis/test_"
_ASSIGNMENT = "tests/coordinator/assignment/test_"

FAULTS = (
    Fault(
        "lease-end",
        "a commit after the end of the lease is refused",
        Put(
            f"{_LUA}commit.lua:owned_facts",
            "epoch == piece.left.a",
            "epoch == piece.left.a and not takeable(K.leases, K.batches, member)",
        ),
        "tests/rules/test_ownership.py::test_lease_end__the_owner_stays_until_another_member_acquires",
    ),
    Fault(
        "lease-end",
        "a living member loses ranges that it owns",
        Holds(f"{_LUA}acquire.lua:acquire", "takeable(K.leases"),
        schedules=60,
    ),
    Fault(
        "outage-grace",
        "the first caller after an outage gets the ranges of all others",
        Fails(f"{_LEASES}:grant_grace", "its / 3"),
        "tests/rules/test_ownership.py::test_outage_grace__the_first_caller_after_an_outage_takes_nothing_for_half_a_session",
    ),
    Fault(
        "fence-by-lane-epoch",
        "a commit asks for no lane epoch",
        Holds(f"{_LUA}commit.lua:owned_facts", "epoch == piece.left.a"),
        "tests/rules/test_ownership.py::test_verdict_per_hash__a_refused_lane_does_not_block_the_commit_of_the_others",
    ),
    Fault(
        "fence-by-lane-epoch",
        "the fence of slices asks for no lane epoch",
        Holds(f"{_SHARED}slices.lua:held_of", "s[4] == epoch"),
        "tests/rules/test_without_order.py::test_hand_out__a_call_first_frees_what_its_caller_holds",
    ),
    Fault(
        "verdict-per-hash",
        "one refused part of a lane refuses the rest of it",
        Put(f"{_LUA}authorize.lua", "table.concat(held)", "''"),
        "tests/rules/test_ownership.py::test_verdict_per_hash__an_authorisation_names_the_parts_that_are_still_owned",
    ),
    Fault(
        "no-epoch-twice",
        "an acquisition takes the last lane epoch again",
        Put(f"{_LUA}acquire.lua:new_owner", "'epochs') + 1", "'epochs')"),
        "tests/rules/test_ownership.py::test_no_epoch_twice__after_a_release_the_epoch_is_new",
    ),
    Fault(
        "no-epoch-twice",
        "lane epochs of an older nonce stay valid",
        Holds(f"{_PRELUDE}:owner", "nonce == in_force"),
        f"{_REDIS}recovery.py::test_epochs_of_partitions_that_the_recovering_member_does_not_read_are_void_too",
    ),
    Fault(
        "one-life",
        "another life of a member is not fenced",
        Without(f"{_PRELUDE}:fenced", "'FENCED'"),
        "tests/rules/test_ownership.py::test_one_life__a_new_life_fences_the_old_one_in_every_verb",
    ),
    Fault(
        "one-life",
        "an earlier life that wakes up at another nonce fences its replacement",
        Fails(_JOIN, "not less(latest, A.joined_at)"),
        "tests/rules/test_ownership.py::test_one_life__an_earlier_life_that_wakes_up_after_a_loss_is_fenced",
    ),
    Fault(
        "one-member-per-application",
        "two queries of one application are members of one group",
        Without(_JOIN, "'BUSY'"),
        "tests/rules/test_ownership.py::test_one_member_per_application__a_second_one_waits_for_the_end_of_the_lease",
    ),
    Fault(
        "one-filter",
        "a member joins beside another filter",
        Put(_JOIN, "refiltered or reordered", "reordered"),
        "tests/rules/test_ownership.py::test_one_filter__a_member_with_another_one_waits_for_the_end_of_the_lease",
    ),
    Fault(
        "first-assignment-wins",
        "the second assignment of an occasion replaces the first",
        Fails(f"{_LUA}assign.lua", "or now_due =="),
        "tests/rules/test_ownership.py::test_first_assignment_wins__the_second_one_is_told_so",
    ),
    Fault(
        "common-assignor",
        "a member votes for an assignor that not all know",
        Holds("coordinator/assignment/protocols.py:elected", "p in candidates"),
        "tests/rules/test_ownership.py::test_common_assignor__members_vote_only_among_those_that_all_of_them_know",
    ),
    Fault(
        "checked-assignment",
        "an assignment with a hole is accepted",
        Without("coordinator/assignment/assigning.py:_checked", "check(assignment"),
        "tests/rules/test_ownership.py::test_checked_assignment__whole_partitions_instead_of_one_with_a_hole",
    ),
    Fault(
        "sharing-policies",
        "policies are ignored in assignments",
        Holds("coordinator/assignment/assigning.py:assigned", "may_share"),
        "tests/rules/test_ownership.py::test_sharing_policies__a_partition_is_split_only_while_it_may_be_shared",
    ),
    Fault(
        "sharing-policies",
        "the Commit API ignores the policies of topics",
        Without(f"{_SHARED}policies.lua:forbidding_code", "'89'"),
        "tests/rules/test_ownership.py::test_sharing_policies__the_commit_api_refuses_what_a_policy_forbids",
    ),
    Fault(
        "cluster-policies",
        "a late copy replaces newer policies of the cluster",
        Fails(f"{_LUA}copy_policies.lua", "if late"),
        "tests/rules/test_ownership.py::test_cluster_policies__a_group_has_the_latest_ones",
    ),
    Fault(
        "partition-order",
        "a partition in order is read by several tasks",
        Fails("coordinator/plan/packing.py:_bundles", "or ordered"),
        "tests/rules/test_ownership.py::test_partition_order__one_task_reads_all_lanes_of_a_partition",
    ),
    Fault(
        "current-cluster",
        "a member does not ask Kafka for a partition that it is assigned and does not know",
        Fails("coordinator/member/owning.py:_catch_up", "if missing"),
        "tests/rules/test_ownership.py::test_current_cluster__a_member_asks_kafka_at_once_for_a_partition_that_it_does_not_know",
    ),
    Fault(
        "release-to-a-waiting-owner",
        "ranges are released to members that are gone",
        Holds(f"{_LUA}release.lua", "waiting(wanted.right.member)"),
        "tests/rules/test_ownership.py::test_release_to_a_waiting_owner__nothing_to_one_that_is_gone_or_leaving",
    ),
    Fault(
        "pinned-or-assigned",
        "an assigned member joins pinned ones",
        Fails(f"{_PINNED}:holds", "pins == ''"),
        "tests/rules/test_ownership.py::test_pinned_or_assigned__an_assigned_member_is_held_while_a_pinned_one_works",
    ),
    Fault(
        "one-claim-per-hash",
        "two working members claim a hash",
        Put(f"{_PINNED}:holds", "share_hashes(claims[1], theirs)", "false"),
        "tests/rules/test_ownership.py::test_one_claim_per_hash__of_a_working_member_until_its_lease_has_ended",
    ),
    Fault(
        "leave-keeps-unconfirmed",
        "a stop frees all ranges, also those that killed tasks may still write",
        Put(f"{_LUA}leave.lua", "not unconfirmed", "true"),
        schedules=60,
    ),
    Fault(
        "one-member-a-set",
        "a member that moves does not commit",
        Put("coordinator/member/service.py:Service", "(*COMMIT, settled)", "(*ALIVE, settled)"),
        "tests/rules/test_ownership.py::test_one_member_a_set__it_commits_the_batch_in_the_sink_before_it_leaves",
    ),
    Fault(
        "standby-takes-over",
        "a standby counts as a working member",
        Holds(f"{_LEASES}:working_members", "not waits"),
        "tests/rules/test_ownership.py::test_standby_takes_over__from_an_owner_whose_lease_has_ended",
    ),
    Fault(
        "drain-hands-over",
        "all members are drained, and nobody reads",
        Fails(f"{_LUA}drain.lua", "others == 0"),
        "tests/rules/test_ownership.py::test_drain_hands_over__a_drained_member_reads_on_until_its_next_owner_waits",
    ),
    # Without order, and settings of members
    Fault(
        "one-ordering",
        "a change of the ordering keeps lane epochs",
        Put(_JOIN, "'nonce', A.next_nonce,", ""),
        "tests/rules/test_without_order.py::test_one_ordering__a_change_makes_slices_void",
    ),
    Fault(
        "one-application",
        "another application joins a group that one reads alone",
        Fails(f"{_JOIN}:in_the_way", "if works"),
        "tests/rules/test_without_order.py::test_one_application__a_group_that_one_reads_alone_admits_no_other",
    ),
    Fault(
        "hand-out",
        "done offsets are handed out",
        Put(f"{_HAND_OUT}:partition_at", "{ done, taken }", "{ taken }"),
        "tests/rules/test_without_order.py::test_hand_out__done_offsets_are_left_out",
    ),
    Fault(
        "slice-end",
        "a dead member's slices are kept",
        Fails(f"{_HAND_OUT}:partition_at", "= is_over(s[5])"),
        "tests/rules/test_without_order.py::test_slice_end__another_member_gets_them_once_the_lease_has_ended",
    ),
    Fault(
        "clock-ahead",
        "times of a clock that was ahead stay valid for that long",
        Holds(f"{_LEASES}:cut_to", "tonumber(at) <= most"),
        "tests/rules/test_times_and_settings.py::test_clock_ahead__a_dead_member_of_a_month_ahead_is_waited_for_one_session",
    ),
    Fault(
        "settings-that-differ",
        "each heartbeat sets the expiry by its own retention",
        Put(f"{_LUA}heartbeat.lua", "longest('retention')", "tonumber(call.retention)"),
        "tests/rules/test_times_and_settings.py::test_settings_that_differ__the_longest_retention_counts",
    ),
    Fault(
        "group-expiry",
        "keys that a verb creates do not expire with the group",
        Without(f"{_PRELUDE}:reply", "expire_what_is_new"),
        f"{_REDIS}expiry.py::test_all_keys_of_a_group_expire_with_it_after_each_way_to_end",
    ),
    Fault(
        "topic-expiry",
        "a topic expires although a member subscribes to it",
        Put(f"{_LUA}forget.lua", "subscribed[topic] = true", "subscribed[topic] = nil"),
        "tests/rules/test_times_and_settings.py::test_topic_expiry__the_time_of_a_topic_begins_anew_with_each_subscriber",
    ),
    Fault(
        "ownership-events",
        "ranges that are acquired are no event",
        Without(f"{_LUA}acquire.lua", "'assigned'"),
        "tests/rules/test_times_and_settings.py::test_ownership_events__a_range_that_moves_is_assigned_revoked_and_assigned",
    ),
)
