#!/bin/bash
# `saiga tune` on a machine of four nodes with a network device of eight queues, an NVMe drive and a
# disk whose interrupts the kernel places. The kernel's command line says which boot this is.
set -u
export PATH=/bin HOME=/root
cd /root || exit

# Runs a command; shows its name, its output and its exit status.
show() {
    local name=$1 status=0
    shift
    echo "@@ $name"
    "$@" 2>&1 || status=$?
    echo "@@ status $status"
}
tune() { saiga tune "$@"; }
# Applies plan.toml and keeps the ID.
apply() {
    local status=0
    tune apply plan.toml "$@" >applied 2>&1 || status=$?
    cat applied
    id=$(sed -n 's/^applied as //p' applied)
    return $status
}
newest() { tune history 2>/dev/null | tail -n 1; }

nic_irqs() { ls /sys/class/net/eth0/device/../msi_irqs | sort -n; }
# The affinities of the network device's interrupts, in the order of their numbers.
nic() {
    local irq
    for irq in $(nic_irqs); do cat "/proc/irq/$irq/smp_affinity_list"; done | paste -sd ' ' -
}
queues() { ethtool -l eth0 | sed -n '/Current/,$s/^Combined:[^0-9]*//p'; }
# The affinity of each interrupt with the name of its handler: another boot may give other numbers.
affinities() {
    local it
    for it in /proc/irq/[0-9]*; do
        echo "$(cd "$it" && echo */) $(cat "$it/smp_affinity_list" 2>&1)"
    done | sort
}
# Every value that a plan of this script may move.
values() {
    local file
    affinities
    for file in /sys/class/net/eth0/queues/*/[rx]ps_cpus \
        /sys/block/nvme0n1/queue/{scheduler,nr_requests,read_ahead_kb} /proc/sys/vm/swappiness \
        /proc/sys/vm/dirty_{ratio,bytes} /proc/sys/kernel/numa_balancing \
        /sys/kernel/mm/transparent_hugepage/enabled; do
        echo "$file $(cat "$file" 2>&1)"
    done
    ethtool -l eth0
    ethtool -x eth0
}
saiga_files() {
    find /etc /lib/systemd -name '*saiga*' | sort
}
# The interrupt with this handler.
irq_of() {
    local it
    for it in /proc/irq/*/$1; do it=${it%/*}; echo "${it##*/}"; done
}
# Runs a command until it succeeds.
await() {
    for _ in $(seq 600); do
        if "$@" 2>/dev/null; then return; fi
        sleep 0.1
    done
    return 1
}
# Whether the newest plan has this state.
is_newest() {
    case $(newest) in *"  $1") ;; *) return 1 ;; esac
}
has_ended() { ! grep -q '^State:' "/proc/$1/status" || grep -q '^State:.*Z' "/proc/$1/status"; }
differs() { [ "$(cat "$1")" != "$2" ]; }
is_after() { [ "$(date +%s)" -ge "$1" ]; }
# The PID of the process that watches a plan. On many CPUs, a program for each process takes long.
watcher() {
    local it words
    for it in /proc/[0-9]*; do
        mapfile -d '' -t words <"$it/cmdline" || continue
        case "${words[*]}" in *"tune watch $1"*) echo "${it##*/}" ;; esac
    done 2>/dev/null
}
by_hand() {
    local irq
    for irq in $(nic_irqs); do echo 6 >"/proc/irq/$irq/smp_affinity_list"; done
    echo 40 >/sys/class/net/eth0/queues/tx-1/xps_cpus
}
PLACE=(--interrupt-cores 4)

