"""Faults against the rules of promises, ranges and batches, with their true ends and failing keys."""

from mutants.changes import Begins, Fails, Holds, Put, Without
from mutants.fault import Fault

_LUA = "coordinator/redis/lua/"
_PROGRESS_LUA, _ACQUIRE = f"{_LUA}shared/progress.lua", f"{_LUA}acquire.lua"
_SEGMENTS, _PACKING = "coordinator/progress/segments.py", "coordinator/plan/packing.py"
_AUTHORIZING, _COMMITTING = "coordinator/member/authorizing.py", "coordinator/member/committing.py"
_PLANNING, _FAILING = "coordinator/member/planning.py", "coordinator/plan/failing_keys.py"
_SERVICE = "coordinator/member/service.py"

_MEMBER, _REDIS = "tests/coordinator/member/test_", "tests/coordinator/redis/test_"
_PLAN, _PROGRESS = "tests/coordinator/plan/test_", "tests/coordinator/progress/test_"
_TASK, _DRIVER = "tests/spark_coop_source/task/test_", "tests/spark_coop_source/driver/test_"

FAULTS = (
    # Promises
    Fault(
        "nothing-lost",
        "the stable offset is the highest position",
        Put(f"{_PROGRESS_LUA}:write_progress", "less(s.position, stable)", "less(stable, s.position)"),
        schedules=60,
    ),
    Fault(
        "nothing-lost",
        "a script moves the position over a gap",
        Holds(f"{_PROGRESS_LUA}:joined", "less(position, r[1])"),
        "tests/rules/test_batches.py::test_commit_what_was_read__what_was_deleted_between_plan_and_commit_is_read_again",
    ),
    Fault(
        "nothing-lost",
        "a task counts a piece as published beyond its end",
        Put(
            "spark_coop_source/cache/publisher.py:Publisher._run",
            "Fetched(self.piece.until,",
            "Fetched(self.piece.until + 1,",
        ),
        f"{_TASK}shared_read.py::test_lanes_of_a_compacted_log_read_the_same_together_and_alone",
    ),
    Fault(
        "key-order",
        "slices of one task come in no order",
        Put(f"{_PACKING}:_offset_order", '"offsets.start",', ""),
        "tests/rules/test_ranges.py::test_one_task_per_hash__no_hash_of_a_partition_is_in_two_tasks",
    ),
    Fault(
        "exact-resume",
        "every replay leaves out acknowledged records",
        Holds(f"{_AUTHORIZING}:authorize", "replay_acknowledged"),
        "tests/rules/test_promises.py::test_exact_resume__a_restart_reads_the_same_records_again",
    ),
    Fault(
        "exact-resume",
        "the ends of a batch that no life has authorised count as unknown",
        Put(f"{_LUA}authorize.lua", "before[1] ~= 'none'", "true"),
        "tests/rules/test_promises.py::test_exact_resume__also_of_a_first_batch_that_no_life_has_authorised",
    ),
    Fault(
        "bounded-repeats",
        "records that are done to the right of the position are read again",
        Put(f"{_SEGMENTS}:Segment.remaining", "self.ics", "()"),
        f"{_PROGRESS}ownership.py::test_the_rest_of_an_offset_has_what_is_not_done_yet",
    ),
    # Ranges
    Fault(
        "half-open-offsets",
        "the first offset after a slice is delivered too",
        Put("spark_coop_source/select/lanes.py:within", "chunk.offsets <", "chunk.offsets <="),
        f"{_TASK}read.py::test_any_slices_return_the_records_whose_points_lie_in_them",
    ),
    Fault(
        "key-hash",
        "records without a key are all in one lane",
        Fails("spark_coop_source/select/hashing.py:hash_records", "if len(nulls)"),
        "tests/rules/test_ranges.py::test_key_hash__every_record_hashes_as_defined",
    ),
    Fault(
        "even-cuts",
        "the hash space is cut without its last hash",
        Put("coordinator/values/key_hash.py:cut_bound", "HASH_MAX + 1", "HASH_MAX"),
        "tests/rules/test_ranges.py::test_even_cuts__they_tile_the_hash_space",
    ),
    Fault(
        "exact-tiling",
        "no check detects a hole among the segments",
        Without(f"{_LUA}shared/prelude.lua:ranges_at", "check_tiling"),
        "tests/hostile/test_damaged_state.py::test_a_hole_among_the_segments_is_refused_by_name",
    ),
    Fault(
        "cut-at-ownership",
        "neighbours become one segment though their owners differ",
        Put(f"{_PROGRESS_LUA}:write_progress", "coalesce(segments, boundaries)", "coalesce(segments, NOTHING)"),
        "tests/rules/test_ranges.py::test_cut_at_ownership__equal_neighbours_of_two_owners_stay_two_segments",
    ),
    Fault(
        "cut-by-hash",
        "a group that keeps the order of keys is cut by offsets",
        Holds("coordinator/plan/cost/steering.py:Steering.pack", "by_offset"),
        "tests/rules/test_ranges.py::test_cut_by_hash__tasks_share_a_partition_by_hashes_and_never_by_offsets",
    ),
    Fault(
        "one-task-per-hash",
        "slices of one key are in several tasks",
        Holds(f"{_PACKING}:_chained", "> highest"),
        "tests/rules/test_ranges.py::test_one_task_per_hash__no_hash_of_a_partition_is_in_two_tasks",
    ),
    Fault(
        "joined-topics",
        "the same keys of joined topics are in two tasks",
        Put(f"{_PACKING}:_bundles", "unit(w[0].topic_partition, joined)", "w[0].topic_partition"),
        "tests/rules/test_ranges.py::test_joined_topics__no_hash_of_them_is_in_two_tasks",
    ),
    Fault(
        "joined-topics",
        "a joined topic that grew first is read at once",
        Fails("coordinator/plan/joined_topics.py:grown_together", "name in counts"),
        f"{_PLAN}joined_topics.py::test_a_topic_that_grew_before_the_others_is_read_as_before",
    ),
    Fault(
        "growth-order",
        "a joined topic promises order across growths that waited",
        Put("coordinator/redis/lua/create_positions.lua:grew", "A.joined[topic] or", ""),
        f"{_REDIS}growth.py::test_a_joined_topic_may_have_grown_in_steps_while_it_waited_for_the_others",
    ),
    Fault(
        "growth-order",
        "a topic without a leader at the founding has no number of partitions",
        Put("coordinator/redis/lua/create_positions.lua", "recovering() and {} or A.counts", "{}"),
        f"{_MEMBER}silent_leaders.py::test_a_topic_grows_before_a_leader_has_answered__its_new_partitions_wait_for_the_older_ones",
    ),
    # Batches
    Fault(
        "self-contained-offset",
        "equal offsets have different texts",
        Put(
            "coordinator/progress/stream_offset.py:StreamOffset.to_json",
            "dict(sorted(self.topic_ids.items()))",
            "dict(self.topic_ids)",
        ),
        "tests/rules/test_batches.py::test_self_contained_offset__equal_offsets_have_equal_text",
    ),
    Fault(
        "commit-before-plan",
        "Spark's commit() commits the batch that ends there",
        Begins(
            "spark_coop_source/driver/stream_reader.py:CoopKafkaStreamReader.commit",
            "self.latestOffset(end, ReadAllAvailable())",
        ),
        "tests/rules/test_batches.py::test_commit_before_plan__only_the_return_of_an_offset_as_start_commits_it",
    ),
    Fault(
        "plan-within-lease",
        "a member plans after the end of its lease",
        Fails(f"{_PLANNING}:look_closer", "lease_end_ms"),
        f"{_MEMBER}planning.py::test_lease_over__heartbeat_before_a_plan",
    ),
    Fault(
        "fresh-positions",
        "positions count as fresh however long a call has waited",
        Without("coordinator/member/turns.py:Turns._wait", "fresh=False"),
        "tests/rules/test_batches.py::test_fresh_positions__after_a_wait_those_of_before_are_not",
    ),
    Fault(
        "authorize-every-batch",
        "a replay reads what other members own by now",
        Put(f"{_AUTHORIZING}:_readable", "narrowed(end, batch.readable or {})", "end"),
        "tests/rules/test_batches.py::test_authorize_every_batch__a_replay_reads_nothing_that_another_member_owns",
    ),
    Fault(
        "task-deadline",
        "a retry of a forgotten task reads",
        Without("spark_coop_source/task/read.py:read_slices", "_refuse_if_late"),
        "tests/rules/test_batches.py::test_task_deadline__a_task_that_begins_later_reads_nothing",
    ),
    Fault(
        "batch-clock",
        "each heartbeat starts the clock of a batch anew",
        Put(f"{_LUA}heartbeat.lua", "'NX',", ""),
        "tests/rules/test_batches.py::test_batch_clock__a_batch_beyond_the_longest_makes_ranges_takeable_though_the_heart_beats",
    ),
    Fault(
        "omit-what-was-skipped",
        "skipped slices stay in the next offset",
        Put(f"{_COMMITTING}:witness", "narrowed(start, witnessed)", "start"),
        "tests/rules/test_batches.py::test_omit_what_was_skipped__the_next_offset_names_no_lane_that_was_left_out",
    ),
    Fault(
        "commit-what-was-read",
        "records between the slices of a lane are committed with them",
        Put("coordinator/progress/ownership.py:_done", "lane.offsets[0].until", "lane.until"),
        "tests/rules/test_batches.py::test_commit_what_was_read__what_was_deleted_between_plan_and_commit_is_read_again",
    ),
    Fault(
        "cumulative-commit",
        "a late commit moves a position back",
        Holds(f"{_PROGRESS_LUA}:raised", "less(s.position, fact.position)"),
        "tests/rules/test_batches.py::test_cumulative_commit__an_older_one_moves_no_position_back",
    ),
    Fault(
        "unread-batch",
        "a batch that the sink skipped is committed",
        Fails(f"{_LUA}commit.lua", "A.digest ~= ''"),
        "tests/rules/test_batches.py::test_unread_batch__a_batch_that_the_sink_dropped_is_not_committed",
    ),
    # True ends
    Fault(
        "seal-before-sink",
        "the last task does not wait for the seal",
        Fails(f"{_SERVICE}:Service.end_task", "elif ended.whole is not None"),
        f"{_MEMBER}service.py::test_the_last_task_ends__it_waits_until_the_batch_is_sealed",
    ),
    Fault(
        "seal-as-planned",
        "a batch is sealed by all of its tasks, though some may not reach the driver",
        Fails(f"{_AUTHORIZING}:authorize", "Reach.ALL"),
        f"{_MEMBER}authorizing.py::test_some_tasks_may_not_report_their_ends__it_is_sealed_as_planned",
    ),
    Fault(
        "replay-fixed",
        "a replay of a sealed batch ends where its tasks like",
        Put(f"{_AUTHORIZING}:authorize", "ends=answer.ends", "ends=None"),
        f"{_MEMBER}authorizing.py::test_replayed__read_to_the_ends_that_an_earlier_life_sealed",
    ),
    Fault(
        "replay-acknowledged",
        "a replay on request has acknowledged records again",
        Put(f"{_AUTHORIZING}:_readable", "batch.unacknowledged(bounded)", "bounded"),
        "tests/rules/test_true_ends.py::test_replay_acknowledged__a_replay_on_request_leaves_out_what_is_done",
    ),
    Fault(
        "first-end-wins",
        "the last end of a task counts",
        Put(
            "coordinator/member/inbox.py:Inbox.agree",
            "agreed = batch.ends.setdefault(task, ends)",
            "batch.ends[task] = agreed = ends",
        ),
        "tests/rules/test_true_ends.py::test_first_end_wins__it_counts_for_all_attempts_of_the_task",
    ),
    Fault(
        "unknown-is-beginning",
        "a batch whose seal is lost counts as read",
        Put(f"{_COMMITTING}:_to_its_ends", "unread(mine)", "mine"),
        f"{_MEMBER}committing.py::test_start_that_ended_early__commit_its_true_ends",
    ),
    Fault(
        "equal-plans",
        "a batch that read nothing is planned again under the same offset",
        Put(f"{_PLANNING}:_early", "start.early + 1", "1"),
        "tests/rules/test_true_ends.py::test_equal_plans__the_next_offset_differs_from_the_last_one",
    ),
    # Failing keys
    Fault(
        "defer-is-an-end",
        "a member writes failing records of hashes that another member owns",
        Holds(f"{_LUA}seal.lua", "member == call.member"),
        "tests/rules/test_failing_keys.py::test_defer_is_an_end__only_the_owner_of_the_hash_writes_its_record",
    ),
    Fault(
        "position-holds-the-key",
        "an entry below the position holds its key",
        Holds(f"{_FAILING}:_pieces", "r.offset >= owned.position"),
        "tests/rules/test_failing_keys.py::test_position_holds_the_key__it_is_read_up_to_its_record_and_all_others_as_before",
    ),
    Fault(
        "one-record-at-its-time",
        "a deferred key is tried before its time",
        Fails(f"{_FAILING}:_limited", "record.next_ms in later"),
        "tests/rules/test_failing_keys.py::test_one_record_at_its_time__its_record_is_read_alone_once_it_is_due",
    ),
    Fault(
        "replay-may-defer",
        "a replay commits a key that it deferred",
        Put(f"{_COMMITTING}:_to_its_ends", "ended(batch.bounded(mine), deferred or {})", "batch.bounded(mine)"),
        f"{_MEMBER}committing.py::test_start_that_ended_early__commit_its_true_ends",
    ),
    Fault(
        "deferred-keys-cap",
        "a partition at its cap reads keys that do not fail",
        Fails(f"{_FAILING}:apart", "tp in full"),
        "tests/rules/test_failing_keys.py::test_position_holds_the_key__it_is_read_up_to_its_record_and_all_others_as_before",
    ),
    # Filters
    Fault(
        "filtered-is-done",
        "a row filter leaves gaps between the acknowledgements of other rows",
        Put("spark_coop_source/task/acknowledging.py:Acknowledging.covered", "kept[near] &", ""),
        "tests/rules/test_failing_keys.py::test_filtered_is_done__a_dropped_record_is_a_hole",
    ),
    Fault(
        "replay-same-filter",
        "a batch is replayed with another filter",
        Without(f"{_AUTHORIZING}:return_tasks", "refuse_other_filter"),
        "tests/rules/test_failing_keys.py::test_replay_same_filter__no_other_filter_reads_an_unfinished_batch",
    ),
)
