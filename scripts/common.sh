# Read by the other scripts: where things are, and how they speak.
# shellcheck shell=bash
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
TARE_HOME=${TARE_HOME:-/var/lib/tare}
# Root's PATH has no sbin after a plain `su`, and rustup and Go put themselves where only a login shell looks.
PATH=$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/local/go/bin:${CARGO_HOME:-$HOME/.cargo}/bin
export PATH TARE_HOME

step() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }

# die WHAT FIX: one line, exit code 2
die() {
    printf '%s: %s (fix: %s)\n' "$(basename "$0")" "$1" "$2" >&2
    exit 2
}

have() { command -v "$1" >/dev/null 2>&1; }

# at_least 1.21 1.9: whether the first version is the second or newer
at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

# TARE_HOME for its owner alone, before anything else makes it; tare itself refuses one that is not
make_home() { (umask 077 && mkdir -p "$TARE_HOME"); }

# quietly LOG COMMAND...: run it with its output in a log; show the log's end when it fails
quietly() {
    local log=$1
    shift
    mkdir -p "$(dirname "$log")"
    if ! "$@" >"$log" 2>&1; then
        tail -n 15 "$log" >&2
        return 1
    fi
}
