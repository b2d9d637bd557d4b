"""Faults in the growth of topics: new partitions, and their waits for older ones."""

from mutants.fault import Edit, Fault

_GROWTH, _GROWING = "coordinator/progress/growth.py", "coordinator/member/growing.py"
_ORDER = ("tests/coordinator/progress/test_growth_order.py",)

_CREATE, _SCRIPT = "coordinator/redis/lua/create_positions.lua", ("tests/coordinator/redis/test_growth.py",)

FAULTS = (
    Fault(
        "a member with `assign` hides a growth",
        (
            Edit(
                _CREATE,
                "if seen and less(seen, now) then grew",
                "if seen and now == count and less(seen, now) then grew",
            ),
        ),
        _SCRIPT,
    ),
    Fault(
        "a partition that nobody assigned before counts as a growth",
        (Edit(_CREATE, "  if of ~= id then seen = recorded", "  if of ~= id or recorded then seen = recorded"),),
        _SCRIPT,
    ),
    Fault(
        "a member tells nobody of partitions that it does not read",
        (Edit("coordinator/member/first_positions.py", "range(of.count)]", "of.partitions]"),),
        ("tests/coordinator/member/test_first_positions.py",),
    ),
    Fault(
        "a growth that was seen late promises the order of all keys",
        (Edit(_CREATE, "return not gap or gap < 0 or gap > LATE_MS", "return false"),),
        _SCRIPT,
        schedules=100,
    ),
    Fault(
        "log ends count as seen when Redis stores them",
        (Edit("coordinator/redis/lua/show.lua", "A.at_ms == '0' and ms(now_ms()) or A.at_ms", "ms(now_ms())"),),
        (*_SCRIPT, "tests/coordinator/member/test_long_batches.py"),
    ),
    Fault(
        "log ends count as seen when the member looked at the group",
        (Edit("coordinator/member/log_view.py", "redis_ms - (seen.now_ms - log.asked_ms)", "redis_ms"),),
        ("tests/coordinator/member/test_owning.py", "tests/coordinator/member/test_long_batches.py"),
    ),
    Fault(
        "the clock of Redis ends a grace",
        (
            Edit(
                _GROWING,
                "if seen.now_ms >= graces[g.field] and not g.ends]",
                "if state.owning.looked_at_ms >= g.until_ms and graces and not g.ends]",
            ),
        ),
        ("tests/coordinator/member/test_growing.py",),
    ),
    Fault(
        "new partitions go by a low watermark of an older one",
        (Edit(_GROWING, "    if unsure(low):\n", "    if not low and unsure(low):\n"),),
        ("tests/coordinator/member/test_growing.py",),
    ),
    Fault(
        "new partitions wait only where a topic grew to a multiple",
        (Edit(_GROWING, "if g.gated and (g, state.life.nonce)", "if g.kept and (g, state.life.nonce)"),),
        ("tests/coordinator/member/test_growing.py",),
    ),
    Fault(
        "growth by one partition has no gate, as the simulation sees it",
        (Edit(_GROWING, "if g.gated and (g, state.life.nonce)", "if g.kept and (g, state.life.nonce)"),),
        schedules=600,
    ),
    Fault(
        "a new partition waits for one older partition only, as if the hash named it",
        (
            Edit(
                _GROWTH,
                "*chain.from_iterable(older)",
                "*next(older, ())",
            ),
        ),
        _ORDER,
    ),
    Fault(
        "a second growth waits only for the partitions from before the first",
        (
            Edit(
                _GROWTH,
                "return tuple(TopicPartition(self.topic, p) for p in range(self.old))",
                "return tuple(TopicPartition(self.topic, p) for p in range(min(self.old, 2)))",
            ),
        ),
        _ORDER,
    ),
    Fault(
        "a growth that the group missed holds nothing back",
        (Edit(_GROWTH, "if n == self.old or self.new % n == 0)", "if n == self.old)"),),
        _ORDER,
    ),
    Fault(
        "the mirror forgets growths to no multiple",
        (
            Edit(
                "coordinator/progress/mirror.py",
                "if g.gated and not g.passed(stable)",
                "if g.kept and not g.passed(stable)",
            ),
        ),
        ("tests/coordinator/progress/test_mirror.py",),
    ),
    Fault(
        "an event promises the order of all keys at any growth",
        (
            Edit(
                "coordinator/redis/lua/create_positions.lua",
                "if tonumber(new) % tonumber(old) ~= 0 then",
                "if false then",
            ),
        ),
        ("tests/coordinator/member/test_partition_growth.py",),
    ),
    Fault(
        "a growth that was over before a loss of state stays over",
        (
            Edit(
                _GROWING,
                "(g, state.life.nonce) not in state.growing.over",
                "g not in {over for over, _ in state.growing.over}",
            ),
        ),
        ("tests/coordinator/member/test_growing.py",),
    ),
    Fault(
        "partitions of a new group and of a growth count as mended",
        (
            Edit(
                "coordinator/redis/lua/create_positions.lua",
                "known == id and less(partition, before[topic])",
                "known == id and less(partition, partitions)",
            ),
        ),
        ("tests/coordinator/redis/test_growth.py",),
    ),
)
