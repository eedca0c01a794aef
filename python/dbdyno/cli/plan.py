"""``dbdyno plan STUDY``: what a run would do. Leaves the host as it is."""

import math
import os
import statistics
import textwrap
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from dbdyno.analysis.planned_looks import likely_blocks, planned_looks
from dbdyno.cli.options import (
    BLOCKS,
    BUDGET,
    HOSTS,
    MAX_BLOCKS,
    PROFILE,
    RUNS,
    SCALE,
    SEED,
    UNTIL_DECIDED,
    stop_options,
)
from dbdyno.cli.output import JSON, print_json, say_to_terminal
from dbdyno.cli.suggestions import studies
from dbdyno.errors import UserError
from dbdyno.model.design import MIN_BLOCKS, Design, Fleet
from dbdyno.model.printable import printable
from dbdyno.model.word import CONDITION_HOLDS, NOT_JUDGED
from dbdyno.model.wording import count, looks_listed, margin_text, percent
from dbdyno.plan.order import whole_plots
from dbdyno.plan.plan import (
    BOOT_SECONDS,
    Plan,
    bound_of_none,
    erased_devices,
    fast_cache_lines,
    fast_caches,
    planned_cuts,
)
from dbdyno.servers.contract import SettingOutcome
from dbdyno.servers.products import unasked_settings
from dbdyno.servers.user import server_user
from dbdyno.stack import capabilities
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.kinds.catalogue import KINDS
from dbdyno.stack.tracefs import mounted_tracefs
from dbdyno.study.schema import CrashSection, TrialSpec
from dbdyno.study.units import format_seconds
from dbdyno.workload.beside import program_of
from dbdyno.workload.kinds import workload_of

if TYPE_CHECKING:
    from dbdyno.analysis.server_defaults import ServerDefaults
    from dbdyno.store.records import Run


def plan(
    study: Path = typer.Argument(metavar="STUDY", help="The study file.", autocompletion=studies),
    scale: str = SCALE,
    seed: int | None = SEED,
    blocks: int | None = BLOCKS,
    max_blocks: int | None = MAX_BLOCKS,
    until_decided: bool = UNTIL_DECIDED,
    budget: str | None = BUDGET,
    profile: bool = PROFILE,
    erase: list[str] = typer.Option(
        [], metavar="SERIAL", help="Plan to erase the real device with this serial, whatever it holds."
    ),
    hosts: Path | None = HOSTS,
    json_: bool = JSON,
) -> None:
    """Show treatments, blocks, order, time, what will be touched, and whether this host can do it."""
    from dbdyno.plan.plan import make_plan
    from dbdyno.plan.stop_rule import StopRule
    from dbdyno.run.preflight import needs_of
    from dbdyno.run.profile import profiling
    from dbdyno.study.load import load_study

    loaded = load_study(study, scale)
    options = stop_options(blocks, max_blocks, budget, until_decided=until_decided)
    made = make_plan(loaded, seed=seed, stop_rule=options.override(StopRule.of_study(loaded)))
    if profile:
        made = profiling(made)
    if made.design.fleet:
        needs = needs_on_its_hosts(made, hosts, frozenset(erase))
    else:
        if hosts or made.client_hosts():
            from dbdyno.run.over_hosts import ports_over

            with ports_over(made, hosts):  # they can be reached, and are not changed
                pass
        needs = needs_of(made, frozenset(erase), say_to_terminal)
    show_plan(made, needs, json_=json_)
    if not all(need.ok for need in needs):
        whose = "the hosts" if made.design.fleet else "this host"
        raise UserError(f"{whose} can't run the study as it is; see above")


def needs_on_its_hosts(plan: Plan, hosts: Path | None, erase: frozenset[str]) -> list[Capability]:
    """What each host says of the plan, touching nothing; nothing without a file of hosts."""
    from dbdyno.hosts.connect import connected
    from dbdyno.run.fleet.asking import as_needs, ask_all, check_names
    from dbdyno.run.fleet.request import make_requests
    from dbdyno.run.over_hosts import see_that_they_are_clients

    if hosts is None:
        return []
    request_for = make_requests(plan, "plan", erase, fresh_images=False)
    with connected(hosts) as connected_hosts:
        check_names(plan, connected_hosts.inventory)
        see_that_they_are_clients(plan.client_hosts(), connected_hosts.inventory)
        answers = ask_all(connected_hosts.hosts, [request_for("facts", name) for name in plan.host_names()])
        return as_needs(plan, answers, erase, connected_hosts.reboots.refusals(plan.host_names(), plan.kernels()))


