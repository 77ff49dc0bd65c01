/* A moment of a coalition whose jobs only get processors of their partition's bays.
 *
 * The jobs of an organization in one partition are a queue: those of another one may pass them. Of
 * an organization the first of the jobs is tried that are first in a queue, and in whose partition
 * a processor is free. */

#ifndef SHAPLEYPRIO_IN_BAYS_H
#define SHAPLEYPRIO_IN_BAYS_H

#include "state.h"

/* Returns when a partition closes next, from t on; NEVER if none does. */
int64_t next_closing(const World *world, int64_t t);

/* Frees processors of a bay. */
void free_in_bay(const World *world, int64_t c, int64_t bay, int64_t processors);

/* Starts jobs until no partition of a job that waits has a processor free, or none may start.
 *
 * Returns false, with nothing started, if the choice needs keys that are not there yet. */
bool decide_in_bays(int64_t policy, const World *world, int64_t c);

#endif