first() {
    local place xps end_s watch server nvme disk own
    place=/proc/irq/$(nic_irqs | head -n 1)/smp_affinity_list
    own=$(cat "$place")
    show topology saiga topology
    values >before

    # An interrupt of the NVMe drive that the plan knows as the kernel's, and one that the kernel
    # refuses only when it is written.
    nvme=$(irq_of nvme0q1)
    disk=$(irq_of "virtio?-req.0")
    show "plan placed" tune plan "${PLACE[@]}" --set "irq.affinity@$nvme=0" \
        --set "irq.affinity@$disk=0"
    show "apply placed" apply --confirm-within 300s
    show "nic placed" nic
    show "confirm placed" tune confirm "$id"
    show "verify placed" tune verify "$id"
    show "plan again" tune plan "${PLACE[@]}" --set "irq.affinity@$disk=0" --out again.toml
    show "undo placed" tune undo "$id"
    values >after
    show "diff placed" diff before after

    # What the driver does without a plan, to affinities that a person set.
    by_hand
    show "nic by hand" nic
    ethtool -L eth0 combined 4
    show "nic reset" nic
    ethtool -L eth0 combined 8
    by_hand
    values >by-hand
    show "plan queues" tune plan "${PLACE[@]}" --queues 4
    show "apply queues" apply --confirm-within 300s
    show "queues" queues
    show "nic queues" nic
    show "confirm queues" tune confirm "$id"
    show "verify queues" tune verify "$id"
    show "undo queues" tune undo "$id"
    values >after
    show "diff queues" diff by-hand after

    # Nobody confirms.
    show "plan timer" tune plan "${PLACE[@]}" --queues 4
    show "apply timer" apply --confirm-within 2s
    show "wait timer" await is_newest undone
    values >after
    show "diff timer" diff by-hand after

    # The same, and every process of the terminal is killed as soon as the ID is there.
    rm applied
    setsid saiga tune apply plan.toml --confirm-within 2s >applied 2>&1 &
    await grep -q applied applied
    kill -9 -- -$! 2>/dev/null
    show "wait killed" await is_newest undone
    values >after
    show "diff killed" diff by-hand after

    # Killed while it makes the steps.
    setsid saiga tune apply plan.toml --confirm-within 2s >/dev/null 2>&1 &
    await differs "$place" 6
    kill -9 -- -$! 2>/dev/null
    show "wait half" await is_newest undone
    values >after
    show "diff half" diff by-hand after

    # A value that the driver resets cannot be put back at first: the process tries again.
    xps=/sys/class/net/eth0/queues/tx-1/xps_cpus
    mount --bind $xps $xps
    mount -o remount,bind,ro $xps
    show "apply again" apply --confirm-within 2s
    show "wait refused" await is_newest "partly undone: repeat the undo"
    umount $xps
    show "wait again" await is_newest undone
    values >after
    show "diff again" diff by-hand after

    # A confirmed plan is there after its time.
    show "apply confirmed" apply --confirm-within 20s
    end_s=$(($(date +%s) + 21))
    watch=$(watcher "$id")
    show "confirm confirmed" tune confirm "$id"
    show "watched" test -n "$watch"
    show "watch ends" await has_ended "$watch"
    await is_after $end_s
    show "verify confirmed" tune verify "$id"
    show "nic confirmed" nic
    show "undo confirmed" tune undo "$id"

    # The page cache of a program that was read on node 3 and runs on node 0.
    taskset -c "$(sed 's/-.*//' /sys/devices/system/node/node3/cpulist)" cp /bin/bash /root/server
    mkfifo end
    taskset -c 0 /root/server -c 'read -r word <end; echo "the server read $word"' >said &
    server=$!
    await grep -q /root/server "/proc/$server/maps"
    show "maps before" grep /root/server "/proc/$server/numa_maps"
    show "move" tune move-pages --pid $server --to-node 0 --what text
    show "maps after" grep /root/server "/proc/$server/numa_maps"
    show "move again" tune move-pages --pid $server --to-node 0 --what text
    show "move nowhere" tune move-pages --pid $server --to-node 9 --what text
    echo more >end
    show "server" wait $server
    show "said" cat said

    # The driver's own affinities again.
    ethtool -L eth0 combined 4
    ethtool -L eth0 combined 8
    echo "$own" >"$place"
    values >after
    show "diff own" diff before after

    # The values of this plan are to be there after the next boot.
    show "plan persistent" tune plan "${PLACE[@]}" --queues 4 --persistent \
        --set vm.swappiness=5 --set kernel.numa_balancing=0 --set vm.dirty_bytes=268435456 \
        --set thp.enabled=never --set disk.read_ahead_kb@nvme0n1=64
    show "apply persistent" apply --confirm-within 300s
    show "files unconfirmed" saiga_files
    show "confirm persistent" tune confirm "$id"
    show "files" saiga_files
    show "sysctl" cat /etc/sysctl.d/99-zz-saiga.conf
    echo "$id" >persistent
}

second() {
    id=$(cat persistent)
    show "failed units" systemctl --failed --no-legend --plain
    show "verify at boot" tune verify "$id"
    show "nic at boot" nic
    show "queues at boot" queues
    show "unit" systemctl is-active saiga-tune.service
    show "undo persistent" tune undo "$id"
    show "files after" saiga_files
    show "unit after" systemctl is-enabled saiga-tune.service
    values >after
    show "diff persistent" diff before after

    # An application ends at a random moment, and the machine with it.
    show "plan crash" tune plan --no-interrupts --persistent \
        --set vm.swappiness=5 --set kernel.numa_balancing=0 --set vm.dirty_bytes=268435456 \
        --set thp.enabled=never --set disk.read_ahead_kb@nvme0n1=64
    cp plan.toml crash.toml
    sync
    local began=${EPOCHREALTIME/./}
    apply >/dev/null
    local took=$((${EPOCHREALTIME/./} - began))
    tune undo "$id" >/dev/null
    local after=$((took * (RANDOM % 100) / 100))
    setsid saiga tune apply crash.toml >/dev/null 2>&1 &
    sleep "$((after / 1000000)).$(printf %06d $((after % 1000000)))"
    kill -9 -- -$!
    show "killed after $after of $took us" newest
}

third() {
    show "history" tune history
    newest >newest
    read -r id _ <newest
    show "undo crash" tune undo "$id"
    show "state" newest
    show "files" saiga_files
    values >after
    show "diff crash" diff before after
    show "verify crash" tune verify crash.toml
    show "no memory" tune move-pages --pid $$ --to-node 3 --what text
}

# The kernel finds devices while this runs.
ip link set eth0 up
udevadm settle
case $(cat /proc/cmdline) in
*boot=first*) first && end=poweroff ;;
*boot=second*) second && end=crash ;;
*boot=third*) third && end=poweroff ;;
esac
echo "@@ script $?"
case ${end:-} in
# What is not on the disk is lost. First, the console's output is sent.
crash) stty -F /dev/console -echo && echo b >/proc/sysrq-trigger ;;
*) systemctl poweroff --no-block 2>/dev/null ;;
esac
