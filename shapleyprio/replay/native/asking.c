#include "asking.h"

/* Whether of two jobs that ask the one goes before the other. */
static bool goes_before(const World *world, int64_t one, int64_t other) {
    int64_t since = row(world->record.asks, one)[SINCE];
    int64_t others = row(world->record.asks, other)[SINCE];
    return since != others ? since < others : was_first(&world->jobs, one, other);
}

/* Puts a job that asks into its place among `count` others. */
static void put_asking(const World *world, int64_t count, int64_t job) {
    int64_t *asking = world->record.asking.at, place = count;
    for (; place > 0 && goes_before(world, job, asking[place - 1]); place--)
        asking[place] = asking[place - 1];
    asking[place] = job;
}

int64_t find_asking(const World *world, int64_t c, int64_t t) {
    const Jobs *jobs = &world->jobs;
    const Record *record = &world->record;
    int64_t last = record->guarantee.at[1]++, now = record->guarantee.at[1], found = 0;
    for (int64_t u = 0; u < organizations_of(&world->state); u++) {
        int64_t unused = record->owned.at[u] - row_of(world->state.utility, c, u)[0];
        int64_t job = row(world->state.head, c)[u], end = jobs->first.at[u + 1];
        for (; unused > 0 && job < end; job++) {
            int64_t width = jobs->width.at[job], *asks = row(record->asks, job);
            if (jobs->release.at[job] > t - record->guarantee.at[0])
                break;
            if (asks[SINCE] == PASSED_OTHERS || width > unused)
                continue;
            if (asks[SEEN] != last)
                asks[SINCE] = now;
            asks[SEEN] = now;
            unused -= width;
            put_asking(world, found++, job);
        }
    }
    return found;
}
