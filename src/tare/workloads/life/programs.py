"""The programs that are the instances: of perl, which every image of Debian's has; as pid 1 too they obey signals."""

from __future__ import annotations

from typing import Final

#: A pid 1 gets no signal that it has not asked for. LXC tells a program to end by SIGPWR.
_OBEYS = "$SIG{TERM} = $SIG{PWR} = sub { exit 0 };"
_SAYS = '$| = 1; print "up\\n";'
#: It waits, and ends when it is told.
WAITS = ("perl", "-e", f"{_OBEYS} {_SAYS} sleep while 1")
#: It works without end, so that the host sees whether it does.
WORKS = ("perl", "-e", f"{_OBEYS} {_SAYS} 1 while 1")
#: It does not end when it is told.
STAYS = ("perl", "-e", f"$SIG{{TERM}} = $SIG{{PWR}} = 'IGNORE'; {_SAYS} sleep while 1")

#: Files of `remembers` in /data: it grows by a byte a millisecond; there to have memory read again; the sum of that.
BEAT: Final = "beat"
AGAIN: Final = "again"
SUM: Final = "sum"
#: A page's number times this, modulo 2**32, is what its first bytes say (Knuth's multiplicative hashing).
_SPREAD = 2_654_435_761
_PAGE = 4096


def remembers(touched_mib: int, read_mib: int) -> tuple[str, ...]:
    """Return a program that touches so much memory, no page like another, beats, and reads so much of it when asked.

    Most of a page is of random bytes, so that no snapshot is small because pages are alike or compress well.
    """
    script = f"""\
{_OBEYS} $| = 1;
open(my $random, '<', '/dev/urandom'); read($random, my $block, 1 << 20);
my $memory = $block x {touched_mib};
substr($memory, $_ << 12, 4) = pack('N', ($_ * {_SPREAD}) & 0xffffffff) for 0 .. {(touched_mib << 20) // _PAGE - 1};
open(my $beat, '>>', '/data/{BEAT}');
print "up\\n";
while (1) {{
    syswrite($beat, '.');
    select(undef, undef, undef, 0.001);
    next unless unlink('/data/{AGAIN}');
    my $sum = 0;
    $sum = ($sum + unpack('N', substr($memory, $_ << 12, 4))) & 0xffffffff for 0 .. {(read_mib << 20) // _PAGE - 1};
    open(my $out, '>', '/data/{SUM}.new'); print $out $sum; close($out); rename('/data/{SUM}.new', '/data/{SUM}');
}}
"""
    return ("perl", "-e", script)


def remembered(read_mib: int) -> int:
    """Return the sum that `remembers` gives where its memory is what it was."""
    return sum(page * _SPREAD % 2**32 for page in range((read_mib << 20) // _PAGE)) % 2**32
