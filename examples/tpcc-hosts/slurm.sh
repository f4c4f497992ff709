#!/bin/sh
#SBATCH --job-name=tpcc
#SBATCH --ntasks-per-node=1
#SBATCH --exclusive
# sbatch --nodes=4 --export=ALL,PROPS=/shared/props.conf examples/tpcc-hosts/slurm.sh
# from the folder that holds examples, which must be shared by all nodes.
set -eu
here="${SLURM_SUBMIT_DIR:?}/examples/tpcc-hosts"
export HOSTS="${SLURM_JOB_NUM_NODES:?}" SEED="${SEED:-1}" OUT="$PWD/tpcc-${SLURM_JOB_ID:?}/parts"
START=$(($(date +%s) + 60))
export START
# Exit status 1 is a failed check of a part; only the sum's counts.
srun --kill-on-bad-exit=0 sh -c "INDEX=\$((SLURM_PROCID + 1)) sh '$here/worker.sh' || [ \$? = 1 ]"
exec "${SAIGA:-saiga}" bench tpcc merge "$OUT" --out "tpcc-$SLURM_JOB_ID/result"
