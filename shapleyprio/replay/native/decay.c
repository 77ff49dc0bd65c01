#include "decay.h"

void decay_usage(const World *world, int64_t c, int64_t t) {
    const Record *record = &world->record;
    int64_t steps = record->decay.n[1], seconds = t - world->state.now.at[c];
    const double *kept = record->decay.at, *gained = kept + steps;
    for (int64_t step = 0; step < steps; step++) {
        if ((seconds >> step & 1) == 0)
            continue;
        for (int64_t u = 0; u < organizations_of(&world->state); u++) {
            double working = (double)row_of(world->state.utility, c, u)[0];
            record->usage.at[u] = record->usage.at[u] * kept[step] + working * gained[step];
        }
    }
}
