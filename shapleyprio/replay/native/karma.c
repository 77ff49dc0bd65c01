#include "karma.h"

/* Returns half-processors that u does not ask for, of those that are guaranteed. */
static int64_t donated(const World *world, int64_t c, int64_t u) {
    int64_t waiting = row(world->state.demand_of, c)[u];
    return most(-above_guaranteed(world, c, u) - 2 * waiting, 0);
}

/* Returns what u earns if its credits rise to so many for each of its processors. */
static int64_t earned(const World *world, int64_t c, int64_t seconds, int64_t u, int64_t level) {
    int64_t missing = level * world->record.owned.at[u] - world->record.credits.at[u];
    return least(most(missing, 0), donated(world, c, u) * seconds);
}

static int64_t earned_by_all(const World *world, int64_t c, int64_t seconds, int64_t level) {
    int64_t sum = 0;
    for (int64_t u = 0; u < organizations_of(&world->state); u++)
        sum += earned(world, c, seconds, u, level);
    return sum;
}

/* Gives donors what all borrowers pay, where that is less than they donated: the poorest for their
 * share lend first. What does not raise all of the poorest alike goes to those listed first. */
static void lend(const World *world, int64_t c, int64_t seconds, int64_t paid) {
    int64_t *credits = world->record.credits.at, k = organizations_of(&world->state);
    int64_t low = NEVER, high = -NEVER;
    for (int64_t u = 0; u < k; u++) {
        int64_t owned = world->record.owned.at[u], room = donated(world, c, u) * seconds;
        if (room == 0)
            continue;
        low = least(low, credits[u] / owned - 1);
        high = most(high, (credits[u] + room) / owned + 1);
    }
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (earned_by_all(world, c, seconds, middle) <= paid)
            low = middle;
        else
            high = middle;
    }
    paid -= earned_by_all(world, c, seconds, low);
    for (int64_t u = 0; u < k; u++) {
        int64_t given = earned(world, c, seconds, u, low);
        int64_t more = least(earned(world, c, seconds, u, low + 1) - given, paid);
        credits[u] += given + more;
        paid -= more;
    }
}

void earn_credits(const World *world, int64_t c, int64_t t) {
    int64_t seconds = t - world->state.now.at[c], paid = 0, offered = 0;
    int64_t k = organizations_of(&world->state);
    for (int64_t u = 0; u < k; u++) {
        int64_t borrowed = most(above_guaranteed(world, c, u), 0);
        world->record.credits.at[u] += (world->record.owned.at[u] - borrowed) * seconds;
        paid += borrowed;
        offered += donated(world, c, u);
    }
    lend(world, c, seconds, least(paid, offered) * seconds);
}
