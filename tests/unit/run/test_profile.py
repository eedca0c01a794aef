"""Profiles of the server: what perf prints is folded within bounds; two are held against each other; shown escaped."""

import json
import re
from collections import Counter
from dataclasses import replace

import pytest

from dbdyno.analysis.analyse import analyse
from dbdyno.analysis.profiles import compared_profiles
from dbdyno.errors import TrialError, UserError
from dbdyno.report.charts import flame
from dbdyno.report.contents import document
from dbdyno.report.render import html
from dbdyno.run import profile as profiles
from dbdyno.run.profile import bounded, folded, lacks_profile, perf_need, profiling, sampled, stacks_in
from dbdyno.store.profiles import BYTES_MAX, STACKS_MAX, Profile, read_profiles, with_profile, write_profile
from tests.unit.report.conftest import build

PRINTED = """\
connection 42 100.000000001: 
\t          d77fd0 [unknown] (/usr/sbin/mariadbd)
\t          e108b7 [unknown] (/usr/sbin/mariadbd)
\t          a854de handler::ha_write_row(char const*) (/usr/sbin/mariadbd)
\tffffffff81b954cc vfs;write ([kernel.kallsyms])
\tffffffffffffffff [unknown] ([unknown])

page cleaner 43 100.500000000: 
\t           891f4 start_thread (/usr/lib/x86_64-linux-gnu/libc.so.6)

connection 42 101.000000001: 
\t           891f4 start_thread (/usr/lib/x86_64-linux-gnu/libc.so.6)
"""  # noqa: W291  (as perf prints it)
WRITE = ("connection", "[unknown]", "vfs:write", "handler::ha_write_row(char const*)", "[mariadbd]")


def test_stacks_of_the_window_are_folded_the_outermost_frame_first():
    lines = PRINTED.splitlines(keepends=True)
    assert stacks_in(lines, (100 * 10**9, 10**12)) == Counter(
        {WRITE: 1, ("page cleaner", "start_thread"): 1, ("connection", "start_thread"): 1}
    )
    assert stacks_in(lines, (100 * 10**9 + 2, 101 * 10**9)) == Counter({("page cleaner", "start_thread"): 1})


def test_hostile_names_and_depths_are_bounded():
    deep = "x 1 1.000000000: \n" + "".join(f"\t 1 f{n}{'y' * 9999}\u202e;\x1b[2J (/lib)\n" for n in range(3000))
    (stack,) = stacks_in(deep.splitlines(keepends=True), (0, 10**12))
    kept, lost = bounded({stack: 3})
    profile = Profile("t1", "cpu-clock", 499, 1.0, 10.0, lost, kept)
    assert (profile.samples, lost) == (3, 0)
    assert all(name.isprintable() and ";" not in name for name in stack)


def test_too_many_stacks_are_left_out_by_how_seldom_they_were_met():
    many = {(f"f{number}" * 20,): number + 1 for number in range(2 * STACKS_MAX)}
    kept, lost = bounded(many)
    assert 0 < len(kept) <= STACKS_MAX
    assert lost == sum(many.values()) - sum(kept.values())
    assert min(kept.values()) >= 2 * STACKS_MAX - len(kept)
    assert len(json.dumps(kept)) < BYTES_MAX


def test_a_profile_is_written_and_read_and_a_damaged_one_named(tmp_path):
    (tmp_path / "profiles").mkdir()
    whole = Profile("t1", "cpu-clock", 499, 2.0, 100.0, 0, {"a;b": 3, "a;c": 1})
    write_profile(tmp_path, whole)
    assert with_profile(tmp_path, ["t1", "t2"]) == {"t1"}
    assert read_profiles(tmp_path, ["t1", "t2"]) == {"t1": whole}
    assert (whole.samples, whole.us_per_sample) == (4, pytest.approx(1e6 / 499 / 100))
    file = tmp_path / "profiles/t1.json"
    for damage in ('{"treatment": "t1"}', "nothing", file.read_text().replace('"t1"', '"t2"'),
                   file.read_text().replace(": 3", ": -3"), "[" * 10**5):  # fmt: skip
        file.write_text(damage)
        with pytest.raises(UserError, match=r"t1\.json: .*remove it; --profile with --resume takes it again"):
            read_profiles(tmp_path, ["t1"])


LEVEL = Profile(
    "t2", "cpu-clock", 500, 2.0, 100.0, 0, {"s;parse": 10, "s;<script>alert(1)</script>": 30, "s;parse;new": 5}
)
BASELINE = Profile("t1", "cpu-clock", 500, 2.0, 200.0, 0, {"s;parse": 20, "s;old": 20})


