"""Subnets as users write them."""

from __future__ import annotations

import ipaddress

from tare.errors import HostError


def parse(text: str) -> ipaddress.IPv4Network:
    """The subnet of tare's bridge from ``10.77.0.0/24``. Raises `HostError` for none, or one that is too small."""
    try:
        subnet = ipaddress.IPv4Network(text)
    except ValueError as error:
        raise HostError(f"{text} is not a subnet: {error}", fix="give one such as 10.77.0.0/24") from error
    if subnet.num_addresses < 256:
        raise HostError(f"the subnet {text} is too small", fix="give a /24 or larger")
    return subnet
