// libsaiga_dpdk.so: ports and queues of DPDK 22.11 as a table of functions, which src/dpdk/plugin.rs
// loads at run time. `tools/dpdk` builds it.
//
// C, because DPDK's functions for frames are inline functions of its headers. Nothing is decided
// here: arguments, offloads and their meaning come from the caller. Functions return 0 or a
// negative error number. One thread at a time uses a queue.
//
// Source: the DPDK Programmer's Guide, rte_ethdev.h, rte_mbuf.h, rte_eal.h. Deliberately absent:
// interrupts of receive queues, because no driver without hardware has them; merging of received
// segments; frames that are shared between ports.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <rte_alarm.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_log.h>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_version.h>

// Changes with every change of the table or of a structure.
#define ABI 1
// Frames of a burst.
#define BURST 64
// Ethernet header with two VLAN tags.
#define LINK_BYTES 22
// The largest frame: LARGEST_FRAME_BYTES of src/device.rs.
#define LARGEST (22 + 40 + 65535)
// Cards fill receive buffers in steps of this size.
#define BUFFER_STEP 1024u
#define LEAST_BUFFER 2048u

// What a port can do: bits of `struct info`.
#define SENDS_CHECKSUMS 1
#define SEGMENTS 2
// What is to be done with a sent frame: bits of `struct offload`.
#define FORM_CHECKSUM 1
#define IS_UDP 2
#define IS_V6 4
#define SEGMENT 8

struct request {
    uint16_t queues;
    uint16_t ring; // descriptors of each ring
    uint32_t frames; // of each queue
    uint16_t mtu; // 0: that of the port
};

struct info {
    uint8_t mac[6];
    uint16_t mtu;
    uint32_t abilities;
    uint32_t most_segments; // of a sent frame
};

struct frame {
    const uint8_t *bytes;
    uint32_t length;
    uint32_t is_verified; // the port has verified the checksums
};

struct offload {
    uint16_t bits;
    uint16_t link_bytes;
    uint16_t network_bytes;
    uint16_t transport_bytes;
    uint16_t segment_bytes;
};

struct queue {
    uint16_t port;
    uint16_t number;
    uint16_t taken; // received frames that are not released
    uint16_t waiting; // frames to send
    uint32_t buffer_bytes; // of a frame's buffer
    uint32_t room_bytes;
    struct rte_mempool *receiving;
    struct rte_mempool *sending;
    struct rte_mbuf *next; // holds the next frame to send
    uint8_t *super_segment; // or this does, where the port divides super-segments
    uint8_t *whole; // a received chain of buffers
    uint64_t down; // frames that were dropped because the link was down
    uint64_t refused;
    uint64_t sent;
    uint64_t sent_bytes;
    struct rte_mbuf *received[BURST];
    struct rte_mbuf *outgoing[BURST];
};

static void (*tell)(const char *text, size_t length);

static ssize_t log_write(void *cookie, const char *text, size_t length)
{
    (void)cookie;
    tell(text, length);
    return (ssize_t)length;
}

// Removes the folders for files that this process does not make, unless another process has some.
static void remove_folders(void)
{
    char folder[PATH_MAX];
    snprintf(folder, sizeof(folder), "%s", rte_eal_get_runtime_dir());
    char *end = strrchr(folder, '/');
    if (rmdir(folder) == 0 && end != NULL) {
        *end = '\0';
        rmdir(folder);
    }
}

// Begins DPDK, once for each process. `log` gets its messages, from any thread.
static int start(int argc, char **argv, void (*log)(const char *, size_t))
{
    cookie_io_functions_t functions = { .write = log_write };
    FILE *stream = fopencookie(NULL, "w", functions);
    if (stream == NULL)
        return -errno;
    tell = log;
    rte_openlog_stream(stream);
    int used = rte_eal_init(argc, argv);
    int error = rte_errno;
    remove_folders();
    return used < 0 ? -error : 0;
}

// Runs `work` on the thread of DPDK, soon.
static int on_thread(void (*work)(void *), void *argument)
{
    return rte_eal_alarm_set(1, work, argument);
}

