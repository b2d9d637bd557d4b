"""The targets of the fuzzer: each takes what is sound, and nothing of what is broken makes it fail otherwise."""

import random

import pytest

import fuzz
import fuzz_targets
from fuzz import Outcome

BROKEN = """#2\tINITED cov: 31 ft: 31 corp: 1/1b exec/s: 0 rss: 42Mb
#4711\tNEW    cov: 44 ft: 51 corp: 10/61b lim: 122 exec/s: 0 rss: 42Mb L: 12/12 MS: 1 ShuffleBytes-

 === Uncaught Python exception: ===
KeyError: 'orders'
Traceback (most recent call last):
artifact_prefix='mirror-'; Test unit written to mirror-crash-1f2e
"""
DONE = "#99\tDONE   cov: 44 ft: 89 corp: 15/121b lim: 128 exec/s: 9 rss: 42Mb"
SLOW = f"{DONE}\nTest unit written to mirror-slow-unit-1f2e\n"
HUNG = f"{DONE}\n==77== ERROR: libFuzzer: timeout after 26 seconds\nTest unit written to mirror-timeout-1f\n"


PIECES = (b"", b"\0", b"9" * 20, b"9" * 5000, b"[" * 5000, b"1e999", "²".encode(), "٣".encode(), b"\xff", b"\t-@")
"""What breaks parsers: Python reads no longer numbers, no deeper lists, and digits of other scripts as its own."""


def changed(data: bytes, chance: random.Random) -> bytes:
    """Up to three of its bytes replaced, left out or repeated."""
    made = bytearray(data)
    for _ in range(chance.randint(1, 3)):
        at = chance.randrange(len(made) + 1)
        made[at : at + chance.randint(0, 4)] = chance.choice((*PIECES, made[:at][-8:]))
    return bytes(made)


@pytest.mark.parametrize("name", fuzz_targets.TARGETS)
def test_what_is_sound_is_taken_and_anything_else_is_taken_or_refused_by_name(name: str) -> None:
    target, chance = fuzz_targets.TARGETS[name], random.Random(7)
    with target.opened() as check:
        seeds = [*target.seeds()]
        assert sum(map(check, seeds)) >= len(seeds) / 2, "of record batches, half are cut"
        taken = sum(check(changed(chance.choice(seeds), chance)) for _ in range(200))
    assert taken < 200


def test_the_command_knows_each_target() -> None:
    assert {*fuzz.NAMES} == fuzz_targets.TARGETS.keys()


def test_a_target_that_fails_says_what_and_where_its_input_is() -> None:
    assert Outcome.of("mirror", BROKEN, 3, 1.0) == Outcome(
        "mirror", 4711, 3, 44, 1.0, "KeyError: 'orders' mirror-crash-1f2e"
    )
    assert Outcome.of("mirror", HUNG, 3, 1.0).wrong == "libFuzzer: timeout after 26 seconds mirror-timeout-1f"
    assert not Outcome.of("mirror", SLOW, 3, 1.0).wrong
    assert Outcome.of("mirror", DONE, 3, 1.0, -9).wrong == "it ended with code -9"
    assert Outcome.of("mirror", DONE, 0, 1.0).wrong == "not one input was taken"
    assert "no module" in Outcome.of("mirror", "no module", 0, 1.0).wrong


@pytest.mark.long
def test_the_command_gives_a_row_for_each_target(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["fuzz", "mirror", "texts", "--seconds", "5"])
    assert fuzz.main() == 0
    _, *rows = capsys.readouterr().out.splitlines()
    assert [row.split()[0] for row in rows] == ["mirror", "texts"]
    assert all(int(row.split()[1].replace(",", "")) > 100 for row in rows)
