"""Odd worlds as data: how each is made, what is run in it, its exit code, and the line that it must print.

A world is made by shell commands in a mount namespace, network and control groups that end with it. They may replace
the command, which is ``"$@"``: `set -- env -i "$@"`. The current folder has ``a.tare``, and ``home``, the TARE_HOME.
"""

from __future__ import annotations

from dataclasses import dataclass

REPORT = "report a.tare"
LIST = "list platforms"
EXPORT = "export a.tare --format jsonl"
DOCTOR = "doctor --all native"
CLEAN = "clean"
RUN = "run -p native -w primes --blocks 1 -o new.tare"
#: What `REPORT` prints wherever it can.
REPORTED = r"campaign: \S*a\.tare"
#: What the host must be given by a user who has no root: everything is his in here, and nobody else's.
AS_USER = 'set -- unshare --user --map-user=54321 --map-group=54321 "$@"'
#: Another user of this host, for limits that do not hold root. His files are on a mount that he can reach.
AS_OTHER = (
    "mount --bind . /mnt; cd /mnt; chown -R 54321 .; export TARE_HOME=/mnt/home;"
    'set -- setpriv --reuid 54321 --regid 54321 --clear-groups "$@"'
)
WITHOUT = 'set -- setpriv --inh-caps=-{0} --bounding-set=-{0} "$@"'
FULL = "head -c 1M /dev/zero >{0}/x 2>/dev/null || :"
FEW_PIDS = 'group=$(mktemp -d "$PIDS/tare-host-world-XXX"); echo {} >$group/pids.max; echo $$ >$group/cgroup.procs'
NOEXEC_TMP = "mount -t tmpfs -o noexec none /var/tmp; export TMPDIR=/var/tmp"
MOUNT_V1 = (
    "mount -t tmpfs cgroup HOLE; for name in HOLE; do mkdir HOLE/$name;"
    " mount -t cgroup -o $name cgroup HOLE/$name; done"
)
READ_ONLY_GROUPS = (
    "for group in /sys/fs/cgroup /sys/fs/cgroup/*/; do mount -o remount,bind,ro $group || :; done 2>/dev/null"
)


@dataclass(frozen=True, slots=True)
class World:
    """One odd world, and what a command must do in it."""

    name: str
    make: str
    command: str
    code: int
    says: str = ""  # a regular expression, of what standard output or standard error must have
    #: The command that is the fix, as the source has it, with HOLE for what tare fills in. Once it has been run in the
    #: same world, the command must end with 0.
    fix: str = ""
    slow: bool = False  # measures: it needs the image, and a host of its own
    v1: bool = False  # a world of hosts with cgroup v1


