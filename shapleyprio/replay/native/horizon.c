#include "horizon.h"

#include "notes.h"

/* Whose an event is: organization u itself is u, its processors are k + u. */
enum { WHOSE_BITS = 9, WHOSE = (1 << WHOSE_BITS) - 1 };

typedef struct {
    int64_t second, what;
} Event;

static Event *event_of(const PastEvents *past, int64_t c, int64_t number) {
    int64_t first = past->first.at[c], room = past->first.at[c + 1] - first;
    return (Event *)past->events.at + first + number % room;
}

static void note(const PastEvents *past, int64_t c, int64_t t, int64_t whose, int64_t processors) {
    int64_t more = processors * (1 << WHOSE_BITS);
    for (int64_t number = past->newest.at[c] - 1; number >= past->oldest.at[c]; number--) {
        Event *event = event_of(past, c, number);
        if (event->second != t)
            break;
        if ((event->what & WHOSE) == whose) {
            event->what += more;
            return;
        }
    }
    *event_of(past, c, past->newest.at[c]) = (Event){t, more + whose};
    if (past->newest.at[c] == past->oldest.at[c])
        past->due.at[c] = t + past->horizon.at[0];
    past->newest.at[c]++;
}

void note_end(const World *world, int64_t c, int64_t t, int64_t u, int64_t owner,
              int64_t processors) {
    const PastEvents *past = &world->state.past;
    if (!has_horizon(&world->state))
        return;
    note(past, c, t, u, -processors);
    if (is_recorded(world, c))
        note(past, c, t, world->record.owned.n[0] + owner, -processors);
}

void note_start(const World *world, int64_t c, int64_t t, int64_t u, int64_t processors) {
    const PastEvents *past = &world->state.past;
    const Ints given = world->record.given;
    if (!has_horizon(&world->state))
        return;
    note(past, c, t, u, processors);
    for (int64_t owner = 0; owner < given.n[0] && is_recorded(world, c); owner++)
        if (given.at[owner] != 0)
            note(past, c, t, given.n[0] + owner, given.at[owner]);
}

/* Takes away the oldest event of coalition c, which is due. */
static Event take_due(const PastEvents *past, int64_t c) {
    Event event = *event_of(past, c, past->oldest.at[c]++);
    past->due.at[c] = NEVER;
    if (past->oldest.at[c] < past->newest.at[c])
        past->due.at[c] =
            event_of(past, c, past->oldest.at[c])->second + past->horizon.at[0];
    return event;
}

void saturate_past(const World *world, int64_t c, int64_t t) {
    const Coalitions *state = &world->state;
    const PastEvents *past = &state->past;
    int64_t k = organizations_of(state);
    bool wide = is_wide(state);
    while (past->due.at[c] <= t) {
        int64_t second = past->due.at[c];
        Event event = take_due(past, c);
        int64_t whose = event.what & WHOSE, processors = event.what >> WHOSE_BITS;
        if (whose >= k) {
            add(row(past->contribution, whose - k), wide, second, processors);
        } else {
            count(world, c, row(past->total, c), second, processors);
            add(row_of(past->utility, c, whose), wide, second, processors);
        }
    }
}

bool has_room(const Coalitions *state, int64_t seconds) {
    const PastEvents *past = &state->past;
    for (int64_t c = 0; c < past->due.n[0]; c++) {
        int64_t room = past->first.at[c + 1] - past->first.at[c];
        int64_t wanted = past->newest.at[c] - past->oldest.at[c] + past->in_a_second.at[c] * seconds;
        if (room < past->within.at[c] && wanted > room)
            return false;
    }
    return true;
}
