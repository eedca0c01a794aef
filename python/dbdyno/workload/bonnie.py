"""The workload ``bonnie``: Bonnie++ on files of the trial's own."""

from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import TrialError
from dbdyno.stack.layer import StackContext
from dbdyno.study.workloads import BonnieSection
from dbdyno.workload.tool_load import ByTool, Program, ProgramRun, ToolLoad, client_cpu, home_of_program, run_program

BONNIE = Program(("bonnie++",), "bonnie++", version_flag="-?")
FORMATS = ("1.96", "1.97", "1.98")
SHIFTED = ("1.98",)  # two more fields, about the seeks, before the figures
FIRST = 7  # field of the first figure
# Figure -> its place behind the first one; each has its CPU beside it. Kilobytes are of 1024 bytes.
KILOBYTES = {"write_megabytes_per_second": 2, "rewrite_megabytes_per_second": 4, "read_megabytes_per_second": 8}
RATES = {"seeks_per_second": 10, "file_creates_per_second": 17, "file_stats_per_second": 19,
         "file_deletes_per_second": 21}  # fmt: skip


@dataclass(frozen=True)
class Bonnie(ByTool[BonnieSection]):
    """The Bonnie++ load of one treatment."""

    tool = BONNIE

    def run(self, context: StackContext, seed: int, folder: Path) -> ToolLoad:
        """Run it once. Raises ``TrialError`` with its own words."""
        assert context.files is not None  # noqa: S101  (a bonnie load has them)
        section = self.section
        mib = section.size // 1024**2
        # Its own idea of the host's memory is not asked: that the file is larger than memory is a rule of the study.
        argv = ["bonnie++", "-d", str(context.files), "-s", str(mib), "-r", str(mib // 2), "-n", str(section.files)]
        argv += ["-x", "1", "-m", "dbdyno", "-z", str(seed % 2**31), *([] if section.per_char else ["-f"])]
        home = home_of_program(context)
        ended = run_program(context, "bonnie++", argv, folder=folder, limit_seconds=self.limit_seconds, cwd=home)
        fields = csv_fields(ended.stdout)
        window = (ended.start_ns, ended.end_ns)
        seconds = (window[1] - window[0]) / 1e9
        phases = [
            {"name": name, "start_ns": start, "end_ns": end} for name, start, end in phases_of(ended, window[0]) if end
        ]
        reported = {"kind": "bonnie", "fields": fields, "phases": phases}
        figures = {**bonnie_figures(fields), "seconds_real": seconds, **client_cpu(ended)}
        return ToolLoad(reported=reported, window_ns=window, figures=figures)


def csv_fields(text: str) -> list[str]:
    """The line that Bonnie++ prints for programs. Raises ``TrialError`` where it is of no format that is known."""
    line = next((line for line in reversed(text.splitlines()) if line.startswith(tuple(f"{f}," for f in FORMATS))), "")
    fields = line.split(",")
    if len(fields) < FIRST + 29 + 2 * (fields[0] in SHIFTED):
        raise TrialError(
            f"bonnie++'s output is not what it writes in format {', '.join(FORMATS)}: {text.strip()[:200]!r}"
        )
    return fields


def bonnie_figures(fields: list[str]) -> dict[str, float]:
    """The figures of a line (MB/s decimal); what was too fast to be measured (``+++++``) or not done is left out."""
    first = FIRST + 2 * (fields[0] in SHIFTED)
    figures = {}
    for names, factor in ((KILOBYTES, 1024 / 1e6), (RATES, 1.0)):
        for name, place in names.items():
            try:
                figures[name] = float(fields[first + place]) * factor
            except ValueError:
                continue
    return figures


def phases_of(ended: ProgramRun, start_ns: int) -> list[tuple[str, int, int]]:
    """Name, start and end of each part, from what Bonnie++ says while it works (each line ends with its part)."""
    phases = []
    for at_ns, line in ended.lines("err"):
        name = line.partition("...")[0].strip()
        phases.append(("seek" if name == "start 'em" else name.lower(), start_ns, at_ns))
        start_ns = at_ns
    return phases
