/* The choice of the waiting organization that is served next. */

#ifndef SHAPLEYPRIO_CHOICE_H
#define SHAPLEYPRIO_CHOICE_H

#include "horizon.h"

/* Whether a policy needs keys; the others look at the schedule itself. */
static inline bool by_keys(int64_t policy) { return policy == KEYED || policy == RANKED; }

/* Whether in coalition c the start of each copy changes the order within its moment. */
static inline bool by_copy(int64_t policy, const World *world, int64_t c) {
    return policy == CURRENT_SHARE || policy == ROUND_ROBIN || policy == KARMA || policy == KAI ||
           has_guarantee(world, c);
}

/* Whether that of a whole job does; else the organization stays first. */
static inline bool is_fickle(int64_t policy, const World *world, int64_t c) {
    return policy == FIRST_COME || by_copy(policy, world, c);
}

/* Returns whether coalition c cannot choose by keys yet. */
static inline bool lacks_keys(const Keys *keys, int64_t c) {
    return keys->begin.at[1] == 0 && c >= keys->begin.at[2];
}

/* Returns whether a job of u waits that was not passed over at this moment. */
static inline bool is_candidate(const Coalitions *state, int64_t c, int64_t t, int64_t u) {
    return row(state->demand_of, c)[u] != 0 && row(state->passed, c)[u] != t;
}

/* Returns who is served next in coalition c at moment t; there must be somebody.
 *
 * Where all can start at once (not contended), Ref and Rand take anybody, also in coalitions of
 * which nobody asks whose processors a job got. Ties are nobody's: the one listed first stays. */
int64_t next_served(int64_t policy, const World *world, int64_t c, int64_t t, bool contended);

#endif
