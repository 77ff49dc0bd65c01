/* Games of the Shapley value: jobs and processors that organizations bring (see shapley/game.py). */

#ifndef SHAPLEYPRIO_GAMES_H
#define SHAPLEYPRIO_GAMES_H

#include "native.h"

/* As in shapley/passes.py. */
typedef struct {
    Ints organization;
    Ints release;
    Ints processing_time;
    Ints processors;
    Ints certain;
    Ints since;
    Ints owned;
    Ints queued;
    Ints first;
} Arrays;

/* Returns job number i of organization u. */
static inline int64_t job_of(const Arrays *game, int64_t u, int64_t i) {
    return game->queued.at[game->first.at[u] + i];
}

#endif
