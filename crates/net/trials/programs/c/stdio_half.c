// about: one end turns to stdio while nothing is under way, the other keeps to send and recv
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    char line[64];
    meet();
    send_all(fd, "two lines\nand more\n", 19);
    for (int i = 0; i < 50; i++) {
        recv_all(fd, line, 6);
        send_all(fd, "pong!\n", 6);
    }
    say("end %zd", recv(fd, line, 1, 0));
}

static void client(int fd)
{
    char line[64];
    FILE *stream = fdopen(fd, "r+");
    meet();
    for (int i = 0; i < 2; i++)
        say("%s", strtok(fgets(line, sizeof line, stream), "\n"));
    for (int i = 0; i < 50; i++) {
        fseek(stream, 0, SEEK_CUR);
        fputs("ping!\n", stream);
        fflush(stream);
        if (fgets(line, sizeof line, stream) == NULL || strcmp(line, "pong!\n") != 0)
            give_up("no pong");
    }
    fclose(stream);
    say("done");
}

int main(void)
{
    return run_pair(server, client);
}