WORLDS = (
    # What of the kernel is shown.
    World("proc with subset=pid", "mount -t proc -o subset=pid proc /proc", CLEAN, 2, "fix: .*without subset=pid"),
    World("proc with hidepid=2", "mount -t proc -o hidepid=2 proc /proc", CLEAN, 0, "nothing of tare's is left"),
    World("no proc, reading", "umount -l /proc", REPORT, 0, REPORTED),
    World(
        "no proc, cleaning",
        "umount -l /proc",
        CLEAN,
        2,
        "error: .*/proc is not mounted",
        fix="mount -t proc proc /proc",
    ),
    World("no sys", "umount -l /sys", CLEAN, 0, "nothing of tare's is left"),
    World(
        "cpuinfo that is not UTF-8",
        "printf 'model name\\t: caf\\351 \\377\\n' >c; mount --bind c /proc/cpuinfo",
        "list platforms",
        0,
        "native",
    ),
    World("no dev", "mount -t tmpfs none /dev", REPORT, 0, REPORTED),
    World("no dev shm", "mount -t tmpfs -o mode=000 none /dev/shm", REPORT, 0, REPORTED),
    World("no etc", "mount -t tmpfs none /etc", REPORT, 0, REPORTED),
    # Who runs it, and with which rights.
    World("no passwd", "mount --bind /dev/null /etc/passwd", CLEAN, 0, "nothing of tare's is left"),
    World(
        "a user without account or HOME",
        f"unset HOME TARE_HOME; {AS_USER}",
        RUN,
        2,
        "error: user 54321 has no home folder",
    ),
    World("a user without an account", AS_USER, RUN, 2, "error: .*user 54321 has no account"),
    World(
        "root without capabilities", WITHOUT.format("all"), RUN, 2, "error: root lacks capabilities here: .*sys_admin"
    ),
    World(
        "root without sys_admin",
        WITHOUT.format("sys_admin"),
        RUN,
        2,
        "capabilities here: sys_admin\nfix: .*--privileged",
    ),
    World(
        "root of a user namespace",
        'set -- unshare --user --map-root-user "$@"',
        RUN,
        2,
        "user namespace that it did not make\nfix: ",
    ),
    World("no environment", 'set -- env -i TARE_HOME="$TARE_HOME" "$@"', CLEAN, 0, "nothing of tare's is left"),
    World("no HOME, reading", f"unset HOME; {AS_USER}", REPORT, 0, REPORTED),
    World("umask 777", "umask 777; rmdir home", CLEAN, 0, "nothing of tare's is left"),
    World("umask 777, a file", "umask 777", "report a.tare --html page.html", 0, ""),
    # Limits.
    World("few addresses", "ulimit -Sv 300000", REPORT, 2, r"only 292 MiB of addresses", fix="ulimit HOLE HOLE"),
    World("few addresses, a run", "ulimit -v 300000", RUN, 2, r"only 292 MiB of addresses \(ulimit -v\)"),
    World("little data", "ulimit -Sd 150000", REPORT, 2, r"only 146 MiB of data \(ulimit -d\)", fix="ulimit HOLE HOLE"),
    World("little data, a run", "ulimit -d 300000", RUN, 2, r"only 292 MiB of data \(ulimit -d\)"),
    World("little time, a run", "ulimit -t 3600", RUN, 2, r"only 3600 s of processor time \(ulimit -t\)"),
    World("few files", "ulimit -Sn 12", REPORT, 2, r"only 12 open files", fix="ulimit HOLE HOLE"),
    World("few files, a run", "ulimit -n 12", RUN, 2, r"only 12 open files \(ulimit -n\)"),
    World("enough files", "ulimit -n 64", REPORT, 0, REPORTED),
    World(
        "few processes",
        f'{AS_OTHER}; set -- prlimit --nproc=1 "$@"',
        REPORT,
        2,
        r"this user may have only 1 \(ulimit -u\)",
    ),
    World(
        "few pids",
        FEW_PIDS.format(4),
        REPORT,
        2,
        "only 4 processes and threads",
        fix="echo max > HOLE",
    ),
    World("small files", "ulimit -f 1", "report a.tare --html page.html", 2, "error: .*page.html.*[Ff]ile too large"),
    # Disks.
    World(
        "read-only control groups",
        READ_ONLY_GROUPS,
        RUN,
        2,
        "error: control groups are mounted read-only",
    ),
    World(
        "full home",
        "mount -t tmpfs -o size=64k,mode=700 none home; " + FULL.format("home"),
        RUN,
        2,
        "error: only 0.0 GiB are free",
    ),
    World(
        "read-only home",
        "mount -t tmpfs -o ro,mode=700 none home",
        CLEAN,
        2,
        "error: .*home cannot be written: its filesystem is mounted read-only",
    ),
    World("noexec tmp", NOEXEC_TMP, REPORT, 0, REPORTED),
    World("read-only tmp", "mount -t tmpfs -o ro none /var/tmp; export TMPDIR=/var/tmp", REPORT, 0, REPORTED),
    World("a tmp that is missing", "export TMPDIR=/nonesuch", REPORT, 0, REPORTED),
    World("a campaign on a read-only mount", "mount --bind -o ro . /mnt; cd /mnt", REPORT, 0, REPORTED),
    World("noexec home", "mount -t tmpfs -o noexec,mode=700 none home", CLEAN, 0, "nothing of tare's is left"),
    World(
        "full tmp",
        "mount -t tmpfs -o size=4k none /var/tmp; export TMPDIR=/var/tmp; " + FULL.format("/var/tmp"),
        REPORT,
        0,
        REPORTED,
    ),
    World(
        "no current folder",
        "mount --bind . /mnt; mkdir gone; cd gone; rmdir ../gone",
        "report /mnt/a.tare",
        0,
        REPORTED,
    ),
    World(
        "a full device",
        'set -- sh -c \'"$@" >/dev/full\' sh "$@"',
        EXPORT,
        5,
        "error: standard output is not whole: No space left",
    ),
    # Names and texts.
    World(
        "a folder with : , line feed and U+2028",
        'odd=$(printf "a:b,\\nc\\342\\200\\250d"); mkdir "$odd"; mv a.tare "$odd"; cd "$odd"',
        REPORT,
        0,
        REPORTED,
    ),
    World("a home with a colon", 'export TARE_HOME="$PWD/a:b"', RUN, 2, "error: .* has : in its path"),
    World(
        "a home with a line feed", 'export TARE_HOME="$PWD/$(printf "a\\nb")"', CLEAN, 0, "nothing of tare's is left"
    ),
    World("a home that is not UTF-8", 'export TARE_HOME="$PWD/$(printf "a\\377")"', CLEAN, 2, "error: .* is not UTF-8"),
    World(
        "a file with a BOM",
        "printf '\\357\\273\\277margin = 1\\n' >own.toml",
        "app check own.toml",
        2,
        "error: .*own.toml",
    ),
    # Locales, clocks and signals.
    World("Turkish", "export LC_ALL=tr_TR.UTF-8 LANG=tr_TR.UTF-8", LIST, 0, "native"),
    World("an unknown locale", "export LC_ALL=xx LANG=xx", REPORT, 0, REPORTED),
    World("an ASCII locale", "export LC_ALL=C PYTHONUTF8=0 PYTHONCOERCECLOCALE=0", REPORT, 0, REPORTED),
    World("a time zone that is none", "export TZ=No/Such", REPORT, 0, REPORTED),
    World(
        "a boot just now",
        'set -- unshare --time --boottime -100 --monotonic -100 "$@"',
        CLEAN,
        0,
        "nothing of tare's is left",
    ),
    World("SIGCHLD ignored", 'set -- env --ignore-signal=CHLD "$@"', CLEAN, 0, "nothing of tare's is left"),
    World("SIGPIPE ignored", 'set -- env --ignore-signal=PIPE sh -c \'"$@" | head -1\' sh "$@"', EXPORT, 0, "campaign"),
    World("all signals blocked", 'set -- env --block-signal "$@"', CLEAN, 0, "nothing of tare's is left"),
    # Streams and terminals.
    World(
        "a full device for messages",
        'set -- sh -c \'"$@" 2>/dev/full\' sh "$@"',
        "report none.tare",
        2,
    ),
    World("stdin closed", "exec <&-", REPORT, 0, REPORTED),
    World("stderr closed", "exec 2>&-", REPORT, 0, REPORTED),
    World("stdout closed", "exec >&-", REPORT, 5, "error: standard output is not whole: Bad file descriptor"),
    World("a terminal of one column", 'set -- script -qec "stty cols 1; $*" /dev/null', LIST, 0, ""),
    World("a terminal of 300 columns", 'set -- script -qec "stty cols 300; $*" /dev/null', REPORT, 0, REPORTED),
    World("an unknown terminal", "export TERM=nonesuch", REPORT, 0, REPORTED),
    World("no TERM, no color", "unset TERM; export NO_COLOR=1", REPORT, 0, REPORTED),
    World("a COLUMNS that is no number", "export COLUMNS=abc LINES=-1", REPORT, 0, REPORTED),
    # What is measured.
    World(
        "read-only control groups, followed",
        READ_ONLY_GROUPS,
        RUN,
        2,
        "error: control groups are mounted read-only",
        fix="for group in HOLE; do mount -o remount,bind,rw $group; done",
        slow=True,
    ),
    World(
        "a controller that is not mounted",
        "umount -l /sys/fs/cgroup/memory",
        RUN,
        2,
        "error: the cgroup controller memory is not mounted",
        fix="mount -t cgroup -o HOLE cgroup /sys/fs/cgroup/HOLE",
        slow=True,
        v1=True,
    ),
    World("SIGCHLD ignored, an instance", 'set -- env --ignore-signal=CHLD "$@"', DOCTOR, 0, "native", slow=True),
    World(
        "no control groups",
        "umount -R -l /sys/fs/cgroup; mount -t tmpfs none /sys/fs/cgroup",
        RUN,
        2,
        "error: no cgroup hierarchy is mounted",
        fix=MOUNT_V1,
        slow=True,
        v1=True,
    ),
    World(
        "no sys, a campaign",
        "umount -l /sys",
        RUN,
        2,
        "error: /sys is not mounted",
        fix="mount -t sysfs sysfs /sys",
        v1=True,
        slow=True,
    ),
    World("an empty PATH, an instance", "export PATH=", DOCTOR, 0, "native", slow=True),
    World("a PATH of the current folder, an instance", "export PATH=.::/nonesuch", DOCTOR, 0, "native", slow=True),
    World(
        "noexec tmp, a campaign",
        NOEXEC_TMP,
        RUN,
        0,
        "native",
        slow=True,
    ),
    World(
        "a dev null that is a file",
        "mount --rbind /dev /mnt; mount -t tmpfs none /dev;"
        " for name in full random tty urandom zero fd; do cp -a /mnt/$name /dev/; done; echo >/dev/null",
        RUN,
        2,
        "error: /dev/null is no device",
        fix="rm -f HOLE; mknod -m 666 HOLE c 1 3",
        slow=True,
    ),
    World(
        "proc of another process namespace",
        'set -- unshare --pid --fork "$@"',
        RUN,
        2,
        "error: /proc shows the processes of another namespace",
    ),
    World("root without net_bind_service", WITHOUT.format("net_bind_service"), RUN, 2, "lacks .*: net_bind_service"),
    World("hidepid=2, an instance", "mount -t proc -o hidepid=2 proc /proc", DOCTOR, 0, "native", slow=True),
    World("all signals blocked, an instance", 'set -- env --block-signal "$@"', DOCTOR, 0, "native", slow=True),
    World("umask 777, a campaign", "umask 777", RUN, 0, "native", slow=True),
    World("few pids, a campaign", FEW_PIDS.format(40), RUN, 2, "only 40 processes and threads", slow=True),
    World(
        "no network, a campaign",
        "ip link set lo down",
        RUN,
        0,
        "native",
        slow=True,
    ),
    World("all standard streams closed, a campaign", "exec <&- >&- 2>&-", RUN, 5, "", slow=True),
    World("a boot just now, a campaign", 'set -- unshare --time --boottime -100 "$@"', RUN, 0, "native", slow=True),
    World(
        "VPN routes that cover everything",
        "ip link add vpn type bridge; ip address add 10.9.8.7/24 dev vpn; ip link set vpn up;"
        "ip route add 0.0.0.0/1 dev vpn; ip route add 128.0.0.0/1 dev vpn",
        RUN,
        0,
        "native",
        slow=True,
    ),
)

#: Fixes that are commands, as the source has them, and why no world runs them.
NOT_RUN = {
    "apt-get update": "downloads",
    "chmod o-w HOLE": "tests/workloads/test_own_application.py runs it",
    "echo 1 > HOLE": "a setting that only fails where /proc/sys is read-only",
    "echo HOLE > HOLE": "a setting of the whole host's kernel",
    "modprobe loop": "the tests' kernels have no modules",
    "mount -t cgroup2 cgroup2 HOLE": "takes a host whose controllers are not held by cgroup v1",
    "mount -t debugfs debugfs HOLE": "takes a kernel with function counters: the lab's tests",
    "mount -t tracefs tracefs HOLE": "takes a kernel with function counters: the lab's tests",
    "sysctl kernel.ftrace_enabled=1": "a setting of the whole host's kernel",
    "systemctl start containerd": "takes systemd: `make host-test`",
    "systemctl start docker": "takes systemd: `make host-test`",
    "systemctl stop HOLE": "takes systemd: `make host-test`",
    "umount -l HOLE": "a mount that no unmounting removes cannot be made on purpose",
    "virsh -c HOLE destroy HOLE": "takes a libvirtd that fails: tests/platforms",
}
