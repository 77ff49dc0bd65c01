/* The clock of a private cluster, for all its processes: preloaded, it takes the place of the C
 * library's functions that say what time it is or wait (see clock.py).
 *
 * SHAPLEYPRIO_CLOCK names a file with a Clock, which its owner changes while the cluster runs.
 * Times are nanoseconds; "real" ones are of CLOCK_MONOTONIC, "shown" ones are what processes see,
 * since the epoch. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define SECOND ((int64_t)1000000000)
/* Waits are no shorter, so that a clock that nearly stands still keeps nobody busy. */
#define SHORTEST (SECOND / 10000)
/* So long after its owner has set it the clock goes at its rate, and then as slowly as a real one:
 * an owner that has no time to watch does not let it run away. */
#define UNWATCHED (SECOND / 10)
/* Times of CLOCK_MONOTONIC begin with the machine, those of CLOCK_REALTIME in 1970. */
#define MACHINES_LIFE ((int64_t)500000000 * SECOND)

typedef struct { double rate; int64_t real, shown; } Setting;

typedef struct {
    _Atomic int64_t number; /* of the last setting; it stands at its lowest bit */
    double fastest;         /* no rate is higher */
    int64_t began;          /* what CLOCK_MONOTONIC shows is so much less than CLOCK_REALTIME */
    Setting settings[2];
} Clock;

static const Clock *clock_;

static struct {
    int (*gettime)(clockid_t, struct timespec *);
    int (*nanosleep)(clockid_t, int, const struct timespec *, struct timespec *);
    int (*ppoll)(struct pollfd *, nfds_t, const struct timespec *, const sigset_t *);
    int (*pselect)(int, fd_set *, fd_set *, fd_set *, const struct timespec *, const sigset_t *);
    int (*epoll)(int, struct epoll_event *, int, int, const sigset_t *);
    int (*condition)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
    int (*semaphore)(sem_t *, clockid_t, const struct timespec *);
} real;

static void *next(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        abort();
    return found;
}

/* Finds what it replaces; the first to ask for the time may be older than our own constructor. */
__attribute__((constructor)) static void begin(void) {
    if (real.gettime != NULL)
        return;
    *(void **)&real.nanosleep = next("clock_nanosleep");
    *(void **)&real.ppoll = next("ppoll");
    *(void **)&real.pselect = next("pselect");
    *(void **)&real.epoll = next("epoll_pwait");
    *(void **)&real.condition = next("pthread_cond_clockwait");
    *(void **)&real.semaphore = next("sem_clockwait");
    *(void **)&real.gettime = next("clock_gettime");
    const char *name = getenv("SHAPLEYPRIO_CLOCK");
    int file = name == NULL ? -1 : open(name, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return;
    void *mapped = mmap(NULL, sizeof(Clock), PROT_READ, MAP_SHARED, file, 0);
    close(file);
    if (mapped != MAP_FAILED)
        clock_ = mapped;
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t of(const struct timespec *time) { return time->tv_sec * SECOND + time->tv_nsec; }

static struct timespec spec(int64_t time) {
    return (struct timespec){time / SECOND, time % SECOND};
}

static int64_t real_now(void) {
    struct timespec now;
    begin();
    real.gettime(CLOCK_MONOTONIC, &now);
    return of(&now);
}

static bool is_shown(void) {
    begin();
    return clock_ != NULL;
}

static int64_t shown_now(void) {
    for (;;) {
        int64_t number = atomic_load_explicit(&clock_->number, memory_order_acquire);
        Setting set = clock_->settings[number & 1];
        int64_t passed = real_now() - set.real, watched = least(passed, UNWATCHED);
        atomic_thread_fence(memory_order_acquire);
        if (atomic_load_explicit(&clock_->number, memory_order_relaxed) == number)
            return set.shown + (int64_t)((double)watched * set.rate) + passed - watched;
    }
}

/* Returns when to look again, which is not too late whatever the rate will be. */
static int64_t next_look(int64_t left) {
    int64_t wait = (int64_t)((double)left / clock_->fastest);
    return wait < SHORTEST ? SHORTEST : wait;
}

static struct timespec next_look_at(int64_t left) { return spec(real_now() + next_look(left)); }

/* Returns the moment, as it is shown since the epoch, that a caller means by an absolute time. */
static int64_t moment(const struct timespec *time) {
    return of(time) + (of(time) < MACHINES_LIFE ? clock_->began : 0);
}

/* Sleeps until a moment; returns what is left if a signal comes first. */
static int64_t sleep_until(int64_t until) {
    for (int64_t left; (left = until - shown_now()) > 0;) {
        struct timespec wait = spec(next_look(left));
        if (real.nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL) != 0)
            return left;
    }
    return 0;
}

#define EXPORTED __attribute__((visibility("default")))

/* What time it is */

EXPORTED int clock_gettime(clockid_t id, struct timespec *now) {
    bool since_epoch = id == CLOCK_REALTIME || id == CLOCK_REALTIME_COARSE;
    bool since_boot = id == CLOCK_MONOTONIC || id == CLOCK_MONOTONIC_COARSE ||
                      id == CLOCK_MONOTONIC_RAW || id == CLOCK_BOOTTIME;
    if (!is_shown() || !(since_epoch || since_boot))
        return real.gettime(id, now);
    *now = spec(shown_now() - (since_boot ? clock_->began : 0));
    return 0;
}

EXPORTED int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec time;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &time);
    *now = (struct timeval){time.tv_sec, time.tv_nsec / 1000};
    return 0;
}

