#!/bin/bash
# A systemd of its own in namespaces, over the host's files, in which nothing that it writes is kept.
# Usage: boot.sh ROOT INSTALLATION DATA; ROOT is an empty folder, DATA is seen as /srv/db.
set -euo pipefail
root=$1 installation=$2 data=$3
mount --make-rprivate /
mount -t tmpfs -o mode=755 machine "$root"
mkdir "$root"/{upper,work,all}
mount -t overlay -o "lowerdir=/,upperdir=$root/upper,workdir=$root/work" machine "$root/all"
cd "$root/all"

# Nothing that looks after hardware or the network.
mkdir -p srv/db usr/local/bin usr/local/lib/saiga before
for unit in systemd-{udevd,udev-trigger,udev-settle,networkd,resolved,timesyncd,logind,modules-load,binfmt,sysctl,hwdb-update} \
    kmod-static-nodes; do
    ln -sf /dev/null "etc/systemd/system/$unit.service"
done
cat >etc/systemd/system/trial.target <<'UNIT'
[Unit]
Description=What a trial needs
Requires=basic.target
After=basic.target
UNIT

mount --bind "$data" srv/db
for file in bin/saiga lib/saiga/libsaiga.so; do
    : >"usr/local/$file"
    mount --bind "$installation/$file" "usr/local/$file"
done
mount -t proc proc proc
mount --rbind /dev dev
mount -t sysfs sysfs sys
mount -t tmpfs -o mode=755 cgroups sys/fs/cgroup
if [ -e /sys/fs/cgroup/cgroup.controllers ]; then
    mount -t cgroup2 cgroup2 sys/fs/cgroup
else
    mkdir sys/fs/cgroup/systemd sys/fs/cgroup/unified
    mount -t cgroup -o none,name=systemd cgroup sys/fs/cgroup/systemd
    mount -t cgroup2 cgroup2 sys/fs/cgroup/unified
fi
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=1777 tmp tmp
ip link set lo up

pivot_root . before
umount -l before
exec env -i container=saiga PATH=/usr/sbin:/usr/bin:/sbin:/bin TERM=dumb \
    /lib/systemd/systemd --system --unit=trial.target --show-status=0 --log-target=null