@pytest.fixture
def comparison_of_two():
    run = build(6)
    (compared,) = compared_profiles(run.design, {"t1": BASELINE, "t2": LEVEL})
    return run, compared


def test_times_are_microseconds_a_query_whatever_was_done_in_each(comparison_of_two):
    _, compared = comparison_of_two
    assert (compared.root.level, compared.root.baseline) == (pytest.approx(900.0), pytest.approx(400.0))
    own = {function.name: (function.level, function.baseline) for function in compared.functions}
    assert own["parse"] == (pytest.approx(200.0), pytest.approx(200.0))
    assert own["old"] == (0.0, pytest.approx(200.0))
    assert compared.functions[0].name == "<script>alert(1)</script>"
    parse = compared.root.callees["s"].callees["parse"]
    assert (parse.level, parse.baseline) == (pytest.approx(300.0), pytest.approx(200.0)), "with what it calls"


def test_of_unknown_queries_shares_are_compared():
    unknown = {"t1": replace(BASELINE, queries=0.0), "t2": LEVEL}
    (compared,) = compared_profiles(build(6).design, unknown)
    assert not compared.per_query
    assert (compared.root.level, compared.root.baseline) == (pytest.approx(100.0), pytest.approx(100.0))


def test_the_page_shows_both_graphs_and_escapes_the_names_of_functions(comparison_of_two):
    run, compared = comparison_of_two
    made = document(run, analyse(run), profiles={"t1": BASELINE, "t2": LEVEL})
    page = html.render(made)
    assert "<script>alert(1)" not in page
    assert re.search(r"&lt;script&gt;alert\(1\)&lt;/script&gt;: 600\S* us a query, 0 in the baseline", page)
    for window in ("wide", "narrow"):
        drawn = flame.chart(compared, "level", "baseline").drawn(window)
        assert drawn.count("<rect") == 5 + 4, "all, s and what it calls: of the level, of the baseline"
    text = json.dumps([section.data for section in made.sections if section.id == "profile"])
    assert '"unit": "us_per_query"' in text
    assert document(run, analyse(run)).sections != made.sections


def test_deep_and_wide_profiles_draw_in_bounds():
    deep = {";".join(f"f{n}" for n in range(120)): 5}
    wide = {f"s;{'w' * 100}{number}": 1 for number in range(5000)}
    pair = {"t1": replace(BASELINE, stacks=deep), "t2": replace(LEVEL, stacks=wide)}
    (compared,) = compared_profiles(build(6).design, pair)
    assert flame.chart(compared, "a", "b").drawn("wide").count("<rect") < 400


# What can't be profiled, and perf.


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            ('scheduler = "mq-deadline"', 'kernel = "debian-6.1"\nscheduler = "mq-deadline"'),
            "runs in a virtual machine",
        ),
        (("[design]", '[hosts]\nunder_test = ["a", "b", "c"]\n[design]'), "is for a study on one host"),
    ],
)
def test_what_has_no_server_here_is_refused(change, said, plan):
    with pytest.raises(UserError, match=f"--profile: .*{said}"):
        profiling(plan(change))


def test_where_perf_is_missing_or_refused_the_remedy_is_named(monkeypatch, tmp_path):
    monkeypatch.setattr(profiles, "tool_path", lambda _: None)
    need = perf_need()
    assert (need.ok, need.said) == (False, "perf: not installed; apt-get install linux-perf, or leave out --profile")
    with pytest.raises(TrialError, match="perf is not installed"), sampled(1, tmp_path / "x"):
        pass
    monkeypatch.setattr(profiles, "tool_path", lambda _: "/bin/false")
    need = perf_need()
    assert not need.ok
    assert need.remedy == "sysctl kernel.perf_event_paranoid=1, or run it as root; or leave out --profile"


def test_a_perf_that_fails_is_said(monkeypatch, tmp_path):
    broken = tmp_path / "perf"
    broken.write_text("#!/bin/sh\necho 'Access to performance monitoring is limited' >&2\nexit 1\n")
    broken.chmod(0o755)
    monkeypatch.setattr(profiles, "tool_path", lambda _: str(broken))
    with pytest.raises(TrialError, match="perf recorded nothing: Access to performance"), sampled(1, tmp_path / "x"):
        pass
    with pytest.raises(TrialError, match="perf script failed"):
        folded(tmp_path / "x", (0, 1))


def test_which_profiles_are_missing(two, tmp_path):
    (tmp_path / "profiles").mkdir()
    assert lacks_profile(two, tmp_path)
    for treatment in two.specs:
        write_profile(tmp_path, replace(LEVEL, treatment=treatment))
    assert not lacks_profile(two, tmp_path)
