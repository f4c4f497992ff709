// about: records sent by several threads at once arrive whole, and several receivers lose nothing
// upgraded: yes
#include "trial.h"

#define RECORDS 3000
#define SENDERS 3

static int line;
static uint64_t sum;

static void *send_records(void *argument)
{
    unsigned char record[64];
    memset(record, *(int *)argument + 1, sizeof record);
    for (int i = 0; i < RECORDS; i++)
        if (MUST(send(line, record, sizeof record, 0)) != sizeof record)
            give_up("a blocking send of 64 bytes in part");
    return NULL;
}

static void *receive_bytes(void *unused)
{
    unsigned char block[256];
    ssize_t got;
    while ((got = MUST(recv(line, block, sizeof block, 0))) > 0)
        for (ssize_t i = 0; i < got; i++)
            __atomic_fetch_add(&sum, block[i], __ATOMIC_RELAXED);
    return unused;
}

static void server(int fd)
{
    unsigned char record[64];
    int counts[SENDERS + 1] = {0}, torn = 0;
    for (int i = 0; i < RECORDS * SENDERS; i++) {
        recv_all(fd, record, sizeof record);
        for (size_t at = 1; at < sizeof record; at++)
            torn += record[at] != record[0];
        counts[record[0] <= SENDERS ? record[0] : 0]++;
    }
    say("torn %d, records %d %d %d, other %d", torn, counts[1], counts[2], counts[3], counts[0]);
    memset(record, 7, sizeof record);
    for (int i = 0; i < RECORDS; i++)
        send_all(fd, record, sizeof record);
    MUST(shutdown(fd, SHUT_WR));
    say("end %zd", recv(fd, record, 1, 0));
}

static void client(int fd)
{
    pthread_t threads[SENDERS];
    int numbers[SENDERS];
    line = fd;
    for (int i = 0; i < SENDERS; i++) {
        numbers[i] = i;
        MUST(pthread_create(&threads[i], NULL, send_records, &numbers[i]));
    }
    for (int i = 0; i < SENDERS; i++)
        MUST(pthread_join(threads[i], NULL));
    for (int i = 0; i < 2; i++)
        MUST(pthread_create(&threads[i], NULL, receive_bytes, NULL));
    for (int i = 0; i < 2; i++)
        MUST(pthread_join(threads[i], NULL));
    say("sum %llu", (unsigned long long)sum);
    MUST(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
