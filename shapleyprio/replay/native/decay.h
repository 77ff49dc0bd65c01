/* Processor time of which what is older counts less: half after each half-life.
 *
 * That of n processors from second s to e counts at t as n times the integral of 2^(-(t - x) / h) over
 * x from s to e, h being the half-life: as PriorityDecayHalfLife of Slurm and usageHalfLifeTime of
 * Kueue have it, where usage is sampled at each moment. */

#ifndef SHAPLEYPRIO_DECAY_H
#define SHAPLEYPRIO_DECAY_H

#include "state.h"

/* Parts of a second of usage for each processor owned; what differs by less is the same. */
#define USAGE_PARTS 0x1p20

/* Lets usage decay from the last moment of coalition c to t, and adds what was used meanwhile. */
void decay_usage(const World *world, int64_t c, int64_t t);

/* Returns usage for each processor owned (in all if none is), in parts. */
static inline int64_t usage_by_share(double usage, int64_t owned) {
    return (int64_t)(usage / (double)(owned ? owned : 1) * USAGE_PARTS + 0.5);
}

#endif
