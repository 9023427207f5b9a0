"""Links between the Markdown files lead somewhere, also without the site."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    path
    for path in sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
    if "gallery" not in path.parts
]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors_of(path):
    """Anchors of the headings, as hosts and the site make them."""
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    return {
        re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-")
        for heading in re.findall(r"^#+ (.+)$", text, re.M)
    }


def broken_links(path):
    text = re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.M | re.S)
    for link in LINK.findall(re.sub(r"`[^`\n]*`", "", text)):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        if link.startswith("https://") or "/gallery/" in link:  # the build makes the gallery
            continue
        there = target.exists()
        lost = there and anchor and target.suffix == ".md" and anchor not in anchors_of(target)
        if not there or lost:
            yield link


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(path):
    assert not [*broken_links(path)]


def test_a_broken_link_is_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# One\n\n[a](page.md#one) [b](page.md#two) [c](none.md) [d](http://x.y)\n")
    assert [*broken_links(page)] == ["page.md#two", "none.md", "http://x.y"]
