// about: threads cancelled in poll, ppoll, select, epoll_wait, recvmsg, readv and read; handlers run, the connection goes on
// upgraded: yes
#include "trial.h"

static int line, way, set;
static pid_t sleeper;
static pthread_barrier_t ready;

static void undo(void *unused)
{
    (void)unused;
    say("cleaned up");
}


#define WAYS 7

static void *blocked(void *unused)
{
    char text[8];
    struct iovec part = {text, 8};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    struct pollfd entry = {.fd = line, .events = POLLIN};
    struct epoll_event event;
    fd_set in;
    FD_ZERO(&in);
    FD_SET(line, &in);
    sleeper = gettid();
    pthread_barrier_wait(&ready);
    pthread_cleanup_push(undo, NULL);
    switch (way) {
    case 0: poll(&entry, 1, -1); break;
    case 1: ppoll(&entry, 1, NULL, NULL); break;
    case 2: select(line + 1, &in, NULL, NULL, NULL); break;
    case 3: epoll_wait(set, &event, 1, -1); break;
    case 4: recvmsg(line, &message, 0); break;
    case 5: readv(line, &part, 1); break;
    default: read(line, text, 8); break;
    }
    say("not reached");
    pthread_cleanup_pop(0);
    return unused;
}

static void server(int fd)
{
    meet();
    round_trips(fd, SERVER, 150, 64);
}

static void client(int fd)
{
    line = fd;
    MUST(pthread_barrier_init(&ready, NULL, 2));
    set = (int)MUST(epoll_create1(0));
    struct epoll_event want = {.events = EPOLLIN};
    MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &want));
    for (way = 0; way < WAYS; way++) {
        pthread_t thread;
        void *result;
        MUST(pthread_create(&thread, NULL, blocked, NULL));
        pthread_barrier_wait(&ready);
        await_asleep(sleeper);
        MUST(pthread_cancel(thread));
        MUST(pthread_join(thread, &result));
        say("way %d cancelled %d", way, result == PTHREAD_CANCELED);
    }
    meet();
    round_trips(fd, CLIENT, 150, 64);
}

int main(void)
{
    return run_pair(server, client);
}
