#include "in_bays.h"

#include "asking.h"
#include "choice.h"
#include "starting.h"

/* Jobs that are tried at one moment behind the first ones of their queues: so many does Slurm look
 * at in one round of backfilling (bf_max_job_test). */
enum { MOST_TRIED = 500 };

/* Returns how many processors of a bay work for nobody: none where fewer are left than are busy. */
static int64_t free_in(const World *world, int64_t c, int64_t bay) {
    return most(bay_of(world, c, bay)[FREE], 0);
}

/* Returns how many processors of a bay a job could get at this moment. */
static int64_t open_of(const World *world, int64_t c, int64_t t, int64_t bay) {
    return bay_of(world, c, bay)[CLOSED] != t ? free_in(world, c, bay) : 0;
}

/* Counts processors of a bay as open or no longer so; returns whether some partition has none. */
static bool count_open(const World *world, int64_t c, int64_t bay, int64_t more) {
    bool none = false;
    for (int64_t partition = 0; partition < world->bays.reach.n[0]; partition++)
        if (has(world, partition, bay))
            none |= (partition_of(world, c, partition)[OPEN] += more) == 0;
    return none;
}

void free_in_bay(const World *world, int64_t c, int64_t bay, int64_t processors) {
    int64_t before = free_in(world, c, bay);
    bay_of(world, c, bay)[FREE] += processors;
    count_open(world, c, bay, free_in(world, c, bay) - before);
}

/* Takes the first job of a queue as the one of u that is tried next, if none comes before it.
 *
 * Where another one has the reservation, what does not fit changes nothing at this moment. */
static void consider(const World *world, int64_t c, int64_t t, int64_t u, int64_t partition) {
    const int64_t *queue = queue_of(world, c, u, partition);
    int64_t *head = &row(world->state.head, c)[u], *passed = &row(world->state.passed, c)[u];
    const int64_t *counts = partition_of(world, c, partition);
    bool reserved = world->jobs.backfill.at[0] != 0 && counts[RESERVED] != NEVER;
    if (reserved && queue[REST] > counts[OPEN])
        return;
    if (queue[DEMAND] == 0 || queue[PASSED] == t ||
        (*passed != t && !precedes_own(&world->jobs, queue[HEAD], *head)))
        return;
    *head = queue[HEAD];
    *passed = -1;
}

/* Finds the job of each organization from `first` to before `last` that is tried next.
 *
 * Returns how many have one. The others are passed over at this moment; in the schedule that is
 * written down it is found what they will try later. */
static int64_t find_candidates(const World *world, int64_t c, int64_t t, int64_t first,
                               int64_t last) {
    int64_t *passed = row(world->state.passed, c), found = 0;
    for (int64_t u = first; u < last; u++)
        passed[u] = t;
    for (int64_t partition = 0; partition < world->bays.reach.n[0]; partition++) {
        const int64_t *counts = partition_of(world, c, partition);
        for (int64_t u = first; counts[OPEN] != 0 && counts[WAITING] != 0 && u < last; u++)
            consider(world, c, t, u, partition);
    }
    for (int64_t u = first; u < last; u++) {
        found += passed[u] != t;
        if (passed[u] == t && is_recorded(world, c))
            row(world->state.head, c)[u] = first_waiting(world, c, u);
    }
    return found;
}

/* Keeps the bays of a partition for the job that does not fit. */
static void close_bays(const World *world, int64_t c, int64_t t, int64_t partition) {
    for (int64_t bay = 0; bay < world->bays.reach.n[1]; bay++)
        if (has(world, partition, bay)) {
            count_open(world, c, bay, -open_of(world, c, t, bay));
            bay_of(world, c, bay)[CLOSED] = t;
        }
}

/* Opens the bays that were closed at this moment. */
static void open_bays(const World *world, int64_t c, int64_t t) {
    for (int64_t bay = 0; bay < world->bays.reach.n[1]; bay++)
        if (bay_of(world, c, bay)[CLOSED] == t)
            count_open(world, c, bay, free_in(world, c, bay));
}

/* Returns whether all that may start gets processors of the same bays in any order.
 *
 * That is so where the bay that each job would take first has room for all of them. */
