/* The server of programs that try several ways to hand a connection to io_uring: a connection for
 * each, upgraded, with bytes on their way when it is handed over. */
#ifndef EACH_WAY_H
#define EACH_WAY_H
#include "trial.h"

SHARED void serve_each_way(int fd, int listener, int ways)
{
    char text[16];
    for (int way = 0; way < ways; way++) {
        int one = accept_at(listener);
        round_trips(one, SERVER, 60, 64);
        send_all(one, "in flight", 9);
        meet();
        memset(text, 0, sizeof text);
        recv_all(one, text, 7);
        say("%d: %s", way, text);
        round_trips(one, SERVER, 20, 64);
        say("end %zd", recv(one, text, 1, 0));
        MUST(close(one));
    }
    prove(fd, SERVER); /* the first connection: no ring has named it */
}
#endif
