#!/bin/sh
# A stock host's tare from a wheel, by docs/install.md alone and without a network: what is asked of it is printed.
# Its files are in FOLDER: the wheel, the packages that pip needs (wheels.tar), the image (image.tar.zst).
#   wheel.sh FOLDER
set -eu
folder=$1
# Of the lab's own tare nothing is left on the way: neither its code nor its images. gVisor is what a user has on PATH.
unset PYTHONPATH PYTHONDONTWRITEBYTECODE TARE_AGENT TARE_HOME TARE_LAB
cp /payload/home/bin/runsc* /usr/local/bin/
rm -rf /var/lib/tare /usr/local/bin/tare
export COLUMNS=150 HOME=/root
work=/root/first
mkdir -p "$work/wheels"
tar -C "$work/wheels" -xf "$folder/wheels.tar"
# Compiled when they are first needed: all of scipy takes minutes by emulation.
export PIP_NO_COMPILE=1 PIP_NO_INDEX=1 PIP_FIND_LINKS=$work/wheels
cd "$work"

run() {
    printf '\n$ %s\n' "$*"
    began=$(date +%s)
    "$@" </dev/null
    printf '[%s s]\n' "$(($(date +%s) - began))"
}

run python3 -m venv tare
run tare/bin/pip install --quiet "$folder"/tare_bench-*.whl
PATH=$work/tare/bin:$PATH
run tare --version
run tare setup --dry-run
run tare image import "$folder/image.tar.zst" --sha256 "$(sha256sum "$folder/image.tar.zst" | cut -d ' ' -f 1)"
run tare doctor native docker podman lxc gvisor
run tare run -p docker -p podman -p lxc -p gvisor -w primes -w startup --blocks 2 -o first.tare
run tare report first.tare
tare report first.tare --json >first.json
run tare clean
python3 - first.json <<'END'
import json, sys
report = json.load(open(sys.argv[1]))
names = [row["name"] for row in report["platforms"]]
print(f"{len(names)} platforms; left out: {len(report['left_out'])}; failures: {len(report['failures'])}", file=sys.stderr)
sys.exit(not (len(names) == 5 and not report["left_out"] and not report["failures"]))
END
