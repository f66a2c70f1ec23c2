# The far side of the platform ssh: run as root by the remote host's own /bin/sh, with tools that every Linux has.
#   look KEY                what this host is, and whether it has the image KEY
#   receive KEY SHA256      takes the image's tar from stdin, and unpacks it once it is known to be whole
#   sweep                   removes what instances left that were killed here
#   launch NAME CPUS BYTES PORT LIMITS    one instance, in a scope of systemd's where that runs; stdin and stdout become the agent's
#                           PORT is "client" for what loads another machine's instances: there is one at a time
set -eu
umask 022
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin
export LC_ALL=C
home=/var/lib/tare/remote
groups=/sys/fs/cgroup

# The first folder on the way to the images that somebody else than root can put files into; nothing where none is.
open_to_others() {
    for folder in "${home%/*}" "$home"; do
        [ -e "$folder" ] || [ -L "$folder" ] || continue
        [ -n "$(find "$folder" -maxdepth 0 -type d -user 0 ! -perm -020 ! -perm -002)" ] || { echo "$folder"; return; }
    done
}

# Only root gets in: what guests leave there, setuid programs too, is within nobody else's reach.
closed() {
    folder=$(open_to_others)
    if [ -n "$folder" ]; then
        echo "tare: $folder is open to others" >&2
        exit 66
    fi
    (umask 077 && mkdir -p "$home/work")
    chmod 700 "$home" "$home/work"
}

# Where systemd runs the control groups are its own: a scope of it has the limit, and nobody writes beside it.
by_systemd() { [ -d /run/systemd/system ] && command -v systemd-run >/dev/null; }

# Where memory can be limited, and by which file or property; nothing where it cannot.
memory_limits() {
    if by_systemd; then
        echo systemd MemoryMax
    elif [ -w "$groups/memory/memory.limit_in_bytes" ]; then
        echo "$groups/memory" memory.limit_in_bytes
    elif grep -qw memory "$groups/cgroup.controllers" 2>/dev/null &&
        { grep -qw memory "$groups/cgroup.subtree_control" || echo +memory >"$groups/cgroup.subtree_control"; } 2>/dev/null; then
        echo "$groups" memory.max
    fi
}

look() {
    missing=
    for tool in chroot flock mount sha256sum tar taskset unshare; do
        command -v "$tool" >/dev/null || missing="$missing $tool"
    done
    near=$home
    while [ ! -d "$near" ]; do near=$(dirname "$near"); done
    echo tare-remote
    echo "uid=$(id -u)"
    echo "arch=$(uname -m)"
    echo "kernel=$(uname -r)"
    echo "name=$(uname -n)"
    echo "cpus=$(sed -n 's/^Cpus_allowed_list:[[:space:]]*//p' /proc/self/status)"
    echo "model=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -n 1)"
    echo "memory_kib=$(sed -n 's/^MemTotal: *\([0-9]*\) kB/\1/p' /proc/meminfo)"
    echo "free_kib=$(df -Pk "$near" | sed -n '2p' | tr -s ' ' | cut -d ' ' -f 4)"
    echo "missing=${missing# }"
    echo "limits=$(memory_limits)"
    echo "unsafe=$(open_to_others)"
    set -- "$1" ${SSH_CONNECTION:-}
    echo "address=${4:-}"
    echo "client=${2:-}"
    if [ -d "$home/$1" ]; then echo image=there; else echo image=; fi
}

receive() {
    closed
    part=$home/new-$1.$$
    mkdir -p "$part/root"
    trap 'rm -rf "$part"' EXIT
    cat >"$part/root.tar"
    set -- "$1" "$2" $(sha256sum "$part/root.tar")
    if [ "$3" != "$2" ]; then
        echo "tare: the image arrived damaged: $3" >&2
        exit 65
    fi
    tar -C "$part/root" --numeric-owner -xf "$part/root.tar"
    rm "$part/root.tar"
    cp "$0" "$part/remote.sh"
    # Another may have been faster: one is as good as the other.
    mv -T "$part" "$home/$1" 2>/dev/null || [ -d "$home/$1" ]
    rm -f "$0"
}

