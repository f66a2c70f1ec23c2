"""Signals as commands, by which users end what has no command of its own for that."""

from __future__ import annotations


def sent(signal: str, process: str) -> tuple[str, ...]:
    """Return the command that sends a signal.

    ``process``: its id, or the word that stands for it (`tare.platforms.base`).
    """
    return ("sh", "-c", 'kill -s "$1" "$2"', "sh", signal, process)
