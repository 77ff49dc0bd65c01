#include "engine.h"

#include "arriving.h"
#include "asking.h"
#include "choice.h"
#include "decay.h"
#include "in_bays.h"
#include "kai.h"
#include "karma.h"
#include "notes.h"
#include "starting.h"

/* Returns when the next job of a member is released. */
static int64_t next_release(const World *world, int64_t c) {
    const Jobs *jobs = &world->jobs;
    const Coalitions *state = &world->state;
    const uint8_t *takes_part = state->takes_part.at + c * state->takes_part.n[1];
    int64_t place = state->arrived.at[c], arrivals = jobs->arrival.n[0];
    while (place < arrivals && !takes_part[jobs->arrival_of.at[place]])
        place++;
    state->arrived.at[c] = place;
    return place < arrivals ? jobs->arrival.at[place] : NEVER;
}

/* Whether a rigid job is not of the queue: too wide for the coalition, or started before. */
static bool is_left_out(const World *world, int64_t c, int64_t job) {
    const Jobs *jobs = &world->jobs;
    return jobs->rigid.at[0] != 0 && (jobs->width.at[job] > world->state.widest.at[c] ||
                                      has_passed_own(world, c, job));
}

/* Goes on to the first job of u that waits. */
static void open_head(const World *world, int64_t c, int64_t u) {
    const Jobs *jobs = &world->jobs;
    int64_t *head = &row(world->state.head, c)[u];
    while (is_left_out(world, c, *head))
        ++*head;
    row(world->state.rest, c)[u] = jobs->width.at[*head];
}

/* Queues the jobs released at t; returns whether one of them comes first in its queue. */
static bool arrive(const World *world, int64_t c, int64_t t) {
    const Jobs *jobs = &world->jobs;
    const Coalitions *state = &world->state;
    const uint8_t *takes_part = state->takes_part.at + c * state->takes_part.n[1];
    int64_t place = state->arrived.at[c], arrivals = jobs->arrival.n[0];
    bool first = false;
    for (; place < arrivals && jobs->arrival.at[place] == t; place++) {
        int64_t u = jobs->arrival_of.at[place], width = jobs->arrival_width.at[place];
        if (!takes_part[u] || (jobs->rigid.at[0] != 0 && width > state->widest.at[c]))
            continue;
        int64_t *demand_of = &row(state->demand_of, c)[u];
        state->demand.at[c] += width;
        *demand_of += width;
        if (*demand_of == width) {
            state->waiting.at[c]++;
            open_head(world, c, u);
            first = true;
        }
    }
    state->arrived.at[c] = place;
    return first;
}

/* Returns whether what could not start before may start now, though no job ended and none comes
 * first in its queue. By keys the order may have changed. First come, first served, all that was
 * tried is tried again, and time only lets fewer jobs end before a reservation, unless running ones
 * are overdue: their ends are put off. */
static bool may_differ(int64_t policy, const World *world, int64_t c, int64_t t) {
    const Coalitions *state = &world->state;
    int64_t running = state->running.at[c];
    if (policy != FIRST_COME || has_guarantee(world, c))
        return true;
    return expects_ends(state) && running > 0 &&
           running_of(state, state->expected, c)[2 * (running - 1)] <= t;
}

/* Gives free processors to a job of u: its first one, or one that passes it. */
static void start(const World *world, int64_t c, int64_t t, int64_t u, int64_t job,
                  int64_t processors) {
    const Coalitions *state = &world->state;
    int64_t *head = &row(state->head, c)[u], *rest = &row(state->rest, c)[u];
    put_job_to_work(world, c, t, job, 0, state->free.at[c], processors);
    count_start(world, c, t, u, processors);
    if (job != *head) {
        row(world->record.asks, job)[SINCE] = PASSED_OTHERS;
        return;
    }
    *rest -= processors;
    if (*rest == 0) {
        ++*head;
        if (row(state->demand_of, c)[u] != 0)
            open_head(world, c, u);
    }
}

