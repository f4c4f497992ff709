// about: fdopen: line traffic through stdio in both directions on what was an upgraded connection
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    FILE *stream = fdopen(fd, "r+");
    char line[128];
    int count = 0;
    while (fgets(line, sizeof line, stream) != NULL) {
        count++;
        fseek(stream, 0, SEEK_CUR);
        fprintf(stream, "%d: %s", count, line);
        fflush(stream);
    }
    say("lines %d, error %d", count, ferror(stream) != 0);
    fclose(stream);
}

static void client(int fd)
{
    char line[128];
    int other = (int)MUST(dup(fd));
    FILE *in = fdopen(fd, "r"), *out = fdopen(other, "w");
    setvbuf(out, NULL, _IOLBF, 0);
    for (int i = 0; i < 100; i++) {
        fprintf(out, "line number %d\n", i);
        if (fgets(line, sizeof line, in) == NULL)
            give_up("no answer");
        if (i % 33 == 0)
            say("%s", strtok(line, "\n"));
    }
    MUST(shutdown(fd, SHUT_WR));
    say("end of file: %d", fgets(line, sizeof line, in) == NULL && feof(in));
    fclose(in);
    fclose(out);
}

int main(void)
{
    return run_pair(server, client);
}
