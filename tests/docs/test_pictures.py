"""The drawn pictures of the pages say in words what they show, and have a background in light and in dark."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from broker_jars import ROOT

SVG = "{http://www.w3.org/2000/svg}"
MADE_ELSEWHERE = {"lanes.svg", "top.svg"}  # from a running query, and by Rich
DRAWN = [path for path in sorted((ROOT / "docs").glob("*.svg")) if path.name not in MADE_ELSEWHERE]


@pytest.mark.parametrize("path", DRAWN, ids=[path.name for path in DRAWN])
def test_a_picture_has_a_title_a_description_and_both_schemes(path: Path) -> None:
    picture = ET.parse(path).getroot()  # it is our own
    words = {name: picture.findtext(f"{SVG}{name}", "") for name in ("title", "desc", "style")}
    assert picture.get("aria-labelledby") == "title desc"
    assert 0 < len(words["title"]) < 100
    assert len(words["desc"]) > len(words["title"])
    assert "prefers-color-scheme: dark" in words["style"]
    background = picture.find(f"{SVG}rect")
    assert background is not None
    assert (background.get("class"), background.get("width")) == ("paper", picture.get("width"))
