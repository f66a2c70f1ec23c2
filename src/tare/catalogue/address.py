"""The address of a catalogue, and how it is shown: a password is in no message, no log and no process list."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from tare.errors import UsageError

SCHEMES = ("postgresql", "postgres")
EXAMPLE = "postgresql://user@host/database"
#: libpq's parameters of an address that are secret.
_SECRETS = {"password", "sslpassword", "oauth_client_secret"}
_MASK = "***"
#: Up to the last @ before the parameters: a password may have characters that an address must not.
_USERS_PASSWORD = re.compile(r"(?i)\b([a-z]+://[^/@:?\s]*):[^?\s]*@")
_PARAMETER = re.compile(r"(?<![^?&\s\"'(])([\w%]+)=([^&\s]*)")


@dataclass(frozen=True, slots=True)
class CatalogueAddress:
    """An address without a password; libpq finds that in PGPASSFILE or PGPASSWORD."""

    url: str

    def masked(self, text: str) -> str:
        """Return the text of a message without the password that the environment has."""
        secret = os.environ.get("PGPASSWORD", "")
        text = text.replace(secret, _MASK) if secret else text
        return masked(text)


def is_address(text: str) -> bool:
    """Return whether a word is the address of a catalogue, and not a file or a folder."""
    return text.partition("://")[0].lower() in SCHEMES and "://" in text


def masked(text: str) -> str:
    """Mask the secrets of an address, so that it may be shown."""
    return _PARAMETER.sub(_without_secret, _USERS_PASSWORD.sub(rf"\1:{_MASK}@", text))


def _without_secret(parameter: re.Match[str]) -> str:
    return f"{parameter[1]}={_MASK}" if unquote(parameter[1]).lower() in _SECRETS else parameter[0]


def parse(text: str) -> CatalogueAddress:
    """Parse the address of a catalogue. Raises `UsageError` for what is none, and for one with a password."""
    if not is_address(text):
        raise UsageError(f"{masked(text)[:200]} is no address of a catalogue", fix=f"such as {EXAMPLE}")
    try:
        parts = urlsplit(text)
        # A slash in a password ends the address' server, so that the @ stands behind it.
        secret = parts.password is not None or "@" in parts.path
    except ValueError:
        raise UsageError(f"{masked(text)[:200]} is no address of a catalogue", fix=f"such as {EXAMPLE}") from None
    named = {unquote(name).lower() for name, _ in parse_qsl(parts.query, keep_blank_values=True)}
    if secret or named & _SECRETS:
        raise UsageError(
            f"{masked(text)} has a password, and every user of this machine reads command lines (ps)",
            fix=f"leave it out ({EXAMPLE}), and give it by PGPASSFILE or PGPASSWORD",
        )
    if parts.fragment:
        raise UsageError(f"{masked(text)} has a #, which an address has as %23", fix=f"such as {EXAMPLE}")
    return CatalogueAddress(text)


@dataclass(frozen=True, slots=True)
class Catalogued:
    """The campaigns of a host in a catalogue. ``host``: None where the catalogue has only one."""

    address: CatalogueAddress
    host: str | None
