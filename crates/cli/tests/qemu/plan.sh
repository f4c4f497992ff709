#!/bin/bash
# Carries out the plan for a MySQL on a drive with data placement, and its way back. The commands run
# as `saiga streams check --plan` prints them; this script does what the plan leaves to a person.
set -eu -o pipefail
trap 'echo "@@ line $LINENO failed"' ERR
point=/srv

# Runs a command; shows its output and exit status.
show() {
    local status=0
    echo "@@ $*"
    "$@" || status=$?
    echo "@@ status $status"
}
check() { show saiga streams check /srv/db --rules mysql "$@"; }

# The kernel finds drives while this runs, and numbers controllers and disks in any order.
await() {
    for _ in $(seq 300); do
        if "$@" 2>/dev/null; then return; fi
        sleep 0.1
    done
    return 1
}
# The controller of the drive with this serial number.
controller() {
    for it in /sys/class/nvme/nvme*; do
        if grep -q "$1" "$it/serial"; then echo "/dev/${it##*/}" && return; fi
    done
    return 1
}
# The disk of a namespace of that drive.
disk_of() {
    for it in /sys/class/block/nvme*; do
        [ -b "/dev/${it##*/}" ] && grep -q "$1" "$it/device/serial" || continue
        if [ "$(cat "$it/nsid")" = "$2" ]; then echo "/dev/${it##*/}" && return; fi
    done
    return 1
}

insmod /lib/modules/libcrc32c.ko
insmod /lib/modules/xfs.ko
placed=$(await controller PLACED)
export PATH=/plan:/bin
mkdir /drive /other
touch /drive/7

# Another drive, and a database on the only namespace of the drive.
other=$(await disk_of PLAIN 1)
mkfs.xfs -q "$other"
mount "$other" /other
source=$(await disk_of PLACED 7)
mkfs.xfs -q "$source"
echo "UUID=$(blkid -s UUID -o value "$source") $point xfs discard 0 0" >/etc/fstab
mount $point
printf '[mysqld]\ndatadir = /srv/db\n' >/etc/my.cnf
mkdir -p '/srv/db/#innodb_redo' /srv/db/shop
cd /srv/db
for file in mysql.ibd ibdata1 '#ib_16384_0.dblwr' '#innodb_redo/#ib_redo7' undo_001 \
    binlog.000001 shop/orders.ibd; do
    head -c 1000000 /dev/urandom >"$file"
done
echo ./binlog.000001 >binlog.index
ln -s orders.ibd shop/link
chown -R 27:27 .
chmod 640 shop/orders.ibd
cd /
check
saiga streams check /srv/db --rules mysql --plan >/tmp/plan

# The plan is cut where a person has something to do.
sed -i "s|^BACKUP=/another-drive|BACKUP=/other|; s|^BACK=/another-drive|BACK=/other|" /tmp/plan
# Nothing writes during the check of the plan, so it proves nothing and exits with 1.
sed -i 's/--for 1m$/--for 1s || [ $? = 1 ]/' /tmp/plan
grep -q '1s || ' /tmp/plan
part() { sed -n "/^# $1/,/^# $2/p" /tmp/plan | sed '$d'; }
part '1\. ' '4\. ' >/tmp/save
part '4\. ' '9\. ' >/tmp/move
part '9\. ' 'The way back' >/tmp/start
part 'The way back' 'FROM HERE ON' >/tmp/save-back
sed -n '/^# FROM HERE ON/,$p' /tmp/plan >/tmp/move-back
. /tmp/save
sed -i "\| $point xfs |d" /etc/fstab
. /tmp/move
sed -n 's/^# \([a-z_]* = \)/\1/p' /tmp/move >>/etc/my.cnf
. /tmp/start

# Every part is in its place, and is written through a handle of its own.
number=0
for place in /mnt/doublewrite /mnt/redo /mnt/undo /mnt/temporary /mnt/log /srv/db; do
    number=$((number + 1))
    [ "$(findmnt -n -o SOURCE $place)" = "$(disk $number)" ]
done
check
show setpriv --reuid=65534 --regid=65534 --clear-groups \
    saiga streams check /srv/db --rules mysql
check --plan
for written in doublewrite redo undo temporary log data; do
    sync
    : >/tmp/said.err # The shell returns before the process below empties the file of the last turn.
    saiga streams check /srv/db --rules mysql --for 1h --json >/tmp/said 2>>/tmp/said.err &
    until grep -q following /tmp/said.err; do kill -0 $!; done
    server write "$written"
    kill -TERM $!
    status=0
    wait $! || status=$?
    echo "@@ wrote $written"
    cat /tmp/said
    echo "@@ status $status"
done

# A namespace that was created with the handle of the redo log.
touch /drive/8
nvme attach-ns "$placed" --namespace-id=8 --controllers=0
await disk_of PLACED 8
check
nvme detach-ns "$placed" --namespace-id=8 --controllers=0
rm /drive/8

# The way back brings all files together but temporary ones; the index names logs without a folder.
mkdir /other/expected
for place in /mnt/doublewrite /mnt/redo /mnt/undo /mnt/log /srv/db; do
    cp -a "$place"/. /other/expected
done
sed -i 's|^/mnt/log/|./|' /other/expected/binlog.index
. /tmp/save-back
sed -i '\|/mnt/|d; \| /srv/db |d' /etc/fstab
printf '[mysqld]\ndatadir = /srv/db\n' >/etc/my.cnf
. /tmp/move-back
[ "$(findmnt -n -o SOURCE $point)" = "$(disk 1)" ]
show diff -r --no-dereference /other/expected /srv/db
list() { (cd "$1" && find . -printf '%p %y %m %u %g %l\n' | sort); }
list /other/expected >/tmp/expected
list /srv/db >/tmp/found
show diff /tmp/expected /tmp/found
[ "$(wc -l </tmp/found)" -gt 10 ]
