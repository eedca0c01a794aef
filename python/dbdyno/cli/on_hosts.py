"""A study whose hosts are under test: asked, and run on, by the file of hosts that ``--hosts`` names."""

from pathlib import Path
from typing import TYPE_CHECKING

from dbdyno.errors import UserError

if TYPE_CHECKING:
    from dbdyno.plan.plan import Plan
    from dbdyno.run.execute import RunOutcome
    from dbdyno.stack.capabilities import Capability


def needs_on_its_hosts(plan: "Plan", hosts: Path | None, erase: frozenset[str]) -> "list[Capability]":
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
        answers = ask_all(connected_hosts.hosts, [request_for("facts", name) for name in _names(plan)])
        return as_needs(plan, answers, erase, connected_hosts.reboots.refusals(_names(plan), plan.kernels()))


def run_on_its_hosts(
    plan: "Plan", into: Path, hosts: Path | None, *, resume: bool, erase: frozenset[str], fresh_images: bool
) -> "RunOutcome":
    """Run a plan on the hosts that it names. Raises ``UserError`` where one can't; then nothing was touched."""
    from dbdyno.cli.progress import TerminalProgress
    from dbdyno.hosts.connect import connected
    from dbdyno.run.execute import open_run
    from dbdyno.run.fleet import asking, coordinate
    from dbdyno.run.fleet.part import HostAccess
    from dbdyno.run.fleet.request import make_requests
    from dbdyno.run.over_hosts import see_that_they_are_clients
    from dbdyno.run.preflight import this_machine

    if hosts is None:
        raise UserError(f"{plan.study.path}: hosts.under_test names hosts; say by --hosts FILE how they are reached")
    names = _names(plan)
    request_for = make_requests(plan, "asked", erase, fresh_images=fresh_images)
    with connected(hosts) as connected_hosts:
        asking.check_names(plan, connected_hosts.inventory)
        see_that_they_are_clients(plan.client_hosts(), connected_hosts.inventory)
        of_hosts = asking.ask_all(connected_hosts.hosts, [request_for("facts", name) for name in names])
        plan, answers = asking.decide_plan(
            plan, of_hosts, erase, connected_hosts.reboots.refusals(names, plan.kernels())
        )
        connected_hosts.reboots.adopt(names)
        with TerminalProgress(plan.design.labels, plan.seconds_per_trial() / plan.blocks_at_once) as progress:
            for warning in plan.warnings():
                progress.say(f"warning: {warning}")
            versions = asking.common_versions(answers)
            folder = open_run(plan, into, resume=resume, versions=versions, host=this_machine())
            if plan.seed_is_drawn:
                again = f"--seed {plan.design.seed} repeats its order"
                progress.say(f"seed {plan.design.seed}, drawn for this run; {again}")
            try:
                requests = make_requests(plan, coordinate.identity_of(into), erase, fresh_images=fresh_images)
                access = HostAccess(
                    connected_hosts.hosts,
                    connected_hosts.why_lost,
                    why_not_back=connected_hosts.why_not_back,
                    clients=connected_hosts,
                )
                return coordinate.run_on_hosts(plan, folder, progress, requests, access)
            finally:
                folder.close()


def _names(plan: "Plan") -> list[str]:
    assert plan.design.fleet is not None  # noqa: S101  (who calls this has one)
    return plan.design.fleet.hosts
