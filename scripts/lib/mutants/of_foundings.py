"""Faults that let a member of an earlier group work in the next one of that name, and faults in proofs of positions."""

from mutants.fault import Edit, Fault

_SCRIPTS = ("tests/coordinator/redis/test_one_founding.py",)
_MEMBERS = ("tests/coordinator/member/test_replaced_groups.py",)
_STEPS = ("tests/coordinator/member/test_founding.py",)
_ADDED = ("tests/coordinator/redis/test_proofs_add_up.py",)
_PROOFS = ("tests/coordinator/member/test_proving.py",)

FAULTS = (
    Fault(
        "a script ignores the founding that its caller knows",
        (
            Edit(
                "coordinator/redis/lua/shared/prelude.lua",
                "  if call.founding ~= '' and call.founding ~= m[4] then return { 'REPLACED', m[4] } end\n",
                "",
            ),
        ),
        _SCRIPTS,
    ),
    Fault(
        "an assertion does not name the founding of its offset",
        (Edit("coordinator/redis/positions.py", "Caller(founding=offset.founding)", "Caller()"),),
        _SCRIPTS,
    ),
    Fault(
        "a recovery of nothing founds a group, though its proofs name one",
        (
            Edit(
                "coordinator/redis/lua/recover.lua",
                "call.founding ~= '' and call.founding or A.nonce",
                "A.nonce",
            ),
        ),
        _SCRIPTS,
    ),
    Fault(
        "no right to read the mirror counts as no mirror",
        (
            Edit(
                "coordinator/member/apply.py",
                '            _log.warning("Kafka\'s own group %s cannot be read: %s", self.settings.group, error)\n'
                "            return None\n",
                '            _log.warning("Kafka\'s own group %s cannot be read: %s", self.settings.group, error)\n'
                "            return {}\n",
            ),
        ),
        _MEMBERS,
    ),
    Fault(
        "a member of an earlier group writes the mirror",
        (Edit("coordinator/member/apply.py", "if before is None and founding not in", "if False and founding not in"),),
        ("tests/coordinator/member/test_replaced_groups.py",),
    ),
    Fault(
        "a checkpoint's founding is forgotten",
        (
            Edit(
                "coordinator/member/accepting.py",
                "replace(state.life, member=member, founding=founding)",
                "replace(state.life, member=member)",
            ),
        ),
        _STEPS,
    ),
    Fault(
        "a mirror of two groups proves the positions of either",
        (Edit("coordinator/member/founding.py", "if others and (mine or len(others) > 1):", "if False:"),),
        _STEPS,
    ),
    Fault(
        "a partition that redis does not know begins at earliest, though its reader proves a position",
        (
            Edit(
                "coordinator/member/first_positions.py",
                "first = {**proofs.positions, **stable}",
                "first = {**stable}",
            ),
        ),
        _PROOFS,
    ),
    Fault(
        "a partition that its reader proves in part begins at earliest",
        (
            Edit(
                "coordinator/member/proving.py",
                "tuple(sorted((read(state, reset) & {*partitions}) - positions.keys()))",
                "()",
            ),
        ),
        _PROOFS,
    ),
    Fault(
        "of two proofs of one hash the lower one counts",
        (
            Edit(
                "coordinator/redis/lua/recover.lua",
                "if one and other and less(one, other) then",
                "if one and other and less(other, one) then",
            ),
        ),
        _ADDED,
    ),
    Fault(
        "a group is created while proofs wait",
        (
            Edit(
                "coordinator/redis/position_verbs.py",
                "growth proofs",
                "growth proofs=chosen",
            ),
        ),
        _ADDED,
    ),
    Fault(
        "proofs of before a reset add up with later ones",
        (Edit("coordinator/redis/lua/recover.lua", "if void then known = {} end", ""),),
        _ADDED,
    ),
    Fault(
        "proofs of one member do not wait for those of others",
        (
            Edit(
                "coordinator/redis/lua/recover.lua",
                "if not next(waiting) or tonumber(until_ms) <= now_ms() then",
                "if true then",
            ),
        ),
        _ADDED,
    ),
    Fault(
        "a recovery leaves out topics that the member does not read",
        (
            Edit(
                "coordinator/member/recovery.py",
                "topics = mirrored_topics(state.log.topics, offsets, seen)",
                "topics = state.log.topics",
            ),
        ),
        _PROOFS,
        schedules=60,
    ),
    Fault(
        "a new query places a topic while the group recovers",
        (Edit("coordinator/redis/lua/create_positions.lua", " or (call.founding == '' and recovering())", ""),),
        _SCRIPTS,
    ),
    Fault(
        "the mirror of a cut log proves records that the log does not have",
        (Edit("coordinator/member/proving.py", "min(offset, cut[tp].end) if tp in cut else offset", "offset"),),
        _PROOFS,
    ),
    Fault(
        "the mirror is above the end that its leader epoch has reached",
        (Edit("coordinator/progress/mirror.py", "min(offset, extent.end) if extent else offset", "offset"),),
        ("tests/coordinator/progress/test_mirror.py",),
    ),
    Fault(
        "a late write of the mirror stays above a cut",
        (Edit("coordinator/member/apply.py", " == before and not fell:", " == before:"),),
        ("tests/coordinator/member/test_mirrored_cuts.py",),
    ),
)