static bool all_fit_anyhow(const World *world, int64_t c) {
    for (int64_t bay = 0; bay < world->bays.reach.n[1]; bay++)
        bay_of(world, c, bay)[WANTED] = 0;
    for (int64_t partition = 0; partition < world->bays.reach.n[0]; partition++) {
        int64_t demand = partition_of(world, c, partition)[WAITING], bay = 0;
        if (demand == 0 || partition_of(world, c, partition)[OPEN] == 0)
            continue;
        while (!has(world, partition, bay) || free_in(world, c, bay) == 0)
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
    for (int64_t bay = 0; left != 0 && bay < world->bays.reach.n[1]; bay++) {
        if (!has(world, partition, bay))
            continue;
        int64_t count = least(left, free_in(world, c, bay));
        left -= count;
        if (has(world, other, bay))
            taken += count;
    }
    return taken;
}

/* Returns whether a job that starts now leaves a partition's reservation what it needs; takes its
 * part of what that leaves over, if it is told to. */
static bool leaves(const World *world, int64_t c, int64_t job, int64_t other,
                   int64_t *reservation, bool takes) {
    int64_t partition = row(world->bays.jobs, job)[PARTITION], width = world->jobs.width.at[job];
    if (world->state.now.at[c] + world->jobs.estimate.at[job] <= reservation[0])
        return true;
    int64_t taken = taken_from(world, c, partition, width, other);
    if (taken > reservation[1])
        return false;
    reservation[1] -= takes ? taken : 0;
    return true;
}

/* Returns whether a job leaves all reservations what they need, and takes its part of them. */
static bool delays_nobody(const World *world, int64_t c, int64_t job) {
    const Record *record = &world->record;
    for (int takes = 0; takes < 2; takes++) {
        for (int64_t other = 0; other < world->bays.reach.n[0]; other++)
            if (!leaves(world, c, job, other, &partition_of(world, c, other)[RESERVED], takes))
                return false;
        for (int64_t one = 0; one < reservations(world, c); one++) {
            int64_t other = row(world->bays.jobs, record->asking.at[one])[PARTITION];
            if (!leaves(world, c, job, other, row(record->reserved, one), takes))
                return false;
        }
    }
    return true;
}

int64_t next_closing(const World *world, int64_t t) {
    const Ints closes = world->bays.closes;
    int64_t next = NEVER;
    for (int64_t partition = 0; partition < closes.n[0]; partition++)
        if (closes.at[partition] > t)
            next = least(next, closes.at[partition]);
    return next;
}

/* Whether a job of a partition that starts now is expected to run when the partition closes. */
static bool meets_closing(const World *world, int64_t t, int64_t partition, int64_t seconds) {
    const Ints closes = world->bays.closes;
    return closes.n[0] != 0 && t < closes.at[partition] && t + seconds > closes.at[partition];
}

/* Returns whether a rigid job fits, and delays nobody who has a reservation. */
static bool fits(const World *world, int64_t c, int64_t t, int64_t job) {
    const Jobs *jobs = &world->jobs;
    int64_t partition = row(world->bays.jobs, job)[PARTITION];
    return !meets_closing(world, t, partition, jobs->estimate.at[job]) &&
           jobs->width.at[job] <= partition_of(world, c, partition)[OPEN] &&
           (jobs->backfill.at[0] == 0 || delays_nobody(world, c, job));
}

/* Returns how many processors those have reserved that ask and may start on nodes of a partition. */
static int64_t reserved_for_asking(const World *world, int64_t c, int64_t partition) {
    int64_t sum = 0;
    for (int64_t one = 0; one < reservations(world, c); one++) {
        int64_t job = world->record.asking.at[one];
        if (share_nodes(world, partition, row(world->bays.jobs, job)[PARTITION]))
            sum += world->jobs.width.at[job];
    }
    return sum;
}

/* Returns a job's reservation, behind those that ask: for the moment at which its partition has
 * enough processors for all of them, but no more than `most_wanted`. */
static Reservation reservation_behind(const World *world, int64_t c, int64_t t, int64_t job,
                                      int64_t most_wanted) {
    int64_t partition = row(world->bays.jobs, job)[PARTITION];
    int64_t wanted = world->jobs.width.at[job] + reserved_for_asking(world, c, partition);
    int64_t free = partition_of(world, c, partition)[OPEN];
    return reservation_for(world, c, t, least(wanted, most_wanted), free, partition);
}

/* Returns whether a rigid job may start now; reserves processors if there are too few. */
static bool may_start(const World *world, int64_t c, int64_t t, int64_t job) {
    const Jobs *jobs = &world->jobs;
    int64_t partition = row(world->bays.jobs, job)[PARTITION];
    int64_t *counts = partition_of(world, c, partition);
    if (fits(world, c, t, job))
        return true;
    if (jobs->backfill.at[0] == 0 || jobs->width.at[job] <= counts[OPEN] ||
        counts[RESERVED] != NEVER ||
        meets_closing(world, t, partition, jobs->estimate.at[job]))
        return false;
    Reservation found = reservation_behind(world, c, t, job, NEVER);
    if (found.spare >= 0) { /* else it waits until processors come back */
        counts[RESERVED] = found.until;
        counts[SPARE] = found.spare;
    }
    return false;
}

/* Gives a job free processors of its partition, those of the first bays first.
 *
 * Returns whether some partition has none left. */
static bool start(const World *world, int64_t c, int64_t t, int64_t job, int64_t processors) {
    const Jobs *jobs = &world->jobs;
    int64_t u = jobs->organization.at[job], partition = row(world->bays.jobs, job)[PARTITION];
    int64_t *queue = queue_of(world, c, u, partition), left = processors;
    bool last = false;
    if (is_recorded(world, c))
        memset(world->record.given.at, 0, (size_t)world->record.given.n[0] * sizeof(int64_t));
    for (int64_t bay = 0; left != 0; bay++) {
        int64_t free = has(world, partition, bay) ? open_of(world, c, t, bay) : 0;
        int64_t count = least(left, free);
        if (count == 0)
            continue;
        put_job_to_work(world, c, t, job, bay, free, count);
        bay_of(world, c, bay)[FREE] -= count;
        last |= count_open(world, c, bay, -count);
        left -= count;
    }
    count_start(world, c, t, u, processors);
    queue[DEMAND] -= processors;
    partition_of(world, c, partition)[WAITING] -= processors;
    if (job != queue[HEAD]) {
        if (passes_own(world, c))
            row(world->record.asks, job)[SINCE] = PASSED_OTHERS;
        return last;
    }
    queue[REST] -= processors;
    if (queue[REST] == 0) {
        queue[HEAD] = row(world->bays.jobs, job)[FOLLOWING];
        if (queue[DEMAND] != 0)
            open_queue(world, c, queue, partition);
    }
    return last;
}

/* Starts jobs of a queue behind its first one, which has to wait, and tries `left` at most; returns
 * how many are left. */
static int64_t start_behind(const World *world, int64_t c, int64_t t, int64_t *queue,
                            int64_t partition, int64_t left) {
    const int64_t *counts = partition_of(world, c, partition);
    int64_t before = queue[HEAD];
    while (before != queue[LAST] && left > 0 && counts[OPEN] > 0) {
        int64_t *following = &row(world->bays.jobs, before)[FOLLOWING], job = *following;
        int64_t width = world->jobs.width.at[job];
        bool waits = width <= counts[SIZE] && !is_asking(world, c, job) &&
                     !has_passed_own(world, c, job);
        left -= waits;
        if (!waits || !may_start(world, c, t, job)) {
            before = job;
            continue;
        }
        start(world, c, t, job, width);
        *following = row(world->bays.jobs, job)[FOLLOWING];
        if (job == queue[LAST])
            queue[LAST] = before;
    }
    return left;
}

/* Whether the first job of a queue, of which copies are cut off, asks for a guarantee: it has waited
 * for so long, and u owns processors in its partition that it does not use there, beside the copies
 * that ask in vain. */
static bool asks(const World *world, int64_t c, int64_t t, int64_t u, int64_t partition) {
    const BaySchedules *bays = &world->bays;
    const int64_t *queue = queue_of(world, c, u, partition);
    if (queue[DEMAND] == 0 || queue[PASSED] == t ||
        world->jobs.release.at[queue[HEAD]] > t - world->record.guarantee.at[0])
        return false;
    int64_t lent = lent_in(world, c, u, partition);
    for (int64_t other = 0; other < bays->reach.n[0]; other++) {
        const int64_t *asked = queue_of(world, c, u, other);
        lent -= share_nodes(world, partition, other) && asked[PASSED] == t ? asked[REST] : 0;
    }
    return lent > 0;
}

/* Returns the number of the queue of which the first job asks and has waited longest; -1 if none
 * does. */
static int64_t longest_asking(const World *world, int64_t c, int64_t t) {
    int64_t best = -1, first = -1, partitions = world->bays.reach.n[0];
    for (int64_t number = 0; number < partitions * organizations_of(&world->state); number++) {
        int64_t job = row_of(world->bays.queues, c, number)[HEAD];
        if (asks(world, c, t, number / partitions, number % partitions) &&
            (best < 0 || was_first(&world->jobs, job, first))) {
            best = number;
            first = job;
        }
    }
    return best;
}

/* Starts copies that ask for a guarantee; those that cannot start are passed over. */
static void serve_copies(const World *world, int64_t c, int64_t t) {
    int64_t number;
    while ((number = longest_asking(world, c, t)) >= 0) {
        int64_t *queue = row_of(world->bays.queues, c, number), job = queue[HEAD];
        if (partition_of(world, c, row(world->bays.jobs, job)[PARTITION])[OPEN] > 0)
            start(world, c, t, job, 1);
        else
            queue[PASSED] = t;
    }
}

/* Starts whole jobs that ask for a guarantee; each one that cannot start gets a reservation. */
static void serve_whole(const World *world, int64_t c, int64_t t) {
    const Record *record = &world->record;
    int64_t count = find_asking(world, c, t), *reserved = &record->guarantee.at[RESERVATIONS];
    *reserved = 0;
    for (int64_t place = 0; place < count; place++) {
        int64_t job = record->asking.at[place], partition = row(world->bays.jobs, job)[PARTITION];
        if (fits(world, c, t, job)) {
            start(world, c, t, job, world->jobs.width.at[job]);
        } else if (world->jobs.backfill.at[0] == 0) {
            close_bays(world, c, t, partition);
        } else {
            int64_t size = partition_of(world, c, partition)[SIZE];
            Reservation found = reservation_behind(world, c, t, job, size);
            row(record->reserved, *reserved)[0] = found.until;
            row(record->reserved, *reserved)[1] = found.spare;
            record->asking.at[(*reserved)++] = job;
        }
    }
}

/* Returns whether no job could get a processor at this moment. */
static bool is_full(const World *world, int64_t c) {
    int64_t partition = 0;
    while (partition < world->bays.reach.n[0] && partition_of(world, c, partition)[OPEN] == 0)
        partition++;
    return partition == world->bays.reach.n[0];
}

bool decide_in_bays(int64_t policy, const World *world, int64_t c) {
    const Jobs *jobs = &world->jobs;
    const Coalitions *state = &world->state;
    if (state->waiting.at[c] == 0 || is_full(world, c))
        return true;
    int64_t t = state->now.at[c], u = -1, k = organizations_of(state), left = MOST_TRIED;
    bool rigid = jobs->rigid.at[0] != 0, passes = jobs->backfill.at[0] != 0;
    bool fickle = is_fickle(policy, world, c), one_by_one = by_copy(policy, world, c);
    for (int64_t partition = 0; passes && partition < world->bays.reach.n[0]; partition++)
        partition_of(world, c, partition)[RESERVED] = NEVER;
    int64_t candidates = find_candidates(world, c, t, 0, k);
    bool contended = candidates > 1 && (policy != KEYED || !all_fit_anyhow(world, c));
    if (by_keys(policy) && contended && lacks_keys(&world->keys, c))
        return false;
    if (has_guarantee(world, c)) {
        (rigid ? serve_whole : serve_copies)(world, c, t);
        candidates = find_candidates(world, c, t, 0, k);
    }
    while (candidates > 0) {
        if (u < 0 || row(state->passed, c)[u] == t)
            u = next_served(policy, world, c, t, contended);
        int64_t job = row(state->head, c)[u], partition = row(world->bays.jobs, job)[PARTITION];
        int64_t *queue = queue_of(world, c, u, partition), width = queue[REST];
        bool others_too = false;
        if (!rigid)
            width = one_by_one ? 1 : least(width, partition_of(world, c, partition)[OPEN]);
        if (!rigid || (!is_asking(world, c, job) && may_start(world, c, t, job))) {
            others_too = start(world, c, t, job, width);
        } else if (!passes) {
            close_bays(world, c, t, partition);
            others_too = true;
        } else {
            if (jobs->backfill.at[0] == ALL_PASS)
                left = start_behind(world, c, t, queue, partition, left);
            queue[PASSED] = t;
            others_too = true;
        }
        if (others_too)
            candidates = find_candidates(world, c, t, 0, k);
        else
            candidates -= 1 - find_candidates(world, c, t, u, u + 1);
        if (fickle)
            u = -1;
    }
    if (rigid && !passes)
        open_bays(world, c, t);
    return true;
}