def show_plan(made: "Plan", needs: "list[Capability]", *, json_: bool) -> None:
    """Print a plan, and what this host lacks for it."""
    from dbdyno.run.preflight import with_host_decided

    made = with_host_decided(made)
    if json_:
        print_json(plan_as_dict(made, needs))
    else:
        print(plan_as_text(made, needs))


# How many blocks a plan has, what decides it, how long that may take, and the order in each.


def stop_rule_text(design: Design) -> str:
    """How many blocks there will be, and what decides it."""
    budget = "" if design.budget_seconds is None else f"; none is begun that would end after {_budget(design)}"
    if design.until == "blocks":
        return f"blocks ({design.blocks}){budget}"
    if design.until == "open":
        after = f"looked at after block {MIN_BLOCKS} and each later one"
        after_each = f"blocks: {after}; stops when every comparison is decided{budget}"
        return f"{after_each}; p and intervals are of the mean, and hold if log ratios are normal"
    goal = "comparison is decided"
    if design.until == "precise":
        goal = f"interval reaches at most {100 * (design.half_width or 0):.3g} % to either side"
    looks = looks_of(design)
    if len(looks) == 1:
        wanted = f"; the goal is that every {goal}" if design.until == "precise" else ""
        return f"blocks ({design.blocks}): too few to look at them before the last{wanted}{budget}"
    fewest, after = looks[0], looks_listed(looks)
    return f"{fewest} to {design.blocks} blocks: looked at after {after}; stops when every {goal}{budget}"


def looks_of(design: Design) -> tuple[int, ...]:
    """The numbers of blocks after which the data may end the run."""
    return planned_looks(design.blocks) if design.until in {"decided", "precise"} else ()


def _budget(design: Design) -> str:
    return format_seconds(design.budget_seconds or 0)


def time_text(plan: Plan) -> str:
    """How long it may take."""
    return f"{_range(plan)}{_basis(plan)}{_settling(plan)}{_starting(plan)}"


def _starting(plan: Plan) -> str:
    """How often hosts reboot into another kernel, and what was reckoned for it."""
    starts = plan.reboots(plan.design.blocks)
    if not starts:
        return ""
    each = ", ".join(f"{host} {count} times" for host, count in starts.items())
    return f"; hosts reboot into other kernels ({each}), about {format_seconds(BOOT_SECONDS)} each"


def _settling(plan: Plan) -> str:
    if plan.design.settle == "trial":
        return "; an unmeasured trial of the baseline comes before each trial"
    return f"; {format_seconds(plan.design.settle)} of each trial are rest" if plan.design.settle else ""


def _range(plan: Plan) -> str:
    design, each = plan.design, len(plan.design.tried)
    if design.until == "open":
        return f"{each} trials a block, about {format_seconds(plan.seconds(1))} each"
    fewest = (looks_of(design) or (design.blocks,))[0]
    if fewest == design.blocks:
        return f"{fewest * each} trials, about {format_seconds(plan.seconds(fewest))}"
    least, most = format_seconds(plan.seconds(fewest)), format_seconds(plan.seconds(design.blocks))
    return f"{fewest * each} to {design.blocks * each} trials, about {least} to {most}"


def _basis(plan: Plan) -> str:
    loads = [spec.workload for spec in plan.specs.values()]
    if all(load.seconds_bound for load in loads):
        return ""
    return f" (a guess: the load is bounded by {loads[0].AMOUNT or 'its data'}, not by time)"


def order_from(plan: Plan) -> str:
    """The seed that the order of trials comes from."""
    if plan.seed_is_drawn:
        return f"order from seed {plan.design.seed}, as an example: each run draws a seed of its own"
    return f"order from seed {plan.design.seed}"


def order_text(plan: Plan, block: int) -> str:
    """The treatments of a block in their order, a bar between two whole plots; of a long suite its loads."""
    design, plots = plan.design, whole_plots(plan.design)
    order = [slot.treatment for slot in plan.slots(block, 1)]
    if _is_long_suite(design):
        labels = {id_: design.part_label(part) for part in design.parts() for id_ in part}
        return "; ".join(label for label, _ in groupby(order, key=labels.__getitem__))
    runs = groupby(order, key=plots.__getitem__)
    return " | ".join(" ".join(treatments) for _, treatments in runs)


# Which blocks a plan has and in which order, on one host or on several.


BLOCKS_SHOWN = 12


