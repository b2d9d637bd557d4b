"""Faults in the isolation of slow and hung records: quotas, cuts, costs, strikes, parking; and in policies."""

from mutants.fault import Edit, Fault

_POISON, _QUOTAS, _CUTS = (
    "coordinator/plan/poison.py",
    "coordinator/plan/cost/quotas.py",
    "coordinator/plan/lane_bounds.py",
)
_STRIKES, _JOIN = "coordinator/redis/lua/shared/strikes.lua", "coordinator/redis/lua/join.lua"
_ASSIGNMENT, _REPORTS = "coordinator/assignment/", "spark_coop_source/driver/telemetry_reports.py"
_OF_POISON, _OF_QUOTAS, _OF_CUTS = (
    (
        "tests/coordinator/plan/test_poison.py",
        "tests/coordinator/member/test_poison.py",
        "tests/coordinator/redis/test_poison.py",
        "tests/coordinator/member/test_poison_trials.py",
    ),
    ("tests/coordinator/plan/cost/test_quotas.py",),
    ("tests/coordinator/plan/test_lane_bounds.py",),
)
_KNOWLEDGE, _OF_STEERING = "coordinator/plan/cost/knowledge.py", ("tests/coordinator/plan/cost/test_steering.py",)
_OF_REPORTS = (
    "tests/spark_coop_source/telemetry/test_report.py",
    "tests/spark_coop_source/driver/test_telemetry_reports.py",
)

