"""CPU numbers in a list such as ``0-2,5``, as the kernel reads and writes them (cpuset(7), list format)."""

from __future__ import annotations

from collections.abc import Collection

#: The most CPUs that Linux can be built for.
MAX_KERNEL = 8192
#: Above any kernel's CPUs, because a list from elsewhere may contain any number.
MAX = 1 << 16


def parse(text: str) -> tuple[int, ...]:
    """Return the numbers; empty for an empty list. Raises `ValueError` for text that no kernel writes."""
    numbers: list[int] = []
    for part in filter(None, text.strip().split(",")):
        first, dash, last = part.partition("-")
        begin, end = int(first), int(last if dash else first)
        if not (numbers[-1] if numbers else -1) < begin <= end < MAX:
            raise ValueError(f"list of CPUs: {part[:40]!r}")
        numbers.extend(range(begin, end + 1))
    return tuple(numbers)


def written(cpus: Collection[int]) -> str:
    """Return the list of these numbers, exactly as it is read back."""
    parts: list[list[int]] = []
    for cpu in sorted(cpus):
        if parts and cpu == parts[-1][-1] + 1:
            parts[-1].append(cpu)
        else:
            parts.append([cpu])
    return ",".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)
