#!/bin/bash
# Two hosts with a veth pair and a TAP device, each with VLANs. nsenter(1) of busybox prefers its own programs to those in
# PATH, hence /bin/ip.
say() { echo "@@ $1"; shift; "$@"; echo "@@ status $?"; }
for module in inet_diag tcp_diag llc stp garp mrp 8021q veth tun; do insmod "/lib/modules/$module.ko"; done
unshare -n sleep 100000 &
client_host=$!
until [ "$(readlink /proc/$client_host/ns/net)" != "$(readlink /proc/self/ns/net)" ]; do :; done
client() { nsenter -t $client_host -n "$@"; }
# up HOST-COMMAND INTERFACE ADDRESS...
up() {
    for address in "${@:3}"; do $1 /bin/ip address add "$address" dev "$2"; done
    $1 /bin/ip link set "$2" up
}
/bin/ip link set lo up
/bin/ip link add veth0 type veth peer name wire netns $client_host
/bin/ip link add link veth0 name veth0.5 type vlan id 5
client /bin/ip link add link wire name wire.5 type vlan id 5
up "" veth0 10.0.0.1/24
up "" veth0.5 10.5.0.1/24
up client wire 10.0.0.2/24
up client wire.5 10.5.0.2/24
/bin/ip -6 address add fd05::1/64 dev veth0.5 nodad
client /bin/ip -6 address add fd05::2/64 dev wire.5 nodad
/bin/ip address add 10.7.0.1/32 dev lo
client /bin/ethtool -K wire txvlan off
for port in 6379 6380; do redis-server --port $port --protected-mode no --save '' >/dev/null & done

# gateway FILE: starts the gateway, which says what it serves.
gateway() {
    saiga gateway up --config "$1" >/said 2>&1 &
    gateway=$!
    until grep -q serving /said || ! kill -0 $gateway; do sleep 0.1; done
    cat /said
}
end() { kill $gateway; wait $gateway; }
frames() { saiga gateway status --json --control /run/gateway.sock; }
ping() { client redis-cli "$@" ping; }
value() {
    head -c 300000 /dev/zero | tr '\0' a | client redis-cli -h "$1" -x set key
    client redis-cli -h "$1" get key | tr -d '\n' | wc -c
}

for port in 6379 6380; do until [ "$(redis-cli -p $port ping)" = PONG ]; do sleep 0.1; done; done
say absent saiga gateway up --config /absent.toml
say vlan gateway /vlan.toml
say "served v4" client redis-cli -h 10.5.0.1 client list
say "served v6" client redis-cli -h fd05::1 client list
say "served value" value 10.5.0.1
say "frames" frames
say "kernel untagged" ping -h 10.0.0.1
say "kernel port" ping -h 10.5.0.1 -p 6380
say "frames" frames
/bin/ip link delete veth0.5
/bin/ip link add link veth0 name veth0.5 type vlan id 5
up "" veth0.5 10.5.0.1/24
say "served again" ping -h 10.5.0.1
say "frames" frames
say end end
say untagged gateway /untagged.toml
say "served untagged" ping -h 10.0.0.1
say "frames" frames
say "kernel vlan" ping -h 10.5.0.1
say "frames" frames
say end end
say tap gateway /tap.toml
/bin/ip link set tap0 netns $client_host
client /bin/ip link add link tap0 name tap0.7 type vlan id 7
up client tap0
up client tap0.7 10.7.0.2/24
say "served tap" client redis-cli -h 10.7.0.1 client list
say "served value" value 10.7.0.1
say end end
