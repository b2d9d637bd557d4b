"""Faults in groups without order: slices, their fence, the change of the ordering."""

from mutants.fault import Edit, Fault

_HAND_OUT, _SLICES = "coordinator/redis/lua/hand_out.lua", "coordinator/redis/lua/shared/slices.lua"
_TESTS = ("tests/coordinator/redis/test_slices.py",)

FAULTS = (
    Fault(
        "slices of living members are handed out too",
        (Edit(_HAND_OUT, "is_over(s[5]) and over or taken", "over"),),
        _TESTS,
    ),
    Fault("a dead member's slices are kept", (Edit(_HAND_OUT, "is_over(s[5]) and over or taken", "taken"),), _TESTS),
    Fault(
        "a hung batch keeps its slices",
        (Edit(_HAND_OUT, "waited or (hung and tonumber(hung) < now) or false", "waited"),),
        _TESTS,
    ),
    Fault("the gap wait does not count", (Edit(_HAND_OUT, " - tonumber(call.session) + gap < now", " < now"),), _TESTS),
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
        ("tests/coordinator/redis/test_orderings.py",),
    ),
    Fault(
        "a change of the ordering keeps lane epochs",
        (Edit("coordinator/redis/lua/join.lua", "'nonce', ARGV[8], 'epochs', '0')", "'epochs', '0')"),),
        _TESTS,
    ),
    Fault(
        "a cut log keeps its slices",
        (Edit("coordinator/redis/lua/recreate.lua", ", handed_key(KEYS[k]))", ")"),),
        _TESTS,
    ),
    Fault(
        "offsets that one hash has done count as done",
        (Edit(_SLICES, "done = done and compared(done, here) or here", "done = here"),),
        _TESTS,
    ),
)
