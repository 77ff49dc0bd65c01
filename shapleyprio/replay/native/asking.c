#include "asking.h"

#include "starting.h"

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

/* Notes what u lends in each partition. */
static void note_lent(const World *world, int64_t c, int64_t u) {
    for (int64_t partition = 0; partition < world->record.lent.n[0]; partition++)
        world->record.lent.at[partition] = lent_in(world, c, u, partition);
}

/* Whether something is lent in some partition. */
static bool is_lent(const World *world) {
    int64_t partition = 0;
    while (partition < world->record.lent.n[0] && world->record.lent.at[partition] <= 0)
        partition++;
    return partition < world->record.lent.n[0];
}

/* Takes what a job asks for from what is lent; returns whether it fits. */
static bool take_lent(const World *world, int64_t job) {
    const Ints lent = world->record.lent;
    int64_t own = partition_of_job(world, job), width = world->jobs.width.at[job];
    if (width > lent.at[own])
        return false;
    for (int64_t partition = 0; partition < lent.n[0]; partition++)
        lent.at[partition] -= share_nodes(world, own, partition) ? width : 0;
    return true;
}

/* Whether u may have to wait until a second for what it lends and asks for in a partition. */
static bool may_wait_until(const World *world, int64_t c, int64_t t, int64_t u,
                           int64_t partition, int64_t second) {
    int64_t wanted = lent_in(world, c, u, partition) - world->record.lent.at[partition];
    int64_t free = is_confined(world) ? partition_of(world, c, partition)[OPEN]
                                      : world->state.free.at[c];
    Reservation found = reservation_for(world, c, t, wanted, free, partition);
    return found.spare < 0 || found.until >= second;
}

/* Returns the first job of u that has not started, or one before it. */
static int64_t first_of(const World *world, int64_t c, int64_t u) {
    return is_confined(world) ? first_waiting(world, c, u) : row(world->state.head, c)[u];
}

/* Whether a job of u, not before the first one that waits, has started. */
static bool has_started(const World *world, int64_t c, int64_t u, int64_t job) {
    if (has_passed_own(world, c, job))
        return true;
    if (!is_confined(world))
        return false;
    const int64_t *queue = queue_of(world, c, u, partition_of_job(world, job));
    return queue[DEMAND] == 0 || job < queue[HEAD];
}

int64_t find_asking(const World *world, int64_t c, int64_t t) {
    const Jobs *jobs = &world->jobs;
    const Record *record = &world->record;
    int64_t last = record->guarantee.at[LOOKS]++, now = record->guarantee.at[LOOKS], found = 0;
    for (int64_t u = 0; u < organizations_of(&world->state); u++) {
        int64_t job = first_of(world, c, u), end = jobs->first.at[u + 1];
        note_lent(world, c, u);
        for (; job < end && jobs->release.at[job] <= t && is_lent(world); job++) {
            int64_t *asks = row(record->asks, job);
            int64_t due = jobs->release.at[job] + record->guarantee.at[0];
            if (due > t && record->guarantee.at[AHEAD] == 0)
                break;
            if (has_started(world, c, u, job) || !take_lent(world, job))
                continue;
            if (due > t && !may_wait_until(world, c, t, u, partition_of_job(world, job), due))
                continue;
            if (asks[SEEN] != last)
                asks[SINCE] = now;
            asks[SEEN] = now;
            put_asking(world, found++, job);
        }
    }
    return found;
}
