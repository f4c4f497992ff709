// about: FIONREAD, SIOCOUTQ, SIOCOUTQNSD, SIOCATMARK, TCGETS and unknown requests on fresh, listening, connected and ended sockets
// upgraded: yes
#include "trial.h"
#include <linux/fs.h>
#include <linux/sockios.h>
#include <termios.h>

static void ask(int fd, const char *when)
{
    struct termios terminal;
    int value = -1;
    say("[%s]", when);
    SAY(ioctl(fd, FIONREAD, &value));
    say("  %d", value);
    value = -1;
    SAY(ioctl(fd, SIOCATMARK, &value));
    say("  %d", value);
    value = -1;
    SAY(ioctl(fd, SIOCOUTQ, &value));
    say("  plausible %d", value == -1 || (value >= 0 && value < 1 << 24));
    SAY(ioctl(fd, SIOCOUTQNSD, &value));
    SAY(ioctl(fd, TCGETS, &terminal));
    SAY(ioctl(fd, TIOCGWINSZ, &terminal));
    SAY(ioctl(fd, 0x7fff, &value));
    SAY(ioctl(fd, FIGETBSZ, &value));
}

static void server(int fd)
{
    int listener = listen_at("127.0.0.1"), fresh = (int)MUST(socket(AF_INET, SOCK_STREAM, 0));
    ask(fresh, "fresh");
    ask(listener, "listening");
    meet();
    send_all(fd, "seven b", 7);
    MUST(shutdown(fd, SHUT_WR));
    ask(fd, "shut down");
    meet();
}

static void client(int fd)
{
    char text[8];
    ask(fd, "connected");
    meet();
    await_event(fd, POLLRDHUP);
    await_bytes(fd, 7);
    ask(fd, "seven bytes and the end");
    recv_all(fd, text, 7);
    int value = -1;
    SAY(ioctl(fd, FIONREAD, &value));
    say("at the end %d", value);
    SAY(recv(fd, text, 1, 0));
    meet();
    MUST(close(fd));
    SAY(ioctl(fd, FIONREAD, &value));
}

int main(void)
{
    return run_pair(server, client);
}
