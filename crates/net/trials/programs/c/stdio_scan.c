// about: getline, getdelim, ungetc, fscanf, fread, feof, ferror, clearerr and fileno on a connection that was upgraded
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    meet();
    send_all(fd, "a line\nparts;of it\n42 0x1f word\n", 32);
    send_all(fd, "0123456789ABCDEF", 16);
    char text[64] = {0};
    recv_all(fd, text, 1);
    MUST(shutdown(fd, SHUT_WR));
    recv_all(fd, text, 11);
    say("%s", text);
    say("end %zd", recv(fd, text, 1, 0));
}

static void client(int fd)
{
    FILE *in = fdopen(fd, "r");
    char *line = NULL, word[16];
    size_t room = 0;
    int small = 0, hex = 0;
    say("the same number %d", fileno(in) == fd);
    meet();
    say("%zd", getline(&line, &room, in));
    say("%s", strtok(line, "\n"));
    say("%zd", getdelim(&line, &room, ';', in));
    say("%s", line);
    int byte = getc(in);
    say("%c, back: %d", byte, ungetc('O', in) == 'O');
    say("%zd %.4s", getline(&line, &room, in), line);
    int found = fscanf(in, "%d %x %15s\n", &small, (unsigned *)&hex, word);
    say("%d: %d %d %s", found, small, hex, word);
    char block[16] = {0};
    say("%zu %.8s", fread(block, 4, 2, in), block);
    say("%zu %.3s", fread(block, 1, 3, in), block);
    say("end %d, error %d", feof(in), ferror(in));
    send_all(fd, "!", 1);
    say("%zu %.5s", fread(block, 1, 16, in), block);
    say("end %d, error %d", feof(in), ferror(in));
    clearerr(in);
    say("end %d", feof(in));
    say("%d, end %d", getc(in), feof(in));
    free(line);
    send_all(fd, "by the call", 11);
    say("close %d", fclose(in));
    SAY(fcntl(fd, F_GETFD));
}

int main(void)
{
    return run_pair(server, client);
}
