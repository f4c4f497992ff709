#!/bin/bash
# Faults that are planted on a machine of two NUMA nodes (CPUs 0 and 1, CPUs 2 and 3), and what
# `saiga diagnose` says of each.
set -u
export PATH=/bin HOME=/

# The server runs below /srv, whose files are on a disk: the pages of an initial root file system
# stay on their node.
server=
serve() { # CPUS OPTION...
    local cpus=$1
    shift
    taskset -c "$cpus" chroot /srv redis-server --port 6379 --protected-mode no --save "" \
        --enable-debug-command yes --dir /tmp "$@" >/srv/tmp/log &
    server=$!
    until redis-cli ping 2>/dev/null | grep -q PONG; do
        if ! kill -0 $server; then
            cat /srv/tmp/log
            exit 1
        fi
    done
}
# A benchmark on these CPUs until the fault ends.
load() { # CPUS OPTION...
    local cpus=$1
    shift
    taskset -c "$cpus" redis-benchmark -l -q "$@" >/dev/null 2>&1 &
}
# A light load until the fault ends.
ask() { (while sleep 0.01; do echo "GET key:1"; done) | redis-cli >/dev/null & }
hog() { taskset -c "$1" sh -c 'while :; do :; done' & }
# Reads the server's files into memory of the node of a CPU.
read_files() { # CPU
    sync
    echo 3 >/proc/sys/vm/drop_caches
    taskset -c "$1" cat /srv/bin/redis-server /srv/lib/*.so* >/dev/null
}
# Says what is wrong, and ends what the fault has started.
diagnose() { # NAME
    local status=0 jobs
    echo "@@ $1"
    saiga diagnose --pid "$server" --for 6s --json 2>/dev/null || status=$?
    echo "@@ status $status"
    jobs=$(jobs -p)
    kill $jobs
    # They were killed.
    wait $jobs 2>/dev/null || true
}
# The drive with this serial number.
drive() {
    local namespace
    for namespace in /sys/block/nvme*; do
        if grep -q "^$1 *$" "$namespace/device/serial"; then echo "/dev/${namespace##*/}"; fi
    done
}
await() {
    for _ in $(seq 300); do
        if "$@" 2>/dev/null; then return; fi
        sleep 0.1
    done
    return 1
}
are_here() { [ -b "$(drive DATA)" ] && [ -b "$(drive SWAP)" ] && [ -b "$(drive SLOW)" ]; }

remote_memory() {
    read_files 2
    serve 0
    redis-cli debug populate 400000 key 100 >/dev/null
    taskset -apc 2,3 "$server" >/dev/null
    ask
    diagnose "remote memory"
}
remote_code() {
    read_files 0
    serve 2,3
    redis-cli debug populate 400000 key 100 >/dev/null
    ask
    diagnose "remote code"
}
# One CPU handles the packets of all, as with a network device that has one queue. Without offloads,
# a value of 16 KiB is eleven packets, so that they cost more than the commands.
hog_on_the_interrupt_cpu() {
    hog 3
    serve 0
    load 1 -t set -d 16384 -c 8
    load 2 -t set -d 16384 -c 8
    diagnose "hog on the interrupt CPU"
}
slow_fsync() {
    serve 0 --appendonly yes --appendfsync always --dir /slow
    load 1 -t set -c 8
    diagnose "slow fsync"
}
swap() {
    serve 0
    mkdir /sys/fs/cgroup/planted
    echo "$server" >/sys/fs/cgroup/planted/cgroup.procs
    echo 12M >/sys/fs/cgroup/planted/memory.max
    redis-benchmark -q -t set -r 100000 -n 200000 -d 100 -P 32 >/dev/null
    load 1 -t get -r 100000 -c 4
    diagnose "swap"
    rmdir /sys/fs/cgroup/planted
}

set -e
# The kernel's messages would be in the middle of the verdicts.
dmesg -n 1
ip link set lo up mtu 1500
ethtool -K lo tso off gso off gro off
mount -t cgroup2 none /sys/fs/cgroup
echo +memory >/sys/fs/cgroup/cgroup.subtree_control
for module in libcrc32c xfs inet_diag tcp_diag; do insmod /lib/modules/$module.ko; done
await are_here
mkfs.xfs -q "$(drive DATA)"
mkfs.xfs -q "$(drive SLOW)"
mount -t xfs "$(drive DATA)" /srv
mkdir /srv/{dev,proc,slow,tmp}
mount -t xfs "$(drive SLOW)" /srv/slow
mount -t devtmpfs devtmpfs /srv/dev
mount -t proc proc /srv/proc
cp -a /bin /lib /lib64 /srv
# The kernel would bring the memory to the CPUs.
echo 0 >/proc/sys/kernel/numa_balancing
set +e

remote_memory
remote_code
slow_fsync
mkswap "$(drive SWAP)" >/dev/null
swapon "$(drive SWAP)"
swap
swapoff "$(drive SWAP)"
echo 8 >/sys/class/net/lo/queues/rx-0/rps_cpus
hog_on_the_interrupt_cpu
