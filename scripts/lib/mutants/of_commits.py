"""Faults against the rules of individual commits, of limits of a batch and of scripts; and against other guarantees."""

from mutants.changes import Begins, Fails, Holds, Put, Without
from mutants.fault import Fault

_LUA, _SHARED = "coordinator/redis/lua/", "coordinator/redis/lua/shared/"
_PRELUDE, _RANGES, _RESERVE = f"{_SHARED}prelude.lua", f"{_LUA}commit_ranges.lua", f"{_LUA}reserve.lua"
_POISON, _QUOTAS = "coordinator/plan/poison.py", "coordinator/plan/cost/quotas.py"
_ACKNOWLEDGING = "spark_coop_source/task/acknowledging.py"
_ATTEMPTS, _KEYS = "spark_coop_source/function/attempts.py", "spark_coop_source/function/keyed_work.py:_Keys"

_COMMITS, _REDIS = "tests/coordinator/commits/test_", "tests/coordinator/redis/test_"
_PLAN, _HOSTILE = "tests/coordinator/plan/test_", "tests/hostile/test_"
_FUNCTION = "tests/spark_coop_source/function/test_"

FAULTS = (
    Fault(
        "ics-may-vanish",
        "damaged individual commits stop the group",
        Put(f"{_SHARED}progress.lua:ics_at", "parsed_offsets(r.value)", "offsets_of(r.value)"),
        "tests/rules/test_individual_commits.py::test_ics_may_vanish__damaged_ones_are_deleted_and_the_commit_goes_on",
    ),
    Fault(
        "commit-within-read",
        "the store accepts a commit beyond the batch",
        Without(_RANGES, "'BEYOND'"),
        "tests/rules/test_individual_commits.py::test_commit_within_read__offsets_beyond_the_batch_are_refused_as_a_whole",
    ),
    Fault(
        "commit-within-read",
        "a batch takes commits before it is known where its tasks end",
        Without(_RANGES, "'UNSEALED'"),
        "tests/rules/test_individual_commits.py::test_commit_within_read__a_batch_that_may_end_early_takes_commits_from_its_seal_to_the_next_batch",
    ),
    Fault(
        "acknowledge-holes",
        "an acknowledgement covers the record before its own",
        Put(f"{_ACKNOWLEDGING}:Acknowledging.covered", "offsets[of_strip] + 1", "offsets[of_strip]"),
        "tests/rules/test_individual_commits.py::test_acknowledge_holes__each_covers_its_record_and_the_offsets_before_it_that_are_not_of_the_strip",
    ),
    Fault(
        "individual-commit-cap",
        "the cap of individual commits is never enforced",
        Fails(_RANGES, "after > limit"),
        "tests/rules/test_individual_commits.py::test_individual_commit_cap__only_commits_that_would_add_one_are_refused",
    ),
    Fault(
        "ordered-commit",
        "an ordered commit does not wait for its turn",
        Without(_RESERVE, "'WAIT'"),
        "tests/rules/test_individual_commits.py::test_ordered_commit__the_seven_steps_of_the_draft_kip",
    ),
    Fault(
        "commit-error-codes",
        "an error has the number of another one",
        Put("coordinator/errors/policies.py:IndividualCommitTooOldError", "91", "92"),
        "tests/rules/test_individual_commits.py::test_commit_error_codes__each_is_an_error_of_this_project",
    ),
    # Limits of a batch
    Fault(
        "strike-needs-evidence",
        "each driver that is stopped in a batch leaves a strike",
        Holds(f"{_LUA}leave.lua", "hangs(K.batches, call.member)"),
        "tests/rules/test_limits.py::test_strike_needs_evidence__a_member_that_leaves_is_no_sign_unless_its_batch_hangs",
    ),
    Fault(
        "struck-lane-apart",
        "a hung record is looked for in the whole slice for ever",
        Put(f"{_POISON}:Strike.trial_end", "ceil(len(self.offsets) / PARTS)", "len(self.offsets)"),
        "tests/rules/test_limits.py::test_struck_lane_apart__each_further_strike_leaves_32_times_fewer_suspects",
    ),
    Fault(
        "parked-until-released",
        "a slice of many records is parked",
        Holds(f"{_SHARED}strikes.lua:strike", "s.one and"),
        "tests/rules/test_limits.py::test_parked_until_released__one_record_that_is_struck_again_on_trial",
    ),
    Fault(
        "lane-lead",
        "the oldest lane reads nothing",
        Put("coordinator/plan/event_time_lead.py:within_lead", "oldest[tp].start + 1", "oldest[tp].start"),
        "tests/rules/test_limits.py::test_lane_lead__how_far_two_lanes_read",
    ),
    Fault(
        "reports-decide-nothing",
        "a forged report is accepted",
        Holds("spark_coop_source/telemetry/frames.py:next_text", "hmac.compare_digest"),
        "tests/rules/test_limits.py::test_reports_decide_nothing__a_frame_that_the_key_did_not_sign_has_no_text",
    ),
    # Scripts
    Fault(
        "check-then-write",
        "a script writes what it was asked to, also what no member could read",
        Without(f"{_PRELUDE}:from_text", "require_argument"),
        f"{_HOSTILE}hostile_requests.py::test_a_script_refuses_to_write_state_that_no_member_could_read",
    ),
    Fault(
        "whole-group",
        "a late call of an operator deletes or replaces a part of a group",
        Put(f"{_SHARED}leases.lua:worked_since", "{ 'SUPERSEDED' }", "nil"),
        "tests/rules/test_scripts.py::test_whole_group__a_call_after_a_member_has_worked_changes_nothing",
    ),
    Fault(
        "numbers-as-text",
        "offsets are compared as numbers: wrong beyond 2^53",
        Begins(f"{_PRELUDE}:less", "return tonumber(a) < tonumber(b)"),
        "tests/rules/test_scripts.py::test_numbers_as_text__positions_too_large_for_a_double_are_compared_exactly",
    ),
    Fault(
        "numbered-calls",
        "a call that arrives after the member's next one counts",
        Fails(f"{_PRELUDE}:fenced", "less(call.number, m[2])"),
        "tests/rules/test_scripts.py::test_numbered_calls__a_call_that_arrives_after_the_next_one_changes_nothing",
    ),
    Fault(
        "owner-reads-own-segments",
        "each owner reads the segments of all",
        Holds(f"{_LUA}acquire.lua", "#ics_of[i] > 0"),
        "tests/rules/test_scripts.py::test_owner_reads_own_segments__and_all_only_beside_individual_commits",
    ),
    Fault(
        "schema-number",
        "a script works on the state of another version",
        Without(f"{_PRELUDE}:lost", "'SCHEMA'"),
        f"{_REDIS}state_schema.py::test_each_script_refuses_another_schema_and_writes_nothing",
    ),
    # Guarantees that no rule states
    Fault(
        "1-nothing-is-lost",
        "the rows of the records before a failing one are lost",
        Put(f"{_ATTEMPTS}:calls", "tuple(done), batch.part(at), records", "(), batch.part(at), records"),
        f"{_FUNCTION}attempts.py::test_an_attempt_ends_before_the_first_record_that_fails",
    ),
    Fault(
        "2-a-key-stays-in-order",
        "a key goes on behind a record that waits for its next attempt",
        Holds(f"{_KEYS}.finished", "outcome.rest is None"),
        f"{_FUNCTION}decisions.py::test_each_record_is_made_skipped_sent_or_deferred_once_and_each_key_in_order",
    ),
    Fault(
        "a-slow-key",
        "quotas are ignored",
        Holds(f"{_QUOTAS}:Quota.to", "offset >="),
        "tests/coordinator/plan/cost/test_quotas.py::"
        "test_where_records_are_dear_all_lanes_of_a_partition_end_at_one_offset",
    ),
)
