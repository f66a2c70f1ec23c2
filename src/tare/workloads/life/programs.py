"""The programs that are the instances: of perl, which every image of Debian's has; as pid 1 too they obey signals."""

from __future__ import annotations

#: A pid 1 gets no signal that it has not asked for. LXC tells a program to end by SIGPWR.
_OBEYS = "$SIG{TERM} = $SIG{PWR} = sub { exit 0 };"
_SAYS = '$| = 1; print "up\\n";'
#: It waits, and ends when it is told.
WAITS = ("perl", "-e", f"{_OBEYS} {_SAYS} sleep while 1")
#: It works without end, so that the host sees whether it does.
WORKS = ("perl", "-e", f"{_OBEYS} {_SAYS} 1 while 1")
#: It does not end when it is told.
STAYS = ("perl", "-e", f"$SIG{{TERM}} = $SIG{{PWR}} = 'IGNORE'; {_SAYS} sleep while 1")
