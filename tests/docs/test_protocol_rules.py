"""docs/protocol.md holds the rules that the code cites, and its tables name what the code has."""

import ast
import dataclasses
import re
import subprocess
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

import pytest

from coordinator.assignment.settings import GroupSettings
from coordinator.progress.stream_offset import VERSION, VERSION_WITHOUT_ORDER
from coordinator.redis import keys
from coordinator.redis.group_state import SCHEMA
from coordinator.values.options import option_fields

ROOT = next(folder for folder in Path(__file__).parents if (folder / "setup.cfg").exists())
PAGE = "docs/protocol.md"
TEXT = (ROOT / PAGE).read_text(encoding="utf-8")
RULES = re.findall(r'<a id="([a-z]+(?:-[a-z]+)+)"></a>\*\*rule: \1\.\*\*', TEXT)
CITED = re.compile(r"\brule: ([a-z]+(?:-[a-z]+)+)")
LUA = ROOT / "coordinator" / "redis" / "lua"
VERBS = {path.stem: path.read_text(encoding="utf-8") for path in LUA.glob("*.lua")}
GROUP = {"ABSENT", "LOST", "SCHEMA"}
VERDICTS = {
    "group": GROUP,
    "member": GROUP | {"REJOIN", "FENCED"},
    "owner": GROUP | {"REJOIN", "FENCED", "RECOVERING"},
}
ALL_VERDICTS = VERDICTS["owner"] | {"BUSY", "FILTER", "ALONE", "HELD", "MISSED", "ORDERING", "SUPERSEDED", "UNPROVEN"}

NO_OPTION = {
    "sharing": "sharing",
    "filter": "filter.*",
    "assignors": "assignor",
    "listener": "ownershipListener",
    "starting_option": "startingOffsets",
}
"""Settings of a member that its options do not declare, and the words for them."""
DERIVED = {"group", "alone", "demanding", "early_ends", "on_error", "longest_delay_ms", "tokens", "watch"}
"""The group itself, and what follows from the function, its error policy, or a test."""

QUOTED_ELSEWHERE = ("LICENSE", "CHANGELOG.md", str(Path(__file__).relative_to(ROOT)))
"""Texts that are not ours, history, and the examples below."""

STRAYS = {
    "a section of a document": r"\b[Ss]pecs?(\.md)? \(?R?[0-9]",
    "a numbered ruling": r"\bR[1-9]\b",
    "a letter for a document": r"(?<!\w)\([GKPX]\b[;,:)]|\b[GK]'s\b|\bof [GK]\b(?!\.)|\b[GK] (?:prints|says|rules)\b",
    "a folder that is not here": r"\bseeds/|\bmodel/[a-z]+\.py|\.\./shared|/work/",
    "how the work was organised": r"(?<!\[)\bissue (?:[0-9]+|one|two|three|of\b)|\((?:[a-z]+ )?issue\b|first[_ ]issue",
}


def tracked() -> tuple[str, ...]:
    """The texts of the repository, but for those that are exempt."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    names = (name for name in listed.stdout.splitlines() if (ROOT / name).is_file())
    ours = (n for n in names if n not in QUOTED_ELSEWHERE and not n.endswith(".png"))
    return tuple(ours)


def lines() -> Iterator[tuple[str, str]]:
    for name in tracked():
        for number, line in enumerate(
            (ROOT / name).read_text(encoding="utf-8", errors="replace").splitlines(), start=1
        ):
            yield f"{name}:{number}", line


def table(header: str) -> list[list[str]]:
    """The cells of the rows of a table of the page, which begins with that header."""
    after = TEXT.split(f"\n{header}\n", 1)[1].splitlines()[1:]
    rows = after[: next(i for i, line in enumerate(after) if not line.startswith("|"))]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


@pytest.mark.parametrize("kind", STRAYS)
def test_the_repository_refers_to_no_document_outside_it(kind: str) -> None:
    stray = re.compile(STRAYS[kind])
    texts = ((where, line) for where, line in lines() if ".lua:" not in where)  # K is a name of its scripts
    assert [f"{where}: {line.strip()}" for where, line in texts if stray.search(line)] == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("a section of a document", "still owned (spec 4.2, Fence)"),
        ("a section of a document", "its grace (spec R8)"),
        ("a numbered ruling", "-- R6: takeable"),
        ("a letter for a document", "Standalone mode (K)"),
        ("a letter for a document", "(G; linear in members)"),
        ("a letter for a document", "K's worked examples"),
        ("a folder that is not here", "kept in `seeds/`"),
        ("how the work was organised", "(issue of slow keys)"),
    ],
)
def test_a_stray_is_found(kind: str, text: str) -> None:
    assert re.search(STRAYS[kind], text)


def test_every_document_that_is_named_exists() -> None:
    documents = {Path(name).name for name in tracked() if name.endswith(".md")} | {"CHANGELOG.md", "python-api.md"}
    named = ((where, name) for where, line in lines() for name in re.findall(r"[\w-]+\.md\b", line))
    assert [f"{where}: {name}" for where, name in named if name not in documents] == []


def test_every_rule_has_one_anchor_of_its_name() -> None:
    anchors = re.findall(r'<a id="([^"]+)"></a>', TEXT)
    assert sorted(RULES) == sorted(set(anchors))
    assert len(RULES) == len(set(RULES)) > 50


def test_every_cited_rule_is_on_the_page() -> None:
    cited = ((where, name) for where, line in lines() for name in CITED.findall(line))
    assert [f"{where}: {name}" for where, name in cited if name not in RULES] == []


def chapters() -> dict[str, list[str]]:
    """The rules below each heading of the page, by the heading's anchor."""
    parts = re.split(r"^#+ (.+)$", TEXT, flags=re.MULTILINE)[1:]
    pairs = zip(parts[::2], parts[1::2], strict=True)
    return {heading.lower().replace(" ", "-"): [r for r in RULES if f'<a id="{r}">' in text] for heading, text in pairs}


