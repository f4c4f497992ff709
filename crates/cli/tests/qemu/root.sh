#!/bin/busybox sh
# The first process of a machine with systemd: puts the root directory on the disk at the first boot,
# and starts systemd there, which runs the test's own script.
/bin/busybox mkdir -p /proc /sys /dev /root
/bin/busybox --install -s /bin 2>/dev/null
export PATH=/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
dmesg -n 1
for module in failover net_failover virtio_net virtio_blk libcrc32c xfs; do
    insmod /lib/modules/$module.ko || exit
done
until [ -b /dev/nvme0n1 ]; do :; done
if ! mount -t xfs /dev/nvme0n1 /root 2>/dev/null; then
    mkfs.xfs -q /dev/nvme0n1
    mount -t xfs /dev/nvme0n1 /root || exit
    cp -a /bin /sbin /lib /lib64 /usr /etc /script.sh /root
    mkdir /root/root /root/proc /root/sys /root/dev /root/run /root/tmp /root/var
    ln -s ../run /root/var/run
    chmod -x /root/lib/systemd/system/*.* /root/etc/systemd/system/*.*
fi
for place in proc sys dev; do mount --move /$place /root/$place; done
exec switch_root /root /lib/systemd/systemd
