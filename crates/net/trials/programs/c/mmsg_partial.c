// about: recvmmsg and sendmmsg that find less than asked: counts, MSG_WAITFORONE, timeouts, an error behind a success
// upgraded: yes
#include "trial.h"

static char texts[8][4];
static struct iovec parts[8];
static struct mmsghdr messages[8];

static void reset(void)
{
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < 8; i++) {
        parts[i] = (struct iovec){texts[i], 4};
        messages[i].msg_hdr = (struct msghdr){.msg_iov = &parts[i], .msg_iovlen = 1};
    }
}

static void lengths(const char *what, int count)
{
    char line[64] = "";
    for (int i = 0; i < count; i++)
        snprintf(line + strlen(line), sizeof line - strlen(line), " %u", messages[i].msg_len);
    say("%s:%s", what, line);
}

static void server(int fd)
{
    meet();
    send_all(fd, "aaaabbbbccc", 11);
    meet();
    meet();
    send_all(fd, "dddd", 4);
    meet();
    MUST(shutdown(fd, SHUT_WR));
    meet();
    char block[64];
    recv_all(fd, block, 32);
    say("%.32s", block);
    meet();
    meet();
}

static void client(int fd)
{
    struct timespec brief = {.tv_nsec = SHORT_MS * 1000000};
    reset();
    SAY(recvmmsg(fd, messages, 8, MSG_DONTWAIT, NULL));
    meet();
    await_bytes(fd, 11);
    reset();
    SAY(recvmmsg(fd, messages, 8, MSG_DONTWAIT, NULL));
    lengths("what was there", 3);
    meet();
    meet();
    reset();
    SAY(recvmmsg(fd, messages, 8, MSG_WAITFORONE, NULL));
    lengths("one", 1);
    reset();
    SAY(recvmmsg(fd, messages, 0, 0, &brief));
    meet();
    await_event(fd, POLLRDHUP);
    reset();
    SAY(recvmmsg(fd, messages, 2, 0, NULL)); /* ends, twice */
    lengths("ends", 2);
    reset();
    memcpy(texts, "onetwothreefoursfiveandsixanhalf", 32);
    SAY(sendmmsg(fd, messages, 8, MSG_NOSIGNAL));
    lengths("sent", 8);
    meet();
    meet();
    reset();
    parts[1] = (struct iovec){NULL, 4};
    SAY(sendmmsg(fd, messages, 3, MSG_NOSIGNAL)); /* the first goes, the second is a fault */
    SAY(sendmmsg(fd, messages + 1, 1, MSG_NOSIGNAL));
    SAY(sendmmsg(-1, messages, 3, 0));
    meet();
}

int main(void)
{
    return run_pair(server, client);
}
