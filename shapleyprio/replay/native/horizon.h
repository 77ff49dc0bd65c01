/* Worth with a horizon: what is older than it is subtracted (see `PastEvents` in state.py).
 *
 * Without a horizon nothing is noted, and worths are those of moments.h. */

#ifndef SHAPLEYPRIO_HORIZON_H
#define SHAPLEYPRIO_HORIZON_H

#include "moments.h"
#include "state.h"

/* Returns when something that coalition c did comes to be a horizon old. */
static inline int64_t next_due(const Coalitions *state, int64_t c) {
    return has_horizon(state) ? state->past.due.at[c] : NEVER;
}

/* Returns psi of u's jobs in coalition c. */
static inline Whole utility_at(const Coalitions *state, bool wide, int64_t c, int64_t u,
                               int64_t t) {
    Whole own = worth(row_of(state->utility, c, u), wide, t);
    if (has_horizon(state)) {
        own = (Whole)((Limbs)own - (Limbs)worth(row_of(state->past.utility, c, u), wide, t));
        own = wide ? own : (int64_t)own;
    }
    return own;
}

/* Subtracts from coalition c what is older than the horizon at t. */
void saturate_past(const World *world, int64_t c, int64_t t);

static inline void saturate(const World *world, int64_t c, int64_t t) {
    if (next_due(&world->state, c) <= t)
        saturate_past(world, c, t);
}

/* Notes that processors of an owner stop working for u in coalition c. */
void note_end(const World *world, int64_t c, int64_t t, int64_t u, int64_t owner,
              int64_t processors);

/* Notes that processors start working for u in coalition c, as they were given last. */
void note_start(const World *world, int64_t c, int64_t t, int64_t u, int64_t processors);

/* Returns whether there is room for all that may happen in so many seconds. */
bool has_room(const Coalitions *state, int64_t seconds);

#endif
