"""Faults in membership: leases, fences, lane epochs, assignments, hand-over, leaving."""

from mutants.fault import Edit, Fault

_PRELUDE, _LEASES = "coordinator/redis/lua/shared/prelude.lua", "coordinator/redis/lua/shared/leases.lua"
_STORE = ("tests/coordinator/redis/test_store.py",)
_MEMBERSHIP = ("tests/coordinator/redis/test_membership.py",)
_DIFFERENT = ("tests/coordinator/redis/test_settings_that_differ.py",)
_RECOVERY = ("tests/coordinator/redis/test_recovery.py",)
_FILTERS = ("tests/coordinator/redis/test_filters.py",)
_LEAVE = "coordinator/redis/lua/leave.lua"
_TASK_SERVER = "spark_coop_source/driver/task_server.py"
_TASKS = ("tests/spark_coop_source/driver/test_task_server.py",)
_LONG = ("tests/coordinator/member/test_long_batches.py",)
_RECOVER, _SERVICE = "coordinator/redis/lua/recover.lua", "coordinator/member/service.py"
_OF_SERVICE = ("tests/coordinator/member/test_service.py",)

FAULTS = (
    Fault(
        "a query that reads less than its start promises says so to nobody",
        (Edit("coordinator/member/first_positions.py", "positions[tp] <= first[tp] for", "positions[tp] >= 0 for"),),
        ("tests/coordinator/member/test_first_positions.py",),
    ),
    Fault(
        "the clock of a batch runs on after all its tasks have ended",
        (Edit("coordinator/redis/lua/heartbeat.lua", "  redis.call('ZREM', K.batches, call.member)\n", ""),),
        _LONG,
    ),
    Fault(
        "each heartbeat starts the clock of a batch anew",
        (
            Edit(
                "coordinator/redis/lua/heartbeat.lua",
                "redis.call('ZADD', K.batches, 'NX', ",
                "redis.call('ZADD', K.batches, ",
            ),
        ),
        _MEMBERSHIP,
    ),
    Fault(
        "the clock of a batch stops when the first task has ended",
        (Edit("coordinator/member/inbox.py", "len(batch.ends) == len(batch.tasks)\n\n", "bool(batch.ends)\n\n"),),
        _OF_SERVICE,
    ),
    Fault(
        "the first caller after an outage gets the ranges of all others",
        (Edit(_LEASES, "local in_silence = now - last", "local in_silence = false and now - last"),),
        _LONG,
    ),
    Fault(
        "members that were lost before an outage get a grace",
        (Edit(_LEASES, "and its_end > last + half and", "and"),),
        _LONG,
    ),
    Fault(
        "lost members get a grace while others call",
        (Edit(_LEASES, "now - last > its / 3 and its_end >", "its_end >"),),
        ("tests/coordinator/redis/test_store.py",),
    ),
    Fault(
        "an outage extends the leases of members with short sessions as if theirs were the longest",
        (Edit(_LEASES, "local its = tonumber(known) or", "local its = longest_session() or"),),
        ("tests/coordinator/redis/test_settings_that_differ.py",),
    ),
    Fault(
        "a recovery waits for members that were lost long before",
        (Edit(_LEASES, "  local since = tonumber(last) - longest_session()\n", "  local since = 0\n"),),
        _RECOVERY,
    ),
    Fault(
        "a member in a long batch has no lease when a recovery ends",
        (
            Edit(
                _SERVICE,
                "                if free:\n                    *asserting",
                "                if not free:\n                    *asserting",
            ),
        ),
        _OF_SERVICE,
    ),
    Fault(
        "a heartbeat that was fenced joins at the next nonce",
        (Edit(_SERVICE, " and not isinstance(self.state.life.verdict, verdicts.Fenced):", ":"),),
        _LONG,
    ),
    Fault(
        "a recovery ends early on a Redis that lost its last writes",
        (Edit(_RECOVER, " and not less(before[2], call.seq)\n", "\n"),),
        _RECOVERY,
    ),
    Fault(
        "a recovery is over when the first member has joined again",
        (Edit(_LEASES, "    if other ~= member then rest[#rest + 1] = other end\n", ""),),
        _RECOVERY,
    ),
    Fault(
        "a recovery lasts for the session of the member that recovers",
        (
            Edit(
                _LEASES,
                "math.max(tonumber(call.session), tonumber(redis.call('HGET', META, 'session_ms') or 0) or 0)",
                "tonumber(call.session)",
            ),
        ),
        _RECOVERY,
        schedules=250,
    ),
    Fault(
        "a member with a longer session that joins in a recovery comes too late",
        (Edit(_LEASES, "  if recovers then redis.call", "  if false then redis.call"),),
        _RECOVERY,
        schedules=250,
    ),
    Fault(
        "a restart of Redis in a long batch fences its last task",
        (Edit("coordinator/redis/lua/seal.lua", "(same or before[1] == 'none')", "same"),),
        _LONG,
    ),
    Fault(
        "a recovery forgets whose ranges are in long batches",
        (
            Edit(
                _RECOVER,
                "if group_is_pinned() then redis.call('DEL', K.assignment) end\n",
                "redis.call('DEL', K.assignment)\n",
            ),
        ),
        _LONG,
    ),
    Fault(
        "times of a clock that was ahead stay valid for that long",
        (Edit(_LEASES, "  if not at or tonumber(at) <= most then", "  if true then"),),
        ("tests/coordinator/redis/test_clock_set_back.py",),
    ),
    Fault(
        "a member with a short session cuts the leases of the others",
        (Edit(_LEASES, "tonumber(known) < its", "true"),),
        ("tests/coordinator/redis/test_clock_set_back.py",),
    ),
    Fault(
        "a commit asks for no lane epoch",
        (Edit("coordinator/redis/lua/commit.lua", "and epoch == piece.left.a then", "then"),),
        _STORE,
    ),
    Fault(
        "a batch is authorised without its lane epochs",
        (
            Edit("coordinator/redis/lua/authorize.lua", "and epoch == piece.left.a then", "then"),
            Edit("coordinator/progress/ownership.py", " if o.epoch == lane.epoch)", ")"),
        ),
        ("tests/coordinator/progress/test_ownership.py",),
    ),
    Fault(
        "one refused part refuses the whole lane",
        (
            Edit(
                "coordinator/redis/lua/authorize.lua",
                "  verdicts[#verdicts + 1] = all and 'all' or table.concat(held)",
                "  local asked = select(2, string.gsub(lanes, ';', ''))\n"
                "  verdicts[#verdicts + 1] = all and #held == asked and 'all' or ''",
            ),
        ),
        ("tests/coordinator/redis/test_store.py", "tests/coordinator/redis/test_membership.py"),
        schedules=300,
    ),
    Fault(
        "lane epochs are numbers without a nonce",
        (
            Edit("coordinator/redis/lua/acquire.lua", "epoch = call.nonce .. '.' ..", "epoch = '0.' .."),
            Edit(_PRELUDE, "known = nonce == in_force and", "known = nonce and"),
        ),
        schedules=300,
    ),
    Fault(
        "an assignment is known by its number alone",
        (
            Edit(
                "coordinator/member/owning.py",
                "owning.as_of == as_of and",
                "owning.as_of and owning.as_of[1] == look.generation and",
            ),
        ),
        ("tests/coordinator/member/test_service_redis_losses.py",),
    ),
    Fault(
        "lane epochs of an older nonce stay valid",
        (Edit(_PRELUDE, "known = nonce == in_force and", "known = nonce and"),),
        _RECOVERY,
    ),
    Fault(
        "an acquisition takes the last lane epoch again",
        (
            Edit(
                "coordinator/redis/lua/acquire.lua",
                "ms(redis.call('HGET', META, 'epochs') + 1)",
                "redis.call('HGET', META, 'epochs')",
            ),
        ),
        ("tests/coordinator/redis/test_store.py",),
        schedules=100,
    ),
    Fault(
        "a living member loses ranges that it owns",
        (
            Edit(
                "coordinator/redis/lua/acquire.lua",
                "member ~= call.member and takeable(K.leases, K.batches, member)",
                "member ~= call.member",
            ),
        ),
        schedules=100,
    ),
    Fault(
        "a release renews the lease for its member only",
        (Edit("coordinator/redis/lua/release.lua", "renew(K.leases)\nreturn", "return"),),
        _MEMBERSHIP,
    ),
    Fault(
        "a recovery leaves the slices that living members have begun",
        (Edit("coordinator/redis/lua/recover.lua", "K.targets, K.working)", "K.targets)"),),
        ("tests/coordinator/redis/test_poison.py",),
    ),
    Fault(
        "positions count as fresh however long a call has waited",
        (Edit("coordinator/member/turns.py", "turn=replace(self.state.turn, fresh=False)", "turn=self.state.turn"),),
        ("tests/coordinator/member/test_turns.py",),
    ),
    Fault(
        "another life of a member is not fenced",
        (Edit(_PRELUDE, "if m[1] ~= call.incarnation then return { 'FENCED' } end", ""),),
        _MEMBERSHIP,
    ),
    Fault(
        "a call that arrives after the member's next one counts",
        (Edit(_PRELUDE, "if m[2] and less(call.number, m[2]) then return { 'REJOIN' } end", ""),),
        _MEMBERSHIP,
    ),
    Fault(
        "the end of a lease ends ownership (against rule: lease-end)",
        (
            Edit(
                "coordinator/redis/lua/authorize.lua",
                "and epoch == piece.left.a then",
                "and epoch == piece.left.a and tonumber(redis.call('ZSCORE', K.leases, member) or 0) >= now_ms() then",
            ),
        ),
        schedules=300,
    ),
    Fault(
        "a commit after the end of the lease is refused (against rule: lease-end)",
        (
            Edit(
                "coordinator/redis/lua/commit.lua",
                "and epoch == piece.left.a then",
                "and epoch == piece.left.a and not takeable(K.leases, K.batches, member) then",
            ),
        ),
        _STORE,
    ),
    Fault(
        "others wait for the whole lease of a member that left in a batch",
        (Edit(_LEAVE, "if A.within_ms and its_end then", "if false then"),),
        _MEMBERSHIP,
    ),
    Fault(
        "a member whose task may read on hands over at once",
        (
            Edit(
                "coordinator/redis/replies.py",
                "            return cls(None, writers)\n",
                "            return cls(0, writers)\n",
            ),
        ),
        _MEMBERSHIP,
    ),
    Fault(
        "a polite end leaves evidence against its slices",
        (Edit(_LEAVE, "redis.call('HDEL', K.working, call.member)\n", ""),),
        _MEMBERSHIP,
    ),
    Fault(
        "a task reads on after its driver has left",
        (
            Edit(
                "spark_coop_source/telemetry/link.py", "return not connection.recv(1, socket.MSG_PEEK)", "return False"
            ),
        ),
        _TASKS,
    ),
    Fault(
        "a function gets keys after the driver of its task has left",
        (Edit("spark_coop_source/function/runner.py", "            listener.goes_on()\n", ""),),
        ("tests/spark_coop_source/function/test_runner.py",),
    ),
    Fault(
        "a task that is cut off counts as stopped",
        (Edit(_TASK_SERVER, "left = list(self._open.values())", "left = list[str]()"),),
        _TASKS,
    ),
    Fault(
        "the tasks of a reader that none has reached count as stopped",
        (Edit(_TASK_SERVER, " if self._unheard and not self._heard else ", " if False else "),),
        _TASKS,
    ),
    Fault(
        "a task that waits for its function does not say that it is there",
        (Edit("spark_coop_source/telemetry/link.py", "        self._send(HELLO)\n", ""),),
        _TASKS,
    ),
    Fault(
        "an attempt that is left of an earlier batch counts when its driver ends",
        (Edit("spark_coop_source/driver/reader_process.py", "        self._tasks.next_batch()\n", ""),),
        ("tests/spark_coop_source/driver/test_stream_reader.py",),
    ),
    Fault(
        "a hung driver keeps its ranges as long as its thread beats",
        (Edit(_LEASES, " or hangs(batches, member)", ""),),
        _MEMBERSHIP,
    ),
    Fault(
        "the renewal of the lease is forgotten",
        (
            Edit(
                _LEASES,
                "  redis.call('ZADD', leases, ms(its_end), call.member)\n",
                "  redis.call('ZADD', leases, 'NX', ms(its_end), call.member)\n",
            ),
        ),
        _MEMBERSHIP,
        schedules=100,
    ),
    Fault(
        "the lease counts from the answer, not from the question",
        (
            Edit(
                "coordinator/member/turns.py",
                "life = life.renewed(reply.seen, asked_ms + self._world.settings.session_ms)",
                "life = life.renewed(reply.seen, self._clock.now_ms() + self._world.settings.session_ms)",
            ),
        ),
        ("tests/coordinator/member/test_turns.py",),
    ),
    Fault(
        "a stop frees all ranges, also those that killed tasks may still write",
        (
            Edit(
                "coordinator/redis/lua/leave.lua",
                "return not unconfirmed",
                "return true",
            ),
        ),
        schedules=200,
    ),
    Fault(
        "ranges are released to members that are gone",
        (Edit("coordinator/redis/lua/release.lua", "wanted.right and waiting(wanted.right.member)", "wanted.right"),),
        _MEMBERSHIP,
    ),
    Fault(
        "an assignment for members that are gone is recorded",
        (Edit("coordinator/redis/lua/assign.lua", "if now_due ~= A.occasion or", "if"),),
        _MEMBERSHIP,
    ),
    Fault(
        "an assignment with a hole is accepted",
        (
            Edit(
                "coordinator/assignment/assigning.py",
                "    check(assignment, members, partitions)\n",
                "    assignment = {m: {tp: h[:-1] for tp, h in r.items()} for m, r in assignment.items()}\n",
            ),
        ),
        schedules=50,
    ),
    Fault(
        "a broken assignor ends the query that computes",
        (
            Edit(
                "coordinator/assignment/assigning.py",
                "    except FAILURES as error:\n",
                "    except ImportError as error:\n",
            ),
        ),
        ("tests/coordinator/assignment/test_assigning.py",),
        schedules=20,
    ),
    Fault(
        "no event names a broken assignor",
        (Edit("coordinator/redis/lua/assign.lua", "if A.failure == '' then", "if true then"),),
        ("tests/coordinator/member/test_broken_assignors.py",),
    ),
    Fault(
        "a partition whose positions and owners are gone is waited for",
        (
            Edit(
                "coordinator/redis/lua/acquire.lua",
                "not never_placed and positions_gone(segments_key)",
                "redis.call('EXISTS', owners_key) == 1 and positions_gone(segments_key)",
            ),
        ),
        ("tests/hostile/test_hostile_redis.py",),
    ),
    Fault(
        "a lease without an entry is waited for",
        (
            Edit(
                "coordinator/member/assigning.py",
                "    if me not in {m.member for m in members}:",
                "    if {m.member for m in members} != set(look.members):",
            ),
        ),
        ("tests/hostile/test_hostile_redis.py",),
    ),
    Fault(
        "nothing is released to a new member",
        (
            Edit("coordinator/member/owning.py", "    if released:\n", "    if False:\n"),
            Edit(
                "coordinator/member/owning.py",
                "released = seen.done(Release(surplus)) if surplus else 0",
                "released = 0",
            ),
        ),
        schedules=100,
    ),
    Fault(
        "a member that leaves is counted on",
        (Edit(_LEASES, "if redis.call('SISMEMBER', keys.leaving, member) == 0 and", "if"),),
        _MEMBERSHIP,
    ),
    Fault(
        "another application joins a group that one reads alone (against rule: one-application)",
        (Edit("coordinator/redis/lua/join.lua", "works and its ~= A.alone and", "false and"),),
        ("tests/coordinator/redis/test_one_application.py",),
        schedules=300,
    ),
    Fault(
        "a life that reads alone goes on after another application has read (against rule: one-application)",
        (Edit("coordinator/redis/lua/join.lua", "if missed and A.alone ~= ''", "if false and A.alone ~= ''"),),
        ("tests/coordinator/redis/test_one_application.py",),
        schedules=300,
    ),
    Fault(
        "a member whose lease ended reads beside one that reads alone (against rule: one-application)",
        (
            Edit(
                "coordinator/redis/lua/shared/prelude.lua",
                " or (differs_from_group(member_key, 'alone') and not waits)",
                "",
            ),
        ),
        ("tests/coordinator/redis/test_one_application.py",),
        schedules=300,
    ),
    Fault(
        "two standbys take over beside each other, and one reads alone (against rule: one-application)",
        (
            Edit(
                "coordinator/redis/lua/shared/standbys.lua",
                "if (#working > 0 or taken) and",
                "if false and",
            ),
        ),
        ("tests/coordinator/redis/test_one_application.py",),
    ),
    Fault(
        "a standby that has read before another application takes over (against rule: one-application)",
        (Edit("coordinator/redis/lua/shared/standbys.lua", "waits, missed = false,", "missed ="),),
        ("tests/coordinator/redis/test_one_application.py",),
    ),
    Fault(
        "a member that stands by again reads its batch beside the next one (against rule: one-application)",
        (Edit("coordinator/redis/lua/authorize.lua", "if differs_from_group(K.member, 'alone')", "if false"),),
        ("tests/coordinator/redis/test_one_application.py",),
    ),
    Fault(
        "two reads that join topics share their group unasked (against rule: one-application)",
        (Edit("coordinator/member/life.py", "(settings.alone or not settings.demanding)", "settings.alone"),),
        ("tests/coordinator/member/test_life.py",),
    ),
    Fault(
        "a spare that Spark has started ends instead of taking over (against rule: one-application)",
        (Edit("coordinator/redis/lua/authorize.lua", "table.concat(A.lanes) ~= '' and redis", "redis"),),
        ("tests/coordinator/redis/test_one_application.py",),
    ),
    Fault(
        "a member that slept keeps the one that reads alone out (against rule: one-application)",
        (Edit("coordinator/redis/lua/join.lua", "local works = its == alone and", "local works ="),),
        ("tests/coordinator/redis/test_one_application.py",),
    ),
    Fault(
        "a query that waits hears of another member each time",
        (Edit("coordinator/redis/lua/join.lua", "  table.sort(found)\n", ""),),
        ("tests/coordinator/redis/test_one_application.py",),
    ),
    Fault(
        "the reads of a join are in the way of their next life (against rule: one-application)",
        (Edit("coordinator/redis/lua/join.lua", " and its ~= before[5] then", " then"),),
        ("tests/coordinator/redis/test_one_application.py",),
    ),
    Fault(
        "AvailableNow ends when its own hashes are done",
        (
            Edit(
                "coordinator/member/planning.py",
                "if seen.done(Finish(targets, call.setup.pinned, in_order(state, state.owning.policy))):",
                "if True:",
            ),
        ),
        schedules=200,
    ),
    Fault(
        "another filter refuses the seal and the commit of a batch that was read",
        (
            Edit(
                _PRELUDE,
                "  if m[1] ~= call.incarnation then return { 'FENCED' } end",
                "  if m[1] ~= call.incarnation then return { 'FENCED' } end\n"
                "  local mine = redis.call('HGET', member_key, 'filter') or ''\n"
                "  if mine ~= (redis.call('HGET', META, 'filter') or '') then return { 'REJOIN' } end",
            ),
        ),
        _FILTERS,
    ),
    Fault(
        "a member that paused gets ranges beside another filter",
        (Edit(_PRELUDE, "differs_from_group(member_key, 'filter') or ", ""),),
        _FILTERS,
    ),
    Fault(
        "a batch whose ranges others have acquired binds its filter",
        (
            Edit(
                "coordinator/member/authorizing.py",
                "    refuse_other_filter(part, call)",
                "    refuse_other_filter(call.offset, call)",
            ),
        ),
        ("tests/coordinator/member/test_filters.py",),
    ),
    Fault(
        "each heartbeat sets the expiry by its own retention (against rule: settings-that-differ)",
        (Edit("coordinator/redis/lua/heartbeat.lua", "longest('retention')", "tonumber(call.retention)"),),
        _DIFFERENT,
    ),
    Fault(
        "a topic expires by the retention of the member that asks (against rule: settings-that-differ)",
        (Edit("coordinator/redis/lua/forget.lua", "longest('retention')", "tonumber(call.retention)"),),
        _DIFFERENT,
    ),
    Fault(
        "the member that sees a growth decides its grace (against rule: settings-that-differ)",
        (
            Edit(
                "coordinator/redis/lua/create_positions.lua",
                "tonumber(redis.call('HGET', META, 'grace_ms') or 0)",
                "0",
            ),
        ),
        _DIFFERENT,
    ),
    Fault(
        "the largest settings never go down (against rule: settings-that-differ)",
        (Edit("coordinator/redis/lua/shared/leases.lua", "if alone or not known", "if not known"),),
        _DIFFERENT,
    ),
    Fault(
        "the largest settings go down while a group recovers (against rule: settings-that-differ)",
        (Edit("coordinator/redis/lua/join.lua", "not recovering() and not living_others()", "not living_others()"),),
        _DIFFERENT,
    ),
    Fault(
        "a member that slept does not raise the largest settings (against rule: settings-that-differ)",
        (Edit("coordinator/redis/lua/shared/leases.lua", "  remember_times(false)\n", ""),),
        _DIFFERENT,
    ),
    Fault(
        "the first member after an outage counts as alone (against rule: settings-that-differ)",
        (Edit("coordinator/redis/lua/join.lua", "grant_grace(K.leases)  -- before it asks who is there\n", ""),),
        (*_DIFFERENT, "tests/coordinator/redis/test_pinned.py"),
    ),
    Fault(
        "an earlier life that wakes up at another nonce fences its replacement",
        (Edit("coordinator/redis/lua/join.lua", "and not less(latest, A.joined_at) then", "and false then"),),
        ("tests/coordinator/redis/test_membership.py",),
    ),
    Fault(
        "two lives that join at once have no order",
        (Edit("coordinator/redis/lua/join.lua", "ms(math.max(now, tonumber(latest) + 1))", "ms(now)"),),
        ("tests/coordinator/redis/test_membership.py",),
    ),
    Fault(
        "a process forgets when it joined first",
        (Edit("coordinator/member/life.py", "joined_at=state.life.joined_at, ", ""),),
        ("tests/coordinator/member/test_life.py",),
    ),
)
