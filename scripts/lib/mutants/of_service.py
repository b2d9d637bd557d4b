"""Faults in the order of things: when it commits, what a restart asserts, what a loss of state leaves."""

from mutants.fault import Edit, Fault

_SERVICE, _PRELUDE = "coordinator/member/service.py", "coordinator/redis/lua/prelude.lua"
_RECOVERY, _LOSSES = ("tests/test_redis_recovery.py",), ("tests/test_service_losses.py",)

_KNOWS_COMPLETED = Edit(
    _SERVICE,
    "from coordinator.progress.ownership import narrowed\n",
    "from coordinator.progress.ownership import completed, narrowed\n",
)

FAULTS = (
    Fault(
        "a batch is committed when it is authorised, before the sink has it",
        (
            _KNOWS_COMPLETED,
            Edit(
                _SERVICE,
                "            self._evidence.authorise(end, verdict)\n",
                "            self._evidence.authorise(end, verdict)\n"
                "            self._committing._commit(end, completed(end), None)\n",
            ),
        ),
        schedules=100,
    ),
    Fault(
        "a batch is committed when it is planned",
        (
            _KNOWS_COMPLETED,
            Edit(
                _SERVICE,
                "        self._evidence.add_unconfirmed(end)\n",
                "        self._evidence.add_unconfirmed(end)\n"
                "        self._committing._commit(end, completed(end), None)\n",
            ),
        ),
        schedules=100,
    ),
    Fault(
        "stopping commits the batch that runs",
        (
            _KNOWS_COMPLETED,
            Edit(
                _SERVICE,
                "        unconfirmed = self._evidence.unconfirmed\n",
                "        unconfirmed = self._evidence.unconfirmed\n"
                "        if self._evidence.known.member:\n"
                "            self._committing._commit(self._evidence.known, completed(self._evidence.known), None)\n",
            ),
        ),
        schedules=200,
    ),
    Fault(
        "what is planned is not asked for again before it is read",
        (
            Edit(
                _SERVICE,
                "verdict = self._membership.call(lambda caller: self._store.authorize(caller, end))",
                "from coordinator.progress.ownership import Owned\n"
                "            owned = {tp: [Owned(x.hashes, x.epoch) for x in of] for tp, of in end.lanes.items()}\n"
                "            verdict = {tp: tuple(of) for tp, of in owned.items()}",
            ),
        ),
        schedules=300,
    ),
    Fault(
        "a skipped part of a replay is asserted as done",
        (
            Edit(
                "coordinator/progress/ownership.py",
                "Fact(h, lane.position) for h in missing",
                "Fact(h, lane.until) for h in missing",
            ),
        ),
        ("tests/test_ownership.py",),
    ),
    Fault(
        "what was skipped stays in the next offset",
        (
            Edit(
                "coordinator/member/committing.py",
                "        mine = start if witnessed is None else narrowed(start, witnessed)\n",
                "        mine = start\n",
            ),
        ),
        ("tests/test_hand_over.py",),
    ),
    Fault(
        "an end that a process never authorised is asserted",
        (
            Edit(
                "coordinator/member/evidence.py",
                "return asserted(self.known, self._witnessed)",
                "return {tp: tuple(Fact(x.hashes, x.until) for x in of_tp) for tp, of_tp in self.known.lanes.items()}",
            ),
            Edit(
                "coordinator/member/evidence.py",
                "from coordinator.progress.ownership import Facts,",
                "from coordinator.progress.ownership import Fact, Facts,",
            ),
        ),
        ("tests/test_evidence.py",),
        schedules=300,
    ),
    Fault(
        "after a loss of state it begins at latest",
        (
            Edit(
                "coordinator/member/founding.py",
                '        if self._settings.on_state_loss == "earliest":\n'
                "            earliest = self._log.resolve(Earliest(), partitions)\n",
                "        if True:\n"
                "            from coordinator.offset_spec import Latest\n"
                "            earliest = self._log.resolve(Latest(), partitions)\n",
            ),
        ),
        schedules=300,
    ),
    Fault(
        "a mirror without Redis is a new group",
        (
            Edit(
                "coordinator/member/founding.py",
                "            if mirroring.is_mirror(offsets):\n",
                "            if False:\n",
            ),
        ),
        _LOSSES,
    ),
    Fault(
        "a restarted Redis passes for the old one",
        (Edit(_PRELUDE, "if m[2] ~= run_id() then", "if false then"),),
        _RECOVERY,
    ),
    Fault(
        "a Redis that went back is not noticed",
        (Edit(_PRELUDE, "if call.nonce == m[1] and less(m[3], call.seq) then", "if false then"),),
        _RECOVERY,
    ),
    Fault(
        "work goes on at once after a loss of state",
        (
            Edit(
                "coordinator/redis/lua/leases.lua",
                "if not until_ms or now_ms() >= tonumber(until_ms) then return nil end",
                "if true then return nil end",
            ),
        ),
        _RECOVERY,
    ),
    Fault(
        "first positions are given twice",
        (
            Edit(
                "coordinator/redis/lua/create_positions.lua",
                "if known == id and redis.call('EXISTS', segments) == 0 then",
                "if known == id then",
            ),
        ),
        ("tests/test_redis_store.py",),
    ),
    Fault(
        "the mirror is told the highest positions",
        (
            Edit(
                "coordinator/member/founding.py",
                "mirroring.entry(o, status.reset",
                "mirroring.entry(o + 1, status.reset",
            ),
        ),
        schedules=100,
    ),
    Fault(
        "a group is kept for ever until somebody's first heartbeat",
        (Edit("coordinator/redis/lua/create_positions.lua", "  keep()\n", ""),),
        ("tests/test_expiry.py",),
    ),
    Fault(
        "what a verb has made does not expire with the group",
        (Edit(_PRELUDE, "  expire_what_is_new()\n  return", "  return"),),
        ("tests/test_expiry.py",),
    ),
    Fault(
        "a group that has lost its meta is founded anew",
        (Edit("coordinator/redis/lua/create_positions.lua", "redis.call('EXISTS', key) == 1 then", "false then"),),
        _RECOVERY,
    ),
)
