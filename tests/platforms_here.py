"""What no installation brings to this machine."""

import functools

from tare.platforms import platform_registry, uml


@functools.cache
def _uml_here():
    return platform_registry.choose(["uml"])[0].detect()


def cannot_be(name):
    """Why a platform that the tests need is none on this machine, whatever is installed; None where it can be."""
    if not name.startswith("uml"):
        return None
    answer = _uml_here()
    return answer.reason if answer.reason == uml.REGISTERS else None
