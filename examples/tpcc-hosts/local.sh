#!/bin/sh
# Two workers on this host, then the merge: the core of all the other ways, to try it out.
# Usage: local.sh PROPS OUT [SECONDS until the start]
set -eu
here=$(dirname "$0")
export PROPS="$1" HOSTS=2 SEED="${SEED:-1}" OUT="$2/parts"
START=$(($(date +%s) + ${3:-10}))
export START
pids=
for INDEX in 1 2; do
    INDEX=$INDEX sh "$here/worker.sh" &
    pids="$pids $!"
done
for pid in $pids; do
    # 1: a check fails on this part; the sum is what counts.
    wait "$pid" || [ $? = 1 ] || exit 2
done
exec "${SAIGA:-saiga}" bench tpcc merge "$OUT" --out "$2/result"
