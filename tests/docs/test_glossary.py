"""A term is defined once, briefly: the words of users in docs/how-it-works.md, all others in docs/glossary.md."""

import re
from collections import Counter

from broker_jars import ROOT

ROW = re.compile(r"^\| ([a-z][^|]*) \| (.+) \|$", re.MULTILINE)


def rows(text: str) -> list[tuple[str, str]]:
    return [(term, meaning) for term, meaning in ROW.findall(text) if term != "term"]


WORDS = (ROOT / "docs" / "how-it-works.md").read_text(encoding="utf-8").split("\n## Words\n")[1].split("\n### ")[0]
USERS = rows(WORDS)
ROWS = USERS + rows((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))


def test_a_term_is_defined_once() -> None:
    assert len(ROWS) > 60
    assert [term for term, times in Counter(term for term, _ in ROWS).items() if times > 1] == []


def test_a_definition_has_two_sentences_at_most() -> None:
    assert [term for term, meaning in ROWS if not 1 <= len(re.findall(r"[.?](?=\s|$)", meaning)) <= 2] == []


def test_users_meet_few_words_the_most_important_first() -> None:
    terms = [term for term, _ in USERS]
    assert len(terms) <= 24
    assert terms[:3] == ["lane", "gap", "stable offset"]
