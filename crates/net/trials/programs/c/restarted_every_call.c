// about: SA_RESTART: each blocking receive, accept and splice goes on after a handler and brings what comes later
// upgraded: yes
#include "trial.h"

enum { WAYS = 8 };
static int line, listener, tube[2], way;

static void blocked(void)
{
    char text[8] = {0};
    struct iovec part = {text, 4};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct mmsghdr many = {.msg_hdr = message};
    long rc = -1;
    switch (way) {
    case 0: rc = read(line, text, 4); break;
    case 1: rc = readv(line, &part, 1); break;
    case 2: rc = recvfrom(line, text, 4, 0, NULL, NULL); break;
    case 3: rc = recvmsg(line, &message, MSG_PEEK); break;
    case 4: rc = recvmsg(line, &message, MSG_WAITALL); break;
    case 5: rc = recvmmsg(line, &many, 1, 0, NULL); break;
    case 6: rc = preadv2(line, &part, 1, -1, 0); break;
    default:
        rc = splice(line, NULL, tube[1], NULL, 4, 0);
        MUST(read(tube[0], text, 4));
    }
    say("way %d: %ld '%s', after a signal %d", way, rc, text, (int)trial_signals > 0);
    if (way == 3)
        recv_all(line, text, 4);
}

static void accepting(void)
{
    int fd = accept_at(listener);
    say("accepted after a signal %d", (int)trial_signals > 0);
    char byte;
    say("end %zd", recv(fd, &byte, 1, 0));
}

static void server(int fd)
{
    for (int i = 0; i < WAYS; i++) {
        meet(); /* a signal has been handled over there */
        send_all(fd, "late", 4);
        meet();
    }
    int port = find_door();
    meet();
    MUST(close(connect_at("127.0.0.1", port)));
    meet();
}

static void signalled(struct sleeper *sleeper)
{
    MUST(-pthread_kill(sleeper->thread, SIGUSR1));
    while (trial_signals == 0)
        poll(NULL, 0, 1);
    await_asleep(sleeper->tid);
    meet();
    join_sleeper(sleeper);
}

static void client(int fd)
{
    struct sleeper sleeper;
    line = fd;
    MUST(pipe(tube));
    for (way = 0; way < WAYS; way++) {
        count_signals(SIGUSR1, SA_RESTART);
        start_sleeper(&sleeper, blocked);
        signalled(&sleeper);
        meet();
    }
    listener = open_door();
    count_signals(SIGUSR1, SA_RESTART);
    start_sleeper(&sleeper, accepting);
    signalled(&sleeper);
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
