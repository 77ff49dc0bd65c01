/* One coalition's life: jobs end, jobs arrive, and free processors are given to those that wait.
 *
 * Seconds are discrete, and a moment has that order. A coalition can be stopped at any moment whose
 * starts are not decided yet, and goes on from there. */

#ifndef SHAPLEYPRIO_ENGINE_H
#define SHAPLEYPRIO_ENGINE_H

#include "state.h"

/* Jobs of any organization may arrive. */
enum { EVERY_ARRIVAL = -1 };

/* Brings coalitions `first` to before `last` to their last moments before `until`.
 *
 * policy: by which they choose.
 * arriving: bit u is set if jobs of organization u may arrive; for coalitions of a lattice.
 * until: second of the window.
 *
 * Returns `last`, or the coalition that stopped: at a moment at which a choice needs keys that are
 * not there yet, or because there is no room to note what it will do. */
EXPORTED int64_t engine_advance(int64_t policy, const World *world, int64_t first, int64_t last,
                       int64_t arriving, int64_t until);

#endif
