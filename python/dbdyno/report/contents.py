"""The table of contents of a page: every heading of the second level gets a name, and a long page a list of them."""

import re

MARK = "<!-- contents -->"
LONG = 4  # headings
_HEADING = re.compile(r"<h2>(.*?)</h2>")
_NO_LETTERS = re.compile(r"&[#\w]+;|\W+")


def with_contents(page: str) -> str:
    """Return the page with a list of its sections where ``MARK`` stands; a short page has none."""
    used: dict[str, str] = {}  # name -> heading, as it is in the page: escaped

    def named(found: re.Match[str]) -> str:
        name = _name(found[1], used)
        used[name] = found[1]
        return f'<h2 id="{name}">{found[1]}</h2>'

    page = _HEADING.sub(named, page)
    links = "\n".join(f'<li><a href="#{name}">{heading}</a></li>' for name, heading in used.items())
    listed = f'<nav class="contents" aria-label="Contents">\n<ul>\n{links}\n</ul>\n</nav>' if len(used) >= LONG else ""
    return page.replace(MARK, listed, 1)


def _name(heading: str, used: dict[str, str]) -> str:
    """Return a name that no other heading of the page has; none begins as a name of the page's own parts does."""
    plain = "s-" + (_NO_LETTERS.sub("-", heading.lower()).strip("-")[:40] or "section")
    number = 1
    while (name := plain if number == 1 else f"{plain}-{number}") in used:
        number += 1
    return name
