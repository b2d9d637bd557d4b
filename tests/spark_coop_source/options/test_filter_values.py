"""Key ranges and keys of the record filter: JSON, hex, and files."""

import json
import os
from pathlib import Path

import pytest

from coordinator.values.options import CHARACTERS
from coordinator.values.ranges import HASH_MAX, WHOLE, HashRange
from coordinator.values.record_filter import Key
from spark_coop_source.options.filter_values import MOST_KEYS, MOST_RANGES, KeyRangesText, KeysText


@pytest.mark.parametrize(
    ("text", "keys"),
    [
        pytest.param('["a", "b", "a"]', {b"a", b"b"}, id="texts, each once"),
        pytest.param('["Zürich", ""]', {"Zürich".encode(), b""}, id="text in UTF-8, and the empty key"),
        pytest.param('["\\u0000"]', {b"\0"}, id="a control character"),
        pytest.param('[{"hex": "00FFab"}, {"hex": ""}]', {b"\x00\xff\xab", b""}, id="bytes in hex"),
        pytest.param('[null, "null"]', {None, b"null"}, id="no key, and a key of that text"),
    ],
)
def test_keys_are_texts_bytes_or_null(text: str, keys: set[Key], tmp_path: Path) -> None:
    assert KeysText().parse(text) == keys
    file = tmp_path / "keys.json"
    file.write_text(f"{text}\n", encoding="utf-8")
    assert KeysText().parse(f"file:{file}") == keys


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("a,b", "not JSON", id="no JSON"),
        pytest.param('"a"', "not a JSON list of keys", id="one text"),
        pytest.param('{"hex":"00"}', "not a JSON list of keys", id="one object"),
        pytest.param("[]", "it has 0 keys, not 1 to 10000", id="no key"),
        pytest.param(json.dumps([str(i) for i in range(MOST_KEYS + 1)]), "it has 10001 keys", id="too many"),
        pytest.param("[1]", '1 is not a string, {"hex":"..."} or null', id="a number"),
        pytest.param('[["a"]]', "is not a string", id="a list"),
        pytest.param('[{"hex":"00","text":"a"}]', "is not a string", id="hex and more"),
        pytest.param('[{"hex":1}]', "is not a string", id="hex of a number"),
        pytest.param('[{"hex":"0"}]', '"0" is not an even number of hex digits', id="half a byte"),
        pytest.param('[{"hex":"0 0"}]', "is not an even number of hex digits", id="a space in hex"),
        pytest.param('[{"hex":"zz"}]', "is not an even number of hex digits", id="letters beyond f"),
        pytest.param('["\\ud800"]', "half of a surrogate pair", id="half a character"),
        pytest.param('[{"hex":"00","hex":"01"}]', '"hex" occurs twice', id="hex twice"),
    ],
)
def test_other_keys_are_refused_with_the_reason(text: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=why.replace("{", r"\{").replace("...", r"\.\.\.")):
        KeysText().parse(text)
    file = tmp_path / "keys.json"
    file.write_text(text)
    with pytest.raises(ValueError, match=why.replace("{", r"\{").replace("...", r"\.\.\.")):
        KeysText().parse(f"file:{file}")


def test_a_file_that_cannot_be_read_is_refused_with_the_reason(tmp_path: Path) -> None:
    pipe, binary, large = tmp_path / "pipe", tmp_path / "binary", tmp_path / "large"
    os.mkfifo(pipe)
    binary.write_bytes(b'["\xff"]')
    large.write_bytes(b" " * (CHARACTERS + 1))
    refused = {
        f"file:{tmp_path / 'absent'}": "No such file or directory",
        f"file:{tmp_path}": "not a regular file",
        f"file:{pipe}": "not a regular file",
        f"file:{binary}": "not UTF-8",
        f"file:{large}": f"more than {CHARACTERS} bytes",
        "file:keys.json": "path is not absolute",
        "file:": "path is not absolute",
        "file:/a\0b": "path is not absolute",
        "file:///dev/zero": "not a regular file",
    }
    for text, why in refused.items():
        with pytest.raises(ValueError, match=why):
            KeysText().parse(text)


def test_a_file_that_the_user_may_not_read_is_refused(tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read every file")
    (tmp_path / "secret").write_text("[]")
    (tmp_path / "secret").chmod(0)
    with pytest.raises(ValueError, match="Permission denied"):
        KeysText().parse(f"file:{tmp_path / 'secret'}")


@pytest.mark.parametrize(
    ("text", "ranges"),
    [
        pytest.param("[[0,5]]", (HashRange(0, 5),), id="one"),
        pytest.param("[[7,9],[0,5]]", (HashRange(0, 5), HashRange(7, 9)), id="two, in any order"),
        pytest.param("[[6,9],[0,5]]", (HashRange(0, 9),), id="neighbours are one"),
        pytest.param(f"[[0,{HASH_MAX}]]", (WHOLE,), id="all"),
    ],
)
def test_key_ranges(text: str, ranges: tuple[HashRange, ...]) -> None:
    assert KeyRangesText().parse(text) == ranges


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param("[]", "not a list of 1 to 4096 ranges", id="none"),
        pytest.param("{}", "not a list of", id="an object"),
        pytest.param("[0,5]", "0 is not a key range", id="numbers"),
        pytest.param("[[0,5],[5,9]]", r"\[0,5\] and \[5,9\] overlap", id="overlapping"),
        pytest.param("[[5,0]]", "inverted", id="upside down"),
        pytest.param("[[-1,0]]", "hash -1 is not within", id="below"),
        pytest.param(f"[[0,{HASH_MAX + 1}]]", "is not within", id="beyond"),
        pytest.param(json.dumps([[2 * i, 2 * i] for i in range(MOST_RANGES + 1)]), "not a list of", id="too many"),
    ],
)
def test_other_key_ranges_are_refused_with_the_reason(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        KeyRangesText().parse(text)
