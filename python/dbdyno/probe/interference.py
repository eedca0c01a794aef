"""How much others disturbed a trial, and whether that is more than results can bear.

The limits know the host's time and nothing of the trial's result: a slow trial is no more likely to be beyond them than
a fast one. METHODOLOGY.md says why they are what they are.
"""

from typing import Any

from dbdyno.probe.sampler import Series

# Shares of the time of all cores; the constants allow for clock ticks of 10 ms and for one message in a log.
STOLEN_SHARE_MAX, FOREIGN_CPU_SHARE_MAX, ALLOWED_CPU_SECONDS = 0.02, 0.05, 0.1
FOREIGN_IO_BYTES_PER_SECOND_MAX, ALLOWED_IO_BYTES = 1e6, 4e6
SHOWN, SHOWN_CORES_MIN = 5, 0.01  # busiest processes by name
_PRESSURE, _SECONDS = "pressure_", "_seconds"


def interference(
    series: Series, window_ns: tuple[float, float], *, cores: int, others: dict[str, float]
) -> dict[str, Any]:
    """Figures of the measured window, and in ``beyond`` which of them are beyond their limit; empty without samples.

    ``others`` are the cores that each foreign process, by name, used.
    """
    if not series.t_ns:
        return {}
    seconds = (window_ns[1] - window_ns[0]) / 1e9
    used = {name: max(0.0, series.at(name, window_ns[1]) - series.at(name, window_ns[0])) for name in series.columns}
    foreign_cpu = max(used["foreign_cpu_seconds"], used.get("hidden_cpu_seconds", 0.0))
    foreign_io = _foreign_io(used)
    all_cores = seconds * cores
    limits = {
        "stolen": STOLEN_SHARE_MAX + ALLOWED_CPU_SECONDS / all_cores,
        "foreign_cpu": FOREIGN_CPU_SHARE_MAX + ALLOWED_CPU_SECONDS / all_cores,
        "foreign_io": FOREIGN_IO_BYTES_PER_SECOND_MAX + ALLOWED_IO_BYTES / seconds,
    }
    found = {
        "stolen": used["stolen_seconds"] / all_cores,
        "foreign_cpu": foreign_cpu / all_cores,
        "foreign_io": None if foreign_io is None else foreign_io / seconds,
    }
    return {
        "beyond": [name for name, value in found.items() if value is not None and value > limits[name]],
        **found,
        "limits": limits,
        "cores": cores,
        "others": {name: used for name, used in list(others.items())[:SHOWN] if used >= SHOWN_CORES_MIN},
        "pressure": {
            name.removeprefix(_PRESSURE).removesuffix(_SECONDS): value / seconds
            for name, value in used.items()
            if name.startswith(_PRESSURE)
        },
    }


def _foreign_io(used: dict[str, float]) -> float | None:
    """Bytes that others moved on the disks below the data; ``None`` where there is no disk or it can't be read.

    What the disk moved beyond the server's own counters includes the filesystem's journal; what other processes moved
    may have gone to other disks. Only what is in both is surely foreign.
    """
    if "foreign_io_bytes" not in used:
        return None
    return min(used["foreign_io_bytes"], max(0.0, used["disk_bytes"] - used["ours_io_bytes"]))
