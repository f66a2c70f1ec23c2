#!/bin/sh
# Runs in the build root of a kernel, which has the source's archive in /usr/src: kernel.sh STEP COMPILER [JOBS].
# The tree is built in place, so that all paths in the compiler's notes are relative to it.
set -eu
step=$1 compiler=$2
export LC_ALL=C KBUILD_BUILD_USER=tare KBUILD_BUILD_HOST=lab
cd /usr/src

build() { make -C linux ARCH=x86_64 CC="$compiler" HOSTCC="$compiler" "$@"; }

case $step in
configure)
    mkdir linux
    tar -xf linux-source-*.tar.xz -C linux --strip-components=1
    rm -f linux-source-*.tar.xz
    if [ -e /base.config ]; then cp /base.config linux/.config; else build -s tinyconfig; fi
    cat /wanted.config >>linux/.config
    build -s olddefconfig
    ;;
compile)
    build -j "$3" bzImage
    ;;
esac
