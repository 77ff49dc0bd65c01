/* Queues in bays: which jobs of an organization wait in a partition, and who comes there. */

#ifndef SHAPLEYPRIO_ARRIVING_H
#define SHAPLEYPRIO_ARRIVING_H

#include "state.h"

static inline int64_t *bay_of(const World *world, int64_t c, int64_t bay) {
    return row_of(world->bays.bays, c, bay);
}

static inline int64_t *partition_of(const World *world, int64_t c, int64_t partition) {
    return row_of(world->bays.partitions, c, partition);
}

static inline int64_t *queue_of(const World *world, int64_t c, int64_t u, int64_t partition) {
    return row_of(world->bays.queues, c, u * world->bays.reach.n[0] + partition);
}

static inline bool has(const World *world, int64_t partition, int64_t bay) {
    return world->bays.reach.at[partition * world->bays.reach.n[1] + bay];
}

/* Whether a job of an organization comes before another one: by release, then by place. */
static inline bool precedes_own(const Jobs *jobs, int64_t job, int64_t other) {
    int64_t sooner = jobs->release.at[other] - jobs->release.at[job];
    return sooner > 0 || (sooner == 0 && job < other);
}

/* Returns the first job of u that waits, in any partition; NEVER if none does. */
int64_t first_waiting(const World *world, int64_t c, int64_t u);

/* Goes on to the first job of a queue that waits. */
void open_queue(const World *world, int64_t c, int64_t *queue, int64_t partition);

/* Queues the jobs released at t; returns whether one of them may be tried that could not be before.
 * Rigid jobs wider than their partition are passed over. */
bool arrive_in_bays(const World *world, int64_t c, int64_t t);

/* Releases the jobs that depend on one of which processors have ended, and on nothing more. */
void release_behind(const World *world, int64_t c, int64_t ended, int64_t processors);

#endif