@pytest.mark.parametrize("path", sorted((ROOT / "tests" / "rules").glob("test_*.py")), ids=lambda path: path.name)
def test_a_file_of_tests_is_a_chapter_of_the_page_in_its_order_and_its_words(path: Path) -> None:
    """A test's name begins with its rule. The first test of a rule begins with the rule's first sentence."""
    words, file = plain(TEXT), ast.parse(path.read_text())
    tests = (n for n in file.body if isinstance(n, ast.FunctionDef) and n.name[:5] == "test_")
    by_rule = [(name, next(of)) for name, of in groupby(tests, lambda n: n.name[5:].split("__")[0].replace("_", "-"))]
    (chapter,) = re.findall(rf"\({PAGE}#([\w-]+)\)", ast.get_docstring(file) or "")
    rules = [rule for rule, _ in by_rule]
    assert rules == [rule for rule in chapters()[chapter] if rule in rules]
    for rule, first in by_rule:
        sentence = plain(ast.get_docstring(first) or "").partition(f"Rule: {rule}. ")[2].split(". ")[0]
        assert sentence, first.name
        assert f"rule: {rule}. {sentence.rstrip('.')}" in words, first.name


def test_every_rule_has_a_scenario_and_the_contents_list_the_files_in_order() -> None:
    folder = ROOT / "tests" / "rules"
    tests = re.findall(
        r"^def test_(\w+?)__", "".join(path.read_text() for path in folder.glob("test_*.py")), re.MULTILINE
    )
    assert {*RULES} == {name.replace("_", "-") for name in tests}
    listed = re.findall(
        r"\[[\w ]+\]\(\.\./\.\./docs/protocol\.md#([\w-]+)\) \| \[(\w+\.py)\]", (folder / "README.md").read_text()
    )
    assert [chapter for chapter, _ in listed] == [chapter for chapter, rules in chapters().items() if rules]
    assert sorted(name for _, name in listed) == sorted(path.name for path in folder.glob("test_*.py"))
    assert all(f"({PAGE}#{chapter})" in (folder / name).read_text().partition("\n")[0] for chapter, name in listed)


def plain(text: str) -> str:
    """The words of a text without its links and marks."""
    return " ".join(re.sub(r"\[([^]]+)\]\([^)]*\)|[`*]", r"\1", text).split())


def test_every_rule_is_cited() -> None:
    cited = {
        name
        for where, line in lines()
        if not where.startswith((PAGE, "docs/glossary.md"))
        for name in CITED.findall(line)
    }
    assert {*RULES} <= cited


def test_links_within_the_page_have_a_target() -> None:
    headings = (
        re.sub(r"[^a-z0-9 -]", "", h.lower()).replace(" ", "-") for h in re.findall(r"^#+ (.+)$", TEXT, re.MULTILINE)
    )
    assert {*re.findall(r"\]\(#([^)]+)\)", TEXT)} - {*headings, *RULES} == set()


def test_every_verb_is_on_the_page_with_the_verdicts_of_its_script() -> None:
    rows = {row[0].strip("`"): row[3] for row in table("| verb | reads | writes | verdicts |")}
    assert rows.keys() == VERBS.keys()
    assert {verb: verdicts_in_table(cell) for verb, cell in rows.items()} == {
        verb: verdicts_in_header(text) for verb, text in VERBS.items()
    }


def verdicts_in_table(cell: str) -> set[str]:
    named = set(re.findall(r"\b[A-Z]+\b", cell)) & ALL_VERDICTS
    return named.union(*(VERDICTS[name] for name in re.findall(r"\*(\w+)\*", cell)))


def verdicts_in_header(script: str) -> set[str]:
    """The replies that the comment of a script lists."""
    comment = script[script.index("-- Reply") :].split("\n\n", maxsplit=1)[0]
    replies = "\n".join(line for line in comment.splitlines() if line.startswith("--"))
    return set(re.findall(r"\b[A-Z]+\b", replies)) & ALL_VERDICTS


def test_every_key_of_redis_is_on_the_page_as_the_code_spells_it() -> None:
    spelt = re.findall(r"^(coop:v1:\S+) +([A-Z]+) ", keys.__doc__ or "", re.MULTILINE)
    assert [(row[0].strip("`"), row[1]) for row in table("| key | type | field -> value | written by |")] == spelt


def test_every_verb_that_a_key_names_exists() -> None:
    named = {
        name for row in table("| key | type | field -> value | written by |") for name in re.findall(r"`(\w+)`", row[3])
    }
    assert named - VERBS.keys() == set()


def test_the_schema_numbers_are_those_of_the_code() -> None:
    assert f"The schema number of this layout: `{SCHEMA}`." in TEXT
    assert f"The schema number of the offset: `{VERSION}`. Without order: `{VERSION_WITHOUT_ORDER}`." in TEXT


def test_each_setting_of_a_member_has_a_rule_for_members_that_differ() -> None:
    """Rule: settings-that-differ."""
    declared = {field: option.name for field, option in option_fields(GroupSettings).items()}
    words = " ".join(row[1] for row in table("| rule | settings | how |"))
    settings = {field.name for field in dataclasses.fields(GroupSettings)}
    assert settings == declared.keys() | NO_OPTION.keys() | DERIVED
    assert [name for name in (declared | NO_OPTION).values() if f"`{name}`" not in words] == []