/* Reservations of a moment, each for its job beside those before it.
 *
 * width: of all jobs that have one.
 * last: whether one that asks for no guarantee is among them. */
typedef struct {
    Reservation *at;
    int64_t count, width;
    bool last;
} Reservations;

/* Returns whether a rigid job fits, and delays nobody who has a reservation. */
static bool fits(const World *world, int64_t c, int64_t t, int64_t job,
                 const Reservations *reserved) {
    int64_t width = world->jobs.width.at[job], end = t + world->jobs.estimate.at[job];
    for (int64_t one = 0; one < reserved->count; one++)
        if (end > reserved->at[one].until && width > reserved->at[one].spare)
            return false;
    return width <= world->state.free.at[c];
}

/* Returns whether a rigid job may start now (EASY).
 *
 * Each one that does not fit and asks for a guarantee, and the first of the others, gets a
 * reservation for the moment at which enough processors will be free if running jobs last as long
 * as expected. Another one may start before it if that does not delay it, as far as one can expect.
 * What is wider than all processors that there are now waits until some come back. */
static bool may_start(const World *world, int64_t c, int64_t t, int64_t job,
                      Reservations *reserved, bool asks) {
    const Jobs *jobs = &world->jobs;
    int64_t width = jobs->width.at[job], free = world->state.free.at[c];
    if (fits(world, c, t, job, reserved)) {
        for (int64_t one = 0; one < reserved->count; one++)
            if (t + jobs->estimate.at[job] > reserved->at[one].until)
                reserved->at[one].spare -= width;
        return true;
    }
    int64_t wanted = reserved->width + width;
    bool later = wanted <= world->state.processors.at[c];
    if (jobs->backfill.at[0] != 0 && !reserved->last && later) {
        reserved->at[reserved->count++] = reservation_for(world, c, t, wanted, free, 0);
        reserved->width = wanted;
        reserved->last = !asks;
    }
    return false;
}

/* Starts jobs that ask for a guarantee; returns whether others may start at this moment. */
static bool serve_asking(const World *world, int64_t c, int64_t t, Reservations *reserved) {
    const Jobs *jobs = &world->jobs;
    int64_t count = find_asking(world, c, t);
    for (int64_t place = 0; place < count; place++) {
        int64_t job = world->record.asking.at[place];
        if (may_start(world, c, t, job, reserved, true))
            start(world, c, t, jobs->organization.at[job], job, jobs->width.at[job]);
        else if (jobs->backfill.at[0] == 0)
            return false;
    }
    return true;
}

/* Passes over those whose jobs cannot start any more at this moment; returns how many.
 *
 * Once all reservations are there fewer fit with each start, and whoever does not changes nothing. */
static int64_t pass_over(const World *world, int64_t c, int64_t t, const Reservations *reserved) {
    const Coalitions *state = &world->state;
    int64_t *passed = row(state->passed, c), found = 0;
    for (int64_t u = 0; u < organizations_of(state); u++)
        if (is_candidate(state, c, t, u) && !fits(world, c, t, row(state->head, c)[u], reserved)) {
            passed[u] = t;
            found++;
        }
    return found;
}

/* Returns whether the first job of u may start: what asked could not. */
static bool head_may_start(const World *world, int64_t c, int64_t t, int64_t u,
                           Reservations *reserved) {
    int64_t job = row(world->state.head, c)[u];
    return !is_asking(world, c, job) && may_start(world, c, t, job, reserved, false);
}

/* Starts jobs until no processor is free or none that waits may start.
 *
 * Returns false, with nothing started, if the choice needs keys that are not there yet. */
