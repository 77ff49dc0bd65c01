/* Guarantees where jobs are whole: a job that asks goes before all others, also those of its own
 * organization that do not fit, and has a reservation until it starts. */

#ifndef SHAPLEYPRIO_ASKING_H
#define SHAPLEYPRIO_ASKING_H

#include "state.h"

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
           row(world->record.asks, job)[SEEN] == world->record.guarantee.at[1];
}

/* Finds the jobs that ask at t, those first that have asked since an earlier look without a break,
 * then by release and place in the log; returns how many. */
int64_t find_asking(const World *world, int64_t c, int64_t t);

#endif
