"""Faults in failing keys: one at least for each rule of deferral."""

from mutants.fault import Edit, Fault

_SEAL = "coordinator/redis/lua/seal.lua"
_PLAN = "coordinator/plan/failing_keys.py"
_SERVICE = "coordinator/member/service.py"
_OF_REDIS = ("tests/coordinator/redis/test_failing.py",)
_OF_PLAN = ("tests/coordinator/plan/test_failing_keys.py",)
_OF_TASK = ("tests/spark_coop_source/task/test_ending.py",)

FAULTS = (
    Fault(
        "a deferred key does not end its hash (against rule: defer-is-an-end)",
        (
            Edit(
                "spark_coop_source/task/ending.py",
                "        self.withdraw(record.tp, record.key_hash, record.offset)\n        key",
                "        key",
            ),
        ),
        _OF_TASK,
    ),
    Fault(
        "a member writes failing records of hashes that another member owns (against rule: defer-is-an-end)",
        (Edit(_SEAL, "    if member == call.member then\n", "    if true then\n"),),
        _OF_REDIS,
    ),
    Fault(
        "a repeated seal parks a key again that was released (against rule: defer-is-an-end)",
        (
            Edit(
                _SEAL,
                "if same and not (before[2] and string.find(';' .. seal, ';' .. A.ends, 1, true)) then",
                "if same then",
            ),
        ),
        _OF_REDIS,
    ),
    Fault(
        "a failing key waits as long as the clock of its task's host says (against rule: clock-ahead)",
        (Edit(_SEAL, "tonumber(at) > latest and before", "false and before"),),
        _OF_REDIS,
        schedules=100,
    ),
    Fault(
        "a failing key waits until a clock that was ahead says so (against rule: clock-ahead)",
        (Edit(_PLAN, "record.next_ms in later", "record.next_ms >= later.start"),),
        _OF_PLAN,
    ),
    Fault(
        "the seal of a batch is written without its failing records (against rule: defer-is-an-end)",
        (
            Edit(
                _SERVICE,
                "self._seal(Seal(digest, ended.whole, ended.all_failures.failing))",
                "self._seal(Seal(digest, ended.whole, ()))",
            ),
        ),
        ("tests/coordinator/member/test_service.py",),
    ),
    Fault(
        "an entry below the position holds its key (against rule: position-holds-the-key)",
        (Edit(_PLAN, "if r.offset >= owned.position", "if True"),),
        _OF_PLAN,
    ),
    Fault(
        "an entry that was replaced is removed (against rule: position-holds-the-key)",
        (
            Edit(
                "coordinator/redis/lua/forgive.lua",
                "value == '' or redis.call('HGET', K.records, field) == value",
                "true",
            ),
        ),
        _OF_REDIS,
    ),
    Fault(
        "a log that was cut keeps its failing records (against rule: position-holds-the-key)",
        (
            Edit(
                "coordinator/redis/lua/recreate.lua",
                "  if renewed[string.match(field, '^%S+ %S+')] then",
                "  if false then",
            ),
        ),
        _OF_REDIS,
    ),
    Fault(
        "a deferred key is tried before its time (against rule: one-record-at-its-time)",
        (Edit(_PLAN, "record.parked or record.next_ms in later", "record.parked"),),
        _OF_PLAN,
        schedules=100,
    ),
    Fault(
        "a parked key is tried again (against rule: parked-until-released)",
        (Edit(_PLAN, "record.parked or record.next_ms in later", "record.next_ms in later"),),
        _OF_PLAN,
        schedules=100,
    ),
    Fault(
        "a key that is due reads all that waits behind it (against rule: one-record-at-its-time)",
        (Edit(_PLAN, "record.offset if waits else record.offset + 1)", "record.offset if waits else 10**15)"),),
        _OF_PLAN,
        schedules=100,
    ),
    Fault(
        "a member does not know the keys that its own last batch deferred (against rule: one-record-at-its-time)",
        (Edit("coordinator/member/committing.py", "    if ended.failures.failing:\n", "    if False:\n"),),
        ("tests/coordinator/member/test_committing.py",),
        schedules=200,
    ),
    Fault(
        "a member does not read the failing records of ranges that it acquired (against rule: one-record-at-its-time)",
        (
            Edit(
                "coordinator/member/poison.py",
                "look_again(replace(state, turn=replace(state.turn, acquired=False)))",
                "replace(state, turn=replace(state.turn, acquired=False))",
            ),
        ),
        ("tests/coordinator/member/test_poison.py",),
        schedules=300,
    ),
    Fault(
        "a replay commits a key that it deferred (against rule: replay-may-defer)",
        (
            Edit(
                "coordinator/member/committing.py",
                "        return ended(batch.bounded(mine), deferred or {})\n",
                "        return batch.bounded(mine)\n",
            ),
        ),
        ("tests/coordinator/member/test_committing.py",),
        schedules=300,
    ),
    Fault(
        "a replay does not seal the key that it deferred (against rule: replay-may-defer)",
        (Edit("coordinator/member/batch.py", "self.as_planned or self.ends is not None", "self.as_planned"),),
        ("tests/coordinator/member/test_service.py",),
        schedules=300,
    ),
    Fault(
        "the highest end of a hash counts (against rule: replay-may-defer)",
        (Edit("coordinator/progress/ends.py", "(hashes, min(of_each))", "(hashes, max(of_each))"),),
        ("tests/coordinator/progress/test_ends.py",),
    ),
    Fault(
        "attempts begin anew in each batch",
        (
            Edit(
                "spark_coop_source/task/ending.py",
                "        return known.attempts if known and known.offset == offset else 0\n",
                "        return 0\n",
            ),
        ),
        _OF_TASK,
    ),
    Fault(
        "a task without room goes on to other keys (against rule: deferred-keys-cap)",
        (Edit("spark_coop_source/task/ending.py", "            self.share_ms = 0.0\n", "            pass\n"),),
        _OF_TASK,
    ),
    Fault(
        "keys that were withdrawn become lanes of their own",
        (
            Edit(
                "spark_coop_source/task/ending.py",
                "ends[key_hash + 1] = left.get(key_hash, base(key_hash + 1))",
                "ends[key_hash + 1] = base(key_hash + 1)",
            ),
        ),
        _OF_TASK,
    ),
    Fault(
        "a key that was withdrawn after its first records ends before them",
        (
            Edit(
                "spark_coop_source/function/slice_batches.py", "whole = self.whole and start == 0", "whole = self.whole"
            ),
        ),
        ("tests/spark_coop_source/function/test_slice_batches.py",),
    ),
    Fault(
        "a hash of two keys ends where its batch begins",
        (Edit("spark_coop_source/task/ending.py", " and of.got[key_hash] == 1:", ":"),),
        _OF_TASK,
    ),
    Fault(
        "a partition at its cap reads keys that do not fail (against rule: deferred-keys-cap)",
        (Edit(_PLAN, "waits = tp in full if record is None else", "waits = False if record is None else"),),
        _OF_PLAN,
    ),
    Fault(
        "AvailableNow never ends if parked keys fill a partition (against rule: deferred-keys-cap)",
        (
            Edit(
                "coordinator/member/planning.py",
                "    refuse_a_full_partition(state, settings.group, settings.max_deferred_keys)\n",
                "",
            ),
        ),
        ("tests/coordinator/member/test_planning.py",),
    ),
    Fault(
        "AvailableNow waits for parked keys",
        (
            Edit(
                "coordinator/redis/lua/finish.lua",
                "(piece.right and piece.right.offset == s.position) or all_parked",
                "all_parked",
            ),
        ),
        _OF_REDIS,
        schedules=100,
    ),
    Fault(
        "AvailableNow waits for what partition order keeps behind a parked record (against rule: available-now)",
        (
            Edit(
                "coordinator/redis/lua/finish.lua",
                "if of.ordered and less(s.position, target) then target = s.position end",
                "",
            ),
        ),
        _OF_REDIS,
        schedules=300,
    ),
    Fault(
        "the failures of a later attempt of a task count (against rule: first-end-wins)",
        (
            Edit(
                "coordinator/member/inbox.py",
                "            failed = batch.failures.setdefault(task, failures)\n",
                "            batch.failures[task] = failed = failures\n",
            ),
        ),
        ("tests/coordinator/member/test_inbox.py",),
    ),
)
