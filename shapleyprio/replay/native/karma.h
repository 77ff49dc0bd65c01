/* Karma (Vuppalapati and others, OSDI 2023, Algorithm 1, alpha = 1/2), carried over to jobs.
 *
 * A slice is a processor for a second, a quantum the time between two moments, in which nothing
 * starts, ends or is released. A fair share are an organization's own processors, and half of them
 * are guaranteed. Credits are counted in halves, so that the half of an odd number is whole. */

#ifndef SHAPLEYPRIO_KARMA_H
#define SHAPLEYPRIO_KARMA_H

#include "moments.h"
#include "state.h"

/* Twice the processors that work for u in coalition c, less those that it owns. Less than zero: it
 * has not got what is guaranteed. Above: what it borrows. */
static inline int64_t above_guaranteed(const World *world, int64_t c, int64_t u) {
    return 2 * row_of(world->state.utility, c, u)[0] - world->record.owned.at[u];
}

/* Adds the credits of the quantum from the last moment of coalition c to t. */
void earn_credits(const World *world, int64_t c, int64_t t);

#endif
