/* A PostgreSQL client that waits for notifications, as an event loop does: psql
 * looks for them only after a query.
 *
 * listener PORT CHANNEL    prints "listening BACKEND", then "heard PAYLOAD" per notification.
 * Speaks protocol 3.0 to 127.0.0.1 as user postgres, who needs no password. */
#include "trial.h"

#define BODY 4096

static uint32_t number_at(const char *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return ntohl(value);
}

/* The next message's kind; its body is stored with a NUL behind it. */
static char next_message(int fd, char body[BODY])
{
    char head[5];
    await_event(fd, POLLIN);
    recv_all(fd, head, sizeof head);
    size_t length = number_at(head + 1) - 4;
    if (length >= BODY)
        give_up("a message of %zu bytes", length);
    recv_all(fd, body, length);
    body[length] = 0;
    return head[0];
}

/* Reads until the server waits for a query; the backend's pid if it was told. */
static uint32_t await_ready(int fd)
{
    char body[BODY];
    uint32_t backend = 0;
    for (char kind = 0; kind != 'Z';) {
        kind = next_message(fd, body);
        if (kind == 'K')
            backend = number_at(body);
        if (kind == 'E')
            give_up("the server says %s", body);
    }
    return backend;
}

static void query(int fd, const char *text)
{
    char message[256];
    size_t length = strlen(text) + 1;
    uint32_t told = htonl((uint32_t)(length + 4));
    message[0] = 'Q';
    memcpy(message + 1, &told, 4);
    memcpy(message + 5, text, length);
    send_all(fd, message, length + 5);
}

static uint32_t log_in(int fd)
{
    static const char words[] = "user\0postgres\0database\0postgres\0";
    char message[8 + sizeof words];
    uint32_t head[2] = {htonl(sizeof message), htonl(3 << 16)};
    memcpy(message, head, sizeof head);
    memcpy(message + sizeof head, words, sizeof words);
    send_all(fd, message, sizeof message);
    return await_ready(fd);
}

int main(int argc, char **argv)
{
    char body[BODY], text[128];
    if (argc != 3)
        return 2;
    MUST(prctl(PR_SET_PDEATHSIG, SIGKILL));
    int fd = connect_at("127.0.0.1", atoi(argv[1]));
    uint32_t backend = log_in(fd);
    for (int i = 0; i < 30; i++) {
        query(fd, "select 1");
        await_ready(fd);
    }
    snprintf(text, sizeof text, "listen %s", argv[2]);
    query(fd, text);
    await_ready(fd);
    printf("listening %u\n", backend);
    fflush(stdout);
    for (;;) {
        if (next_message(fd, body) != 'A')
            continue;
        /* The sender's pid, the channel, the payload. */
        printf("heard %s\n", body + 4 + strlen(body + 4) + 1);
        fflush(stdout);
    }
}