def order_lines(plan: Plan) -> Iterator[str]:
    """What decides how many blocks there are, and the first of them in their order."""
    design, fleet = plan.design, plan.design.fleet
    hard = [factor.name for factor in design.factors if factor.hard_to_change]
    plots = f"; whole plots, between bars: {', '.join(hard)}" if hard else ""
    how = "in turn" if plan.client_hosts() else "at once"
    hosts = f", on each host another; blocks run on {', '.join(fleet.hosts)} {how}" if fleet else ""
    loads = "; the levels of each load in random order" if _is_long_suite(design) else ""
    order = f"{order_from(plan)}{hosts}{plots}{loads}:"
    if design.until == "blocks":
        yield f"{stop_rule_text(design)}, {order}"
    else:
        yield from (stop_rule_text(design), order)
    if fleet is None:
        yield from _blocks(plan, "  ", design.blocks, 1 if _is_long_suite(design) else BLOCKS_SHOWN)
        return
    share = -(-design.blocks // len(fleet.hosts))
    for host in fleet.hosts:
        yield f"  {', '.join([host, *_fixed(fleet, host)])}:"
        yield from _blocks(plan.on_host(host), "    ", share, max(1, BLOCKS_SHOWN // len(fleet.hosts)))


def _blocks(plan: Plan, indent: str, blocks: int, shown: int) -> Iterator[str]:
    for block in range(1, min(blocks, shown) + 1):
        yield f"{indent}{block:3d}  {order_text(plan, block)}"
    if blocks > shown:
        most = "" if plan.design.until == "blocks" else "at most "
        yield f"{indent}... and {most}{blocks - shown} more"


def _fixed(fleet: Fleet, host: str) -> Iterator[str]:
    """What a host has that no treatment varies."""
    yield from (f"{name} {of[host]}" for name, of in fleet.levels.items())
    if host in fleet.disks:
        disk = fleet.disks[host]
        yield f"disk {disk.device}{f' with serial {disk.serial}' if disk.serial else ''}"


def hosts_lines(needs: Iterable[Capability]) -> Iterator[str]:
    """What the hosts under test have answered, a line each."""
    host_needs = list(needs)
    if not host_needs:
        yield "the hosts under test were not checked: give --hosts FILE, which says how to reach them"
        return
    yield "the hosts can't run it:" if any(not need.ok for need in host_needs) else "all hosts can run it:"
    yield from (f"  {need.said}" for need in host_needs)


def blocks_as_dict(plan: Plan) -> dict[str, Any]:
    """The treatments of each block in their order; of several hosts by host, and by its own count of blocks.

    ``steps`` are those that are run in one trial, on the same tables.
    """
    design, fleet = plan.design, plan.design.fleet
    if fleet is None:
        steps = [row for row in design.steps() if len(row) > 1]
        return {"blocks": _orders(plan, design.blocks), **({"steps": steps} if steps else {})}
    share = -(-design.blocks // len(fleet.hosts))
    on_hosts = {host: _orders(plan.on_host(host), share) for host in fleet.hosts}
    return {
        "hosts": {
            "under_test": fleet.hosts,
            "level": fleet.levels,
            "disk": {host: asdict(disk) for host, disk in fleet.disks.items()},
            "blocks": on_hosts,
            "blocks_max": design.blocks,
        }
    }


def _orders(plan: Plan, blocks: int) -> list[list[str]]:
    return [[slot.treatment for slot in plan.slots(block, 1)] for block in range(1, blocks + 1)]


# What a plan says of the cuts of a crash study.


_MODES = {
    "power": "power cuts of the emulated disk",
    "kill": "kills of the server alone, a weaker test than a power cut: what was written survives in the page cache",
    "failover": "losses of the server: it is killed for good, and what its replica, or another node of its cluster, "
    "has by then is examined",
}


def crash_lines(plan: Plan) -> list[str]:
    """What is cut, what is left of it, and what that can show at best; nothing where the study is of speed."""
    crash, control = plan.study.crash, plan.control
    if crash is None or control is None:
        return []
    blocks = plan.design.blocks
    cuts = planned_cuts(crash, blocks)
    lines = [
        "",
        f"cuts ({cuts} of each treatment, {crash.cuts_each} in each of {count(blocks, 'trial')}): {_MODES[crash.mode]}",
    ]
    lines.append(f"  when: {', '.join(crash.when)}")
    if crash.mode == "power":
        lines.append(f"  survivors of what no FLUSH made durable: {', '.join(crash.survivors)}{_hold_text(crash)}")
    if len(crash.strata) > 1:
        lines.append(f"  {len(crash.strata)} kinds of cut, about {cuts // len(crash.strata)} of each")
    return [
        *lines,
        f"  at best: {_best(crash, blocks)}",
        f"  each step of recovery may take {format_seconds(crash.recovery_limit)}; broken states kept: {crash.keep}",
        f"  {control.treatment.id} is known to lose, as {control.why}",
        '  "nothing lost" is said only if it does lose in 95 % of its cuts or more',
    ]


def _best(crash: CrashSection, blocks: int) -> str:
    """What it shows if nothing is lost; and what it would if cuts of one trial had nothing in common."""
    by_trials, by_cuts = (100 * bound_of_none(number) for number in (blocks, planned_cuts(crash, blocks)))
    apart = f"; {by_cuts:.2g} % if cuts of one trial were independent" if crash.cuts_each > 1 else ""
    return (
        f"nothing lost in {count(blocks, 'trial')} shows that at most {by_trials:.2g} % of such cuts lose (95 %){apart}"
    )


def _hold_text(crash: CrashSection) -> str:
    return f" (holds back {1000 * crash.hold_seconds:g} ms)" if crash.hold_seconds else ""


def comparisons_title(plan: Plan) -> str:
    """What the list of comparisons is headed by."""
    design = plan.design
    about = "of what is lost" if plan.study.crash else f"on {design.metric}, margin {design.margin * 100:.3g} %"
    return f"comparisons ({len(design.comparisons)}), {about}:"


def fail_if_lines(design: Design) -> Iterator[str]:
    """What makes the run fail, and what becomes of what can't be judged."""
    if design.fail_if:
        from dbdyno.report.sections.thresholds import limits_text

        open_ = "passes" if design.fail_if.undecided == "pass" else f"ends with exit code {NOT_JUDGED}"
        yield (
            f"fails (exit code {CONDITION_HOLDS}) if anything is {limits_text(design.fail_if)};"
            f" what can't be judged {open_}"
        )


def treatment_lines(plan: Plan) -> list[str]:
    """Every treatment that is run, with its part in the design; of a long suite its loads."""
    design, control = plan.design, plan.design.control
    steps = _step_lines(design)
    if _is_long_suite(design):
        return _suite_lines(design) + steps
    part = {design.baseline: ["baseline"]}
    if control is not None:
        part.setdefault(control.id, []).append("control")
    lines = [f"treatments ({len(design.treatments)}{' and a control' * (len(design.tried) > len(design.treatments))}):"]
    for treatment in design.tried:
        mark = (
            f"   ({', '.join(part[treatment.id])})" if treatment.id in part and treatment in design.treatments else ""
        )
        lines.append(f"  {treatment.id}  {treatment.label}{mark}")
    return lines + steps


def _step_lines(design: Design) -> list[str]:
    """The loads of a suite that go on from one another, if any do."""
    loads = design.factor_of_loads
    rows = loads.chains() if loads else []
    return [f"  steps on the same tables, in one trial: {', '.join(row)}" for row in rows]


LISTED_MAX = 30  # treatments of a suite, from which its loads are listed instead


def _is_long_suite(design: Design) -> bool:
    return design.factor_of_loads is not None and len(design.treatments) > LISTED_MAX


def _suite_lines(design: Design) -> list[str]:
    """The loads of a suite by group, and what each is run with."""
    loads = design.factor_of_loads
    assert loads is not None  # noqa: S101  (it is a suite)
    groups = loads.groups or {}
    each = dict.fromkeys(treatment.label_without(loads.name) for treatment in design.treatments)
    lines = [f"treatments ({len(design.treatments)}): {count(len(groups), 'load')}, each with {', '.join(each)}"]
    for group in dict.fromkeys(groups.values()):
        names = ", ".join(name for name, of in groups.items() if of == group)
        lines += textwrap.wrap(f"{group}: {names}" if group else names, 110, initial_indent="  ",
                               subsequent_indent="    ", break_on_hyphens=False)  # fmt: skip
    return lines


def comparison_lines(design: Design) -> list[str]:
    """Every comparison; of a long suite what each load is compared in."""
    if not _is_long_suite(design):
        return [f"  {pair.level} against {pair.baseline}" for pair in design.comparisons]
    loads = design.factor_of_loads
    assert loads is not None  # noqa: S101  (it is a suite)
    label_of = {treatment.id: treatment.label_without(loads.name) for treatment in design.treatments}
    pairs = dict.fromkeys((label_of[pair.level], label_of[pair.baseline]) for pair in design.comparisons)
    return [f"  each load with {level} against {baseline}" for level, baseline in pairs]


def crash_as_dict(plan: Plan) -> dict[str, Any]:
    """The same for a script; empty where the study is of speed."""
    crash, control = plan.study.crash, plan.control
    if crash is None or control is None:
        return {}
    cuts = planned_cuts(crash, plan.design.blocks)
    return {
        "crash": {
            "mode": crash.mode,
            "cuts": cuts,
            "cuts_per_run": crash.cuts_each,
            "strata": [{"when": when, "survivors": survivors} for when, survivors in crash.strata],
            "hold_seconds": crash.hold_seconds or None,
            "recovery_limit_seconds": crash.recovery_limit,
            "keep": crash.keep,
            "bound_of_none": bound_of_none(plan.design.blocks),
            "bound_of_none_if_independent": bound_of_none(cuts),
            "control": {"id": control.treatment.id, "label": control.treatment.label, "why": control.why},
        }
    }


# What servers that a plan compares do differently in durability and logging, unless the study sets it.


def servers_warnings(plan: Plan) -> Iterator[str]:
    """Yield one for each setting in which servers that are compared with each other differ by default."""
    sides = list(_servers_compared(plan))
    if not sides:
        return
    from dbdyno.mysql.settings import CONCERNS
    from dbdyno.report.sections.server_defaults import defaults_clauses  # with all of the analysis

    differing = _differing(sides)
    for name in CONCERNS:
        for clause in defaults_clauses([_only(defaults, name) for defaults in differing]):
            yield f"by default {clause}: set {name} in [server.settings] to compare like with like"


def _servers_compared(plan: Plan) -> Iterator[tuple[TrialSpec, TrialSpec]]:
    """Yield each two treatments that are compared and have different servers, the baseline first."""
    for pair in plan.design.comparisons:
        before, after = plan.specs[pair.baseline], plan.specs[pair.level]
        if before.has_server and after.has_server and before.stack.server != after.stack.server:
            yield before, after


def _differing(sides: list[tuple[TrialSpec, TrialSpec]]) -> "list[ServerDefaults]":
    """Return what each two of them differ in; equal ones once."""
    from dbdyno.analysis.server_defaults import compared_settings

    differing_defaults: list[ServerDefaults] = []
    for before, after in sides:
        names, own_settings = (before.stack.server, after.stack.server), {*_own_settings(before), *_own_settings(after)}
        defaults = compared_settings(*names, _settings(before), _settings(after), own_settings)
        differing_defaults += [defaults] if defaults and defaults not in differing_defaults else []
    return differing_defaults


def _settings(spec: TrialSpec) -> Mapping[str, str]:
    """Return a treatment's settings, the study's before those of the server itself; empty where these aren't known."""
    known = unasked_settings(spec.stack.server)
    return {**known, **_own_settings(spec)} if known else {}


def _own_settings(spec: TrialSpec) -> dict[str, str]:
    return {name.replace("-", "_"): str(value) for name, value in spec.server.settings.items()}


def _only(defaults: "ServerDefaults", name: str) -> "ServerDefaults":
    return replace(defaults, differing=[difference for difference in defaults.differing if difference.name == name])


# What a run of a plan would touch on this host.


def touched(plan: Plan, needs: Iterable[Capability] = ()) -> list[str]:
    """What will be created, changed or erased on the host, a line each; ``needs`` say why a disk may be erased."""
    proofs = {need.name: need.detail for need in needs if need.ok}
    lines, raised = list[str](), list[TrialSpec]()
    for name, kind in KINDS.items():
        specs = [spec for spec in plan.specs.values() if spec.stack.kind == name]
        if specs:
            lines += kind.touches(specs, proofs)
        if kind.IS_RAISED:
            raised += specs
    if awake := plan.awake():
        of = "" if len(awake) == len(plan.specs) else f" for {', '.join(awake)}"
        lines.append(f"kept awake{of}: all processors, while a trial runs; {capabilities.awake().detail}")
    lines += _changed_settings(plan)
    if raised:
        lines += _touched_by_raising(raised)
    distinct = list(dict.fromkeys(lines))  # kinds of one study may touch the same
    return distinct if erased_devices(plan) else [*distinct, "erased: nothing"]


def _changed_settings(plan: Plan) -> Iterator[str]:
    """Settings of the host's kernel; those of a virtual machine end with it."""
    specs = [spec for spec in plan.specs.values() if not KINDS[spec.stack.kind].IN_GUEST]
    names = list(dict.fromkeys(name for spec in specs for name in spec.host.settings))
    if not names:
        return
    line = f"changed: {', '.join(names)} of this host, for all its programs, while a trial runs; put back after each"
    if any(name.startswith("dirty_") for name in names):
        line += ". They decide how much that was never synced is lost if this host's system crashes meanwhile"
    yield line


def _touched_by_raising(specs: list[TrialSpec]) -> Iterator[str]:
    """What every stack that dbdyno raises may touch."""
    if any(spec.stack.encryption == "none" for spec in specs):
        yield "kept: the prepared data, for later runs (dbdyno images)"
    yield "created: scratch folders in the state folder; gone afterwards"
    if any(spec.stack.memory for spec in specs):
        yield "created: a memory control group; gone afterwards"
    if any(spec.probes.trace and KINDS[spec.stack.kind].HAS_DISK for spec in specs):
        if not mounted_tracefs():
            yield "mounted: tracefs, in the state folder; unmounted afterwards"
        yield "created: a trace instance in tracefs, of the device's requests only; gone afterwards"
    own = [spec.stack.server for spec in specs if spec.has_server and not spec.stack.external_database]
    servers = ", ".join(dict.fromkeys(own))
    has_replica = any(spec.has_replica for spec in specs)
    is_local = has_replica or any("port" in spec.server.settings for spec in specs)
    tcp = "TCP on 127.0.0.1 only" if is_local else "no TCP"
    if servers:
        yield f"started: {servers} with data, socket and user of its own, {tcp}; ended afterwards"
    if has_replica:
        yield "started: a replica of it, with data, socket and user of its own, no TCP; ended afterwards"
    if nodes := max((spec.server.cluster.nodes for spec in specs if spec.has_cluster), default=0):
        text = f"started: {servers} as a cluster of up to {nodes} nodes, each with data, socket and user of its own; "
        yield f"{text}they listen on 127.0.51.*, where any program of this host can join; ended afterwards"
    yield from (f"started: {what}; ended afterwards" for what in dict.fromkeys(_programs(specs)))


def _programs(specs: list[TrialSpec]) -> Iterator[str]:
    """Other programs; of a command all its words, as a study may have come from anywhere."""
    user = server_user()
    who = f"as the user {user.pw_name}" if user else "as you"
    for spec in specs:
        if tool := workload_of(spec).tool:
            what = getattr(spec.workload, "command", tool.name)
            yield f"{what}, {who}"
        for name, section in spec.loads_beside.items():
            if tool := program_of(section):
                yield f"{getattr(section, 'command', tool.name)}, {who}, beside the load ({name})"


# How many blocks the margin will likely take: from the noise floor of an A/A run on this host, if there is one.


FOLDERS_MAX = 50  # run folders that are looked at, the latest first
EXAMPLES = (0.02, 0.04)  # spreads that are named where this host's is not known


def likely_blocks_text(design: Design, folder: Path = RUNS) -> str:
    """Return one line; empty where the number of blocks is given, or nothing is compared."""
    if design.until != "decided" or not design.comparisons:
        return ""
    margin = design.margin
    if (spread := spread_of_this_host(folder)) is not None:
        spread_text = f"two trials of a block differ by {percent(spread, sign=False)} here (A/A run in {folder})"
        if (blocks := likely_blocks(spread, margin)) is None:
            return f"likely blocks: {spread_text}, too much for a margin of {margin_text(margin)}: make trials longer"
        alike, apart = (min(each, design.blocks) for each in blocks)
        return f"likely blocks: {spread_text}: about {alike} if two are alike, {apart} if they {_differ(margin)}"
    known = [(example, blocks[0]) for example in EXAMPLES if (blocks := likely_blocks(example, margin))]
    each = [f"{blocks} if two trials of a block differ by {margin_text(example)}" for example, blocks in known]
    return f"likely blocks: about {', '.join(each)}; dbdyno aa measures this host's spread" if each else ""


def _differ(margin: float) -> str:
    return f"differ by {margin_text(math.expm1(2 * math.log1p(margin)))}"


def likely_blocks_json(design: Design, folder: Path = RUNS) -> dict[str, Any] | None:
    """Return the same for programs; None where this host's spread is not known."""
    spread = spread_of_this_host(folder) if design.until == "decided" else None
    if spread is None:
        return None
    blocks = likely_blocks(spread, design.margin)
    return {
        "spread": spread,
        "blocks_where_alike": blocks[0] if blocks else None,
        "blocks_at_two_margins": blocks[1] if blocks else None,
    }


def spread_of_this_host(folder: Path) -> float | None:
    """Return the standard deviation of the log ratio in the latest A/A run of this host; None where there is none."""
    return next(_spreads(folder), None)


def _spreads(folder: Path) -> Iterator[float]:
    """Yield that of each A/A run on a host with this one's processors; computed without numpy, as ``plan`` is quick."""
    from dbdyno.errors import DbdynoError
    from dbdyno.store.header import RUN
    from dbdyno.store.others import Budget, last_resort
    from dbdyno.store.parts import read_part
    from dbdyno.store.run_folder import read_run

    budget = Budget()
    headers = sorted(folder.glob(f"*/{RUN}"), key=lambda path: path.lstat().st_mtime, reverse=True)[:FOLDERS_MAX]
    for header in headers:
        try:
            if b"\n[aa]" not in read_part(header.parent, RUN):
                continue
            with last_resort(header.parent):
                ratios = _log_ratios(read_run(header.parent, budget=budget))
        except (OSError, DbdynoError):
            continue
        if len(ratios) >= MIN_BLOCKS:
            yield statistics.stdev(ratios)


def _log_ratios(run: "Run") -> list[float]:
    """Return the log ratio of the two trials of each block, of a whole A/A run of this host."""
    from dbdyno.analysis.blocks import usable_blocks

    if run.design.aa is None or run.ended != "done" or not _is_this_host(run.host):
        return []
    blocks = usable_blocks(run)
    first, second = (blocks.values(each.id, run.design.metric) for each in run.design.treatments)
    return [math.log(second[at] / first[at]) for at in first.keys() & second.keys() if first[at] > 0 and second[at] > 0]


def _is_this_host(host: dict[str, Any]) -> bool:
    """Return whether a run's host has this one's processors; a host that does not say is another."""
    from dbdyno.host.processor import processor_facts

    cpu = host.get("cpu")
    model = cpu.get("model") if isinstance(cpu, dict) else None
    return bool(model) and (model, host.get("cores")) == (processor_facts().get("model"), os.cpu_count())


def plan_as_text(plan: Plan, needs: list[Capability]) -> str:
    """The plan for a terminal."""
    lacking = [need for need in needs if not need.ok]
    design, about = plan.design, plan.study.about
    booted = any(spec.stack.is_in_machine for spec in plan.specs.values())
    lines = [f"{about.title}{' (simulated)' * plan.is_simulated}{' (booted)' * booted}"]
    if about.question:
        lines.append(about.question)
    if plan.study.scale:
        lines.append(f"at scale {plan.study.scale}")
    lines += ["", *treatment_lines(plan), *_named_levels(plan), *crash_lines(plan)]
    lines += ["", comparisons_title(plan), *comparison_lines(design)]
    if design.comparisons and design.secondary_metrics and not plan.study.crash:
        lines.append(f"  secondary metrics (exploratory): {', '.join(design.secondary_metrics)}")
    lines += [f"  {line}" for line in fail_if_lines(design)]
    lines += ["", *order_lines(plan)]
    if likely := likely_blocks_text(design):
        lines.append(likely)
    if caches := fast_cache_lines(plan):
        lines += ["", "fast caches, which writes fill:", *(f"  {line}" for line in caches)]
    lines += [
        *_prepared_lines(plan),
        "",
        f"time: {time_text(plan)}",
        *_profile_lines(plan),
        "",
        "touches, on each host:" if design.fleet else "touches:",
        *(f"  {line}" for line in touched(plan, needs)),
    ]
    otherwise = [need for need in needs if need.outcome and need.ok]
    if otherwise:
        lines += [
            "",
            "settings, as the server takes them:",
            *(f"  {need.said}" for need in otherwise),
        ]
    for warning in (*plan.warnings(), *servers_warnings(plan), *_not_granted(otherwise)):
        lines += ["", f"warning: {warning}"]
    if design.fleet:
        lines += ["", *hosts_lines(needs)]
    elif lacking:
        lines += ["", "this host can't run it:", *(f"  {need.said}" for need in lacking)]
    else:
        lines += ["", f"Ready: dbdyno run {plan.study.path}{' (on any host: it is simulated)' * plan.is_simulated}"]
    return printable("\n".join(lines), keep="\n")


def planned_images(plan: Plan) -> list[list[str]]:
    """Return the treatments by the image that they begin with, in the plan's order; none of an external server."""
    treatments_by_image: dict[str, list[str]] = {}
    for id_, spec in plan.specs.items():
        kind = KINDS[spec.stack.kind]
        if kind.IS_RAISED:
            treatments_by_image.setdefault(f"{spec.stack.kind} {kind.planned_key(spec)}", []).append(id_)
    return list(treatments_by_image.values())


def _prepared_lines(plan: Plan) -> list[str]:
    """Return ``["", "prepared data: 2 images: t1, t3; t2, t4"]``; nothing where nothing is prepared.

    The treatments of a suite are named by their levels but the load.
    """
    images = planned_images(plan)
    if len(images) == 1:
        return ["", "prepared data: 1 image for all treatments"]
    loads = plan.design.factor_of_loads
    names = {t.id: t.label_without(loads.name) if loads else t.id for t in plan.design.tried}
    each = "; ".join(", ".join(dict.fromkeys(names[id_] for id_ in treatments)) for treatments in images)
    return ["", f"prepared data: {count(len(images), 'image')}: {each}"] if images else []


def _profile_lines(plan: Plan) -> list[str]:
    """What profiles take, if there are any."""
    if not plan.profile:
        return []
    trials = len(plan.design.steps())
    return [
        f"then profiles by perf: {count(trials, 'trial')}, not judged, about {format_seconds(plan.block_seconds())}"
    ]


def _named_levels(plan: Plan) -> list[str]:
    level_lines = [
        ["", f"{factor.name}:", *(f"  {line}" for line in factor.said())]
        for factor in plan.design.factors
        if factor.said()
    ]
    return [line for lines in level_lines for line in lines]


def _not_granted(needs: list[Capability]) -> Iterator[str]:
    """Yield one for each setting that a trial would have in name only."""
    for outcome in (need.outcome for need in needs if need.outcome):
        setting = f"{outcome.name} = {str(outcome.asked).lower()}"
        if outcome.how == "not granted":
            yield f"this host does not grant {setting}: what is measured is the server without it"
        elif outcome.how == "no effect":
            yield f"{setting} changes nothing on this host: {outcome.said}"
        elif outcome.how == "in name only":
            yield f"tables have {outcome.asked} in name only: {outcome.said}"


def _setting_as_dict(need: Capability, outcome: SettingOutcome) -> dict[str, Any]:
    words = {name: getattr(outcome, name) for name in ("asked", "got", "how", "said")}
    return {"place": need.name, "setting": outcome.name, **words, "taken": outcome.holds}


def plan_as_dict(plan: Plan, needs: list[Capability]) -> dict[str, Any]:
    """The plan for a script."""
    design = plan.design
    return {
        "study": plan.study.about.title,
        "scale": plan.study.scale or None,
        "simulated": plan.is_simulated,
        "treatments": [{"id": t.id, "levels": t.levels} for t in design.treatments],
        "levels": {factor.name: factor.gives for factor in design.factors if factor.gives},
        "baseline": design.baseline,
        "comparisons": [{"baseline": c.baseline, "level": c.level} for c in design.comparisons],
        "metric": design.metric,
        "screened": design.secondary_metrics,
        "margin": design.margin,
        "fail_if": asdict(design.fail_if) if design.fail_if else None,
        "likely_blocks": likely_blocks_json(design),
        **crash_as_dict(plan),
        "seed": design.seed,
        "seed_is_drawn": plan.seed_is_drawn,
        "settle": design.settle or None,
        **({"profile_seconds": plan.block_seconds()} if plan.profile else {}),
        "hard_to_change": [factor.name for factor in design.factors if factor.hard_to_change],
        "until": design.until,
        "looks": list(looks_of(design)),
        "half_width": design.half_width,
        "budget_seconds": design.budget_seconds,
        **blocks_as_dict(plan),
        "seconds": plan.seconds(design.blocks),
        "starts_anew": plan.reboots(design.blocks),
        "fast_caches": list(fast_caches(plan)),
        "awake": plan.awake(),
        "images": planned_images(plan),
        "touches": touched(plan, needs),
        "settings": [_setting_as_dict(need, need.outcome) for need in needs if need.outcome],
        "warnings": [*plan.warnings(), *servers_warnings(plan), *_not_granted([need for need in needs if need.ok])],
        "lacking": [{"name": need.name, "detail": need.detail, "remedy": need.remedy} for need in needs if not need.ok],
    }
