#include "in_bays.h"

#include "choice.h"
#include "starting.h"

static int64_t *bay_of(const World *world, int64_t c, int64_t bay) {
    return row_of(world->bays.bays, c, bay);
}

static int64_t *partition_of(const World *world, int64_t c, int64_t partition) {
    return row_of(world->bays.partitions, c, partition);
}

static int64_t *queue_of(const World *world, int64_t c, int64_t u, int64_t partition) {
    return row_of(world->bays.queues, c, u * world->bays.reach.n[0] + partition);
}

static bool has(const World *world, int64_t partition, int64_t bay) {
    return world->bays.reach.at[partition * world->bays.reach.n[1] + bay];
}

/* Goes on to the first job of a queue that waits. */
static void open_head(const World *world, int64_t c, int64_t *queue, int64_t partition) {
    const Jobs *jobs = &world->jobs;
    int64_t size = partition_of(world, c, partition)[SIZE];
    while (jobs->rigid.at[0] != 0 && jobs->width.at[queue[HEAD]] > size)
        queue[HEAD] = row(world->bays.jobs, queue[HEAD])[FOLLOWING];
    queue[REST] = jobs->width.at[queue[HEAD]];
}

void arrive_in_bays(const World *world, int64_t c, int64_t t) {
    const Jobs *jobs = &world->jobs;
    const Coalitions *state = &world->state;
    int64_t place = state->arrived.at[c], arrivals = jobs->arrival.n[0];
    for (; place < arrivals && jobs->arrival.at[place] == t; place++) {
        int64_t job = row(world->bays.jobs, place)[ARRIVING];
        int64_t u = jobs->organization.at[job], width = jobs->width.at[job];
        int64_t partition = row(world->bays.jobs, job)[PARTITION];
        bool never = jobs->rigid.at[0] != 0 && width > partition_of(world, c, partition)[SIZE];
        if (never || !state->takes_part.at[c * state->takes_part.n[1] + u])
            continue;
        int64_t *demand_of = &row(state->demand_of, c)[u];
        int64_t *queue = queue_of(world, c, u, partition);
        state->demand.at[c] += width;
        state->waiting.at[c] += *demand_of == 0;
        *demand_of += width;
        queue[DEMAND] += width;
        if (queue[DEMAND] == width)
            open_head(world, c, queue, partition);
    }
    state->arrived.at[c] = place;
}

/* Returns how many processors of a bay a job of a partition could get. */
static int64_t open_of(const World *world, int64_t c, int64_t t, int64_t partition, int64_t bay) {
    const int64_t *found = bay_of(world, c, bay);
    return has(world, partition, bay) && found[CLOSED] != t ? found[FREE] : 0;
}

/* Returns how many processors a job of a partition could get. */
static int64_t open_in(const World *world, int64_t c, int64_t t, int64_t partition) {
    int64_t free = 0;
    for (int64_t bay = 0; bay < world->bays.reach.n[1]; bay++)
        free += open_of(world, c, t, partition, bay);
    return free;
}

/* Finds the job of each organization that is tried next, or that will be at a later moment.
 *
 * Returns how many organizations have one now; the others are passed over at this moment. */
static int64_t find_candidates(const World *world, int64_t c, int64_t t) {
    int64_t *passed = row(world->state.passed, c), *head = row(world->state.head, c), found = 0;
    for (int64_t u = 0; u < world->record.owned.n[0]; u++) {
        int64_t now = NEVER, later = NEVER;
        for (int64_t partition = 0; partition < world->bays.reach.n[0]; partition++) {
            const int64_t *queue = queue_of(world, c, u, partition);
            if (queue[DEMAND] == 0)
                continue;
            later = least(later, queue[HEAD]);
            if (queue[PASSED] != t && open_in(world, c, t, partition) > 0)
                now = least(now, queue[HEAD]);
        }
        passed[u] = now == NEVER ? t : -1;
        found += now != NEVER;
        if (later != NEVER)
            head[u] = now == NEVER ? later : now;
    }
    return found;
}

/* Keeps the bays of a partition for the job that does not fit. */
static void close_bays(const World *world, int64_t c, int64_t t, int64_t partition) {
    for (int64_t bay = 0; bay < world->bays.reach.n[1]; bay++)
        if (has(world, partition, bay))
            bay_of(world, c, bay)[CLOSED] = t;
}

/* Returns whether all that may start gets processors of the same bays in any order.
 *
 * That is so where the bay that each job would take first has room for all of them. */
static bool all_fit_anyhow(const World *world, int64_t c, int64_t t) {
    int64_t partitions = world->bays.reach.n[0];
    for (int64_t bay = 0; bay < world->bays.reach.n[1]; bay++)
        bay_of(world, c, bay)[WANTED] = 0;
    for (int64_t number = 0; number < world->bays.queues.n[1]; number++) {
        int64_t partition = number % partitions, bay = 0;
        int64_t demand = queue_of(world, c, number / partitions, partition)[DEMAND];
        if (demand == 0 || open_in(world, c, t, partition) == 0)
            continue;
        while (!has(world, partition, bay) || bay_of(world, c, bay)[FREE] == 0)
            bay++;
        bay_of(world, c, bay)[WANTED] += demand;
        if (bay_of(world, c, bay)[WANTED] > bay_of(world, c, bay)[FREE])
            return false;
    }
    return true;
}

