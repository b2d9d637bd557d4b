"""A hook of MkDocs: the rows of reference tables have anchors, and a search finds them."""

import json
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

OF = ("docs/options.md", "docs/reference.md", "docs/monitoring.md")
_ROW = re.compile(r"<tr>(\s*<td[^>]*><code>([\w.]+)</code></td>.*?)</tr>", re.DOTALL)
_PLACE = re.compile(r'<tr id="([\w.]+)">(.*?)</tr>', re.DOTALL)


def on_page_content(content: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Give each row the name in its first cell as anchor; the first row of two with one name has it."""
    if page.file.src_uri not in OF:
        return content
    seen = set[str]()

    def anchored(row: re.Match[str]) -> str:
        if row[2] in seen:
            return row[0]
        seen.add(row[2])
        return f'<tr id="{row[2]}">{row[1]}</tr>'

    return _ROW.sub(anchored, content)


def on_post_build(config: MkDocsConfig) -> None:
    """Add the rows to the index of the search."""
    built = Path(config.site_dir)
    index = built / "search" / "search_index.json"
    content = json.loads(index.read_text(encoding="utf-8"))
    for name in OF:
        place = name.replace(".md", ".html")
        for row in _PLACE.finditer((built / place).read_text(encoding="utf-8")):
            text = re.sub(r"<[^>]+>", " ", row[2])
            content["docs"].append({"location": f"{place}#{row[1]}", "title": row[1], "text": text})
    index.write_text(json.dumps(content), encoding="utf-8")
