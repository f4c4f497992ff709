// about: dprintf and vdprintf on an upgraded connection between sends: everything in order
// upgraded: yes
// variants: plain fortified
#include "trial.h"

#define ROUNDS 40

static void server(int fd)
{
    char text[64];
    int wrong = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char expected[64];
        int length = snprintf(expected, sizeof expected, "<%d>[%04d](%d)", i, i, i);
        memset(text, 0, sizeof text);
        recv_all(fd, text, (size_t)length);
        wrong += strcmp(text, expected) != 0;
        send_all(fd, "ok", 2);
    }
    say("wrong %d", wrong);
}

static void by_list(int fd, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    MUST(vdprintf(fd, format, list));
    va_end(list);
}

static void client(int fd)
{
    char text[16];
    for (int i = 0; i < ROUNDS; i++) {
        int length = snprintf(text, sizeof text, "<%d>", i);
        send_all(fd, text, (size_t)length);
        if (dprintf(fd, "[%04d]", i) != 6)
            give_up("dprintf");
        by_list(fd, "(%d)", i);
        recv_all(fd, text, 2);
    }
    say("done");
}

int main(void)
{
    return run_pair(server, client);
}
