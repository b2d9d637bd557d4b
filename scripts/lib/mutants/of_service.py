"""Faults in the order of steps: the commit, the asserts of a restart, the recovery after a loss of state."""

from mutants.fault import Edit, Fault

_PRELUDE = "coordinator/redis/lua/shared/prelude.lua"
_FORGET, _FORGOTTEN = "coordinator/redis/lua/forget.lua", ("tests/coordinator/redis/test_topic_expiry.py",)
_RECOVERY, _LOSSES = (
    ("tests/coordinator/redis/test_recovery.py",),
    ("tests/coordinator/member/test_service_redis_losses.py",),
)


def _commits_early(path: str, before: str, offset: str) -> tuple[Edit, Edit]:
    """Commits all of an offset right before that line of a step."""
    imports = "from coordinator.member.requests import "
    known = "from coordinator.progress.ownership import completed\n"
    early = f'    seen.of(Commit({offset}, completed({offset}), ""))\n'
    return Edit(path, imports, f"{known}{imports}Commit, "), Edit(path, before, early + before)


FAULTS = (
    Fault(
        "a write that Redis has refused counts as done",
        (
            Edit(
                "coordinator/member/turns.py",
                "self.become(replace(before, life=refused(before.life.answered(kind), verdict)))",
                "self.become(replace(self.state, life=refused(self.state.life.answered(kind), verdict)))",
            ),
        ),
        ("tests/coordinator/member/test_turns.py",),
    ),
    Fault(
        "a batch is committed when it is authorised, before the sink has it",
        _commits_early(
            "coordinator/member/authorizing.py",
            "    batch = replace(batch, granted=answer.owned, as_planned=answer.as_planned)\n",
            "batch.end",
        ),
        schedules=100,
    ),
    Fault(
        "a batch is committed when it is planned",
        _commits_early(
            "coordinator/member/planning.py",
            "    state = replace(state, evidence=state.evidence.with_unconfirmed(end), pace=",
            "end",
        ),
        schedules=100,
    ),
    Fault(
        "stopping commits the batch that runs",
        (
            Edit(
                "coordinator/member/leaving.py",
                "    unconfirmed, owned = ",
                "    if (known := state.evidence.known).member:\n"
                "        from coordinator.progress.ownership import completed\n"
                '        seen.done(LastCommit(known, completed(known), ""))\n'
                "    unconfirmed, owned = ",
            ),
        ),
        schedules=200,
    ),
    Fault(
        "a leave names only partitions whose logs were looked at",
        (
            Edit(
                "coordinator/member/leaving.py",
                "{*state.log.partitions, *unconfirmed}",
                "{*state.log.bounds, *unconfirmed}",
            ),
        ),
        ("tests/coordinator/member/test_service.py",),
    ),
    Fault(
        "a planned batch is not authorised again before it is read",
        (
            Edit(
                "coordinator/member/authorizing.py",
                "    answer = seen.done(Authorize(batch.end, replayed=replayed, as_planned=as_planned))\n",
                "    from coordinator.progress.ownership import lane_ranges\n"
                "    from coordinator.redis.replies import Authorized\n"
                "    answer = Authorized({tp: lane_ranges(rows) for tp, rows in batch.end.rows.items()})\n",
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
        ("tests/coordinator/progress/test_ownership.py",),
    ),
    Fault(
        "skipped slices stay in the next offset",
        (
            Edit(
                "coordinator/member/committing.py",
                "    part = start if witnessed is None else narrowed(start, witnessed)\n",
                "    part = start\n",
            ),
        ),
        ("tests/coordinator/member/test_hand_over.py",),
    ),
    Fault(
        "an end that a process never authorised is asserted",
        (
            Edit(
                "coordinator/member/evidence.py",
                "return asserted(self.known, self.witnessed)",
                "return {tp: tuple(Fact(x.hashes, x.until) for x in of_tp) for tp, of_tp in self.known.lanes.items()}",
            ),
            Edit(
                "coordinator/member/evidence.py",
                "from coordinator.progress.ownership import Facts,",
                "from coordinator.progress.ownership import Fact, Facts,",
            ),
        ),
        ("tests/coordinator/member/test_evidence.py",),
        schedules=300,
    ),
    Fault(
        "after a loss of state it begins at latest",
        (
            Edit(
                "coordinator/member/recovery.py", "offset_spec import Earliest", "offset_spec import Latest as Earliest"
            ),
        ),
        schedules=300,
    ),
    Fault(
        "a mirror of another schema is taken for offsets of plain consumers",
        (Edit("coordinator/progress/mirror.py", "if found and not _METADATA.fullmatch(metadata):", "if False:"),),
        ("tests/coordinator/progress/test_mirror.py",),
    ),
    Fault(
        "a mirror without Redis is a new group",
        (
            Edit(
                "coordinator/member/first_positions.py",
                "if mirror or known else None",
                "if False else None",
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
                "coordinator/redis/lua/shared/leases.lua",
                "if not until_ms or now_ms() >= tonumber(until_ms) then return nil end",
                "if true then return nil end",
            ),
        ),
        _RECOVERY,
    ),
    Fault(
        "first positions are set twice",
        (
            Edit(
                "coordinator/redis/lua/create_positions.lua",
                "(known == id or less(partition, before[topic])) and redis.call('EXISTS', segments) == 0",
                "known == id",
            ),
        ),
        ("tests/coordinator/redis/test_store.py",),
    ),
    Fault(
        "the mirror gets the highest positions",
        (
            Edit(
                "coordinator/progress/mirror.py",
                "entry(o, reset,",
                "entry(o + 1, reset,",
            ),
        ),
        schedules=100,
    ),
    Fault(
        "the mirror of an idle group is never written again",
        (Edit("coordinator/member/mirroring.py", "REFRESH_MS = 30_000", "REFRESH_MS = 3_000_000"),),
        ("tests/coordinator/member/test_mirroring.py",),
    ),
    Fault(
        "a group never expires before its first heartbeat",
        (Edit("coordinator/redis/lua/shared/founding.lua", "  keep()\n", ""),),
        ("tests/coordinator/redis/test_expiry.py",),
    ),
    Fault(
        "a topic expires although a member subscribes to it",
        (Edit(_FORGET, "do subscribed[topic] = true end", "do subscribed[topic] = nil end"),),
        _FORGOTTEN,
    ),
    Fault(
        "a topic expires at the first call that finds no subscriber",
        (Edit(_FORGET, "return sound and now - tonumber(since) >= longest('retention')", "return true"),),
        _FORGOTTEN,
    ),
    Fault(
        "a topic expires between first positions and the join of its new member",
        (
            Edit(
                "coordinator/redis/lua/create_positions.lua",
                "  redis.call('HDEL', META, unsubscribed(topic))\n",
                "",
            ),
        ),
        _FORGOTTEN,
    ),
    Fault(
        "a topic that came back is measured from its first absence",
        (Edit(_FORGET, "  if subscribed[topic] then redis.call('HDEL', META, mark) end\n", ""),),
        _FORGOTTEN,
    ),
    Fault(
        "a topic expires although the topics of a live member are unknown",
        (Edit(_FORGET, " or not complete then", " then"),),
        _FORGOTTEN,
    ),
    Fault(
        "a forgotten topic stays in the mirror",
        (Edit("coordinator/member/owning.py", "if forgotten and", "if not forgotten and"),),
        ("tests/coordinator/member/test_forgetting.py",),
    ),
    Fault(
        "a member that slept never reads a topic that the group has forgotten",
        (
            Edit(
                "coordinator/member/first_positions.py",
                "if not known or tp.topic in known)",
                "if tp.topic)",
            ),
        ),
        ("tests/coordinator/member/test_forgetting.py",),
    ),
    Fault(
        "keys that a verb creates do not expire with the group",
        (Edit(_PRELUDE, "  expire_what_is_new()\n  return", "  return"),),
        ("tests/coordinator/redis/test_expiry.py",),
    ),
    Fault(
        "a group that has lost its meta is founded anew",
        (Edit("coordinator/redis/lua/create_positions.lua", "if left then", "if false then"),),
        _RECOVERY,
    ),
    Fault(
        "of several errors in what Spark raises, the first counts",
        (
            Edit("spark_coop_source/errors_in_spark.py", "text[found[-1].end() :]", "text[found[0].end() :]"),
            Edit("spark_coop_source/errors_in_spark.py", "classes[found[-1][1]]", "classes[found[0][1]]"),
        ),
        ("tests/spark_coop_source/test_errors_in_spark.py",),
    ),
    Fault(
        "an import overwrites a group",
        (Edit("coordinator/redis/lua/found.lua", "if remains() then", "if false then"),),
        ("tests/coordinator/redis/test_connection.py",),
    ),
    Fault(
        "a bitmap of parallel-consumer is read from its highest bit",
        (Edit("coordinator/tools/moving/parallel_consumer.py", "bits[i // 8] >> i % 8", "bits[i // 8] >> 7 - i % 8"),),
        ("tests/coordinator/tools/moving/test_parallel_consumer.py",),
    ),
    Fault(
        "a batch that has begun counts as finished",
        (
            Edit(
                "coordinator/tools/moving/spark_checkpoint.py",
                'lines = _lines(folder / "offsets" / str(finished))',
                'lines = _lines(folder / "offsets" / str(begun))',
            ),
        ),
        ("tests/coordinator/tools/moving/test_spark_checkpoint.py",),
    ),
    Fault(
        "an import takes the offsets of live consumers",
        (
            Edit(
                "coordinator/tools/cli/move_commands.py", "            sources.must_be_idle(found, name, cluster)\n", ""
            ),
        ),
        ("tests/coordinator/tools/moving/test_importing.py",),
    ),
    Fault(
        "an update of a share group replaces all that is known",
        (
            Edit(
                "coordinator/tools/moving/share_group.py",
                "state = states.setdefault(tp, _State())",
                "state = states[tp] = _State()",
            ),
        ),
        ("tests/coordinator/tools/moving/test_share_group.py",),
    ),
)
