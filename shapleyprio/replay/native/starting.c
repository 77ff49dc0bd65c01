#include "starting.h"

#include "arriving.h"
#include "horizon.h"
#include "in_bays.h"
#include "placing.h"

/* Those of each owner that are free, in the schedule that is written down. */
static int64_t *free_of(const World *world, int64_t bay) {
    return is_confined(world) ? row(world->bays.free_of, bay) : world->record.free_of.at;
}

static void add_weight(int64_t *moments, bool wide, int64_t t, int64_t weight) {
    Limbs more = (Limbs)((Whole)weight * t);
    moments[0] += weight;
    if (wide) {
        more += joined(moments[2], moments[1]);
        moments[2] = (int64_t)(more >> 64);
        moments[1] = (int64_t)more;
    } else {
        moments[1] = (int64_t)((uint64_t)moments[1] + (uint64_t)more);
    }
}

/* Writes down that an owner's processors start (or, negative, stop) working on a job.
 *
 * `released` has the moments of releases, by which psi' of CloudShare differs from psi. */
static void count_work(const World *world, int64_t t, int64_t job, int64_t bay, int64_t owner,
                       int64_t processors) {
    const Record *record = &world->record;
    bool wide = is_wide(&world->state);
    int64_t weight = processors * world->jobs.release.at[job];
    free_of(world, bay)[owner] -= processors;
    if (is_confined(world))
        row(world->bays.unused, world->jobs.organization.at[job])[bay] -= processors;
    add(row(record->contribution, owner), wide, t, processors);
    add_weight(row_of(record->released, 0, world->jobs.organization.at[job]), wide, t, weight);
    add_weight(row_of(record->released, 1, owner), wide, t, weight);
}

static void write_down(const Record *record, int64_t job, int64_t t, int64_t bay, int64_t owner,
                       int64_t processors) {
    int64_t entry = record->size.at[0]++;
    record->job.at[entry] = (int32_t)job;
    record->start.at[entry] = t;
    record->owner.at[entry] = (int32_t)owner;
    record->bay.at[entry] = (int32_t)bay;
    record->copies.at[entry] = (int32_t)processors;
}

void put_job_to_work(const World *world, int64_t c, int64_t t, int64_t job, int64_t bay,
                     int64_t free, int64_t processors) {
    const Record *record = &world->record;
    if (!is_recorded(world, c)) {
        put_to_work(world, c, t, (Running){job, bay, 0, processors});
        return;
    }
    int64_t *given = is_confined(world) ? world->bays.given.at : record->given.at;
    give(record, free_of(world, bay), given, job, free, processors);
    for (int64_t owner = 0; owner < record->owned.n[0]; owner++) {
        if (given[owner] == 0)
            continue;
        if (given != record->given.at)
            record->given.at[owner] += given[owner];
        put_to_work(world, c, t, (Running){job, bay, owner, given[owner]});
        count_work(world, t, job, bay, owner, given[owner]);
        write_down(record, job, t, bay, owner, given[owner]);
    }
}

void count_start(const World *world, int64_t c, int64_t t, int64_t u, int64_t processors) {
    const Coalitions *state = &world->state;
    int64_t *demand_of = &row(state->demand_of, c)[u];
    state->free.at[c] -= processors;
    state->demand.at[c] -= processors;
    *demand_of -= processors;
    state->waiting.at[c] -= *demand_of == 0;
    state->served.at[c] = u;
    add(row_of(state->utility, c, u), is_wide(state), t, processors);
    note_start(world, c, t, u, processors);
}

void end_jobs(const World *world, int64_t c, int64_t t) {
    const Coalitions *state = &world->state;
    while (state->next_end.at[c] == t) {
        Running ended = take_ended(world, c);
        int64_t u = world->jobs.organization.at[ended.job];
        state->free.at[c] += ended.processors;
        if (is_confined(world)) {
            free_in_bay(world, c, ended.bay, ended.processors);
            release_behind(world, c, ended.job, ended.processors);
        }
        add(row_of(state->utility, c, u), is_wide(state), t, -ended.processors);
        note_end(world, c, t, u, ended.owner, ended.processors);
        if (is_recorded(world, c))
            count_work(world, t, ended.job, ended.bay, ended.owner, -ended.processors);
    }
}

/* Begins to count what is missing in bays where fewer processors are left than are busy. */
static void want_free(const World *world, int64_t c) {
    for (int64_t bay = 0; bay < world->bays.reach.n[1]; bay++) {
        int64_t *found = row_of(world->bays.bays, c, bay);
        found[WANTED] = found[FREE];
    }
}

/* Counts what ends, and returns how many more processors a partition then has to give.
 *
 * Where fewer are left in a bay than are busy, the first that end there bring none. */
static int64_t freed_in_bay(const World *world, int64_t c, Running ended, int64_t partition) {
    if (!world->bays.reach.at[partition * world->bays.reach.n[1] + ended.bay])
        return 0;
    int64_t *wanted = &row_of(world->bays.bays, c, ended.bay)[WANTED];
    if (*wanted >= 0)
        return ended.processors;
    *wanted += ended.processors;
    return most(*wanted, 0);
}

Reservation reservation_for(const World *world, int64_t c, int64_t t, int64_t width, int64_t free,
                            int64_t partition) {
    const Coalitions *state = &world->state;
    int64_t at = t, running = state->running.at[c];
    const int64_t *expected = running_of(state, state->expected, c) + 2 * (running - 1);
    if (is_confined(world))
        want_free(world, c);
    for (; running-- > 0 && (free < width || most(expected[0], t + 1) == at); expected -= 2) {
        Running next = unpacked(world, expected[1]);
        at = most(expected[0], t + 1);
        free += is_confined(world) ? freed_in_bay(world, c, next, partition) : next.processors;
    }
    return (Reservation){at, free - width};
}

EXPORTED void starting_expect_anew(const World *world) {
    const Coalitions *state = &world->state;
    const Jobs *jobs = &world->jobs;
    if (!expects_ends(state))
        return;
    for (int64_t c = 0; c < state->running.n[0]; c++) {
        const int64_t *ends = running_of(state, state->ends, c);
        int64_t *list = running_of(state, state->expected, c);
        for (int64_t place = 0; place < state->running.at[c]; place++) {
            int64_t number = ends[2 * place + 1], job = unpacked(world, number).job;
            int64_t start = ends[2 * place] - jobs->processing_time.at[job];
            expect(list, place, start + jobs->estimate.at[job], number);
        }
    }
}
