/* Reads the Standard Workload Format (see swf.py). */

#include "texts.h"

/* What is wrong with a line. */
enum { FINE, NO_NUMBER, NOT_WHOLE, TOO_LARGE, TOO_LOW, TOO_FEW };

/* Of each field: the least and the largest value that mean something, and its row in values. */
typedef struct {
    Ints lowest;
    Ints highest;
    Ints slots;
} Format;

typedef struct {
    int64_t field, fault;
} Read;

static bool is_blank(uint8_t byte) {
    return byte == ' ' || ('\t' <= byte && byte <= '\r' && byte != '\n');
}

static const uint8_t *behind_blanks(const uint8_t *at, const uint8_t *end) {
    while (at < end && is_blank(*at))
        at++;
    return at;
}

/* Passes over the number that begins here; says what is wrong with it. */
static int64_t number(const uint8_t **at, const uint8_t *end, int64_t largest, int64_t *value) {
    bool negative = **at == '-', strange = false;
    int64_t digits = 0, dots = 0;
    *value = 0;
    for (*at += negative; *at < end && !is_blank(**at) && **at != '\n'; ++*at) {
        if (is_digit(**at)) {
            digits++;
            if (dots == 0 && *value <= largest)
                *value = *value * 10 + (**at - '0');
        } else if (**at == '.') {
            dots++;
        } else {
            strange = true;
        }
    }
    int64_t fault = *value > largest ? TOO_LARGE : FINE;
    if (negative)
        *value = -*value;
    return strange || digits == 0 || dots > 1 ? NO_NUMBER : dots == 1 ? NOT_WHOLE : fault;
}

/* Reads a line into a column of values; says how many fields are right, and what is wrong. */
static Read job(const uint8_t **at, const uint8_t *end, const Format *format, int64_t largest,
                const Ints *values, int64_t column) {
    int64_t field = 0, fields = format->slots.n[0];
    while (field < fields && *at < end && **at != '\n') {
        int64_t value, fault = number(at, end, largest, &value), slot = format->slots.at[field];
        if (slot == UNKNOWN)
            fault = fault == NO_NUMBER ? NO_NUMBER : FINE;
        else if (fault == FINE && value < format->lowest.at[field])
            fault = TOO_LOW;
        else if (fault == FINE && value > format->highest.at[field])
            fault = TOO_LARGE;
        if (fault != FINE)
            return (Read){field, fault};
        if (slot != UNKNOWN)
            values->at[slot * values->n[1] + column] = value;
        field++;
        *at = behind_blanks(*at, end);
    }
    return (Read){field, field == fields ? FINE : TOO_FEW};
}

EXPORTED int64_t swf_parse(const Bytes *text, const Format *format, int64_t largest,
                           const Ints *values, const Ints *faults, const Ints *malformed) {
    const uint8_t *at = text->at, *end = at + text->n[0];
    int64_t line = 0, rows = 0, faulty = 0;
    while (at < end) {
        const uint8_t *begin = at;
        line++;
        at = behind_blanks(at, end);
        if (at < end && *at != '\n' && *at != ';') {
            Read read = job(&at, end, format, largest, values, rows);
            if (read.fault == FINE) {
                rows++;
            } else {
                if (faulty < faults->n[0]) {
                    int64_t fault[] = {line, begin - text->at, read.field, read.fault};
                    for (int64_t i = 0; i < 4; i++)
                        faults->at[faulty * 4 + i] = fault[i];
                }
                faulty++;
            }
        }
        while (at < end && *at++ != '\n')
            ;
    }
    malformed->at[0] = faulty;
    return rows;
}