FAULTS = (
    Fault(
        "a parked lane is planned",
        (Edit(_POISON, "yield _held(piece, parked.offset) if parked else piece, ", "yield piece, "),),
        schedules=300,
    ),
    Fault(
        "a struck lane is read together with others",
        (
            Edit(
                _POISON,
                "in strikes.filled(owned.hashes, ())",
                "in [(owned.hashes, s) for _, s in strikes.filled(owned.hashes, ())][:1]",
            ),
        ),
        _OF_POISON,
        schedules=300,
    ),
    Fault(
        "a trial goes beyond its strike",
        (
            Edit(
                _POISON,
                "min(self.offsets.until, position + part)",
                "position + part",
            ),
        ),
        _OF_POISON,
    ),
    Fault(
        "after one strike the lane is read record by record",
        (Edit(_POISON, "        if self.count == 1:\n            return self.offsets.until\n", ""),),
        _OF_POISON,
    ),
    Fault(
        "the slices of a lost member are read at a record a batch",
        (Edit(_POISON, "return self.offsets.until", "return min(self.offsets.until, position + one)"),),
        schedules=100,
    ),
    Fault(
        "a hung record is looked for in the whole slice for ever",
        (Edit(_POISON, "max(one, ceil(len(self.offsets) / PARTS))", "len(self.offsets)"),),
        _OF_POISON,
    ),
    Fault(
        "a lane on trial shares a task with others",
        (Edit("coordinator/plan/cost/steering.py", "if apart and not joined else set()", "if False else set()"),),
        ("tests/coordinator/plan/cost/test_steering_trials.py",),
    ),
    Fault(
        "a lane on trial is cut",
        (Edit("coordinator/plan/cost/steering.py", "cut(() if q.lane in whole else", "cut(() if False else"),),
        ("tests/coordinator/plan/cost/test_steering_trials.py",),
    ),
    Fault(
        "a task that hangs names the key that it was at before",
        (Edit("coordinator/member/inbox.py", "self._heard_ms[c.slice] < STALE_MS", "self._heard_ms[c.slice] >= 0"),),
        ("tests/coordinator/member/test_inbox.py",),
    ),
    Fault(
        "a call that has returned is still under way",
        (Edit("spark_coop_source/telemetry/meter.py", "self._calls.pop(id(batch), None)", "pass"),),
        ("tests/spark_coop_source/telemetry/test_meter.py",),
    ),
    Fault(
        "a task whose function never returns gives no sign of life",
        (Edit("spark_coop_source/telemetry/meter.py", "while not ended.wait(ALIVE_S):", "while False:"),),
        ("tests/spark_coop_source/telemetry/test_meter.py",),
    ),
    Fault(
        "of many slices under way those on trial are not reported",
        (Edit(_POISON, "known = [of for of in known if of[1] is not None][:MOST_SLICES]", "known = []"),),
        _OF_POISON,
    ),
    Fault(
        "a fast key whose task has just begun gets a lane of its own",
        (Edit(_KNOWLEDGE, "return TASK_MS if self.exact else 0.0", "return 0.0"),),
        _OF_STEERING,
    ),
    Fault(
        "a key of which much waits is not slow if a record takes little",
        (Edit(_KNOWLEDGE, "max(record_ms, work) > self._least", "record_ms > self._least"),),
        _OF_STEERING,
    ),
    Fault(
        "lanes change in each batch for a key that is too little work for one",
        (Edit(_CUTS, "max(share + least, share * (VERY_UNEVEN", "max(0.0, share * (VERY_UNEVEN"),),
        _OF_STEERING,
    ),
    Fault(
        "a strike is forgiven with the first record that is read of it",
        (Edit(_POISON, "if p.position >= s.offsets.until", "if p.position > s.offset"),),
        _OF_POISON,
    ),
    Fault(
        "lanes parked in the meantime are replayed",
        (
            Edit(
                _POISON,
                "if s.parked or (s.count > 1 and s not in known)]",
                "if s.count > 1 and s not in known and not s.parked]",
            ),
        ),
        ("tests/coordinator/member/test_poison.py",),
    ),
    Fault(
        "lanes left out of a batch keep their lane epoch",
        (
            Edit(
                "coordinator/member/poison.py",
                "given_up = left_out(batch.granted, readable)",
                "given_up = left_out({}, {})",
            ),
        ),
        _OF_POISON,
    ),
    Fault(
        "a lane with two strikes is replayed without end",
        (Edit(_POISON, "if s.parked or (s.count > 1 and s not in known)]", "if s.parked]"),),
        _OF_POISON,
    ),
    Fault(
        "the lane of a trial is left out of its batch",
        (Edit(_POISON, "(s.count > 1 and s not in known)]", "s.count > 1]"),),
        _OF_POISON,
    ),
    Fault(
        "strikes do not count up",
        (Edit(_STRIKES, "count = math.max(count, tonumber(before) + 1)", "count = 1"),),
        schedules=300,
    ),
    Fault(
        "one loss of a member strikes again and again",
        (Edit(_STRIKES, "  redis.call('HDEL', working_key, member)\n", ""),),
        _OF_POISON,
    ),
    Fault(
        "a slice of many records is parked",
        (Edit(_STRIKES, "s.one and count > (hung and 1 or 2)", "count > (hung and 1 or 2)"),),
        _OF_POISON,
    ),
    Fault(
        "two members that were only lost are enough to park a record",
        (Edit(_STRIKES, "s.one and count > (hung and 1 or 2)", "s.one and count > 1"),),
        _OF_POISON,
    ),
    Fault(
        "a batch that hangs is no stronger a sign than a lost lease",
        (Edit(_STRIKES, "s.one and count > (hung and 1 or 2)", "s.one and count > 2"),),
        _OF_POISON,
    ),
    Fault(
        "a driver that hangs and is stopped in order leaves no strike",
        (Edit("coordinator/redis/lua/leave.lua", "if hangs(K.batches, call.member) then", "if false then"),),
        ("tests/coordinator/redis/test_poison.py",),
    ),
    Fault(
        "each driver that is stopped in a batch leaves a strike",
        (Edit("coordinator/redis/lua/leave.lua", "if hangs(K.batches, call.member) then", "if true then"),),
        ("tests/coordinator/redis/test_poison.py",),
    ),
    Fault(
        "a life that is followed at once by another leaves no strike",
        (Edit(_JOIN, "if before[1] and another then strike", "if false then strike"),),
        ("tests/coordinator/redis/test_poison.py",),
        schedules=400,
    ),
    Fault(
        "a damaged work record strikes ranges that no member can read",
        (Edit(_STRIKES, "if whole and some then\n", "if true then\n"),),
        ("tests/hostile/test_damaged_state.py",),
    ),
    Fault(
        "strikes of a topic hold for a new topic of that name",
        (Edit(_STRIKES, "if p.position ~= '-' and known and known ~= p.id then", "if false then"),),
        ("tests/coordinator/redis/test_recovery.py",),
    ),
    Fault(
        "quotas are ignored",
        (Edit(_QUOTAS, "if offset >= self.piece.reach(self.end):", "if True:"),),
        _OF_QUOTAS,
    ),
    Fault(
        "a slow lane's quota is nothing",
        (Edit(_QUOTAS, "max(1.0, max(records, LEAST) / self.cell.density)", "0.9 * records / self.cell.density"),),
        _OF_QUOTAS,
    ),
    Fault(
        "a lane that is guessed denser than a record an offset reads nothing",
        (
            Edit(
                _QUOTAS, "max(1.0, max(records, LEAST) / self.cell.density)", "max(records, LEAST) / self.cell.density"
            ),
        ),
        _OF_QUOTAS,
    ),
    Fault(
        "the youngest records come first when the budget cannot serve all",
        (Edit(_QUOTAS, "(-age_ms(q.tp, q.piece.position), -q.lag", "(age_ms(q.tp, q.piece.position), -q.lag"),),
        _OF_QUOTAS,
    ),
    Fault(
        "quiet partitions wait for those to which much comes",
        (Edit(_QUOTAS, "min(want, total / (len(wants) - i))", "total / (len(wants) - i)"),),
        _OF_QUOTAS,
    ),
    Fault(
        "healthy lanes wait for slow ones",
        (Edit(_QUOTAS, "reserved_ms = min(FOR_SLOW * whole_ms,", "reserved_ms = min(whole_ms,"),),
        _OF_QUOTAS,
    ),
    Fault(
        "a slow key that is little work shares its lane",
        (Edit(_CUTS, "        return self.slow or (", "        return ("),),
        _OF_CUTS,
    ),
    Fault(
        "slow keys take all lanes",
        (Edit(_CUTS, "max(1, ceil(FOR_OTHERS * tasks), tasks - filled)", "max(1, tasks - filled)"),),
        _OF_CUTS,
    ),
    Fault(
        "each partition has a lane for every task, however little waits there",
        (Edit(_CUTS, "so_far = (so_far + sum(p.work for p in together)) % share", "so_far = 0.0"),),
        _OF_CUTS,
    ),
    Fault(
        "a lane gets more records than a slot can read",
        (Edit(_QUOTAS, "sum(min(q.rows, slot_rows) for q in of)", "sum(q.rows for q in of)"),),
        _OF_QUOTAS,
    ),
    Fault(
        "a key that is slow no more keeps its lane for ever",
        (
            Edit(
                _CUTS,
                "may_stay = (kept, whole) if soon or _count(kept) <= _count(new) else (whole,)",
                "may_stay = (kept, whole)",
            ),
        ),
        _OF_CUTS,
    ),
    Fault(
        "a trigger's waiting is taken from the time budget",
        (Edit("coordinator/plan/cost/knowledge.py", "if batch.warm and not waited:", "if batch.warm:"),),
        ("tests/coordinator/plan/cost/test_steering.py",),
    ),
    Fault(
        "a cut beside a key leaves another with it",
        (Edit("coordinator/values/ranges.py", "for first in (self.lo, self.hi + 1) if", "for first in (self.lo,) if"),),
        _OF_CUTS,
    ),
    Fault(
        "a forged report of costs is accepted",
        (
            Edit(
                "spark_coop_source/telemetry/frames.py",
                " and hmac.compare_digest(signature, _signature(text, key))",
                "",
            ),
        ),
        ("tests/spark_coop_source/telemetry/test_frames.py",),
    ),
    Fault(
        "a report of a slice that was never planned counts",
        (Edit(_REPORTS, "if plan is not None and of in plan.slices and", "if plan is not None and"),),
        _OF_REPORTS,
    ),
    Fault(
        "a report of impossible costs is accepted",
        (Edit(_REPORTS, "report.cost.clamped(after_ms, self._concurrency)", "report.cost"),),
        _OF_REPORTS,
    ),
    Fault(
        "policies are ignored in assignments",
        (Edit(_ASSIGNMENT + "assigning.py", "if policy.may_share(t)}", "if t}"),),
        schedules=200,
    ),
    Fault(
        "a member that does not share gets parts",
        (Edit(_ASSIGNMENT + "assignment_text.py", 'fields.get(MEMBER_POLICY, "true") != "false"', "True"),),
        schedules=200,
    ),
    Fault(
        "a member votes for an assignor that not all know",
        (
            Edit(
                _ASSIGNMENT + "protocols.py",
                "Counter(next(p for p in preferences if p in candidates) for",
                "Counter(preferences[0] for",
            ),
        ),
        schedules=200,
    ),
    Fault(
        "the cap of individual commits is never enforced",
        (Edit("coordinator/redis/lua/commit_ranges.lua", "if after > limit then", "if false then"),),
        ("tests/coordinator/commits/test_commit_api_refusals.py",),
    ),
    Fault(
        "a log that was cut and has grown again passes for the old one",
        (Edit("coordinator/progress/data_loss.py", "ends[tp] < extent.end", "False"),),
        ("tests/coordinator/member/test_leader_epochs.py",),
    ),
    Fault(
        "the extent of a log is used after an operator's reset",
        (
            Edit(
                "coordinator/progress/leader_epochs.py",
                "(int(found[3]), found[4]) == (reset,",
                "(reset, found[4]) == (reset,",
            ),
        ),
        ("tests/coordinator/member/test_leader_epochs.py",),
    ),
)