static int port_of_device(const char *name, uint16_t *port)
{
    uint16_t one;
    RTE_ETH_FOREACH_DEV(one) {
        struct rte_eth_dev_info info;
        if (rte_eth_dev_info_get(one, &info) == 0 && strcmp(rte_dev_name(info.device), name) == 0) {
            *port = one;
            return 0;
        }
    }
    return -ENODEV;
}

// The port of a device such as "0000:04:00.0" or "net_memif0,role=server", which is made if DPDK
// does not have it.
static int port_of(const char *device, uint16_t *port)
{
    char name[RTE_DEV_NAME_MAX_LEN];
    size_t length = strcspn(device, ",");
    if (length >= sizeof(name))
        return -ENAMETOOLONG;
    memcpy(name, device, length);
    name[length] = '\0';
    if (port_of_device(name, port) == 0)
        return 0;
    int error = rte_dev_probe(device);
    return error < 0 ? error : port_of_device(name, port);
}

static int port_with_mac(const uint8_t *mac, uint16_t *port)
{
    uint16_t one;
    RTE_ETH_FOREACH_DEV(one) {
        struct rte_ether_addr address;
        if (rte_eth_macaddr_get(one, &address) == 0 && memcmp(address.addr_bytes, mac, 6) == 0) {
            *port = one;
            return 0;
        }
    }
    return -ENODEV;
}

static struct rte_mempool *pool(const char *kind, const struct queue *queue, uint32_t frames)
{
    char name[RTE_MEMPOOL_NAMESIZE];
    snprintf(name, sizeof(name), "saiga_%s_%u_%u", kind, queue->port, queue->number);
    int node = rte_eth_dev_socket_id(queue->port);
    return rte_pktmbuf_pool_create(name, frames, 0, 0, RTE_PKTMBUF_HEADROOM + queue->buffer_bytes,
                                   node < 0 ? SOCKET_ID_ANY : node);
}

static void free_queue(struct queue *queue)
{
    if (queue == NULL)
        return;
    rte_pktmbuf_free(queue->next);
    rte_pktmbuf_free_bulk(queue->received, queue->taken);
    rte_pktmbuf_free_bulk(queue->outgoing, queue->waiting);
    rte_mempool_free(queue->receiving);
    rte_mempool_free(queue->sending);
    rte_free(queue->super_segment);
    rte_free(queue->whole);
    rte_free(queue);
}

static struct queue *make_queue(uint16_t port, uint16_t number, const struct request *request,
                                const struct info *info)
{
    struct queue *queue = rte_zmalloc(NULL, sizeof(*queue), 0);
    if (queue == NULL)
        return NULL;
    uint32_t frame = info->mtu + LINK_BYTES;
    queue->port = port;
    queue->number = number;
    queue->buffer_bytes = RTE_ALIGN_CEIL(RTE_MAX(frame, LEAST_BUFFER), BUFFER_STEP);
    queue->room_bytes = info->abilities & SEGMENTS ? LARGEST : frame;
    queue->receiving = pool("rx", queue, request->frames / 2 + BURST);
    queue->sending = pool("tx", queue, request->frames / 2 + 2 * BURST);
    queue->whole = rte_malloc(NULL, LARGEST, 0);
    bool is_whole = queue->receiving != NULL && queue->sending != NULL && queue->whole != NULL;
    if (info->abilities & SEGMENTS) {
        queue->super_segment = rte_malloc(NULL, LARGEST, 0);
        is_whole = is_whole && queue->super_segment != NULL;
    }
    if (is_whole)
        return queue;
    free_queue(queue);
    return NULL;
}