EXPORTED time_t time(time_t *now) {
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    if (now != NULL)
        *now = time.tv_sec;
    return time.tv_sec;
}

EXPORTED int timespec_get(struct timespec *now, int base) {
    return base == TIME_UTC && clock_gettime(CLOCK_REALTIME, now) == 0 ? base : 0;
}

/* Sleeping */

EXPORTED int clock_nanosleep(clockid_t id, int flags, const struct timespec *time,
                             struct timespec *rest) {
    if (!is_shown() || time->tv_sec < 0 || time->tv_nsec < 0 || time->tv_nsec >= SECOND)
        return real.nanosleep(id, flags, time, rest);
    bool absolute = (flags & TIMER_ABSTIME) != 0;
    int64_t left = sleep_until(absolute ? moment(time) : shown_now() + of(time));
    if (left > 0 && !absolute && rest != NULL)
        *rest = spec(left);
    return left > 0 ? EINTR : 0;
}

EXPORTED int nanosleep(const struct timespec *time, struct timespec *rest) {
    int error = clock_nanosleep(CLOCK_REALTIME, 0, time, rest);
    errno = error != 0 ? error : errno;
    return error != 0 ? -1 : 0;
}

EXPORTED int usleep(useconds_t time) {
    struct timespec wait = spec((int64_t)time * 1000);
    return nanosleep(&wait, NULL);
}

EXPORTED unsigned sleep(unsigned seconds) {
    struct timespec wait = {seconds, 0}, rest = {0, 0};
    return nanosleep(&wait, &rest) == 0 ? 0 : (unsigned)(rest.tv_sec + (rest.tv_nsec > 0));
}

/* Waiting for files */

EXPORTED int ppoll(struct pollfd *files, nfds_t count, const struct timespec *time,
                   const sigset_t *signals) {
    if (!is_shown() || time == NULL || of(time) <= 0)
        return real.ppoll(files, count, time, signals);
    int64_t until = shown_now() + of(time);
    for (int64_t left; (left = until - shown_now()) > 0;) {
        struct timespec wait = spec(next_look(left));
        int found = real.ppoll(files, count, &wait, signals);
        if (found != 0)
            return found;
    }
    return 0;
}

EXPORTED int poll(struct pollfd *files, nfds_t count, int milliseconds) {
    struct timespec time = spec((int64_t)milliseconds * 1000000);
    return ppoll(files, count, milliseconds < 0 ? NULL : &time, NULL);
}

/* What these are called where the compiler knows how many files there are (_FORTIFY_SOURCE). */

