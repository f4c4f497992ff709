// about: records of two threads by writev, and by sendmsg, of forty parts each arrive whole
// upgraded: yes
#include "trial.h"
#include <sys/uio.h>

#define PARTS 40
#define PART 8
#define ROUNDS 400

static int line;
static pthread_barrier_t both;

static void *send_records(void *number)
{
    static unsigned char bytes[2][PARTS][PART];
    int me = *(int *)number;
    struct iovec parts[PARTS];
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = PARTS};
    for (int i = 0; i < PARTS; i++)
        parts[i] = (struct iovec){memset(bytes[me][i], me + 1, PART), PART};
    for (int i = 0; i < ROUNDS; i++) {
        pthread_barrier_wait(&both);
        ssize_t sent = i % 2 ? writev(line, parts, PARTS) : sendmsg(line, &message, 0);
        if (MUST(sent) != PARTS * PART)
            give_up("a blocking send in part");
    }
    return NULL;
}

static void server(int fd)
{
    unsigned char record[PARTS * PART];
    int torn = 0, counts[3] = {0};
    for (int i = 0; i < 2 * ROUNDS; i++) {
        recv_all(fd, record, sizeof record);
        counts[record[0] < 3 ? record[0] : 0]++;
        for (size_t at = 1; at < sizeof record; at++)
            if (record[at] != record[0]) {
                torn++;
                break;
            }
    }
    say("torn %d; %d and %d", torn, counts[1], counts[2]);
}

static void client(int fd)
{
    pthread_t threads[2];
    int numbers[2] = {0, 1};
    line = fd;
    MUST(pthread_barrier_init(&both, NULL, 2));
    for (int i = 0; i < 2; i++)
        MUST(-pthread_create(&threads[i], NULL, send_records, &numbers[i]));
    for (int i = 0; i < 2; i++)
        MUST(-pthread_join(threads[i], NULL));
}

int main(void)
{
    return run_pair(server, client);
}