// What is asked of the port: offloads, and that a connection keeps its queue.
static int configuration(const struct request *request, const struct rte_eth_dev_info *device,
                         struct rte_eth_conf *conf, struct info *info)
{
    uint64_t sums = RTE_ETH_TX_OFFLOAD_TCP_CKSUM | RTE_ETH_TX_OFFLOAD_UDP_CKSUM;
    uint64_t segments = RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_MULTI_SEGS | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
    uint64_t hashes = RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP;
    info->abilities = 0;
    if ((device->tx_offload_capa & sums) == sums) {
        conf->txmode.offloads |= sums;
        info->abilities |= SENDS_CHECKSUMS;
        if ((device->tx_offload_capa & segments) == segments) {
            conf->txmode.offloads |= segments;
            info->abilities |= SEGMENTS;
        }
    }
    conf->rxmode.offloads = device->rx_offload_capa & RTE_ETH_RX_OFFLOAD_CHECKSUM;
    if (request->queues == 1)
        return 0;
    conf->rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf->rx_adv_conf.rss_conf.rss_hf = device->flow_type_rss_offloads & hashes;
    return conf->rx_adv_conf.rss_conf.rss_hf == 0 ? -ENOTSUP : 0;
}

static int set_up(uint16_t port, struct queue *queue, const struct rte_eth_dev_info *device,
                  const struct rte_eth_conf *conf, uint16_t receiving, uint16_t sending)
{
    int node = rte_eth_dev_socket_id(port);
    unsigned int socket = node < 0 ? (unsigned int)SOCKET_ID_ANY : (unsigned int)node;
    struct rte_eth_rxconf rx = device->default_rxconf;
    struct rte_eth_txconf tx = device->default_txconf;
    rx.offloads = conf->rxmode.offloads;
    tx.offloads = conf->txmode.offloads;
    int error = rte_eth_rx_queue_setup(port, queue->number, receiving, socket, &rx, queue->receiving);
    return error < 0 ? error : rte_eth_tx_queue_setup(port, queue->number, sending, socket, &tx);
}

// Configures a port, opens its queues and starts it. On failure, `failed` is the function that
// failed, and no queue is open.
static int open_port(uint16_t port, const struct request *request, struct info *info,
                     struct queue **queues, const char **failed)
{
    struct rte_eth_conf conf = { 0 };
    struct rte_eth_dev_info device;
    struct rte_ether_addr address;
    uint16_t receiving = request->ring, sending = request->ring, opened = 0;
    int error;
#define TRY(name, call) do { *failed = name; if ((error = (call)) < 0) goto undo; } while (0)
    TRY("rte_eth_dev_info_get", rte_eth_dev_info_get(port, &device));
    *failed = "queues";
    error = -EDQUOT;
    if (request->queues > RTE_MIN(device.max_rx_queues, device.max_tx_queues))
        return error;
    TRY("RSS", configuration(request, &device, &conf, info));
    conf.rxmode.mtu = request->mtu;
    TRY("rte_eth_dev_configure", rte_eth_dev_configure(port, request->queues, request->queues, &conf));
    if (request->mtu != 0) {
        *failed = "rte_eth_dev_set_mtu";
        error = rte_eth_dev_set_mtu(port, request->mtu);
        // A driver without this function has no limit of its own.
        if (error < 0 && error != -ENOTSUP)
            goto undo;
    }
    TRY("rte_eth_dev_get_mtu", rte_eth_dev_get_mtu(port, &info->mtu));
    TRY("rte_eth_macaddr_get", rte_eth_macaddr_get(port, &address));
    TRY("rte_eth_dev_adjust_nb_rx_tx_desc", rte_eth_dev_adjust_nb_rx_tx_desc(port, &receiving, &sending));
    memcpy(info->mac, address.addr_bytes, sizeof(info->mac));
    info->most_segments = device.tx_desc_lim.nb_seg_max;
    for (; opened < request->queues; opened++) {
        *failed = "memory";
        error = -ENOMEM;
        queues[opened] = make_queue(port, opened, request, info);
        if (queues[opened] == NULL)
            goto undo;
        error = set_up(port, queues[opened], &device, &conf, receiving, sending);
        if (error < 0) {
            *failed = "rte_eth_rx_queue_setup";
            opened++;
            goto undo;
        }
    }
    TRY("rte_eth_dev_start", rte_eth_dev_start(port));
    // A port that cannot receives them anyway, or has no groups of hosts.
    rte_eth_allmulticast_enable(port);
    return 0;
#undef TRY
undo:
    for (uint16_t number = 0; number < opened; number++)
        free_queue(queues[number]);
    return error;
}

