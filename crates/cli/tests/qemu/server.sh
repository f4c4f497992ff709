#!/bin/bash
# Stands in for systemctl and MySQL: a server that finds its files by /etc/my.cnf and does not start
# if one is missing. `server write PART` appends 8 MiB to a file of a part.
set -eu -o pipefail

# The value of a setting, or its default.
setting() {
    local value
    value=$(sed -n "s/^$1 = //p" /etc/my.cnf | tail -n 1)
    echo "${value:-$2}"
}

fail() {
    echo "server: $*" >&2
    exit 1
}

data=/srv/db
log=$(setting log_bin "$data/binlog")
declare -A files=(
    [doublewrite]="$(setting innodb_doublewrite_dir "$data")/#ib_16384_0.dblwr"
    [redo]="$(setting innodb_log_group_home_dir "$data")/#innodb_redo/#ib_redo7"
    [undo]="$(setting innodb_undo_directory "$data")/undo_001"
    [temporary]="$(setting tmpdir /tmp)/#sql1"
    [log]="$log.000001"
    [data]="$data/shop/orders.ibd"
)

case "$*" in
daemon-reload | "stop mysql" | "status mysql") ;;
"start mysql")
    for part in doublewrite redo undo log data; do
        [ -f "${files[$part]}" ] || fail "${files[$part]} is missing"
    done
    while read -r file; do
        case $file in /*) ;; *) file=$data/$file ;; esac
        [ -f "$file" ] || fail "$log.index names $file"
    done <"$log.index"
    ;;
"write "*)
    dd if=/dev/urandom of="${files[$2]}" bs=1M count=8 oflag=append conv=notrunc,fsync status=none
    ;;
*) fail "unknown command $*" ;;
esac
