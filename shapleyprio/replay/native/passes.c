/* Passes over the jobs of coalitions that serve them first come, first served (see passes.py). */

#include "games.h"
#include "moments.h"

/* Places in a state, and the numbers of an open job. */
enum { NOW, LEFT, CHANGE, FREE, RUNNING, OPEN, PARTS, MOMENT, HIGH, FIXED };
enum { OPEN_WIDTH = 4 };

/* A running job is its end and its processors in one number. */
enum { COUNT_BITS = 24, COUNT = (1 << COUNT_BITS) - 1 };

typedef struct {
    Ints taken;
    Ints heap;
    Ints later;
    Ints open;
} Room;

/* The pass of one coalition; moment is the sum of the seconds of all parts since the begin. */
typedef struct {
    const Arrays *game;
    const uint8_t *members;
    int64_t *taken, *heap, *open;
    int64_t now, left, change, free, running, opened, parts, limit;
    Limbs moment;
} Pass;

/* Puts an entry into a heap that had `size` of them. Each place has four below it; those without an
 * entry hold NEVER. */
static void push(int64_t *heap, int64_t size, int64_t entry) {
    int64_t place = size;
    while (place > 0 && heap[(place - 1) >> 2] > entry) {
        heap[place] = heap[(place - 1) >> 2];
        place = (place - 1) >> 2;
    }
    heap[place] = entry;
}

/* Takes the first entry from a heap that had `size` of them. */
static void pop(int64_t *heap, int64_t size) {
    int64_t last = size - 1, entry = heap[last], place = 0, below;
    heap[last] = NEVER;
    while ((below = 4 * place + 1) < last) {
        int64_t left = below + (heap[below + 1] < heap[below]);
        int64_t right = below + 2 + (heap[below + 3] < heap[below + 2]);
        int64_t first = heap[right] < heap[left] ? right : left;
        if (entry <= heap[first])
            break;
        heap[place] = heap[first];
        place = first;
    }
    if (last > 0)
        heap[place] = entry;
}

/* Returns the sum of so many seconds from a start on, for so many processors. */
static Limbs sum_of_seconds(int64_t start, int64_t seconds, int64_t count) {
    return (Limbs)((Whole)seconds * start + triangular(seconds - 1)) * (Limbs)count;
}

static void put_to_work(Pass *pass, int64_t start, int64_t seconds, int64_t count) {
    push(pass->heap, pass->running++, (start + seconds) * (1 << COUNT_BITS) | count);
    pass->parts += count * seconds;
    pass->moment += sum_of_seconds(start - pass->game->since.at[0], seconds, count);
}

/* Goes on from a state; what was open there may have ended meanwhile. */
static void resume(Pass *pass, const int64_t *state, int64_t k) {
    const Arrays *game = pass->game;
    pass->now = state[NOW];
    pass->left = state[LEFT];
    pass->change = state[CHANGE];
    pass->free = state[FREE];
    pass->running = state[RUNNING];
    pass->parts = state[PARTS];
    pass->moment = joined(state[HIGH], state[MOMENT]);
    memcpy(pass->taken, state + FIXED, (size_t)k * sizeof *state);
    memcpy(pass->heap, state + FIXED + k, (size_t)pass->running * sizeof *state);
    const int64_t *open = state + FIXED + k + pass->running;
    for (int64_t i = 0; i < state[OPEN]; i++, open += OPEN_WIDTH) {
        int64_t job = job_of(game, open[0], open[1]), seconds = game->processing_time.at[job];
        if (game->certain.at[job] == seconds) {
            put_to_work(pass, open[2], seconds, open[3]);
        } else {
            memcpy(pass->open + OPEN_WIDTH * pass->opened++, open, OPEN_WIDTH * sizeof *open);
            pass->limit = least(pass->limit, open[2] + game->certain.at[job]);
        }
    }
}

/* Writes the state down, and returns where it ends. */
static int64_t *write(const Pass *pass, int64_t *state, int64_t k) {
    state[NOW] = pass->now;
    state[LEFT] = pass->left;
    state[CHANGE] = pass->change;
    state[FREE] = pass->free;
    state[RUNNING] = pass->running;
    state[OPEN] = pass->opened;
    state[PARTS] = pass->parts;
    state[MOMENT] = (int64_t)pass->moment;
    state[HIGH] = (int64_t)(pass->moment >> 64);
    memcpy(state + FIXED, pass->taken, (size_t)k * sizeof *state);
    memcpy(state + FIXED + k, pass->heap, (size_t)pass->running * sizeof *state);
    state += FIXED + k + pass->running;
    memcpy(state, pass->open, (size_t)(OPEN_WIDTH * pass->opened) * sizeof *state);
    return state + OPEN_WIDTH * pass->opened;
}

/* Begins to guess, on another heap: open jobs end when they are expected to. */
static void guess(Pass *pass, int64_t *later) {
    memcpy(later, pass->heap, (size_t)pass->running * sizeof *later);
    for (int64_t place = 0; place < pass->running; place++)
        pass->heap[place] = NEVER;
    pass->heap = later;
    pass->limit = NEVER;
    for (int64_t i = 0; i < pass->opened; i++) {
        const int64_t *open = pass->open + OPEN_WIDTH * i;
        int64_t job = job_of(pass->game, open[0], open[1]);
        put_to_work(pass, open[2], pass->game->processing_time.at[job], open[3]);
    }
}

