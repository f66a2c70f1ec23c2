#!/bin/sh
# In a lab: a campaign of one block with a black box, which must come up and echo datagrams; nothing of it stays.
#   black_box.sh PLATFORM
set -eu
tare run -p "$1" -w startup -w udp-rtt --blocks 1 -o /tmp/box.tare
tare export /tmp/box.tare --format csv -o /tmp/box.csv
grep -q "$1.*answer" /tmp/box.csv
grep -q "$1.*rate" /tmp/box.csv
tare clean --dry-run | grep "nothing of tare's is left"
