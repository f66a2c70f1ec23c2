# Run by the playbook as `sh -c PROBE probe FOLDER HOME PYTHON CLIENT`: what this host has, a fact a line. Nothing is made or changed.
# It needs no Python, since whether there is one is what it looks for.
folder=$1 home=$2 named=$3
client=${4:-}
say() { printf 'tare-fleet %s=%s\n' "$1" "$2"; }
say uid "$(id -u)"
say machine "$(uname -m)"
say name "$(uname -n)"
say time "$(date +%s)"
say client "$client"
place=$folder
while [ ! -d "$place" ] && [ "$place" != / ]; do place=$(dirname "$place"); done
say free_kib "$(df -Pk "$place" | awk 'NR == 2 { print $4 }')"
old=
for python in "$named" python3 python3.14 python3.13 python3.12 python3.11; do
    program=$(command -v "$python" 2>/dev/null) || continue
    version=$("$program" -I -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
    if "$program" -I -c 'import sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
        say python "$program"
        say version "$version"
        old=
        break
    fi
    old=${old:-$version}
done
[ -n "${version:-}" ] || say lack "no Python is installed: tare takes 3.11 or newer"
[ -z "$old" ] || say lack "its Python is $old: tare takes 3.11 or newer, with its module venv"
[ "$(id -u)" = 0 ] || say lack "its user is not root: set ansible_become in the inventory"
say has "$(cd "$folder" 2>/dev/null && echo packages-* tare-*)"
say images "$(cd "$home/images" 2>/dev/null && echo base-*)"
