"""docs/glossary.md defines each term once, briefly, and begins with those that users meet."""

import re
from collections import Counter

from broker_jars import ROOT

TEXT = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
ROW = re.compile(r"^\| ([a-z][^|]*) \| (.+) \|$", re.MULTILINE)
ROWS = [(term, meaning) for term, meaning in ROW.findall(TEXT) if term != "term"]


def test_a_term_is_defined_once() -> None:
    assert len(ROWS) > 60
    assert [term for term, times in Counter(term for term, _ in ROWS).items() if times > 1] == []


def test_a_definition_has_two_sentences_at_most() -> None:
    assert [term for term, meaning in ROWS if not 1 <= len(re.findall(r"[.?](?=\s|$)", meaning)) <= 2] == []


def test_the_words_of_users_come_first() -> None:
    users = ROW.findall(TEXT.split("## For users")[1].split("\n## ")[0])
    terms = [term for term, _ in users if term != "term"]
    assert len(terms) == 20
    assert terms[:3] == ["lane", "gap", "stable offset"]