/* Returns the job that is next: the last one that was looked at while it still waits. */
static int64_t next_job(const Pass *pass, int64_t k) {
    int64_t last = -1;
    for (int64_t u = 0; u < k; u++)
        if (pass->taken[u] > 0)
            last = most(last, job_of(pass->game, u, pass->taken[u] - 1));
    return pass->left > 0 ? last : last + 1;
}

/* Returns how many more processors the members have from a change on. */
static int64_t gained(const Pass *pass, int64_t change, int64_t k) {
    const int64_t *owned = row(pass->game->owned, change);
    int64_t sum = 0;
    for (int64_t u = 0; u < k; u++)
        if (pass->members[u])
            sum += owned[u] - (change > 0 ? owned[u - k] : 0);
    return sum;
}

/* Lets a job have what is free now, and returns whether that is all it needs. */
static bool start(Pass *pass, int64_t job, bool guessing, int64_t k) {
    const Arrays *game = pass->game;
    int64_t u = game->organization.at[job], seconds = game->processing_time.at[job];
    if (pass->left == 0) {
        pass->left = game->processors.at[job];
        pass->taken[u]++;
    }
    while (pass->running > 0 && pass->heap[0] >> COUNT_BITS <= pass->now) {
        pass->free += pass->heap[0] & COUNT;
        pop(pass->heap, pass->running--);
    }
    while (pass->change < game->since.n[0] && game->since.at[pass->change] <= pass->now)
        pass->free += gained(pass, pass->change++, k);
    if (pass->free <= 0)
        return false;
    int64_t count = least(pass->free, pass->left);
    if (guessing || game->certain.at[job] == seconds) {
        put_to_work(pass, pass->now, seconds, count);
    } else {
        int64_t open[OPEN_WIDTH] = {u, pass->taken[u] - 1, pass->now, count};
        memcpy(pass->open + OPEN_WIDTH * pass->opened++, open, sizeof open);
        pass->limit = least(pass->limit, pass->now + game->certain.at[job]);
    }
    pass->free -= count;
    pass->left -= count;
    return pass->left == 0;
}

/* Starts jobs in their order, up to a time, and unless guessing as long as nothing is guessed. */
static void run(Pass *pass, int64_t time, bool guessing, int64_t k) {
    const Arrays *game = pass->game;
    for (int64_t job = next_job(pass, k); job < game->release.n[0]; job++) {
        if (!pass->members[game->organization.at[job]])
            continue;
        if (!guessing && game->certain.at[job] == 0)
            return; /* it may never start */
        int64_t instant = most(pass->now, game->release.at[job]);
        for (bool started = false; !started;) {
            if (instant > time || instant >= pass->limit)
                return;
            pass->now = instant;
            started = start(pass, job, guessing, k);
            instant = pass->running > 0 ? pass->heap[0] >> COUNT_BITS : NEVER;
            if (pass->change < game->since.n[0])
                instant = least(instant, game->since.at[pass->change]);
        }
    }
}

/* Values a coalition. Every part that was started counts as if it had been executed, those to come
 * with a worth below 0; for running jobs that is set right. */
static void value(Pass *pass, int64_t time, int64_t *values, bool wide) {
    int64_t started = pass->parts, working = 0;
    for (int64_t place = 0; place < pass->running; place++) {
        int64_t beyond = (pass->heap[place] >> COUNT_BITS) - time;
        int64_t count = pass->heap[place] & COUNT;
        pass->heap[place] = NEVER;
        if (beyond > 0) {
            pass->moment -= sum_of_seconds(0, beyond, count);
            pass->parts -= count * beyond;
            working += count;
        }
    }
    Limbs found = (Limbs)((Whole)started * (time - pass->game->since.at[0])) - pass->moment;
    values[0] = (int64_t)found;
    values[1] = pass->parts;
    values[2] = working;
    if (wide)
        values[3] = (int64_t)(found >> 64);
}

EXPORTED void passes_advance(const Arrays *arrays, const Bools *coalitions, int64_t time,
                             const Ints *before, const Ints *before_at, const Room *room,
                             const Ints *after, const Ints *after_at, const Ints *values) {
    int64_t k = coalitions->n[1];
    after_at->at[0] = 0;
    for (int64_t c = 0; c < coalitions->n[0]; c++) {
        Pass pass = {
            .game = arrays,
            .members = coalitions->at + c * k,
            .taken = room->taken.at,
            .heap = room->heap.at,
            .open = room->open.at,
            .now = arrays->since.at[0],
            .limit = NEVER,
        };
        memset(pass.taken, 0, (size_t)k * sizeof *pass.taken);
        if (before_at->at[c + 1] > before_at->at[c])
            resume(&pass, before->at + before_at->at[c], k);
        run(&pass, time, false, k);
        after_at->at[c + 1] = write(&pass, after->at + after_at->at[c], k) - after->at;
        guess(&pass, room->later.at);
        run(&pass, time, true, k);
        value(&pass, time, row(*values, c), values->n[1] == 4);
    }
}
