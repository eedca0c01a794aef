"""The page that lists the field reports: question, what came out, and what agrees with what was published."""

from collections import Counter
from html import escape
from pathlib import Path

from dbdyno.analysis.analyse import Analysis, analyse
from dbdyno.analysis.reported import PublishedBeside
from dbdyno.model.printable import one_line
from dbdyno.report.document import plain
from dbdyno.report.sections.over_time import steadiness_sentence
from dbdyno.report.sections.reported import claim_line, summary_line
from dbdyno.report.sections.stopped import blocks_used
from dbdyno.store.run_folder import read_run
from dbdyno.store.series import read_analysed

HEAD = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Field reports · dbdyno</title>
<link rel="icon" href="data:,">
<style>
:root { color-scheme: light dark; }
body { margin: 0 auto; max-width: 52rem; padding: 2rem 1.25rem 4rem; font: 16px/1.5 system-ui, sans-serif; }
h1 { font-size: 1.9rem; margin: 0; } h2 { font-size: 1.15rem; margin: 2rem 0 .25rem; }
p { margin: .25rem 0; overflow-wrap: anywhere; } ul { margin: .25rem 0; padding-left: 1.2rem; }
</style>
</head>
<body>
<main>
<h1>Field reports</h1>
<p>Published comparisons, each measured again on this machine by one command. Nothing is tuned to match.</p>
"""


def index_page(folder: Path) -> str:
    """Return the page over all runs below ``folder`` that have a page of their own beside them."""
    pages = sorted(path for path in folder.glob("*.html") if (folder / path.stem / "run.toml").exists())
    return HEAD + "".join(_entry(folder / page.stem, page.name) for page in pages) + "</main>\n</body>\n</html>\n"


def _entry(run_folder: Path, page: str) -> str:
    run = read_run(run_folder)
    analysis = analyse(run, **read_analysed(run_folder, run))
    scale = f"At scale {run.scale}. " if run.scale else ""
    lines = [f'<h2><a href="{escape(page)}">{_safe(run.title)}</a></h2>', f"<p>{_safe(run.question)}</p>"]
    lines.append(f"<p>{_safe(f'{scale}{verdicts_line(analysis)} From {blocks_used(run, analysis)}.')}</p>")
    steady = analysis.steadiness.verdicts if analysis.steadiness else []
    lines += [f"<p>{_safe(plain(steadiness_sentence(verdict)))}</p>" for verdict in steady]
    told = [line for each in analysis.beside for line in (summary_line(each), *_claims(each)) if line]
    if told:
        lines += ["<ul>", *(f"<li>{_safe(line)}</li>" for line in told), "</ul>"]
    return "\n".join(lines) + "\n"


def _claims(each: PublishedBeside) -> list[str]:
    return [claim_line(claim, each) for claim in each.claims if claim.claim.checked]


def verdicts_line(analysis: Analysis) -> str:
    """Return how many comparisons came out how, such as ``"12 comparisons: 9 equivalent, 3 undecided."``."""
    found = Counter(verdict.verdict for verdict in analysis.verdicts)
    told = ", ".join(f"{number} {word}" for word, number in found.most_common())
    return f"{len(analysis.verdicts)} comparison{'s' * (len(analysis.verdicts) != 1)}: {told}."


def _safe(text: str) -> str:
    return escape(one_line(text))
