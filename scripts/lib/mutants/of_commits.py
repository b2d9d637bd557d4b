"""Faults in the commits that users make: individual commits, their cap, their order."""

from mutants.fault import Edit, Fault

_LUA = "coordinator/redis/lua/"
_API = (
    "tests/coordinator/commits/test_commit_api.py",
    "tests/coordinator/commits/test_commit_api_refusals.py",
    "tests/coordinator/commits/test_commit_fences.py",
)
_PROGRESS = ("tests/coordinator/redis/test_commits.py",)
_ORDERED = (
    "tests/coordinator/commits/test_ordered_commits.py",
    "tests/coordinator/commits/test_ordered_members.py",
    "tests/coordinator/commits/test_turn_oracle.py",
)
_TEXT, _ACKNOWLEDGING = "coordinator/progress/acknowledgement.py", "spark_coop_source/task/acknowledging.py"
_LAST_ROW = "spark_coop_source/task/last_row.py"
_OFFSET_MAX = ("import with_holes\n", "import with_holes\nfrom coordinator.values.ranges import OFFSET_MAX\n")
_ROWS = ("tests/spark_coop_source/task/test_acknowledging.py",)
_DAMAGED = ("tests/hostile/test_damaged_state.py",)
_SKIPPED = ("tests/end_to_end/test_skipped_batches.py",)

