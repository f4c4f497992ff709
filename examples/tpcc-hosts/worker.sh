#!/bin/sh
# One load host's part of a TPC-C run. Ansible, Slurm and Kubernetes start it once on each host.
#
# In the environment:
#   PROPS   props file, the same on every host
#   INDEX   which host this is, from 1
#   HOSTS   how many hosts there are
#   SEED    the same number on every host
#   START   when all begin, in seconds since 1970; every host's clock must be right (NTP)
#   OUT     folder for worker-INDEX.json; hosts may share it
#   FLAGS   further options of `saiga bench tpcc run`, the same on every host (may be empty)
#   SAIGA   the program (default: saiga)
set -eu
# shellcheck disable=SC2086 # FLAGS is several words.
exec "${SAIGA:-saiga}" bench tpcc run --props "$PROPS" --worker "$INDEX/$HOSTS" \
    --seed "$SEED" --start-at "@$START" --out "$OUT" ${FLAGS:-}