// Stops a port, whose queues are used no more: a card reads and writes no memory afterwards. The
// memory of the queues stays until the process ends.
static void stop_port(uint16_t port)
{
    rte_eth_dev_stop(port);
}

// Takes up to `most` frames, at most BURST; fewer only if no more wait.
static uint16_t receive(struct queue *queue, uint16_t most)
{
    most = RTE_MIN(most, BURST);
    while (queue->taken < most) {
        struct rte_mbuf **to = queue->received + queue->taken;
        uint16_t taken = rte_eth_rx_burst(queue->port, queue->number, to, most - queue->taken);
        if (taken == 0)
            break;
        queue->taken += taken;
    }
    return queue->taken;
}

// A frame that was taken; it stays until `release`, and one that is a chain of buffers until the
// next call.
static int frame(struct queue *queue, uint16_t number, struct frame *frame)
{
    const uint64_t good = RTE_MBUF_F_RX_L4_CKSUM_GOOD;
    const struct rte_mbuf *buffer = queue->received[number];
    if (buffer->pkt_len > LARGEST)
        return -EMSGSIZE;
    frame->bytes = rte_pktmbuf_read(buffer, 0, buffer->pkt_len, queue->whole);
    frame->length = buffer->pkt_len;
    frame->is_verified = (buffer->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK) == good;
    return frame->bytes == NULL ? -EINVAL : 0;
}

// Gives the memory of the taken frames back.
static void release(struct queue *queue)
{
    rte_pktmbuf_free_bulk(queue->received, queue->taken);
    queue->taken = 0;
}

// Drops the frames to send that the port takes no more.
static void drop_waiting(struct queue *queue, uint64_t *count)
{
    *count += queue->waiting;
    rte_pktmbuf_free_bulk(queue->outgoing, queue->waiting);
    queue->waiting = 0;
}

static void count_sent(struct queue *queue, uint16_t sent, const uint32_t *lengths)
{
    queue->sent += sent;
    for (uint16_t number = 0; number < sent; number++)
        queue->sent_bytes += lengths[number];
    queue->waiting -= sent;
    memmove(queue->outgoing, queue->outgoing + sent, queue->waiting * sizeof(queue->outgoing[0]));
}

// Sends what waits, as far as the port takes it. Returns how many frames it has taken.
static uint16_t flush(struct queue *queue)
{
    uint32_t lengths[BURST];
    uint16_t total = 0;
    while (queue->waiting > 0) {
        uint16_t ready = rte_eth_tx_prepare(queue->port, queue->number, queue->outgoing, queue->waiting);
        if (ready == 0) {
            struct rte_mbuf *refused = queue->outgoing[0];
            count_sent(queue, 1, &(uint32_t){ 0 });
            queue->sent--;
            queue->refused++;
            rte_pktmbuf_free(refused);
            continue;
        }
        // Sent frames are the port's.
        for (uint16_t number = 0; number < ready; number++)
            lengths[number] = queue->outgoing[number]->pkt_len;
        uint16_t sent = rte_eth_tx_burst(queue->port, queue->number, queue->outgoing, ready);
        count_sent(queue, sent, lengths);
        total += sent;
        if (sent == 0) {
            struct rte_eth_link link = { 0 };
            if (rte_eth_link_get_nowait(queue->port, &link) == 0 && link.link_status == RTE_ETH_LINK_DOWN)
                drop_waiting(queue, &queue->down);
            break;
        }
    }
    return total;
}

// Where the next frame is written; NULL while no more can wait.
static uint8_t *room(struct queue *queue, uint32_t *length)
{
    if (queue->waiting == BURST)
        flush(queue);
    if (queue->waiting == BURST)
        return NULL;
    *length = queue->room_bytes;
    if (queue->super_segment != NULL)
        return queue->super_segment;
    if (queue->next == NULL)
        queue->next = rte_pktmbuf_alloc(queue->sending);
    if (queue->next == NULL)
        return NULL;
    return rte_pktmbuf_mtod(queue->next, uint8_t *);
}