/* Returns how many processors of another partition's bays a job would get now. */
static int64_t taken_from(const World *world, int64_t c, int64_t partition, int64_t width,
                          int64_t other) {
    int64_t taken = 0, left = width;
    for (int64_t bay = 0; bay < world->bays.reach.n[1]; bay++) {
        if (!has(world, partition, bay))
            continue;
        int64_t count = least(left, bay_of(world, c, bay)[FREE]);
        left -= count;
        if (has(world, other, bay))
            taken += count;
    }
    return taken;
}

/* Returns whether a job leaves all reservations what they need, and takes its part of them. */
static bool delays_nobody(const World *world, int64_t c, int64_t partition, int64_t width,
                          int64_t end) {
    for (int taking = 0; taking < 2; taking++)
        for (int64_t other = 0; other < world->bays.reach.n[0]; other++) {
            int64_t *reserved = partition_of(world, c, other);
            if (end <= reserved[RESERVED])
                continue;
            int64_t taken = taken_from(world, c, partition, width, other);
            if (taking)
                reserved[SPARE] -= taken;
            else if (taken > reserved[SPARE])
                return false;
        }
    return true;
}

/* Returns whether a rigid job may start now; reserves processors if it does not fit. */
static bool may_start(const World *world, int64_t c, int64_t t, int64_t job) {
    const Jobs *jobs = &world->jobs;
    int64_t width = jobs->width.at[job], partition = row(world->bays.jobs, job)[PARTITION];
    int64_t *reserved = partition_of(world, c, partition);
    int64_t free = open_in(world, c, t, partition);
    if (jobs->backfill.at[0] == 0)
        return width <= free;
    if (width <= free)
        return delays_nobody(world, c, partition, width, t + jobs->estimate.at[job]);
    if (reserved[RESERVED] == NEVER) {
        Reservation found = reservation_for(world, c, t, width, free, partition);
        reserved[RESERVED] = found.until;
        reserved[SPARE] = found.spare;
    }
    return false;
}

/* Gives a job free processors of its partition, those of the first bays first. */
static void start(const World *world, int64_t c, int64_t t, int64_t job, int64_t processors) {
    const Jobs *jobs = &world->jobs;
    int64_t u = jobs->organization.at[job], partition = row(world->bays.jobs, job)[PARTITION];
    int64_t *queue = queue_of(world, c, u, partition), left = processors;
    if (is_recorded(world, c))
        memset(world->record.given.at, 0, (size_t)world->record.given.n[0] * sizeof(int64_t));
    for (int64_t bay = 0; bay < world->bays.reach.n[1]; bay++) {
        int64_t free = open_of(world, c, t, partition, bay), count = least(left, free);
        if (count <= 0)
            continue;
        put_job_to_work(world, c, t, job, bay, free, count);
        bay_of(world, c, bay)[FREE] -= count;
        left -= count;
    }
    count_start(world, c, t, u, processors);
    queue[DEMAND] -= processors;
    queue[REST] -= processors;
    if (queue[REST] == 0) {
        queue[HEAD] = row(world->bays.jobs, job)[FOLLOWING];
        if (queue[DEMAND] != 0)
            open_head(world, c, queue, partition);
    }
}

bool decide_in_bays(int64_t policy, const World *world, int64_t c) {
    const Jobs *jobs = &world->jobs;
    const Coalitions *state = &world->state;
    if (state->free.at[c] == 0 || state->waiting.at[c] == 0)
        return true;
    int64_t t = state->now.at[c], candidates = find_candidates(world, c, t), u = -1;
    bool contended = candidates > 1 && (policy != KEYED || !all_fit_anyhow(world, c, t));
    if (by_keys(policy) && contended && lacks_keys(&world->keys, c))
        return false;
    for (int64_t partition = 0; partition < world->bays.reach.n[0]; partition++)
        partition_of(world, c, partition)[RESERVED] = NEVER;
    while (candidates > 0) {
        if (u < 0 || row(state->passed, c)[u] == t)
            u = next_served(policy, world, c, t, contended);
        int64_t job = row(state->head, c)[u], partition = row(world->bays.jobs, job)[PARTITION];
        int64_t *queue = queue_of(world, c, u, partition), width = queue[REST];
        bool rigid = jobs->rigid.at[0] != 0;
        if (!rigid)
            width = by_copy(policy) ? 1 : least(width, open_in(world, c, t, partition));
        if (!rigid || may_start(world, c, t, job))
            start(world, c, t, job, width);
        else if (jobs->backfill.at[0] == 0)
            close_bays(world, c, t, partition);
        else
            queue[PASSED] = t;
        candidates = find_candidates(world, c, t);
        if (is_fickle(policy))
            u = -1;
    }
    return true;
}
