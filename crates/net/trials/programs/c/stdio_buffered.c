// about: fdopen for writing with a full buffer, line buffer and none, fprintf, fputc and fclose; nothing is early or lost
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    char text[128] = {0};
    static const int sizes[] = {0, 13, 13};
    for (int i = 0; i < 3; i++) {
        meet();
        int pending = 0;
        await_bytes(fd, sizes[i]);
        MUST(ioctl(fd, FIONREAD, &pending));
        say("before the flush %d", pending);
        meet();
        memset(text, 0, sizeof text);
        recv_all(fd, text, 14);
        say("%s", text);
    }
    say("end %zd", recv(fd, text, 1, 0));
}

static void client(int fd)
{
    static const int modes[] = {_IOFBF, _IOLBF, _IONBF};
    for (int i = 0; i < 3; i++) {
        FILE *stream = fdopen(i < 2 ? dup(fd) : fd, "w");
        if (stream == NULL || setvbuf(stream, NULL, modes[i], i == 2 ? 0 : 4096) != 0)
            give_up("setvbuf");
        fprintf(stream, "%s %03d\n", "a number", 42 + i - 1);
        if (i < 2)
            fputc('.', stream);
        meet();
        meet();
        if (i == 2)
            fputc('.', stream);
        MUST(fclose(stream));
    }
}

int main(void)
{
    return run_pair(server, client);
}
