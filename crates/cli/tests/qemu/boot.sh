#!/bin/busybox sh
# The first process of a machine: prepares it and runs the test's own script.
/bin/busybox mkdir -p /proc /sys /dev /tmp /etc /run /mnt /srv
# Programs of tools/qemu stay in place of busybox's.
/bin/busybox --install -s /bin 2>/dev/null
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
/script.sh </dev/null
echo "@@ script $?"
poweroff -f
