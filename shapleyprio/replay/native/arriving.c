#include "arriving.h"

#include "asking.h"

int64_t first_waiting(const World *world, int64_t c, int64_t u) {
    int64_t first = NEVER;
    for (int64_t partition = 0; partition < world->bays.reach.n[0]; partition++) {
        const int64_t *queue = queue_of(world, c, u, partition);
        if (queue[DEMAND] == 0)
            continue;
        if (first == NEVER || precedes_own(&world->jobs, queue[HEAD], first))
            first = queue[HEAD];
    }
    return first;
}

void open_queue(const World *world, int64_t c, int64_t *queue, int64_t partition) {
    const Jobs *jobs = &world->jobs;
    int64_t size = partition_of(world, c, partition)[SIZE];
    while (jobs->rigid.at[0] != 0 && (jobs->width.at[queue[HEAD]] > size ||
                                      has_passed_own(world, c, queue[HEAD])))
        queue[HEAD] = row(world->bays.jobs, queue[HEAD])[FOLLOWING];
    queue[REST] = jobs->width.at[queue[HEAD]];
}

/* Counts a job that is released as waiting, where it takes part; returns whether it does. */
static bool count_waiting(const World *world, int64_t c, int64_t job) {
    const Jobs *jobs = &world->jobs;
    const Coalitions *state = &world->state;
    int64_t u = jobs->organization.at[job], width = jobs->width.at[job];
    int64_t partition = row(world->bays.jobs, job)[PARTITION];
    bool never = jobs->rigid.at[0] != 0 && width > partition_of(world, c, partition)[SIZE];
    if (never || !state->takes_part.at[c * state->takes_part.n[1] + u])
        return false;
    int64_t *demand_of = &row(state->demand_of, c)[u];
    int64_t *queue = queue_of(world, c, u, partition);
    state->demand.at[c] += width;
    state->waiting.at[c] += *demand_of == 0;
    *demand_of += width;
    queue[DEMAND] += width;
    queue[LAST] = job;
    partition_of(world, c, partition)[WAITING] += width;
    return true;
}

/* Opens the queue of a job that is counted, if no other waits there; returns whether that is so. */
static bool comes_first(const World *world, int64_t c, int64_t job) {
    int64_t partition = row(world->bays.jobs, job)[PARTITION];
    int64_t *queue = queue_of(world, c, world->jobs.organization.at[job], partition);
    if (queue[DEMAND] != world->jobs.width.at[job])
        return false;
    open_queue(world, c, queue, partition);
    return true;
}

static bool is_behind_others(const BaySchedules *bays, int64_t job) {
    return bays->missing.n[0] != 0 && bays->missing.at[job] != 0;
}

bool arrive_in_bays(const World *world, int64_t c, int64_t t) {
    const Jobs *jobs = &world->jobs;
    const Coalitions *state = &world->state;
    int64_t place = state->arrived.at[c], arrivals = jobs->arrival.n[0];
    bool first = false;
    for (; place < arrivals && jobs->arrival.at[place] == t; place++) {
        int64_t job = row(world->bays.jobs, place)[ARRIVING];
        if (!is_behind_others(&world->bays, job) && count_waiting(world, c, job))
            first |= comes_first(world, c, job) | (jobs->backfill.at[0] == ALL_PASS);
    }
    state->arrived.at[c] = place;
    return first;
}

/* Releases a job at its place among those of its queue that wait. */
static void release(const World *world, int64_t c, int64_t job) {
    int64_t partition = row(world->bays.jobs, job)[PARTITION];
    int64_t *queue = queue_of(world, c, world->jobs.organization.at[job], partition);
    int64_t last = queue[LAST], *place = &queue[HEAD];
    bool is_last = queue[DEMAND] == 0;
    if (!count_waiting(world, c, job))
        return;
    while (!is_last && precedes_own(&world->jobs, *place, job)) {
        is_last = *place == last;
        place = &row(world->bays.jobs, *place)[FOLLOWING];
    }
    if (!is_last)
        queue[LAST] = last;
    row(world->bays.jobs, job)[FOLLOWING] = *place;
    *place = job;
    if (queue[HEAD] == job)
        open_queue(world, c, queue, partition);
}

void release_behind(const World *world, int64_t c, int64_t ended, int64_t processors) {
    const BaySchedules *bays = &world->bays;
    if (bays->missing.n[0] == 0)
        return;
    const int64_t *place = bays->first_behind.at + ended;
    for (int64_t one = place[0]; one < place[1]; one++) {
        int64_t job = bays->behind.at[one];
        if ((bays->missing.at[job] -= processors) == 0) {
            release(world, c, job);
            bays->missing.at[job] = -1; /* it does not arrive once more */
        }
    }
}
