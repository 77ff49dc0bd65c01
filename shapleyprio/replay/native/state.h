/* The state of the engine, as the named tuples of shapleyprio/replay/engine have it.
 *
 * Each struct has the fields of the named tuple of its name, in their order; what they are is said
 * there (state.py, keys.py). */

#ifndef SHAPLEYPRIO_STATE_H
#define SHAPLEYPRIO_STATE_H

#include "arrays.h"

/* A time that does not come. */
#define NEVER ((int64_t)1 << 62)

/* Policies, as engine/codes.py has them. */
enum {
    KEYED,
    DIRECT,
    RELATIVE,
    SURFACE,
    FAIR_SHARE,
    UTILITY_SHARE,
    CURRENT_SHARE,
    ROUND_ROBIN,
    FIRST_COME,
    RANKED,
    KARMA,
    DECAYED_SHARE,
    KAI
};

/* Which jobs may pass a rigid one that does not fit. */
enum { NOTHING_PASSES, OTHERS_PASS, ALL_PASS };

/* Columns of BaySchedules. */
enum { PARTITION, FOLLOWING, ARRIVING };
enum { FREE, WANTED, CLOSED };
enum { SIZE, RESERVED, SPARE, OPEN, WAITING };
enum { HEAD, REST, DEMAND, PASSED, LAST };

/* Ways of placing a job. */
enum { RANDOM, LEAST_LOADED, AS_RECORDED };

typedef struct {
    Ints first;
    Ints organization;
    Ints release;
    Ints processing_time;
    Ints width;
    Ints certain;
    Ints estimate;
    Ints position;
    Ints arrival;
    Ints arrival_of;
    Ints arrival_width;
    Ints rigid;
    Ints backfill;
    Ints unions;
} Jobs;

typedef struct {
    Ints horizon;
    Ints due;
    Ints oldest;
    Ints newest;
    Ints first;
    Ints events;
    Ints in_a_second;
    Ints within;
    Ints utility;
    Ints total;
    Ints contribution;
} PastEvents;

typedef struct {
    Bools takes_part;
    Ints processors;
    Ints widest;
    Ints free;
    Ints now;
    Ints undecided;
    Ints arrived;
    Ints waiting;
    Ints demand;
    Ints demand_of;
    Ints head;
    Ints rest;
    Ints passed;
    Ints served;
    Ints utility;
    Ints total;
    Ints guessing;
    Ints next_end;
    Ints running;
    Ints heap;
    Ints ends;
    Ints expected;
    PastEvents past;
} Coalitions;

typedef struct {
    Ints entries;
    Ints first;
    Ints block;
    Ints end;
} Notes;

typedef struct {
    Ints used;
    Ints asked;
    Ints members;
    Ints weights;
    Floats potential;
    Ints made;
    Ints cell_bits;
    Floats doubt;
    Floats rough;
    Ints exact;
} BySecond;

typedef struct {
    Ints begin;
    Ints rows;
    Ints high;
    Floats base;
    Floats slope;
    Ints factor;
    Ints inverse;
    Floats shrink;
    Ints lattice;
    Notes notes;
    BySecond by_second;
} Keys;

typedef struct {
    Ints coalition;
    Ints owned;
    Ints free_of;
    Ints contribution;
    Ints released;
    Ints credits;
    Floats usage;
    Floats decay;
    Ints fair_share;
    Ints guarantee;
    Ints asks;
    Ints asking;
    Ints reserved;
    Ints lent;
    Words random;
    Ints placing;
    Ints first_part;
    Ints part_owner;
    Ints part_processors;
    Ints given;
    Ints size;
    Ints32 job;
    Ints start;
    Ints32 owner;
    Ints32 bay;
    Ints32 copies;
} Record;

typedef struct {
    Bools reach;
    Ints jobs;
    Ints bays;
    Ints partitions;
    Ints queues;
    Ints unused;
    Bools sharing;
    Ints closes;
    Ints missing;
    Ints first_behind;
    Ints behind;
    Ints free_of;
    Ints given;
} BaySchedules;

typedef struct {
    Jobs jobs;
    Coalitions state;
    Keys keys;
    Record record;
    BaySchedules bays;
} World;

/* Whether the sums of these schedules have two limbs. */
static inline bool is_wide(const Coalitions *state) { return state->total.n[1] == 4; }

/* How many organizations there are. */
static inline int64_t organizations_of(const Coalitions *state) { return state->utility.n[1]; }

/* Whether organizations stand together, so that unions are served before their members. */
static inline bool has_unions(const World *world) { return world->jobs.unions.n[0] != 0; }

/* Whether jobs only get processors of some bays. */
static inline bool is_confined(const World *world) { return world->bays.reach.n[0] != 0; }

/* Whether it is this coalition's schedule that is written down. */
static inline bool is_recorded(const World *world, int64_t c) {
    return world->record.coalition.at[0] == c;
}

/* Whether in this coalition jobs go first that have waited and fit into what is lent. */
static inline bool has_guarantee(const World *world, int64_t c) {
    return world->record.guarantee.at[0] != NEVER && is_recorded(world, c);
}

/* Whether a job was released before another one, then in the order of the log. */
static inline bool was_first(const Jobs *jobs, int64_t job, int64_t other) {
    int64_t release = jobs->release.at[job], later = jobs->release.at[other];
    return release < later ||
           (release == later && jobs->position.at[job] < jobs->position.at[other]);
}

/* Whether parts stop gaining worth at some age. */
static inline bool has_horizon(const Coalitions *state) { return state->past.due.n[0] != 0; }

#endif
