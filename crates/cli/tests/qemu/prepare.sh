#!/bin/bash
# A host with the card eth0, and a client's host with the card eth1 in a network namespace. busybox's modprobe(8) has no
# soft dependencies, so a script takes its place: it loads the same modules. busybox's rmmod(8) unloads each by its name.
say() { echo "@@ $1"; shift; "$@"; echo "@@ status $?"; }
for module in inet_diag tcp_diag failover net_failover virtio_net tun; do insmod "/lib/modules/$module.ko"; done
# Not into busybox, to which the link leads.
rm /bin/modprobe
cat >/bin/modprobe <<'SCRIPT'
#!/bin/bash
modules="irqbypass vfio vfio_iommu_type1 vfio-pci-core vfio-pci"
case "$*" in
vfio-pci) for module in $modules; do insmod /lib/modules/$module.ko || exit; done ;;
esac
SCRIPT
chmod 755 /bin/modprobe
until [ -e /sys/class/net/eth1 ]; do :; done
echo 3 >/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages
# Its addresses would come later than the interface.
echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6
echo 1 >/proc/sys/net/ipv6/conf/default/disable_ipv6
/bin/ip link set lo up
mkdir -p /var /lib/x86_64-linux-gnu/dpdk/pmds-23.0
ln -s ../run /var/run
mkdir /run/gateway
chown daemon /run/gateway
# DPDK loads these files, which its libraries must find as the same.
for driver in bus_pci bus_vdev mempool_ring net_virtio; do
    ln -s /lib/librte_$driver.so.23 /lib/x86_64-linux-gnu/dpdk/pmds-23.0/librte_$driver.so.23.0
done

# What could be left: pages, drivers, modules, interfaces, rules, routes, files.
state() {
    for node in /sys/devices/system/node/node*; do echo "pages $(cat $node/hugepages/hugepages-2048kB/nr_hugepages)"; done
    for card in /sys/bus/pci/devices/*; do
        echo "${card##*/} $(basename "$(readlink "$card/driver")") $(cat "$card/driver_override")"
    done
    cut -d' ' -f1 /proc/modules | sort
    /bin/ip -br link | sort
    /bin/ip -br address | sort
    /bin/ip rule
    /bin/ip route show table all
    find /run | sort
}
# up HOST-COMMAND: the client's card, which has its carrier a little later.
up() {
    $1 /bin/ip address add 10.0.0.2/24 dev eth1
    $1 /bin/ip link set eth1 up
    until $1 /bin/ip -br link show eth1 | grep -q "UP .*,UP,LOWER_UP"; do :; done
}
client() { nsenter -t $client -n "$@"; }
gateway() {
    saiga gateway up --prepare --config /gateway.toml >/said 2>&1 &
    gateway=$!
    until grep -qs serving /said || ! kill -0 $gateway; do sleep 0.1; done
    cat /said
    kill -0 $gateway
}
request() { client timeout 60 redis-cli -h 10.0.0.1 ping; }
end() { kill $gateway; wait $gateway; }

say check saiga gateway check --config /gateway.toml
# The client's card is in use, before it is in a namespace of its own.
up
say state state
say refused saiga gateway up --prepare --config /client.toml
say state state
# The routing table of the gateway is in use, which shows after the card has gone to DPDK.
redis-server --port 6379 --protected-mode no --save '' >/dev/null &
until [ "$(redis-cli ping 2>&1)" = PONG ]; do sleep 0.1; done
/bin/ip route add local 10.99.0.0/24 dev lo table 79
say failed saiga gateway up --prepare --config /gateway.toml
/bin/ip route delete local 10.99.0.0/24 dev lo table 79
say state state

unshare -n sleep 100000 &
client=$!
until [ "$(readlink /proc/$client/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do :; done
say prepared gateway
say state state
/bin/ip link set eth1 netns $client
up client
say request request
say running saiga gateway down
kill -9 $gateway
wait $gateway
say there saiga gateway check --config /gateway.toml
say prepared gateway
say request request
say end end
say down saiga gateway down
say down saiga gateway down
client /bin/ip link set eth1 netns 1
up
say state state