static bool decide(int64_t policy, const World *world, int64_t c) {
    const Jobs *jobs = &world->jobs;
    const Coalitions *state = &world->state;
    int64_t waiting = state->waiting.at[c], *free = &state->free.at[c];
    if (*free == 0 || waiting == 0)
        return true;
    bool contended = waiting > 1 && (policy == RANKED || state->demand.at[c] > *free);
    if (by_keys(policy) && contended && lacks_keys(&world->keys, c))
        return false;
    bool rigid = jobs->rigid.at[0] != 0, fickle = is_fickle(policy, world, c);
    bool one_by_one = !rigid && by_copy(policy, world, c);
    int64_t t = state->now.at[c], u = -1;
    Reservation only;
    Reservations reserved = {&only, 0, 0, false};
    if (passes_own(world, c)) {
        reserved.at = (Reservation *)world->record.reserved.at;
        if (!serve_asking(world, c, t, &reserved))
            return true;
        waiting = state->waiting.at[c];
    }
    while (*free > 0 && waiting > 0) {
        if (u < 0 || row(state->passed, c)[u] == t)
            u = next_served(policy, world, c, t, contended);
        bool starts = !rigid || head_may_start(world, c, t, u, &reserved);
        if (!starts && jobs->backfill.at[0] == 0)
            return true;
        if (starts) {
            int64_t width = one_by_one ? 1 : row(state->rest, c)[u];
            start(world, c, t, u, row(state->head, c)[u], least(width, *free));
        } else {
            row(state->passed, c)[u] = t;
        }
        if (!starts || row(state->demand_of, c)[u] == 0) {
            waiting--;
            u = -1;
        } else if (fickle) {
            u = -1;
        }
        if (reserved.last)
            waiting -= pass_over(world, c, t, &reserved);
    }
    return true;
}

/* Notes how many more processors work after this moment than before, if any. */
static void count_changes(const World *world, int64_t c) {
    const Coalitions *state = &world->state;
    int64_t *total = row(state->total, c);
    int64_t more = state->processors.at[c] - state->free.at[c] - total[0];
    if (more != 0)
        count(world, c, total, state->now.at[c], more);
}

/* Brings coalition c to the last moment before `until`, and no further than is certain; returns
 * false if it stops to choose. */
static bool advance_one(int64_t policy, const World *world, int64_t c, int64_t until) {
    const Coalitions *state = &world->state;
    bool confined = is_confined(world);
    bool (*take_in)(const World *, int64_t, int64_t) = confined ? arrive_in_bays : arrive;
    for (;;) {
        if (state->undecided.at[c]) {
            /* where processors came or went, what is released at that moment is decided with it */
            if (next_release(world, c) == state->now.at[c])
                take_in(world, c, state->now.at[c]);
            if (!(confined ? decide_in_bays : decide)(policy, world, c))
                return false;
            state->undecided.at[c] = 0;
            if (passes_own(world, c))
                find_asking(world, c, state->now.at[c]);
            count_changes(world, c);
        }
        int64_t t = least(state->next_end.at[c], next_release(world, c));
        if (confined)
            t = least(t, next_closing(world, state->now.at[c]));
        saturate(world, c, least(t, until - 1));
        if (t >= least(until, state->guessing.at[c]))
            return true;
        if (policy == KARMA)
            earn_credits(world, c, t);
        if (policy == DECAYED_SHARE || policy == KAI)
            decay_usage(world, c, t);
        state->now.at[c] = t;
        bool changed = state->next_end.at[c] == t;
        end_jobs(world, c, t);
        changed |= take_in(world, c, t);
        if (policy == KAI)
            divide_processors(world, c);
        state->undecided.at[c] = changed || may_differ(policy, world, c, t);
    }
}

int64_t engine_advance(int64_t policy, const World *world, int64_t first, int64_t last,
                       int64_t arriving, int64_t until) {
    const Coalitions *state = &world->state;
    for (int64_t c = first; c < last; c++) {
        bool decided = state->undecided.at[c] == 0;
        if (decided && lacks_room(&world->keys, c))
            return c;
        bool idle = decided && arriving != EVERY_ARRIVAL && (arriving & c) == 0 &&
                    least(state->next_end.at[c], next_due(state, c)) >= until;
        if (!idle && !advance_one(policy, world, c, until))
            return c;
        open_list(world, c);
    }
    return last;
}
