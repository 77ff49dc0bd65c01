/* Time-based fair share of NVIDIA's KAI Scheduler, carried over to jobs.
 *
 * As its plugin proportion has it (resource_division.go, queue_order.go): queues are organizations,
 * processors the only resource, quotas and weights the processors that each one owns, and kValue is
 * 1, the default. Shares are divided anew at each moment, by usage at that moment. */

#ifndef SHAPLEYPRIO_KAI_H
#define SHAPLEYPRIO_KAI_H

#include "state.h"

/* Divides all processors of coalition c into fair shares. */
void divide_processors(const World *world, int64_t c);

/* Returns how many processors the next job of u takes at once. */
static inline int64_t next_width(const World *world, int64_t c, int64_t u) {
    return world->jobs.rigid.at[0] ? world->jobs.width.at[row(world->state.head, c)[u]] : 1;
}

#endif
