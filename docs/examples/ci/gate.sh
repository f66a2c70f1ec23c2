#!/bin/sh
# A gate for a pipeline: weigh this change, compare it with the campaign of the main branch, end with tare's exit code.
#   BASELINE  the campaign of the main branch; where it is not there, this campaign becomes it
#   NEW       where the campaign of this change goes; one that is there already is not measured again
#   LIMITS    thresholds (TOML); without it: each workload's margin
#   SOURCE    a file of the repository at which code scanning shows regressions; without it: LIMITS, else no SARIF
#   OPEN      how to end where it cannot tell: 3 (an exit code of its own), pass or fail
#   MEASURE   the options of `tare run`
set -eu
baseline=${BASELINE:-main.tare} new=${NEW:-new.tare} limits=${LIMITS:-} source=${SOURCE:-${LIMITS:-}} open=${OPEN:-3}
measure=${MEASURE:--p runc -w primes -w startup --time 10m}

# A change may bring files of these names: links to what this user can read or write, whose contents would be shown or replaced.
rm -f diff.md diff.xml diff.sarif

set -f # no name of a file of the change becomes a word
# shellcheck disable=SC2086 (they are words)
[ -e "$new" ] || tare run $measure -o "$new"
set +f

if [ ! -e "$baseline" ]; then
    mv "$new" "$baseline"
    echo "no baseline yet: this campaign is the first"
    exit 0
fi

set -- "$baseline" "$new" --markdown diff.md --junit diff.xml --open "$open" --force
[ -z "$limits" ] || set -- "$@" --thresholds "$limits"
[ -z "$source" ] || set -- "$@" --sarif diff.sarif --source "$source"
[ -z "${GITHUB_ACTIONS:-}" ] || set -- "$@" --annotations
end=0
tare diff "$@" || end=$?
if [ -n "${GITHUB_STEP_SUMMARY:-}" ] && [ -e diff.md ]; then cat diff.md >>"$GITHUB_STEP_SUMMARY"; fi
exit "$end"
