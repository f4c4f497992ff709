#!/bin/bash
# nvme-cli for QEMU's drive, which can attach and detach namespaces, but cannot create or delete
# them, nor enable data placement. The machine starts with all namespaces that the plan creates,
# detached. Commands that the drive refuses are checked here, and their effect is kept in /drive:
# one file per existing namespace, and `fdp` while data placement is enabled. All other commands go
# to nvme-cli.
set -eu
real=/bin/nvme
drive=/drive

fail() {
    echo "nvme: $*" >&2
    exit 1
}

# Sends a command to the drive, which must refuse it. nvme-cli must know all options.
refused() {
    local said
    said=$("$real" "$@" 2>&1) && fail "QEMU does not refuse this any more: $*"
    case $said in
    *"unrecognized option"* | *Usage* | *"requires an argument"*)
        fail "nvme-cli does not know this command: $*: $said"
        ;;
    esac
}

# The value of an option, if it is there.
option() {
    local name=$1 word
    shift
    for word in "$@"; do
        case $word in --"$name"=*) echo "${word#*=}" ;; esac
    done
}

# The number of blocks of a namespace, attached or not.
blocks() {
    local size
    size=$("$real" id-ns "$1" --namespace-id="$2" --force | sed -n 's/^nsze *: *//p')
    echo $((size))
}

create() {
    local number=1 asked
    while [ -e "$drive/$number" ]; do number=$((number + 1)); done
    asked=$(option nsze "$@")
    [ "$asked" = "$(option ncap "$@")" ] || fail "size and capacity differ"
    [ "$(option block-size "$@")" = 4096 ] || fail "another block size"
    # Namespace 1 is that of the way back, too, and so as large as the drive.
    if [ ! -e "$drive/fdp" ] || [ $number != 1 ]; then
        [ "$asked" = "$(blocks "$2" $number)" ] || fail "namespace $number with $asked blocks"
    fi
    local handles=
    if [ -e "$drive/fdp" ]; then handles="1 1 $((number - 1))"; fi
    [ "$(echo $(option endg-id "$@") $(option nphndls "$@") $(option phndls "$@"))" = "$handles" ] ||
        fail "namespace $number with other handles than ${handles:-none}"
    touch "$drive/$number"
    echo "create-ns: Success, created nsid:$number"
}

delete() {
    local number disk
    number=$(option namespace-id "$@")
    rm "$drive/$number"
    # The data of a namespace are deleted with it.
    for disk in /sys/class/block/nvme*; do
        [ -b "/dev/${disk##*/}" ] && grep -q PLACED "$disk/device/serial" || continue
        [ "$(cat "$disk/nsid")" != "$number" ] || blkdiscard --force --quiet "/dev/${disk##*/}"
    done
    "$real" detach-ns "$2" --namespace-id="$number" --controllers=0 >/dev/null
    echo "delete-ns: Success, deleted nsid:$number"
}

feature() {
    [ "$(option endgrp-id "$@")" = 1 ] || fail "another endurance group"
    [ -z "$(find "$drive" -name '[0-9]*')" ] || fail "there are namespaces in the group"
    case " $* " in
    *" --enable-conf-idx=0 "*) touch "$drive/fdp" ;;
    *" --disable "*) rm "$drive/fdp" ;;
    *) fail "neither enabled nor disabled" ;;
    esac
}

case "$1 ${2:-}" in
"create-ns "*)
    refused "$@"
    create "$@"
    ;;
"delete-ns "*)
    refused "$@"
    delete "$@"
    ;;
"fdp feature")
    refused "$@"
    feature "$@"
    ;;
"attach-ns "*)
    [ -e "$drive/$(option namespace-id "$@")" ] || fail "there is no such namespace"
    exec "$real" "$@"
    ;;
*) exec "$real" "$@" ;;
esac
