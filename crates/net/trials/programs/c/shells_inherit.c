// about: system, popen and wordexp start a shell that writes to an inherited connection, on which bytes are on their way
// upgraded: yes
#include "trial.h"
#include <wordexp.h>

extern FILE *_IO_popen(const char *, const char *);

static void server(int fd)
{
    char text[16] = {0};
    int listener = open_door();
    for (int way = 0; way < 5; way++) {
        int one = warm_server(listener);
        send_all(one, "in flight", 9);
        meet();
        recv_all(one, text, 6);
        text[5] = 0;
        say("%s", text);
        round_trips(one, SERVER, 20, 64);
        MUST(close(one));
    }
    prove(fd, SERVER); /* close-on-exec */
}

/* The shell reads and writes the connection; its own output is what the caller reads. */
static void run(int way, const char *command)
{
    char word[64];
    wordexp_t words;
    switch (way) {
    case 0:
        say("system %d", system(command));
        break;
    case 1:
    case 2: {
        FILE *pipe = way == 1 ? popen(command, "r") : _IO_popen(command, "r");
        say("popen %s", fgets(word, sizeof word, pipe) ? "said" : "nothing");
        say("%s, pclose %d", word, pclose(pipe));
        break;
    }
    case 3:
        snprintf(word, sizeof word, "$(%s)", command);
        say("wordexp %d", wordexp(word, &words, 0));
        say("%zu: %s", words.we_wordc, words.we_wordv[0]);
        wordfree(&words);
        break;
    default: { /* its input is ours */
        FILE *pipe = popen("sh", "w");
        fputs(command, pipe);
        say("pclose %d", pclose(pipe));
    }
    }
}

static void client(int fd)
{
    int port = find_door();
    MUST(fcntl(fd, F_SETFD, FD_CLOEXEC));
    for (int way = 0; way < 5; way++) {
        char command[48], text[16] = {0};
        int one = connect_at("127.0.0.1", port);
        if (one > 9)
            give_up("the shell takes one digit");
        warm_up(one, CLIENT);
        await_bytes(one, 9);
        meet();
        snprintf(command, sizeof command, "echo hello >&%d; echo done", one);
        if (way % 4 == 0) /* prints nothing */
            snprintf(command, sizeof command, "echo hello >&%d", one);
        run(way, command);
        recv_all(one, text, 9);
        say("%s", text);
        round_trips(one, CLIENT, 20, 64);
        MUST(close(one));
    }
    prove(fd, CLIENT);
}

int main(void)
{
    return run_pair(server, client);
}
