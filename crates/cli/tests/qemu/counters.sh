#!/bin/sh
# Samples around a write of known length, then a report and a recording.
waf() { echo "@@ $*"; saiga waf "$@" </dev/null; echo "@@ status $?"; }
# The kernel looks for drives beside us, and numbers controllers and namespaces apart.
find() {
    for serial in /sys/class/nvme/nvme*/serial /sys/block/nvme*/device/serial; do
        name=${serial#/sys/class/nvme/}
        name=${name#/sys/block/}
        name=/dev/${name%%/*}
        # A path of a namespace that has several has no device.
        [ -e "$name" ] || continue
        case $(cat "$serial") in
            *PLACED*) if [ -b "$name" ]; then placed=$name; else controller=$name; fi ;;
            *PLAIN*) if [ -b "$name" ]; then plain=$name; fi ;;
        esac
    done
    [ -n "$placed" ] && [ -n "$controller" ] && [ -n "$plain" ]
}
for _ in $(seq 300); do
    if find 2>/dev/null; then break; fi
    sleep 0.1
done
waf probe "$placed"
waf probe "$controller" --json
waf probe "$plain"
waf watch --once --file /waf.db "$placed"
dd if=/dev/zero of="$placed" bs=1M count=24 conv=fsync 2>/dev/null
waf watch --once --file /waf.db "$placed"
waf watch --once --file /waf.db "$controller"
waf report --json --file /waf.db
waf record "$controller" /recording
waf probe /recording
waf record "$placed" /named
