"""An external server: what it was started with and stands on is its own; only what needs no restart varies."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from dbdyno.plan.identity import image_key
from dbdyno.servers.products import external_server
from dbdyno.stack.capabilities import Capability
from dbdyno.stack.external_needs import external_needs
from dbdyno.stack.kinds.kind import Raising, Stack, StackKind
from dbdyno.stack.layers.device import NoDevice
from dbdyno.stack.layers.external_server import ExternalData, ExternalDatabase, ExternalServer
from dbdyno.stack.undo.log import Journal
from dbdyno.study.schema import TrialSpec
from dbdyno.study.server_url import server_url
from dbdyno.study.workloads import USERS_SQL


class ExternalStack(StackKind[ExternalDatabase]):
    """The data are loaded into its database, as no image can be put back there."""

    IS_RAISED = False

    def needs_of_server(self, spec: TrialSpec) -> Iterator[Capability]:
        """What the server itself says."""
        yield from external_needs(spec)

    def needs_of_ground(self, spec: TrialSpec, erase: frozenset[str]) -> Iterator[Capability]:
        """Nothing: no disk of this host is touched."""
        return iter(())

    def touches(self, specs: Sequence[TrialSpec], proofs: Mapping[str, str]) -> Iterator[str]:
        """What is changed on each server."""
        for url in dict.fromkeys(spec.stack.server for spec in specs):
            yield from _touched(url, [spec for spec in specs if spec.stack.server == url])

    def server_version(self, spec: TrialSpec) -> str:
        """As it reports it."""
        with external_server(spec.stack.server, spec.server.option_file).session() as session:
            return session.version()

    def image_key(self, spec: TrialSpec) -> str:
        """The server: a run has its database once."""
        return spec.stack.server

    @contextmanager
    def new_image(self, spec: TrialSpec, journal: Journal) -> Iterator[ExternalDatabase]:
        """The database, which this run may use until its end."""
        with ExternalDatabase(spec.stack.server, spec.server.option_file, journal).taken() as database:
            yield database

    def stack(self, spec: TrialSpec, image: ExternalDatabase, raising: Raising) -> Stack:
        """The server as it is, and the data loaded into it."""
        stack, server = spec.stack, spec.server
        key = image_key(spec, stack.server, server.settings)
        data = ExternalData(image, key, raising.prepare, only_read=spec.workload.only_reads, confined=spec.is_confined)
        found = ExternalServer(stack.server, server.option_file, server.settings, stack.engine)
        return Stack(NoDevice("unknown"), (found, data))


KIND = ExternalStack()


def _touched(url: str, specs: Sequence[TrialSpec]) -> Iterator[str]:
    named, place = server_url(url), server_url(url).place
    yield f"created: tables in the database {named.database} of the server at {place}; dropped afterwards"
    scripts = [spec for spec in specs if spec.workload.kind in USERS_SQL]
    if any(not spec.is_confined for spec in scripts):
        what = f"the whole server at {place}, by the script's SQL as far as {named.user} may"
        yield f"CHANGED: {what}; nothing of it is put back"
    if any(spec.is_confined for spec in scripts):
        yield "created: an account there that may change that database alone; dropped afterwards"
    if names := sorted({name for spec in specs for name in spec.server.settings}):
        yield f"changed: {', '.join(names)} of that server, for all its users; put back after each trial"
