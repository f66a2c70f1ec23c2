#!/bin/sh
# Installs the Debian packages that are missing, and nothing else. Starts no service. Quick when all is there.
set -eu

missing=""
need() { # PACKAGE PROGRAM: install the package unless the program is on PATH
    command -v "$2" >/dev/null 2>&1 || [ -x "/usr/sbin/$2" ] || missing="$missing $1"
}

need mmdebstrap mmdebstrap
need docker.io dockerd
need runc runc
need iptables iptables
need iproute2 ip
need e2fsprogs mkfs.ext4
need gcc gcc
need util-linux nsenter
need ca-certificates update-ca-certificates
[ -e /usr/include/stdlib.h ] || missing="$missing libc6-dev"
python3 -c 'import ensurepip, venv' >/dev/null 2>&1 || missing="$missing python3-venv"
# Debian 12's own cargo is of 2022; cargo-web is kept current for its browsers.
command -v cargo >/dev/null 2>&1 || missing="$missing cargo-web rustc-web"

backports=""
if ! command -v go >/dev/null 2>&1 && [ ! -x /usr/local/go/bin/go ]; then
    # gVisor needs a Go that can fetch its own toolchain (1.21 or later); Debian 12's is 1.19, its backports have one.
    backports="golang-go"
fi

[ -n "$missing$backports" ] || { echo "packages: all there"; exit 0; }
[ "$(id -u)" = 0 ] || { echo "error: packages are missing:$missing $backports" >&2; echo "fix: run make as root" >&2; exit 2; }

# Installing is not starting: a daemon that apt starts would be ours to stop.
policy=/usr/sbin/policy-rc.d
if [ ! -e "$policy" ]; then
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap 'rm -f "$policy"' EXIT
fi
export DEBIAN_FRONTEND=noninteractive

echo "packages: installing$missing $backports"
apt-get update -q >/dev/null || { echo "error: apt-get update fails" >&2; echo "fix: see that Debian's archive is reachable" >&2; exit 2; }
# shellcheck disable=SC2086 # a list of words
[ -z "$missing" ] || apt-get install -y -q --no-install-recommends $missing >/dev/null

if [ -n "$backports" ]; then
    . /etc/os-release
    suite="${VERSION_CODENAME:-bookworm}-backports"
    if ! apt-cache policy | grep -q "n=$suite"; then
        # The same archive that this host uses already.
        uri=$(awk '/^URIs:/ {print $2; exit}' /etc/apt/sources.list.d/debian.sources 2>/dev/null ||
            awk '$1 == "deb" {print $2; exit}' /etc/apt/sources.list)
        printf 'Types: deb\nURIs: %s\nSuites: %s\nComponents: main\nSigned-By: /usr/share/keyrings/debian-archive-keyring.gpg\n' \
            "$uri" "$suite" >/etc/apt/sources.list.d/tare-backports.sources
        apt-get update -q >/dev/null
    fi
    apt-get install -y -q --no-install-recommends -t "$suite" $backports >/dev/null
fi
