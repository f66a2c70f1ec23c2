#!/bin/sh
# Builds gVisor's runsc at a pinned version into TARE_HOME/bin, unless it is there. Debian's runsc is of 2022.
set -eu
# Newer than the releases whose network stack crashed under TCP load when built with Go 1.26 (docs/platforms.md).
version=v0.0.0-20260905035102-160fafc42237
home=${TARE_HOME:-/var/lib/tare}
target=$home/bin/runsc

if [ -x "$target" ] && "$target" --version 2>/dev/null | grep -q "$version"; then
    echo "gVisor: $version is there"
    exit 0
fi
PATH=$PATH:/usr/local/go/bin
command -v go >/dev/null || { echo "error: go is not installed" >&2; echo "fix: make packages" >&2; exit 2; }
echo "gVisor: building $version (about three minutes the first time)"
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
GOBIN=$place CGO_ENABLED=0 GOFLAGS=-mod=mod GOTOOLCHAIN=${GOTOOLCHAIN:-auto} go install \
    -ldflags="-s -w -X gvisor.dev/gvisor/runsc/version.version=$version" "gvisor.dev/gvisor/runsc@$version"
mkdir -p "$home/bin"
install -m 755 "$place/runsc" "$target.new"
mv "$target.new" "$target"
