// about: a thread that unshares its descriptor table: what it closes and opens there is not the others', whose connection goes on
// upgraded: yes
#include "trial.h"
#include <sched.h>

static int line;

static void *apart(void *unused)
{
    (void)unused;
    SAY(unshare(CLONE_FILES));
    SAY(close(line));
    SAY(recv(line, &(char){0}, 1, 0));
    int file = (int)MUST(open("/dev/null", O_RDWR)); /* the lowest number free here */
    say("the same number %d", file == line);
    SAY(write(file, "nowhere", 7));
    SAY(read(file, &(char){0}, 1));
    return NULL;
}

static void server(int fd)
{
    round_trips(fd, SERVER, 100, 64);
    say("end %zd", recv(fd, &(char){0}, 1, 0));
}

static void client(int fd)
{
    pthread_t thread;
    line = fd;
    round_trips(fd, CLIENT, 50, 64);
    MUST(-pthread_create(&thread, NULL, apart, NULL));
    MUST(-pthread_join(thread, NULL));
    round_trips(fd, CLIENT, 50, 64);
    SAY(close(fd));
}

int main(void)
{
    return run_pair(server, client);
}
