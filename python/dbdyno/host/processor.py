"""The processors: model, flags, mitigations, and who sets their frequency, from /proc/cpuinfo and sysfs."""

from pathlib import Path
from typing import Any

from dbdyno.host.read import UNKNOWN, chosen_of, distinct, number_of, text_of

CPUINFO, SYSFS = Path("/proc/cpuinfo"), Path("/sys/devices/system/cpu")
# What checksums, encryption, compression, and clocks of a server depend on.
FLAGS_THAT_MATTER = ("sse4_2", "avx2", "avx512f", "aes", "vaes", "pclmulqdq", "sha_ni", "erms", "constant_tsc",
                     "nonstop_tsc", "tsc_known_freq", "hypervisor", "crc32", "sve", "asimd")  # fmt: skip


def processor_facts(cpuinfo: Path = CPUINFO, sysfs: Path = SYSFS) -> dict[str, Any]:
    """Every fact about the processors of this host."""
    first = _first_processor(cpuinfo)
    flags = set(first.get("flags", first.get("Features", "")).split())
    return {
        "model": first.get("model name", UNKNOWN),
        "microcode": first.get("microcode", UNKNOWN),
        "flags": [flag for flag in FLAGS_THAT_MATTER if flag in flags] if flags else UNKNOWN,
        "smt": {"1": "on", "0": "off"}.get(text_of(sysfs / "smt/active"), UNKNOWN),
        "frequency": _frequency(sysfs),
        "idle": {
            "driver": text_of(sysfs / "cpuidle/current_driver"),
            "governor": text_of(sysfs / "cpuidle/current_governor_ro"),
        },
        "mitigations": {path.name: text_of(path) for path in sorted((sysfs / "vulnerabilities").glob("*"))} or UNKNOWN,
    }


def clock_source() -> str:
    """What the kernel reads the time from: a slow one costs a server a system call for each look at the clock."""
    return chosen_of(Path("/sys/devices/system/clocksource/clocksource0/current_clocksource"))


def _first_processor(cpuinfo: Path) -> dict[str, str]:
    """The first processor's lines of /proc/cpuinfo; all processors of one host are taken to be alike."""
    found: dict[str, str] = {}
    text = text_of(cpuinfo)
    for line in text.partition("\n\n")[0].splitlines():
        name, colon, value = line.partition(":")
        if colon:
            found[name.strip()] = value.strip()
    return found


def _frequency(sysfs: Path) -> dict[str, Any]:
    """Driver and governor of every processor; a guest that sees none has none to show."""
    folders = sorted(sysfs.glob("cpu[0-9]*/cpufreq"))
    if not folders:
        return {"driver": UNKNOWN, "governor": UNKNOWN}
    boost = text_of(sysfs / "cpufreq/boost")
    no_turbo = text_of(sysfs / "intel_pstate/no_turbo")
    return {
        "driver": distinct([text_of(folder / "scaling_driver") for folder in folders]),
        "governor": distinct([text_of(folder / "scaling_governor") for folder in folders]),
        "boost": {"1": "on", "0": "off"}.get(boost) or {"1": "off", "0": "on"}.get(no_turbo, UNKNOWN),
        "min_khz": number_of(folders[0] / "scaling_min_freq"),
        "max_khz": number_of(folders[0] / "scaling_max_freq"),
    }
