/* Guarantees where jobs are whole: a job that asks goes before all others, also those of its own
 * organization that do not fit, and has a reservation until it starts. */

#ifndef SHAPLEYPRIO_ASKING_H
#define SHAPLEYPRIO_ASKING_H

#include "arriving.h"

/* Of `guarantee`, behind the wait: how often it was looked who asks, how many jobs that ask have a
 * reservation at this moment, with partitions, and whether they ask ahead. */
enum { LOOKS = 1, RESERVATIONS, AHEAD };

/* Columns of asks: numbers of looks at who asks. */
enum { SINCE, SEEN };

/* In place of the look since which a job asks: it has started before its turn. */
enum { PASSED_OTHERS = -1 };

/* Whether jobs may pass their own organization's in this coalition. */
static inline bool passes_own(const World *world, int64_t c) {
    return world->record.asks.n[0] != 0 && is_recorded(world, c);
}

/* Whether a job has started before its turn. */
static inline bool has_passed_own(const World *world, int64_t c, int64_t job) {
    return passes_own(world, c) && row(world->record.asks, job)[SINCE] == PASSED_OTHERS;
}

/* Whether a job that waits asked when it was looked at last. */
static inline bool is_asking(const World *world, int64_t c, int64_t job) {
    return passes_own(world, c) &&
           row(world->record.asks, job)[SEEN] == world->record.guarantee.at[LOOKS];
}

/* Returns how many jobs that ask have a reservation at this moment, with partitions. */
static inline int64_t reservations(const World *world, int64_t c) {
    return passes_own(world, c) ? world->record.guarantee.at[RESERVATIONS] : 0;
}

/* Returns the partition of a job; without any all are in one. */
static inline int64_t partition_of_job(const World *world, int64_t job) {
    return is_confined(world) ? row(world->bays.jobs, job)[PARTITION] : 0;
}

/* Whether two partitions have nodes in common. */
static inline bool share_nodes(const World *world, int64_t one, int64_t other) {
    return !is_confined(world) || world->bays.sharing.at[one * world->bays.sharing.n[1] + other];
}

/* Returns what u lends in a partition: what it owns there less what works for it there. */
static inline int64_t lent_in(const World *world, int64_t c, int64_t u, int64_t partition) {
    if (!is_confined(world))
        return world->record.owned.at[u] - row_of(world->state.utility, c, u)[0];
    int64_t lent = 0;
    for (int64_t bay = 0; bay < world->bays.reach.n[1]; bay++)
        lent += has(world, partition, bay) ? row(world->bays.unused, u)[bay] : 0;
    return lent;
}

/* Finds the jobs that ask at t, of each organization as many as fit into what it lends, those first
 * that have asked since an earlier look without a break, then by release and place in the log;
 * returns how many. */
int64_t find_asking(const World *world, int64_t c, int64_t t);

#endif
