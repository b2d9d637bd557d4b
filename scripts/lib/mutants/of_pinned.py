"""Faults in pinned members: claims, spares, both kinds in one group, ranges that are freed, AvailableNow."""

from mutants.fault import Edit, Fault

_JOIN, _LOOK = "coordinator/redis/lua/join.lua", "coordinator/redis/lua/look.lua"
_CLAIM = "coordinator/redis/lua/shared/pinned.lua"
_HELD, _OWNING = "coordinator/member/pinned.py", "coordinator/member/owning.py"
_STORE = ("tests/coordinator/redis/test_pinned.py",)
_STEPS = ("tests/coordinator/member/test_pinned.py",)

FAULTS = (
    Fault(
        "two working members may claim a hash",
        (Edit(_CLAIM, "return share_hashes(claims[1], theirs)", "return false"),),
        _STORE,
    ),
    Fault(
        "a pinned member joins assigned ones",
        (Edit(_CLAIM, "if not was_pinned then return true end", "if not was_pinned then return false end"),),
        _STORE,
    ),
    Fault(
        "an assigned member joins pinned ones",
        (Edit(_CLAIM, "if pins == '' then return entry end", "if pins == '' then return false end"),),
        _STORE,
    ),
    Fault(
        "a replaced member keeps its claim",
        (Edit(_CLAIM, "then replaced[#replaced + 1] = other end", "then return end"),),
        _STORE,
        schedules=200,
    ),
    Fault(
        "the assignment outlives the change to pinned members",
        (Edit(_JOIN, "  redis.call('DEL', K.assignment)\n", ""),),
        _STORE,
    ),
    Fault(
        "members do not look again after a join of a pinned one",
        (Edit(_JOIN, "  redis.call('HINCRBY', META, 'generation', 1)\n", ""),),
        _STORE,
    ),
    Fault(
        "a new life joins while the group recovers",
        (Edit(_JOIN, "if A.joined_nonce == '' and recovering() then", "if false then"),),
        (*_STORE, "tests/coordinator/redis/test_recovery.py"),
    ),
    Fault(
        "a member of before joins again after the recovery, beside its spare",
        (
            Edit(
                "coordinator/redis/lua/acquire.lua",
                "lost() or fenced(K.member) or recovering()",
                "lost() or recovering() or fenced(K.member)",
            ),
        ),
        ("tests/coordinator/redis/test_recovery.py",),
    ),
    Fault(
        "a member of before fails while the group recovers",
        (Edit(_JOIN, "if held then return recovering() or {", "if held then return {"),),
        _STORE,
    ),
    Fault(
        "a spare takes the claim of a member that is leaving",
        (
            Edit(
                _CLAIM,
                "if other ~= call.member and holds(other) then",
                "if redis.call('SISMEMBER', leaving, other) == 0 and other ~= call.member and holds(other) then",
            ),
        ),
        _STORE,
    ),
    Fault(
        "the hashes of a member that is leaving count as read",
        (Edit(_CLAIM, "if redis.call('SISMEMBER', leaving, other) == 0 then claims", "if true then claims"),),
        _STORE,
    ),
    Fault(
        "hashes that nobody names are no event",
        (Edit(_JOIN, "if unread ~= '' then", "if false then"),),
        _STORE,
    ),
    Fault(
        "a member without a claim goes on",
        (Edit(_LOOK, "if without_claim or (", "if ("),),
        _STORE,
    ),
    Fault(
        "a pinned member goes on among assigned ones",
        (Edit(_LOOK, "if without_claim or (not pinned and", "if without_claim or (false and"),),
        _STORE,
    ),
    Fault(
        "an assignor computes ranges of pinned members",
        (Edit(_LOOK, "local due = not pinned and", "local due ="),),
        _STORE,
    ),
    Fault(
        "a pinned member keeps ranges that it does not name",
        (Edit("coordinator/redis/lua/release.lua", "(pinned or wanted.right and", "(wanted.right and"),),
        _STORE,
        schedules=200,
    ),
    Fault(
        "AvailableNow waits for hashes that a pinned member does not name",
        (
            Edit(
                "coordinator/redis/lua/finish.lua",
                "of.hashes and within(segments, from_text(of.hashes)) or segments",
                "segments",
            ),
        ),
        _STORE,
    ),
    Fault(
        "a spare is refused",
        (Edit(_HELD, " and mine != theirs:", ":"),),
        _STEPS,
    ),
    Fault(
        "a part of the ranges of a dead member is refused",
        (Edit(_HELD, "and before[1] < its_end and", "and"),),
        _STEPS,
    ),
    Fault(
        "a part of the ranges of a living member is waited for",
        (Edit(_HELD, "and before[1] < its_end and", "and before[1] > its_end and"),),
        _STEPS,
    ),
    Fault(
        "the partitions of an earlier start stay owned",
        (Edit(_OWNING, "    if elsewhere := _elsewhere(state, seen, call):", "    if elsewhere := {}:"),),
        _STEPS,
    ),
    Fault(
        "a recovery forgets the partitions of other members",
        (
            Edit(
                "coordinator/member/recovery.py",
                "sorted({*here, *mirror, *mine})",
                "state.log.partitions",
            ),
        ),
        ("tests/coordinator/member/test_recovery.py",),
    ),
    Fault(
        "a recovery refuses partitions of which its member knows nothing",
        (Edit("coordinator/redis/position_verbs.py", "max(count[tp.topic], tp.partition + 1)", "count[tp.topic]"),),
        ("tests/coordinator/redis/test_recovery.py",),
    ),
    Fault(
        "new partitions do not wait for older ones that no pinned member names yet",
        (
            Edit(
                "coordinator/member/growing.py",
                "    if call.setup.pinned:",
                "    if False:",
            ),
        ),
        ("tests/coordinator/member/test_growing.py",),
    ),
    Fault(
        "no line names the hashes that new partitions wait for",
        (Edit("coordinator/member/growing.py", "if unnamed and unnamed != state.growing.unnamed:", "if False:"),),
        ("tests/coordinator/member/test_growing.py",),
    ),
    Fault(
        "the individual commits of all members fill the cap of a pinned one",
        (Edit("coordinator/redis/lua/commit_ranges.lua", "local hashes = named and", "local hashes = false and"),),
        ("tests/coordinator/commits/test_group_commits.py",),
    ),
    Fault(
        "a pinned member waits for hashes that it does not name, at the cap",
        (Edit("coordinator/member/reading.py", "    if pinned:\n", "    if False:\n"),),
        ("tests/coordinator/member/test_reading.py",),
    ),
    Fault(
        "Spark's form of assign pins too",
        (
            Edit(
                "coordinator/member/decision.py",
                "isinstance(given, Assigned) and given.pinned)",
                "isinstance(given, Assigned))",
            ),
        ),
        _STEPS,
    ),
    Fault(
        "policies do not count for pinned parts",
        (Edit("coordinator/member/obeying.py", "settings.per_key or _pinned_parts(call):", "settings.per_key:"),),
        _STEPS,
    ),
    Fault(
        "ranges of a member that is gone count as read",
        (
            Edit(
                "coordinator/tools/operations/views.py",
                "for member in working(members)]",
                "for member in (m.member for m in members)]",
            ),
        ),
        ("tests/coordinator/tools/operations/test_views.py",),
    ),
)
