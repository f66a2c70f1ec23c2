"""Redaction of names of machines and persons in any text, with the same stand-in throughout a file.

Known names (of hosts and users) are replaced as whole words, a host's with the domain after it. Addresses, hardware
addresses, ids of machines and boots, serial numbers, ``user@host``, a URL's user and password, and folders of users are
recognized by their form. Stand-ins are numbered: ``host-1``, ``address-2``.
"""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

#: Names that every machine has, and that identify nobody.
COMMON = frozenset({"localhost", "localhost.localdomain", "root", "nobody", "daemon", "tare", "native", "none", ""})
_WORD = r"(?<![A-Za-z0-9_]){}(?![A-Za-z0-9_])"
_IPV4 = re.compile(r"(?<![\w.-])\d{1,3}(?:\.\d{1,3}){3}(?![\w-]|\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?=[0-9A-Fa-f:]*:[0-9A-Fa-f:]*:)[0-9A-Fa-f:]{3,39}(?![\w:])")
_MAC = re.compile(r"(?<![\w:-])[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}(?![\w:-])")
_UUID = re.compile(r"(?<![\w-])[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}(?![\w-])")
_MACHINE_ID = re.compile(r"(?<![0-9A-Za-z])(?:[0-9a-f]{32}|[0-9A-F]{32})(?![0-9A-Za-z])")
_SERIAL = re.compile(r"(?i)(serial(?:[ _-]?(?:number|no))?\\?[\"']?\s*[:=]\s*\\?[\"']?)([\w.-]*\d[\w.-]*)")
_HOME = re.compile(r"(/(?:home|Users)/)([^/\s\"'\\:,;]+)")
_AT = re.compile(r"(?<![\w.+-])([A-Za-z_][\w.+-]*)@([A-Za-z0-9][\w.-]*)")
#: Of a URL: user, password and host.
_USERINFO = re.compile(r"(?<=://)([^\s/@:\"'<>]+)(?::([^\s/\"'<>]*))?@([A-Za-z0-9][\w.-]*)?")
_PASSWORD = re.compile(r"password-\d+")
#: A domain after a host's name. A single label may be the suffix of a file or a service.
_DOMAIN = r"(?:\.[A-Za-z0-9][A-Za-z0-9-]*){2,}"
#: A shorter name in capitals may be an ordinary word: VM.
_MIN_CAPITALS = 4
#: uname's output, as iperf3 and others print it: the word after the kernel's name is the host's.
UNAME = re.compile(r"\bLinux ([A-Za-z0-9][\w.-]*) \d+\.\d+")


def _host_forms(names: Iterable[str]) -> Iterator[str]:
    """Yield regular expressions of hosts' names, longest first: a whole name goes before its first part.

    DNS names are case-insensitive. But a name of letters alone may be an ordinary word, or a distribution's name
    (Debian). It matches only as written, all in small or in capital letters, or with a domain.
    """
    for name in sorted(set(names), key=len, reverse=True):
        word = re.escape(name)
        yield f"(?i:{word}{_DOMAIN})"
        if name.isalpha():
            forms = {name, name.lower(), *([name.upper()] if len(name) >= _MIN_CAPITALS else [])}
            yield from map(re.escape, sorted(forms))
        else:
            yield f"(?i:{word})"


def _any_of(words: Iterable[str]) -> re.Pattern[str] | None:
    alternatives = "|".join(words)
    return re.compile(_WORD.format(f"(?:{alternatives})")) if alternatives else None


class Redactor:
    """Replacer of names of machines and persons in texts. `removed` counts the replacements by kind."""

    def __init__(self, *, hosts: Iterable[str] = (), users: Iterable[str] = (), kept: Iterable[str] = ()) -> None:
        """Prepare. ``hosts``, ``users``: names to replace. ``kept``: texts to keep, although they look like an id."""
        self.removed: Counter[str] = Counter()
        self._stand_ins: dict[tuple[str, str], str] = {}
        self._kept = frozenset(kept)
        users, hosts = ({name for name in names if name not in COMMON} for names in (users, hosts))
        self._hosts = _any_of(_host_forms(hosts))
        self._users = _any_of(map(re.escape, sorted(users - hosts, key=len, reverse=True)))

    def text(self, text: str) -> str:
        """Return the text with stand-ins for names of machines and persons."""
        text = UNAME.sub(lambda match: match[0].replace(match[1], self._for("host", match[1])), text)
        text = _USERINFO.sub(self._userinfo, text)
        text = _AT.sub(self._at, text)
        text = _HOME.sub(lambda match: match[1] + self._for("user", match[2]), text)
        text = _SERIAL.sub(lambda match: match[1] + self._for("serial", match[2]), text)
        text = _MAC.sub(self._whole("hardware-address"), text)
        text = _UUID.sub(self._whole("id"), text)
        text = _MACHINE_ID.sub(self._whole("id"), text)
        text = _IPV4.sub(self._address, text)
        text = _IPV6.sub(self._address, text)
        for kind, words in (("host", self._hosts), ("user", self._users)):
            if words is not None:
                text = words.sub(self._whole(kind), text)
        return text

    def bytes(self, data: bytes) -> bytes:
        """Redact bytes like `text`. Invalid UTF-8 stays as it is."""
        return self.text(data.decode("utf-8", "surrogateescape")).encode("utf-8", "surrogateescape")

    def _userinfo(self, match: re.Match[str]) -> str:
        user, password, host = match.groups()
        shown = "" if password is None else f":{self._for('password', password)}"
        return f"{self._for('user', user)}{shown}@{self._for('host', host or '')}"

    def _at(self, match: re.Match[str]) -> str:
        if _PASSWORD.fullmatch(match[1]):  # In a URL, the host gets its own stand-in too.
            return match[0]
        return f"{self._for('user', match[1])}@{self._for('host', match[2])}"

    def _whole(self, kind: str) -> Callable[[re.Match[str]], str]:
        return lambda match: self._for(kind, match[0])

    def _address(self, match: re.Match[str]) -> str:
        try:
            address = ipaddress.ip_address(match[0])
        except ValueError:
            return match[0]
        names_nobody = address.is_loopback or address.is_unspecified or match[0].startswith(("255.", "0."))
        return match[0] if names_nobody else self._for("address", match[0])

    def _for(self, kind: str, name: str) -> str:
        if name in COMMON or name in self._kept or re.fullmatch(rf"{kind}-\d+", name):
            return name
        self.removed[kind] += 1
        key = (kind, name.lower())
        if key not in self._stand_ins:
            self._stand_ins[key] = f"{kind}-{sum(1 for known_kind, _ in self._stand_ins if known_kind == kind) + 1}"
        return self._stand_ins[key]