EXPORTED int __poll_chk(struct pollfd *files, nfds_t count, int milliseconds, size_t size) {
    (void)size;
    return poll(files, count, milliseconds);
}

EXPORTED int __ppoll_chk(struct pollfd *files, nfds_t count, const struct timespec *time,
                         const sigset_t *signals, size_t size) {
    (void)size;
    return ppoll(files, count, time, signals);
}

EXPORTED int pselect(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict odd,
                     const struct timespec *restrict time, const sigset_t *restrict signals) {
    if (!is_shown() || time == NULL || of(time) <= 0)
        return real.pselect(count, in, out, odd, time, signals);
    fd_set *sets[] = {in, out, odd}, asked[3];
    for (int set = 0; set < 3; set++)
        if (sets[set] != NULL)
            asked[set] = *sets[set];
    int64_t until = shown_now() + of(time);
    for (int64_t left; (left = until - shown_now()) > 0;) {
        struct timespec wait = spec(next_look(left));
        for (int set = 0; set < 3; set++)
            if (sets[set] != NULL)
                *sets[set] = asked[set];
        int found = real.pselect(count, in, out, odd, &wait, signals);
        if (found != 0)
            return found;
    }
    return 0;
}

EXPORTED int select(int count, fd_set *restrict in, fd_set *restrict out, fd_set *restrict odd,
                    struct timeval *restrict time) {
    struct timespec wait = {0, 0};
    if (time != NULL)
        wait = (struct timespec){time->tv_sec, time->tv_usec * 1000};
    return pselect(count, in, out, odd, time == NULL ? NULL : &wait, NULL);
}

EXPORTED int epoll_pwait(int file, struct epoll_event *events, int most, int milliseconds,
                         const sigset_t *signals) {
    if (!is_shown() || milliseconds <= 0)
        return real.epoll(file, events, most, milliseconds, signals);
    int64_t until = shown_now() + (int64_t)milliseconds * 1000000;
    for (int64_t left; (left = until - shown_now()) > 0;) {
        int wait = (int)(next_look(left) / 1000000) + 1;
        int found = real.epoll(file, events, most, wait, signals);
        if (found != 0)
            return found;
    }
    return 0;
}

EXPORTED int epoll_wait(int file, struct epoll_event *events, int most, int milliseconds) {
    return epoll_pwait(file, events, most, milliseconds, NULL);
}

/* Waiting for threads */

EXPORTED int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                    clockid_t id, const struct timespec *until) {
    if (!is_shown())
        return real.condition(condition, mutex, id, until);
    for (int64_t left; (left = moment(until) - shown_now()) > 0;) {
        struct timespec look = next_look_at(left);
        int error = real.condition(condition, mutex, CLOCK_MONOTONIC, &look);
        if (error != ETIMEDOUT)
            return error;
    }
    return ETIMEDOUT;
}

EXPORTED int sem_clockwait(sem_t *restrict semaphore, clockid_t id,
                           const struct timespec *restrict until) {
    if (!is_shown())
        return real.semaphore(semaphore, id, until);
    for (;;) {
        int64_t left = moment(until) - shown_now();
        struct timespec look = left > 0 ? next_look_at(left) : spec(0);
        if (real.semaphore(semaphore, CLOCK_MONOTONIC, &look) == 0)
            return 0;
        if (errno != ETIMEDOUT || left <= 0)
            return -1;
    }
}

EXPORTED int sem_timedwait(sem_t *restrict semaphore, const struct timespec *restrict until) {
    return sem_clockwait(semaphore, CLOCK_REALTIME, until);
}

/* A condition knows its own clock; on none of ours are times of both alike. */
EXPORTED int pthread_cond_timedwait(pthread_cond_t *restrict condition,
                                    pthread_mutex_t *restrict mutex,
                                    const struct timespec *restrict until) {
    clockid_t id = of(until) < MACHINES_LIFE ? CLOCK_MONOTONIC : CLOCK_REALTIME;
    return pthread_cond_clockwait(condition, mutex, id, until);
}
