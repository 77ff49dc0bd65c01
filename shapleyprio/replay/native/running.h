/* Running jobs of a coalition, as a binary heap of their ends: an end, and behind it what ends. */

#ifndef SHAPLEYPRIO_RUNNING_H
#define SHAPLEYPRIO_RUNNING_H

#include "state.h"

/* What ends is packed into one number: the job, a place, and how many processors. Without bays the
 * place is an owner; with them it is a bay and an owner there. */
enum { COUNT_BITS = 24, OWNER_BITS = 8, PLACE_BITS = 13 };

typedef struct {
    int64_t job, bay, owner, processors;
} Running;

static inline int64_t packed(const World *world, Running what) {
    bool confined = is_confined(world);
    int64_t place = confined ? what.bay * world->record.owned.n[0] + what.owner : what.owner;
    return (what.job << (confined ? PLACE_BITS : OWNER_BITS) | place) << COUNT_BITS |
           what.processors;
}

static inline Running unpacked(const World *world, int64_t number) {
    Running what = {.processors = number & ((1 << COUNT_BITS) - 1)};
    if (is_confined(world)) {
        uint32_t place = number >> COUNT_BITS & ((1 << PLACE_BITS) - 1);
        uint32_t owners = (uint32_t)world->record.owned.n[0]; /* 32 bits divide in half the time */
        what.job = number >> (COUNT_BITS + PLACE_BITS);
        what.bay = place / owners;
        what.owner = place % owners;
    } else {
        what.job = number >> (COUNT_BITS + OWNER_BITS);
        what.owner = number >> COUNT_BITS & ((1 << OWNER_BITS) - 1);
    }
    return what;
}

/* Puts something that ends then into a heap that had `size` entries. */
static inline void push(int64_t *heap, int64_t size, int64_t end, int64_t what) {
    int64_t place = 2 * size;
    while (place > 0) {
        int64_t above = ((place >> 1) - 1) & -2;
        if (heap[above] <= end)
            break;
        heap[place] = heap[above];
        heap[place + 1] = heap[above + 1];
        place = above;
    }
    heap[place] = end;
    heap[place + 1] = what;
}

/* Takes away what ends first from a heap that had `size` entries. */
static inline void pop(int64_t *heap, int64_t size) {
    int64_t last = 2 * (size - 1), end = heap[last], what = heap[last + 1], place = 0;
    heap[last] = NEVER; /* so that every place above has two below it */
    for (;;) {
        int64_t below = 2 * place + 2;
        if (below >= last)
            break;
        below += 2 * (heap[below + 2] < heap[below]);
        if (end <= heap[below])
            break;
        heap[place] = heap[below];
        heap[place + 1] = heap[below + 1];
        place = below;
    }
    heap[place] = end;
    heap[place + 1] = what;
}

/* What runs in coalition c, in `ends` or `expected`. */
static inline int64_t *running_of(const Coalitions *state, Ints entries, int64_t c) {
    return entries.at + 2 * state->heap.at[c];
}

/* Whether somebody wants to know when running jobs are expected to end. */
static inline bool expects_ends(const Coalitions *state) { return state->expected.n[0] != 0; }

/* Returns how many of a list of `size` entries are expected to end at that second or later. Those
 * stand first: most of what starts or ends is short, so little is moved behind it. */
static inline int64_t ending_from(const int64_t *list, int64_t size, int64_t end) {
    int64_t first = 0;
    while (first < size) {
        int64_t middle = (first + size) >> 1;
        if (list[2 * middle] >= end)
            first = middle + 1;
        else
            size = middle;
    }
    return first;
}

/* Puts something behind all that is expected to end as late, in a list that had `size` entries. */
static inline void expect(int64_t *list, int64_t size, int64_t end, int64_t what) {
    int64_t place = ending_from(list, size, end), *entry = list + 2 * place;
    memmove(entry + 2, entry, (size_t)(size - place) * 2 * sizeof(int64_t));
    entry[0] = end;
    entry[1] = what;
}

/* Puts what starts now among what runs, until its end. */
static inline void put_to_work(const World *world, int64_t c, int64_t t, Running what) {
    const Coalitions *state = &world->state;
    const Jobs *jobs = &world->jobs;
    int64_t *heap = running_of(state, state->ends, c), size = state->running.at[c]++;
    int64_t number = packed(world, what), certain = jobs->certain.at[what.job];
    if (certain < jobs->processing_time.at[what.job])
        state->guessing.at[c] = least(state->guessing.at[c], t + certain);
    push(heap, size, t + jobs->processing_time.at[what.job], number);
    state->next_end.at[c] = heap[0];
    if (expects_ends(state)) {
        int64_t *list = running_of(state, state->expected, c);
        expect(list, size, t + jobs->estimate.at[what.job], number);
    }
}

/* Takes away what ends next. */
static inline Running take_ended(const World *world, int64_t c) {
    const Coalitions *state = &world->state;
    int64_t *heap = running_of(state, state->ends, c), size = state->running.at[c]--;
    int64_t end = heap[0], number = heap[1];
    pop(heap, size);
    state->next_end.at[c] = size > 1 ? heap[0] : NEVER;
    if (expects_ends(state)) {
        int64_t *list = running_of(state, state->expected, c), job = unpacked(world, number).job;
        end += world->jobs.estimate.at[job] - world->jobs.processing_time.at[job];
        int64_t place = ending_from(list, size, end + 1);
        while (list[2 * place + 1] != number)
            place++;
        list += 2 * place;
        memmove(list, list + 2, (size_t)(size - place - 1) * 2 * sizeof(int64_t));
    }
    return unpacked(world, number);
}

#endif