FAULTS = (
    Fault(
        "individual commits that touch are not joined",
        (Edit(_LUA + "shared/progress.lua", "not less(last[2], r[1]) then", "less(r[1], last[2]) then"),),
        _API,
    ),
    Fault(
        "individual commits are not fenced by lane epoch",
        (Edit(_LUA + "commit_ranges.lua", " and epoch == piece.left.a", ""),),
        _API,
    ),
    Fault(
        "at the cap a commit that fills a gap is refused too",
        (Edit(_LUA + "commit_ranges.lua", "if after > limit then", "if before >= most then"),),
        _API,
    ),
    Fault(
        "a commit wholly below the stable offset counts as a repeated one",
        (Edit(_LUA + "commit_ranges.lua", "if not less(stable, done[#done][2]) then", "if false then"),),
        _API,
    ),
    Fault(
        "the store accepts a commit beyond the batch",
        (Edit(_LUA + "commit_ranges.lua", "if less(reach, done[#done][2]) then return outcome('BEYOND') end\n", ""),),
        _API,
    ),
    Fault(
        "a lane accepts commits behind the early end of its task",
        (Edit(_LUA + "commit_ranges.lua", "    if early and less(early, past) then past = early end\n", ""),),
        _API,
    ),
    Fault(
        "early ends of a batch bound commits of another batch",
        (Edit(_LUA + "commit_ranges.lua", "batch[1] == A.batch and batch[2]", "batch[2]"),),
        _API,
    ),
    Fault(
        "a lane accepts commits of its neighbour's records",
        (Edit(_LUA + "commit_ranges.lua", "done_below(s.fact.value)", "done"),),
        _API,
    ),
    Fault(
        "a commit of a member does not end at the log end",
        (Edit(_LUA + "commit_ranges.lua", "a = log_end }", "a = OFFSET_MAX }"),),
        (
            "tests/coordinator/commits/test_commit_api.py",
            "tests/coordinator/commits/test_commit_api_refusals.py",
            "tests/coordinator/commits/test_acknowledging_members.py",
        ),
    ),
    Fault(
        "a batch commits its end over individual commits",
        (
            Edit(
                "coordinator/progress/ownership.py",
                "position = lane.offsets[0].until if lane.offsets else lane.position",
                "position = lane.until",
            ),
        ),
        _PROGRESS,
    ),
    Fault(
        "acquiring leaves individual commits uncut",
        (Edit(_LUA + "acquire.lua", "  taken[#taken + 1] = { ics_key, cut(ics_key, nil, after) }\n", ""),),
        _PROGRESS,
    ),
    Fault(
        "damaged individual commits stop the group",
        (Edit(_LUA + "shared/progress.lua", "r.offsets = parsed_offsets(r.value)", "r.offsets = offsets_of(r.value)"),),
        _DAMAGED,
        schedules=300,
    ),
    Fault(
        "damaged individual commits are left out at every call, with an event each time",
        (Edit(_LUA + "shared/progress.lua", "    replace(key, sound)\n", ""),),
        _DAMAGED,
    ),
    Fault(
        "individual commits may reach beyond the last possible offset",
        (Edit(_LUA + "shared/progress.lua", " and (not before or number(before[2]))", ""),),
        _DAMAGED,
    ),
    Fault(
        "a view refuses a group with damaged individual commits",
        (
            Edit("coordinator/redis/group_texts.py", "in sound_commits_of(texts)", "in commits_of(texts)"),
            Edit("coordinator/redis/group_texts.py", "Rectangle, sound_commits_of", "Rectangle, commits_of"),
        ),
        _DAMAGED,
    ),
    Fault(
        "at the cap the lane behind is held back too",
        (Edit("coordinator/plan/back_pressure.py", "if owned.position == stable:", "if owned.position < stable:"),),
        ("tests/coordinator/plan/test_back_pressure.py",),
    ),
    Fault(
        "at the cap no assignment is due, and a member that waits gets nothing",
        (Edit(_LUA + "commit_ranges.lua", "redis.call('HINCRBY', META, 'joins', 1)", ""),),
        ("tests/end_to_end/test_full_partition.py",),
    ),
    Fault(
        "an ordered commit does not wait for its turn",
        (Edit(_LUA + "reserve.lua", "if before then return turned('WAIT', before) end\n", ""),),
        _ORDERED,
        schedules=300,
    ),
    Fault(
        "an ordered commit waits for reservations of its own hashes only",
        (
            Edit(
                _LUA + "reserve.lua",
                "and missing(theirs.hashes, theirs.from, past)",
                "and missing(mine.hashes, '0', past)",
            ),
        ),
        _ORDERED,
        schedules=300,
    ),
    Fault(
        "a dead worker's reservation stops ordered commits no longer than its lease",
        (Edit(_LUA + "reserve.lua", "before = who else alone = who end", "before = who end"),),
        _ORDERED,
        schedules=300,
    ),
    Fault(
        "reservations are judged by the stable offset",
        (
            Edit(
                _LUA + "reserve.lua",
                "local at = less(from, s.position) and s.position or from",
                "local at = less(from, stable) and stable or from",
            ),
        ),
        _ORDERED,
    ),
    Fault(
        "reservations are not complete by individual commits",
        (Edit(_LUA + "reserve.lua", "if above and not less(at, above[1]) then at = above[2] end", ""),),
        _ORDERED,
    ),
    Fault(
        "an ordered commit leaves out lower offsets of its own hashes",
        (
            Edit(
                _LUA + "reserve.lua", "if not alone and missing(mine.hashes, '0', mine.from) then alone = '' end\n", ""
            ),
        ),
        _ORDERED,
    ),
    Fault(
        "two lanes cannot reserve the same offsets",
        (Edit(_LUA + "reserve.lua", "taken = piece.right and who or taken end", "taken = piece and who end"),),
        _ORDERED,
    ),
    Fault(
        "reservations are not fenced by lane epoch",
        (Edit(_LUA + "reserve.lua", " and epoch == piece.left.a", ""),),
        _ORDERED,
    ),
    Fault(
        "an ordered commit does not end its reservation",
        (Edit("coordinator/commits/ordered_commits.py", 'self.commits.reserve(tp, wanted, "ended", 0)', "pass"),),
        _ORDERED,
    ),
    Fault(
        "a batch takes commits before it is known where its tasks end (against rule: commit-within-read)",
        (Edit(_LUA + "commit_ranges.lua", "if A.early and not seal then return outcome('UNSEALED') end\n", ""),),
        _API,
    ),
    Fault(
        "a hole before a row refuses its ordered commit",
        (
            Edit(
                "coordinator/commits/ordered_commits.py",
                ".append(own.offsets)",
                ".append(OffsetRange(own.offsets.until - 1, own.offsets.until))",
            ),
        ),
        _ORDERED,
    ),
    Fault(
        "an ordered commit of rows skips records between them, which another worker has",
        (
            Edit(
                "coordinator/commits/ordered_commits.py",
                "for r in union(offsets))",
                "for r in [OffsetRange(min(offsets).start, max(offsets).until)])",
            ),
        ),
        _ORDERED,
    ),
    Fault(
        "an ordered commit ends its reservation only if it commits all of it",
        (
            Edit(
                _LUA + "reserve.lua",
                "and not less(theirs.from, mine.from) and less(theirs.from, mine.past) then",
                "and theirs.text == mine.text and not missing(mine.hashes, mine.from, mine.past) then",
            ),
        ),
        _ORDERED,
    ),
    Fault(
        "a new log keeps the reservations of the old one",
        (Edit(_LUA + "recreate.lua", ", keys.reserved", ""),),
        _ORDERED,
    ),
    Fault(
        "an acknowledgement covers the record before its own (against rule: acknowledge-holes)",
        (Edit(_ACKNOWLEDGING, "after = offsets[of_strip] + 1", "after = offsets[of_strip]"),),
        _ROWS,
        schedules=100,
    ),
    Fault(
        "an acknowledgement covers neighbouring lanes that no task reads",
        (Edit(_TEXT, "merged(s._replace(hashes=hashes) for", "merged(s._replace(hashes=row.hashes) for"),),
        ("tests/coordinator/progress/test_acknowledgement.py",),
        schedules=300,
    ),
    Fault(
        "an acknowledgement covers records of other lanes of its strip",
        (Edit(_ACKNOWLEDGING, "(hashes[near] <= area.hashes.hi)", "(hashes[near] <= area.hashes.lo + 2**60)"),),
        _ROWS,
        schedules=300,
    ),
    Fault(
        "the last row covers holes behind its own early end",
        (
            Edit(_LAST_ROW, "last.holes.before(last.until)", "last.holes.before(OFFSET_MAX)"),
            Edit(_LAST_ROW, *_OFFSET_MAX),
        ),
        _ROWS,
        schedules=300,
    ),
    Fault(
        "the last row covers no holes of other strips",
        (Edit(_TEXT, "parts.append(_text(its_head, hole))", "pass"),),
        ("tests/coordinator/progress/test_acknowledgement.py", *_ROWS),
    ),
    Fault(
        "holes move with the thread that reads ahead",
        (Edit(_ACKNOWLEDGING, "self._next.copy()", "self._next"),),
        _ROWS,
        schedules=300,
    ),
    Fault(
        "an attempt with given ends covers strips that it does not read",
        (Edit(_ACKNOWLEDGING, "if at >= 0 else strip.start", "if at >= 0 and False else strip.until"),),
        _ROWS,
    ),
    Fault(
        "a task that makes acknowledgements reads records from the cache, which has no texts",
        (
            Edit(
                "spark_coop_source/driver/tasks.py",
                "if options.cache_bytes and not acknowledged else {}",
                "if options.cache_bytes else {}",
            ),
        ),
        ("tests/spark_coop_source/driver/test_tasks.py",),
    ),
    Fault(
        "two tasks share a strip, so each has a gap at the records of the other one",
        (
            Edit(
                "spark_coop_source/driver/tasks.py",
                "strips_of(acknowledged, of_task)",
                "strips_of(acknowledged, (s for each in packed for s in each))",
            ),
        ),
        ("tests/spark_coop_source/driver/test_tasks.py",),
    ),
    Fault(
        "a filtered record is a gap between acknowledgements",
        (Edit(_ACKNOWLEDGING, "kept[near] & (area", "(area"),),
        _ROWS,
    ),
    Fault(
        "a damaged acknowledgement is committed",
        (Edit(_TEXT, "if int(check) != check_of(", "if False and int(check) != check_of("),),
        ("tests/coordinator/progress/test_acknowledgement.py",),
    ),
    Fault(
        "the refusal of one lane keeps acknowledgements of the others from Redis",
        (Edit("coordinator/commits/group_commits.py", "refused.append(error)", "raise error"),),
        ("tests/coordinator/commits/test_group_commits.py",),
    ),
    Fault(
        "a replay on request leaves out the gaps below individual commits (against rule: replay-acknowledged)",
        (
            Edit(
                "coordinator/progress/ownership.py",
                "for offsets in lane.offsets for r in s.remaining(offsets))",
                "for offsets in lane.offsets for r in s.remaining(offsets) if not s.ics or r.start > s.ics[-1].start)",
            ),
        ),
        ("tests/coordinator/progress/test_ownership.py",),
        schedules=300,
    ),
    Fault(
        "a replay on request has acknowledged records again",
        (Edit("coordinator/member/authorizing.py", "batch.unacknowledged(bounded), []", "bounded, []"),),
        ("tests/coordinator/member/test_authorizing.py",),
        schedules=300,
    ),
    Fault(
        "every replay leaves out acknowledged records (against rule: exact-resume)",
        (Edit("coordinator/member/authorizing.py", " and not call.setup.settings.replay_acknowledged:", ":"),),
        ("tests/coordinator/member/test_authorizing.py",),
        schedules=300,
    ),
    Fault(
        "rows of hashes that moved count as committed",
        (Edit("coordinator/commits/group_commits.py", "refused.extend(_refusals(lane, lost))", "pass"),),
        ("tests/coordinator/commits/test_group_commits.py",),
    ),
    Fault(
        "a row of a departed member stops the rows of others",
        (
            Edit(
                "coordinator/commits/group_commits.py",
                "except UnknownGroupError as departed:",
                "except ZeroDivisionError as departed:",
            ),
        ),
        ("tests/coordinator/commits/test_group_commits.py",),
    ),
    Fault(
        "a thread fails if another one forgets the member",
        (
            Edit(
                "coordinator/commits/group_commits.py",
                "self._members[member] = caller, fields = found",
                "self._members[member] = found\n        caller, fields = self._members[member]",
            ),
        ),
        ("tests/coordinator/commits/test_group_commits.py",),
    ),
    Fault(
        "an unreadable text raises a bare error",
        (
            Edit(
                "coordinator/progress/acknowledgement.py",
                "except (StateFormatError, ValueError) as error:",
                "except StateFormatError as error:",
            ),
        ),
        ("tests/coordinator/progress/test_acknowledgement.py",),
    ),
    Fault(
        "a batch that the sink skipped is committed",
        (Edit(_LUA + "commit.lua", "if moves and A.digest ~= ''", "if false and A.digest ~= ''"),),
        _SKIPPED,
        schedules=200,
    ),
    Fault(
        "a new life takes the batch before it for authorized, whichever that is",
        (Edit(_LUA + "join.lua", "local authorized = before[3] or", "local authorized = false or"),),
        _SKIPPED,
        schedules=200,
    ),
)
