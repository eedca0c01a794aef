"""Whether the hosts of a study began with the same prepared data."""

from dbdyno.model.wording import listed
from dbdyno.store.records import Run


def data_of(run: Run) -> dict[str, list[str | None]]:
    """Return host -> the SHA-256 of each image of prepared data its trials began with; null where it was not kept.

    Empty where nothing was prepared.
    """
    found: dict[str, dict[str, str | None]] = {}
    for trial in run.trials:
        if trial.image:
            found.setdefault(trial.host, {})[trial.image] = trial.image_sha256 or None
    return {host: [images[name] for name in sorted(images)] for host, images in found.items()}


def data_lines(run: Run) -> list[str]:
    """Return a sentence; nothing where nothing was prepared, or on one host only."""
    data = data_of(run)
    if len(data) <= 1:
        return []
    unknown = [host for host, images in data.items() if None in images]
    alike: dict[frozenset[str | None], list[str]] = {}
    for host, images in data.items():
        if host not in unknown:
            alike.setdefault(frozenset(images), []).append(host)
    if unknown:
        whose = f"{listed(unknown)}: {'its' if len(unknown) == 1 else 'their'} data were not kept"
        return [f"Whether all hosts began with the same bytes is unknown of {whose}."]
    if len(alike) == 1:
        return ["All hosts began with the same prepared data, byte for byte."]
    groups = sorted(alike.values(), key=len, reverse=True)
    whole = [f"{listed(hosts)} with the same bytes" for hosts in groups if len(hosts) > 1]
    own = [host for hosts in groups for host in hosts if len(hosts) == 1]
    parts = [*whole, *([f"{listed(own)} with data prepared there"] if own else [])]
    return [f"Hosts did not all begin with the same prepared data: {'; '.join(parts)}."]