// Copies bytes to a chain of buffers; NULL without memory.
static struct rte_mbuf *chain(struct queue *queue, const uint8_t *bytes, uint32_t length)
{
    struct rte_mbuf *head = rte_pktmbuf_alloc(queue->sending);
    struct rte_mbuf *last = head;
    while (last != NULL) {
        uint16_t part = RTE_MIN(length, (uint32_t)rte_pktmbuf_tailroom(last));
        memcpy(rte_pktmbuf_mtod(last, uint8_t *), bytes, part);
        last->data_len = part;
        head->pkt_len += part;
        bytes += part;
        length -= part;
        if (length == 0)
            return head;
        last->next = rte_pktmbuf_alloc(queue->sending);
        last = last->next;
        head->nb_segs++;
    }
    if (head != NULL) {
        head->nb_segs--;
        rte_pktmbuf_free(head);
    }
    return NULL;
}

static uint64_t flags(const struct offload *offload)
{
    uint64_t flags = 0;
    if (offload->bits & FORM_CHECKSUM) {
        flags |= offload->bits & IS_UDP ? RTE_MBUF_F_TX_UDP_CKSUM : RTE_MBUF_F_TX_TCP_CKSUM;
        flags |= offload->bits & IS_V6 ? RTE_MBUF_F_TX_IPV6 : RTE_MBUF_F_TX_IPV4;
    }
    if (offload->bits & SEGMENT)
        flags |= RTE_MBUF_F_TX_TCP_SEG | (offload->bits & IS_V6 ? 0 : RTE_MBUF_F_TX_IP_CKSUM);
    return flags;
}

// Puts the frame in the room behind those that wait. Its checksum field is as `flags` needs it.
static int send_frame(struct queue *queue, uint32_t length, const struct offload *offload)
{
    struct rte_mbuf *buffer = queue->next;
    if (length > queue->room_bytes || queue->waiting == BURST)
        return -EMSGSIZE;
    if (queue->super_segment != NULL)
        buffer = chain(queue, queue->super_segment, length);
    if (buffer == NULL)
        return -ENOMEM;
    if (queue->super_segment == NULL) {
        buffer->data_len = length;
        buffer->pkt_len = length;
        queue->next = NULL;
    }
    buffer->ol_flags = flags(offload);
    buffer->l2_len = offload->link_bytes;
    buffer->l3_len = offload->network_bytes;
    buffer->l4_len = offload->transport_bytes;
    buffer->tso_segsz = offload->segment_bytes;
    queue->outgoing[queue->waiting++] = buffer;
    return 0;
}

struct counts {
    uint64_t sent;
    uint64_t sent_bytes;
    uint64_t down;
    uint64_t refused;
    uint64_t missed; // of all queues of the port, at queue 0
};

static void counts(const struct queue *queue, struct counts *counts)
{
    struct rte_eth_stats stats;
    counts->sent = queue->sent;
    counts->sent_bytes = queue->sent_bytes;
    counts->down = queue->down;
    counts->refused = queue->refused;
    counts->missed = 0;
    if (queue->number == 0 && rte_eth_stats_get(queue->port, &stats) == 0)
        counts->missed = stats.imissed + stats.rx_nombuf;
}

const struct {
    uint32_t abi;
    const char *(*version)(void);
    int (*start)(int, char **, void (*)(const char *, size_t));
    int (*on_thread)(void (*)(void *), void *);
    int (*port_of)(const char *, uint16_t *);
    int (*port_with_mac)(const uint8_t *, uint16_t *);
    int (*open_port)(uint16_t, const struct request *, struct info *, struct queue **, const char **);
    void (*stop_port)(uint16_t);
    uint16_t (*receive)(struct queue *, uint16_t);
    int (*frame)(struct queue *, uint16_t, struct frame *);
    void (*release)(struct queue *);
    uint8_t *(*room)(struct queue *, uint32_t *);
    int (*send)(struct queue *, uint32_t, const struct offload *);
    uint16_t (*flush)(struct queue *);
    void (*counts)(const struct queue *, struct counts *);
} saiga_dpdk = {
    ABI, rte_version, start, on_thread, port_of, port_with_mac, open_port, stop_port, receive,
    frame, release, room, send_frame, flush, counts,
};
