// about: stdio on a connection that is reset, shut down, or does not block: EOF, ferror, errno, and SIGPIPE from fflush and fclose
// upgraded: yes
#include "trial.h"

static void server(int fd)
{
    int listener = open_door();
    char byte;
    close_hard(fd);
    int other = warm_server(listener);
    say("end %zd", recv(other, &byte, 1, 0));
    MUST(close(other));
    other = warm_server(listener);
    meet();
    send_all(other, "word\n", 5);
    say("end %zd", recv(other, &byte, 1, 0));
}

static void client(int fd)
{
    char line[64];
    int port = find_door();
    count_signals(SIGPIPE, 0);
    await_event(fd, POLLERR);
    FILE *stream = fdopen(fd, "r+");
    errno = 0;
    int got = fgets(line, sizeof line, stream) == NULL; /* Arguments of one call are evaluated in any order. */
    say("reset: %d %s, end %d, error %d", got, strerrorname_np(errno), feof(stream), ferror(stream));
    clearerr(stream);
    got = getc(stream);
    say("then: %d, end %d, error %d", got, feof(stream), ferror(stream));
    fputs("into the void", stream);
    errno = 0;
    got = fflush(stream);
    say("flush %d %s, signals %d", got, strerrorname_np(errno), (int)trial_signals);
    fclose(stream);

    int other = warm_client(port);
    stream = fdopen(other, "w");
    MUST(shutdown(other, SHUT_WR));
    trial_signals = 0;
    fprintf(stream, "late");
    errno = 0;
    got = fclose(stream);
    say("close %d %s, signals %d", got, strerrorname_np(errno), (int)trial_signals);
    SAY(fcntl(other, F_GETFD));

    other = warm_client(port);
    MUST(fcntl(other, F_SETFL, O_RDWR | O_NONBLOCK));
    stream = fdopen(other, "r");
    errno = 0;
    got = fgets(line, sizeof line, stream) == NULL;
    say("nothing yet: %d %s, end %d, error %d", got, strerrorname_np(errno), feof(stream), ferror(stream));
    meet();
    await_event(other, POLLIN);
    await_bytes(other, 5);
    clearerr(stream);
    say("now: %d", fgets(line, sizeof line, stream) != NULL);
    say("%.4s", line);
    fclose(stream);
}

int main(void)
{
    return run_pair(server, client);
}
