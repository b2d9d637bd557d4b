"""Faults in groups without order: slices, their fence, the change of the ordering."""

from mutants.fault import Edit, Fault

_HAND_OUT, _SLICES = "coordinator/redis/lua/hand_out.lua", "coordinator/redis/lua/shared/slices.lua"
_TESTS = ("tests/coordinator/redis/test_slices.py",)
_ORDERINGS = "tests/coordinator/redis/test_orderings.py"
_VIEWS, _OF_VIEWS = "coordinator/tools/operations/views.py", ("tests/coordinator/tools/operations/test_views.py",)

FAULTS = (
    Fault(
        "slices of living members are handed out too",
        (Edit(_HAND_OUT, "is_over(s[5]) and over or taken", "over"),),
        _TESTS,
    ),
    Fault("a dead member's slices are kept", (Edit(_HAND_OUT, "is_over(s[5]) and over or taken", "taken"),), _TESTS),
    Fault(
        "a hung batch keeps its slices",
        (Edit(_HAND_OUT, "ended or (hung and tonumber(hung) < now) or false", "ended"),),
        _TESTS,
    ),
    Fault(
        "a call that was sent twice gets new slices",
        (Edit(_HAND_OUT, "if sent_again and #rest", "if false and #rest"),),
        _TESTS,
    ),
    Fault(
        "offsets that are done above a gap prove no cut",
        (Edit("coordinator/member/cooperative.py", "if reach > position else ()", "if False else ()"),),
        ("tests/coordinator/member/test_cooperative.py",),
    ),
    Fault(
        "a repeated call skips the slices of the first",
        (Edit(_HAND_OUT, " or s[5] == call.member then", " then"),),
        _TESTS,
    ),
    Fault(
        "a slice that was handed out again stays the old member's",
        (Edit(_HAND_OUT, "p.dropped[#p.dropped + 1] = s[3]\n      added", "added"),),
        _TESTS,
    ),
    Fault("done offsets are handed out", (Edit(_HAND_OUT, "ipairs({ done, taken })", "ipairs({ taken })"),), _TESTS),
    Fault(
        "slices keep their lane epoch when they are handed out again",
        (Edit(_HAND_OUT, "redis.call('HINCRBY', META, 'epochs', 1)", "'1'"),),
        _TESTS,
    ),
    Fault(
        "the fence of slices asks for no lane epoch",
        (Edit(_SLICES, "s[4] == epoch and s[5] == call.member", "s[5] == call.member"),),
        _TESTS,
    ),
    Fault(
        "the fence of slices asks for no member",
        (Edit(_SLICES, "s[4] == epoch and s[5] == call.member", "s[4] == epoch"),),
        _TESTS,
    ),
    Fault(
        "a repeated commit of slices is refused",
        (
            Edit(
                "coordinator/redis/lua/commit.lua",
                "compared(others, valid and done or NOTHING)",
                "compared(others, NOTHING)",
            ),
        ),
        _TESTS,
    ),
    Fault(
        "another ordering joins beside living members",
        (
            Edit(
                "coordinator/redis/lua/join.lua",
                "(refiltered or reordered) and",
                "refiltered and",
            ),
        ),
        (_ORDERINGS,),
    ),
    Fault(
        "a change of the ordering keeps lane epochs",
        (Edit("coordinator/redis/lua/join.lua", "'nonce', A.next_nonce, 'epochs', '0')", "'epochs', '0')"),),
        _TESTS,
    ),
    Fault(
        "a cut log keeps its slices",
        (Edit("coordinator/redis/lua/recreate.lua", ", handed_key(keys.owners))", ")"),),
        _TESTS,
    ),
    Fault(
        "offsets that one hash has done count as done",
        (Edit(_SLICES, "done = done and compared(done, here) or here", "done = here"),),
        _TESTS,
    ),
    Fault(
        "offsets are handed out though no commit of them would be accepted",
        (Edit(_HAND_OUT, "if not is_without_order() then", "if false then"),),
        (_ORDERINGS,),
    ),
    Fault(
        "the Commit API is open to a group without order",
        (Edit("coordinator/redis/commits.py", 'if meta.get("ordering") == "none":', "if False:"),),
        ("tests/coordinator/commits/test_without_order.py",),
    ),
    Fault(
        "a Commit API of before a change of the ordering names a loss of state",
        (Edit("coordinator/commits/commit_api.py", "            self._verbs.check_ordering()\n", ""),),
        ("tests/coordinator/commits/test_without_order.py",),
    ),
    Fault(
        "describe shows slices that are done",
        (Edit(_VIEWS, "extend(r for s in found.segments for r in s.remaining(offsets))", "append(offsets)"),),
        _OF_VIEWS,
    ),
    Fault(
        "describe shows slices that are void",
        (Edit(_VIEWS, "if unread and state.in_force(epoch):", "if unread:"),),
        _OF_VIEWS,
    ),
    Fault(
        "describe hides a dead member that holds slices",
        (Edit(_VIEWS, "    shown |= {s.member for handed in state.handed.values() for s in handed}\n", ""),),
        _OF_VIEWS,
    ),
)
