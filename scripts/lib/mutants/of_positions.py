"""Faults in positions: offsets, hashes, segments, and the scripts that move them."""

from mutants.fault import Edit, Fault

_PRELUDE, _PROGRESS_LUA = "coordinator/redis/lua/shared/prelude.lua", "coordinator/redis/lua/shared/progress.lua"
_RAISED = "if fact.position and less(s.position, fact.position) then s.position, more = fact.position, true end"
_STABLE = "if not stable or less(s.position, stable) then stable = s.position end"
_SCRIPTS = ("tests/coordinator/redis/test_store.py", "tests/coordinator/redis/test_commits.py")
_CUT_LOGS = ("tests/coordinator/redis/test_store.py", "tests/coordinator/member/test_cut_logs.py")
_LOW_ENDS, _LOSING = "coordinator/member/low_ends.py", "tests/coordinator/member/test_losing.py"
_LOW = (_LOSING, "tests/coordinator/member/test_low_ends.py")
_BELIEVED = "believed=now_ms - since_ms >= LOW_MS"
_PROGRESS = ("tests/coordinator/progress/test_segments.py",)

FAULTS = (
    Fault(
        "a log that was cut and has grown again looks whole",
        (
            Edit(
                "coordinator/member/losing.py",
                "cut = data_loss.cuts_by(known, known_ends, reach) | data_loss.cuts(own, own_ends)",
                "cut = dict[TopicPartition, Cut]()",
            ),
        ),
        schedules=350,
    ),
    Fault("one low log end is a data loss", (Edit(_LOW_ENDS, _BELIEVED, "believed=True"),), _LOW),
    Fault("a log end that stays low is never believed", (Edit(_LOW_ENDS, _BELIEVED, "believed=False"),), _LOW),
    Fault(
        "an open transaction is taken for a cut log",
        (Edit(_LOW_ENDS, "for tp in (tp for tp, mark in marks.items() if mark < wanted[tp]):", "for tp in marks:"),),
        _LOW,
    ),
    Fault(
        "a low end of an earlier leader counts for the next one",
        (Edit(_LOW_ENDS, "if before and before.epoch == epoch else now_ms", "if before else now_ms"),),
        (_LOSING,),
    ),
    Fault(
        "a partition with a low end is read",
        (Edit("coordinator/member/pacing.py", "0 if tp in alone else b.end", "b.end"),),
        (_LOSING,),
    ),
    Fault(
        "AvailableNow ends at a low log end",
        (
            Edit(
                "coordinator/member/pacing.py",
                "target if tp in alone else min(target, bounds[tp].end)",
                "min(target, bounds[tp].end)",
            ),
        ),
        (_LOSING,),
    ),
    Fault(
        "a low log end is stored",
        (Edit("coordinator/member/losing.py", "sure = ends.keys() - state.log.unsure", "sure = ends.keys()"),),
        (_LOSING,),
    ),
    Fault(
        "a checkpoint beyond a low log end is refused at once",
        (Edit("coordinator/member/accepting.py", "None if unsure(low) else {", "{"),),
        ("tests/coordinator/member/test_accepting.py",),
    ),
    Fault(
        "a lower end replaces the end of a leader epoch",
        (Edit("coordinator/redis/lua/show.lua", "if says_more(", "if replaces_leader_epoch("),),
        ("tests/coordinator/redis/test_store.py",),
    ),
    Fault(
        "a task takes a leader that has just been elected for a cut log",
        (Edit("spark_coop_source/fetch/fetch.py", " and monotonic() - self._last_progress >= self._low_s", ""),),
        ("tests/spark_coop_source/fetch/test_lost_records.py",),
    ),
    Fault(
        "a task takes an open transaction for a cut log",
        (
            Edit(
                "spark_coop_source/fetch/looks.py",
                'everything = {**kafka, "isolation_level": "read_uncommitted"}',
                "everything = dict(kafka)",
            ),
        ),
        ("tests/spark_coop_source/fetch/test_lost_records.py",),
    ),
    Fault(
        "a starting offset in an open transaction is refused",
        (Edit("coordinator/kafka/log.py", "{tp: b._replace(end=marks[tp]) for", "{tp: b for"),),
        ("tests/coordinator/kafka/test_offsets.py",),
    ),
    Fault(
        "a checkpoint's position beyond the log end is committed",
        (
            Edit(
                "coordinator/member/accepting.py",
                "state, within, _ = within_logs(state, offset, seen, call)",
                "within = offset",
            ),
            Edit(
                "coordinator/member/committing.py",
                "    state, mine, warnings = within_logs(state, part, seen, call)\n",
                "    mine, warnings = part, ()\n",
            ),
        ),
        ("tests/hostile/test_hostile_checkpoints.py",),
    ),
    Fault(
        "a script writes a topic id that names a partition too",
        (
            Edit(
                "coordinator/redis/lua/shared/prelude.lua",
                "  require_argument(right and read == #text + 1, 'lanes', text)\n",
                "",
            ),
        ),
        ("tests/hostile/test_hostile_requests.py",),
    ),
    Fault(
        "positions are moved by a difference, not to a place",
        (
            Edit(
                "coordinator/progress/ownership.py",
                "return position, lane.offsets[1:]",
                "return position - lane.position, lane.offsets[1:]",
            ),
            Edit(_PROGRESS_LUA, _RAISED, "if fact.position then s.position = ms(s.position + fact.position) end"),
        ),
        schedules=300,
    ),
    Fault(
        "a late commit moves a position back",
        (Edit(_PROGRESS_LUA, _RAISED, "s.position = fact.position or s.position"),),
        _SCRIPTS,
    ),
    Fault(
        "offsets are compared as numbers: wrong beyond 2^53",
        (Edit(_PRELUDE, "return #a < #b or (#a == #b and a < b)", "return tonumber(a) < tonumber(b)"),),
        _SCRIPTS,
    ),
    Fault(
        "offsets are counted as numbers: wrong beyond 2^53",
        (Edit(_PROGRESS_LUA, "  if #offset < 16 then return", "  if true then return"),),
        _SCRIPTS,
    ),
    Fault(
        "hashes are counted as numbers: wrong beyond 2^53",
        (
            Edit(
                _PRELUDE,
                "  known = string.format('%08x%08x', high, low)",
                "  known = string.format('%016x', tonumber(hash, 16) + by)",
            ),
        ),
        schedules=100,
    ),
    Fault(
        "segments are keyed by their start alone",
        (
            Edit(
                _PROGRESS_LUA,
                "in ipairs(overlay(overlay(ranges_of(keys, 'segments', OFFSET), ics), facts)) do\n",
                "in ipairs(overlay(found(keys, 'segments', OFFSET), ics)) do\n"
                "    local by_start = {}\n"
                "    for _, fact in ipairs(facts) do by_start[fact.lo] = fact end\n"
                "    p = { lo = p.lo, hi = p.hi, left = p, right = by_start[p.lo] }\n",
            ),
        ),
        schedules=100,
    ),
    Fault(
        "a plan starts at its own commit, although positions are further",
        (
            Edit(
                "coordinator/redis/lua/commit.lua",
                "if #s.ics > 0 or (s.fact and s.fact.position ~= s.position) then",
                "if #s.ics > 0 then",
            ),
        ),
        ("tests/coordinator/redis/test_store.py",),
    ),
    Fault(
        "neighbours become one segment whatever their positions",
        (Edit(_PRELUDE, "if last and last.value == r.value and", "if last and"),),
        _SCRIPTS,
    ),
    Fault(
        "neighbours become one segment though their owners differ",
        (Edit(_PROGRESS_LUA, "coalesce(segments, boundaries)", "coalesce(segments, NOTHING)"),),
        _SCRIPTS,
    ),
    Fault(
        "the stable offset is the highest position",
        (Edit(_PROGRESS_LUA, _STABLE, _STABLE.replace("s.position, stable", "stable, s.position")),),
        schedules=100,
    ),
    Fault(
        "the stable offset is that of the segments just committed",
        (Edit(_PROGRESS_LUA, _STABLE, _STABLE.replace("if not", "if s.fact and (not").replace(") then", ")) then")),),
        schedules=100,
    ),
    Fault(
        "an individual commit is merged over a gap of one record",
        (
            Edit(
                "coordinator/values/ranges.py",
                "if merged and r.start <= merged[-1].until:",
                "if merged and r.start <= merged[-1].until + 1:",
            ),
        ),
        _PROGRESS,
    ),
    Fault(
        "a script merges individual commits over a gap",
        (Edit(_PROGRESS_LUA, "elseif last and not less(last[2], r[1]) then", "elseif last then"),),
        _SCRIPTS,
    ),
    Fault(
        "a script moves the position over a gap",
        (Edit(_PROGRESS_LUA, "    if not last and not less(position, r[1]) then", "    if not last then"),),
        _SCRIPTS,
    ),
    Fault(
        "the position jumps over a gap of one record",
        (Edit("coordinator/progress/segments.py", "if r.start <= position:", "if r.start <= position + 1:"),),
        _PROGRESS,
    ),
    Fault(
        "done records to the right of the position are read again",
        (Edit("coordinator/progress/segments.py", "wanted.until), self.ics)", "wanted.until), ())"),),
        _PROGRESS,
    ),
    Fault(
        "records between the slices of a lane are committed with them",
        (
            Edit(
                "coordinator/progress/ownership.py",
                "    position = lane.offsets[0].until if lane.offsets else lane.position\n",
                "    position = lane.until\n",
            ),
        ),
        _SCRIPTS,
    ),
    Fault(
        "individual commits are lost when their range is acquired",
        (
            Edit(
                "coordinator/redis/lua/acquire.lua",
                "  taken[#taken + 1] = { ics_key, cut(ics_key, nil, after) }\n",
                "  redis.call('DEL', ics_key)\n",
            ),
        ),
        _SCRIPTS,
    ),
    Fault(
        "the last offset of a range is written one too high",
        (Edit("coordinator/values/ranges.py", 'f"{self.start}-{self.until - 1}"', 'f"{self.start}-{self.until}"'),),
        ("tests/coordinator/progress/test_stream_offset.py",),
    ),
    Fault(
        "ranges of hashes overlap by one where they are cut",
        (
            Edit(
                "coordinator/values/ranges.py",
                "HashRange(lo, until - 1) for lo, until in pairwise",
                "HashRange(lo, min(until, hashes.hi)) for lo, until in pairwise",
            ),
        ),
        _PROGRESS,
    ),
    Fault(
        "the rest of a lane begins one hash too late",
        (Edit("coordinator/values/hash_map.py", "lo = max(lo, c.hi + 1)", "lo = max(lo, c.hi + 2)"),),
        ("tests/coordinator/values/test_hash_map.py",),
    ),
    Fault(
        "no check detects a hole among the segments",
        (Edit(_PRELUDE, "  if pattern == OFFSET then check_tiling(ranges, key) end\n", ""),),
        ("tests/hostile/test_damaged_state.py",),
    ),
    Fault(
        "a segment is cut one hash off where an owner begins",
        (Edit(_PRELUDE, "then hi = step(r.lo, -1) end", "then hi = r.lo end"),),
        schedules=100,
    ),
    Fault(
        "an assertion of an older leader epoch than the stored one is taken",
        (
            Edit(
                "coordinator/redis/lua/claim.lua",
                "return epoch == '-' or not has_newer_leader_epoch(stored, epoch, A.reset, id)",
                "return true",
            ),
        ),
        _CUT_LOGS,
    ),
    Fault(
        "an assertion reaches beyond the cut of its log",
        (Edit("coordinator/member/apply.py", "facts_below(facts, left))", "facts)"),),
        _CUT_LOGS,
    ),
    Fault(
        "a batch of before a cut that nobody had committed is committed after it",
        (
            Edit(
                "coordinator/progress/data_loss.py",
                "return {**unread, **cuts(read, ends)}",
                "return cuts(read, ends)",
            ),
        ),
        ("tests/coordinator/member/test_cut_logs.py", "tests/coordinator/member/test_losing.py"),
    ),
    Fault(
        "positions above a cut stay",
        (Edit("coordinator/redis/lua/recreate.lua", "if less(p.position, s.value) then", "if false then"),),
        ("tests/coordinator/redis/test_recovery.py",),
    ),
    Fault(
        "positions of a cut log are written without its leader epoch",
        (Edit("coordinator/redis/lua/recreate.lua", "if extent ~= '' and ", "if false and "),),
        _CUT_LOGS,
    ),
    Fault(
        "a look before an election replaces the newer leader epoch",
        (
            Edit(
                "coordinator/redis/lua/shared/leader_epochs.lua",
                "return not (epoch and has_newer_leader_epoch(stored, epoch, reset, id))",
                "return true",
            ),
        ),
        _CUT_LOGS,
    ),
)
