// about: values of SO_RCVTIMEO and SO_SNDTIMEO that are odd: too short, negative, more than a second of microseconds, very long, none
// upgraded: yes
#include "trial.h"

static void try(int fd, const char *what, int option, long seconds, long micros)
{
    struct timeval wait = {.tv_sec = seconds, .tv_usec = micros}, back = {.tv_sec = -7, .tv_usec = -7};
    socklen_t length = sizeof back;
    say_rc(what, setsockopt(fd, SOL_SOCKET, option, &wait, sizeof wait));
    MUST(getsockopt(fd, SOL_SOCKET, option, &back, &length));
    say("  reads %ld.%06ld", (long)back.tv_sec, (long)back.tv_usec);
}

static void server(int fd)
{
    char text[8];
    meet();
    recv_all(fd, text, 1);
    send_all(fd, "now", 3);
    recv_all(fd, text, 1);
    send_all(fd, "now", 3);
}

static void client(int fd)
{
    char text[8];
    static const int options[] = {SO_RCVTIMEO, SO_SNDTIMEO};
    for (int i = 0; i < 2; i++) {
        try(fd, "an hour", options[i], 3600, 0);
        try(fd, "a million microseconds", options[i], 0, 1000000);
        try(fd, "negative microseconds", options[i], 0, -1);
        try(fd, "half a second", options[i], 0, 500000);
        try(fd, "negative seconds", options[i], -1, 0); /* as if it were over: no wait */
        try(fd, "for ever and a day", options[i], 0x7fffffffffffffff, 0);
        try(fd, "none", options[i], 0, 0);
    }
    try(fd, "negative", SO_RCVTIMEO, -5, 0);
    SAY(recv(fd, text, 1, 0)); /* does not wait for ever */
    meet();
    try(fd, "none", SO_RCVTIMEO, 0, 0);
    send_all(fd, "?", 1);
    recv_all(fd, text, 3);
    try(fd, "long", SO_RCVTIMEO, 0x7fffffffffffffff, 999999);
    send_all(fd, "?", 1);
    say("%zd", recv(fd, text, 3, MSG_WAITALL));
}

int main(void)
{
    return run_pair(server, client);
}
