// about: F_SETSIG, F_SETOWN and F_SETOWN_EX: the chosen signal tells which descriptor and which event, and who owns it can be read back
// upgraded: any
#include "trial.h"

static volatile sig_atomic_t told_fd = -1;
static volatile long told_band;

static void on_io(int number, siginfo_t *info, void *unused)
{
    (void)number;
    (void)unused;
    told_fd = info->si_fd;
    told_band |= info->si_band;
    trial_signals++;
}

static void server(int fd)
{
    round_trips(fd, SERVER, 50, 64);
    meet();
    send_all(fd, "data", 4);
    meet();
    round_trips(fd, SERVER, 50, 64);
}

static void client(int fd)
{
    struct sigaction action = {.sa_sigaction = on_io, .sa_flags = SA_SIGINFO | SA_RESTART};
    struct f_owner_ex owner = {.type = F_OWNER_TID, .pid = gettid()}, back = {0};
    int number = SIGRTMIN + 2;
    MUST(sigaction(number, &action, NULL));
    SAY(fcntl(fd, F_GETSIG));
    SAY(fcntl(fd, F_SETSIG, number));
    say("signal kept %d", fcntl(fd, F_GETSIG) == number);
    SAY(fcntl(fd, F_SETSIG, 999));
    SAY(fcntl(fd, F_SETOWN, getpid()));
    say("owner kept %d", fcntl(fd, F_GETOWN) == getpid());
    SAY(fcntl(fd, F_SETOWN_EX, &owner));
    SAY(fcntl(fd, F_GETOWN_EX, &back));
    say("thread kept %d %d", back.type == F_OWNER_TID, back.pid == owner.pid);
    round_trips(fd, CLIENT, 50, 64); /* O_ASYNC is not set: silent */
    say("signals %d", (int)trial_signals);
    SAY(fcntl(fd, F_SETFL, O_RDWR | O_ASYNC));
    meet();
    await_event(fd, POLLIN);
    while (trial_signals == 0)
        poll(NULL, 0, 1);
    say("told of it %d, of input %d", told_fd == fd, (told_band & POLLIN) != 0);
    char text[4];
    recv_all(fd, text, 4);
    SAY(fcntl(fd, F_SETFL, O_RDWR));
    meet();
    round_trips(fd, CLIENT, 50, 64);
}

int main(void)
{
    return run_pair(server, client);
}
