// about: 5000 small messages one way for each one the other way, taken in one call: both ends
// about: still meet, with the evidence that is usual
// upgraded: yes
// env: SAIGA_EVIDENCE_MESSAGES=64
#include "trial.h"

#define BURST 5000
#define ROUNDS 80

static void talker(int fd, enum role role)
{
    uint64_t value[2], answer;
    for (uint64_t round = 0; round < ROUNDS; round++) {
        for (uint64_t i = 0; i < BURST; i++) {
            value[0] = round;
            value[1] = i;
            send_all(fd, value, sizeof value);
        }
        recv_all(fd, &answer, sizeof answer);
        if (answer != round)
            give_up("another answer");
    }
    say("talked");
    prove(fd, role);
}

static void listener(int fd, enum role role)
{
    static uint64_t values[BURST][2];
    for (uint64_t round = 0; round < ROUNDS; round++) {
        ssize_t got = MUST(recv(fd, values, sizeof values, MSG_WAITALL));
        if (got != (ssize_t)sizeof values)
            give_up("a short burst");
        for (uint64_t i = 0; i < BURST; i++)
            if (values[i][0] != round || values[i][1] != i)
                give_up("another burst");
        send_all(fd, &round, sizeof round);
    }
    say("listened");
    prove(fd, role);
}

static void talking_server(int fd)
{
    talker(fd, SERVER);
}

static void listening_client(int fd)
{
    listener(fd, CLIENT);
}

static void listening_server(int fd)
{
    listener(fd, SERVER);
}

static void talking_client(int fd)
{
    talker(fd, CLIENT);
}

int main(void)
{
    int first = run_pair_at("127.0.0.1", "127.0.0.1", true, talking_server, listening_client);
    int second = run_pair_at("127.0.0.1", "127.0.0.1", true, listening_server, talking_client);
    return first ? first : second;
}