# The folder last: what is killed before that is done is found by it, and swept later.
remove() {
    for folder in "$groups/memory/tare-remote-$1" "$groups/tare-remote-$1"; do
        tries=0
        # A group is busy until the last of its processes is gone.
        while [ -d "$folder" ] && ! rmdir "$folder" 2>/dev/null && [ "$tries" -lt 50 ]; do
            sleep 0.1
            tries=$((tries + 1))
        done
        [ ! -d "$folder" ] || return 0
    done
    rm -rf "$home/work/$1" 2>/dev/null || {
        # What a guest made immutable.
        chattr -R -f -i -a "$home/work/$1" 2>/dev/null || :
        rm -rf "$home/work/$1"
    }
}

sweep() {
    for folder in "$home"/work/*; do
        # One that lives holds its lock; one that is just being made has no lock yet.
        [ -d "$folder" ] && [ -n "$(find "$folder" -maxdepth 0 -mmin +1)" ] || continue
        # One that cannot be removed keeps the others from nothing; why is on stderr.
        if flock -n "$folder/lock" true; then
            # What outlived its own in a scope: systemd ends it.
            if by_systemd; then systemctl stop "tare-remote-${folder##*/}.scope" 2>/dev/null || :; fi
            remove "${folder##*/}" || :
        fi
    done
    for folder in "$home"/new-*; do
        if [ -n "$(find "$folder" -maxdepth 0 -mmin +60 2>/dev/null)" ]; then rm -rf "$folder"; fi
    done
}

launch() {
    if by_systemd; then
        # What follows, to the last process, is in the scope, which goes with that. Its input and output are these.
        set -- "--unit=tare-remote-$1.scope" "--property=$(memory_limits | cut -d ' ' -f 2)=$3" /bin/sh "$0" limited "$@"
        # Its description, which the journal keeps, would else be all these words.
        set -- "--description=an instance of tare's" "$@"
        exec systemd-run --quiet --scope --collect --property=TimeoutStopSec=5s --property=TasksMax=infinity "$@"
    fi
    limited "$@"
}

# Waits for nobody: a campaign that lost its connection ends its own former session here, and no other campaign's.
alone() {
    exec 8>>"$home/client"
    if ! flock -n 8; then
        read -r of pid <"$home/client" || :
        [ "${of:-}" != "$1" ] || kill -- "-$pid" 2>/dev/null || :
        if [ "${of:-}" != "$1" ] || ! flock -w 10 8; then
            echo "tare: another campaign loads from this machine" >&2
            exit 67
        fi
    fi
    echo "$1 $$" >"$home/client"
}

limited() {
    closed
    name=$1 cpus=$2 bytes=$3 port=$4 of_agent=$5
    if [ "$port" = client ]; then
        alone "${name%c*}"
        port=-
    fi
    export work="$home/work/$name"
    mkdir -p "$work/upper" "$work/work" "$work/root" "$work/data"
    exec 9>"$work/lock"
    flock -n 9
    trap 'remove "$name"' EXIT
    trap 'exit 1' HUP INT TERM
    taskset -pc "$cpus" $$ >/dev/null
    limits=$(memory_limits)
    procs=/dev/null
    if [ -n "$limits" ] && ! by_systemd; then
        group=${limits% *}/tare-remote-$name
        mkdir "$group"
        echo "$bytes" >"$group/${limits#* }"
        procs=$group/cgroup.procs
    fi
    set -- serve --limits "$of_agent"
    client=${SSH_CONNECTION:-}
    client=${client%% *}
    case $port.$client in
    -.* | *. | *:*) ;;
    *) set -- "$@" --beacon "$client:$port" ;;
    esac
    # Its mounts and all of its processes go with the first of them, whatever ends that.
    unshare --mount --pid --fork --kill-child --propagation private /bin/sh "$0" inside "$procs" "$@" && code=0 || code=$?
    exit "$code"
}

inside() {
    echo 0 >"$1"
    shift
    mount -t overlay overlay -o "lowerdir=${0%/*}/root,upperdir=$work/upper,workdir=$work/work" "$work/root"
    mount -t proc proc "$work/root/proc"
    mount -t sysfs -o ro sysfs "$work/root/sys"
    mount --bind /dev "$work/root/dev"
    mount --bind "$work/data" "$work/root/data"
    echo tare-ready
    # The word to start: what came before it is not the start's.
    read -r word || exit 0
    [ "$word" = go ]
    exec chroot "$work/root" /usr/local/bin/tare-agent "$@" 8>&- 9>&-
}

case $1 in
look | receive | sweep | launch | limited | inside) "$@" ;;
*) exit 64 ;;
esac
