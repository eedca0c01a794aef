"""Sets of processors, as the kernel and taskset write them: ``0-3,8``."""

import re


def cpu_numbers(text: str) -> frozenset[int]:
    """The processors of a list. Raises ``ValueError``."""
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if not re.fullmatch(r"[0-9]{1,5}(-[0-9]{1,5})?", part):
            raise ValueError("is no list of processors")
        if int(last or first) < int(first):
            raise ValueError(f"holds the range {part}, which ends before it begins")
        found |= set(range(int(first), int(last or first) + 1))
    return frozenset(found)


def cpu_list(numbers: frozenset[int] | set[int]) -> str:
    """The list of a set, as short as it can be."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ",".join("-".join(map(str, part)) for part in parts)
