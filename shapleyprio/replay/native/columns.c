/* Columns of separated text (see columns.py). */

#include <string.h>

#include "texts.h"

enum { MOMENT_LENGTH = 19, MOST_DIGITS = 10, DAY = 86400 };

typedef struct {
    Ints slots;
    Ints begins;
    Ints ends;
    Ints starts;
    Ints fields;
} Split;

EXPORTED int64_t columns_line_ends(const Bytes *text) {
    int64_t count = 0;
    const uint8_t *at = text->at, *end = at + text->n[0];
    while (at < end && (at = memchr(at, '\n', (size_t)(end - at))) != NULL) {
        count++;
        at++;
    }
    return count;
}

/* Returns where the next separator is, or the end of the line. */
static int64_t field_end(const Bytes *text, int64_t at, uint8_t separator) {
    while (at < text->n[0] && text->at[at] != separator && text->at[at] != '\n')
        at++;
    return at;
}

/* Notes where a field of a line is, if somebody needs it. */
static void put(const Split *found, int64_t field, int64_t line, int64_t begin, int64_t end) {
    if (field < found->slots.n[0] && found->slots.at[field] != UNKNOWN) {
        int64_t place = found->slots.at[field] * found->begins.n[1] + line;
        found->begins.at[place] = begin;
        found->ends.at[place] = end;
    }
}

EXPORTED int64_t columns_split(const Bytes *text, int64_t at, int64_t separator, bool rest,
                               const Split *found) {
    int64_t line = 0, last = found->slots.n[0] - 1, lines = found->begins.n[1];
    while (at < text->n[0]) {
        int64_t field = 0, begin = at, stop = field_end(text, at, (uint8_t)separator);
        while (stop < text->n[0] && text->at[stop] != '\n') {
            if (!(rest && field == last)) {
                put(found, field++, line, begin, stop);
                begin = stop + 1;
            }
            stop = field_end(text, stop + 1, (uint8_t)separator);
        }
        int64_t end = stop > at && text->at[stop - 1] == '\r' ? stop - 1 : stop;
        if (end > at) {
            put(found, field, line, begin, end);
            for (int64_t slot = 0; field != last && slot < found->begins.n[0]; slot++)
                found->begins.at[slot * lines + line] = found->ends.at[slot * lines + line] = 0;
            found->starts.at[line] = at;
            found->fields.at[line++] = field + 1;
        }
        at = stop + 1;
    }
    return line;
}

static bool same(const Fields *fields, int64_t i, int64_t j) {
    int64_t length = fields->end.at[i] - fields->begin.at[i];
    return length == fields->end.at[j] - fields->begin.at[j] &&
           memcmp(fields->text.at + fields->begin.at[i], fields->text.at + fields->begin.at[j],
                  (size_t)length) == 0;
}

static uint64_t hash_of(const Fields *fields, int64_t i) {
    uint64_t hash = 5381;
    for (int64_t at = fields->begin.at[i]; at < fields->end.at[i]; at++)
        hash = hash * 33 + fields->text.at[at];
    return hash ^ hash >> 21;
}

EXPORTED int64_t columns_distinct(const Fields *fields, const Ints32 *codes, const Ints *first,
                                  const Words *hashes, const Ints32 *table) {
    /* open addressing, in as much of the table as is four times the texts or more */
    int64_t lines = fields->begin.n[0], size = 1024, count = 0;
    memset(table->at, UNKNOWN, (size_t)size * sizeof *table->at);
    for (int64_t line = 0; line < lines; line++) {
        if (line > 0 && same(fields, line, line - 1)) {
            codes->at[line] = codes->at[line - 1];
            continue;
        }
        uint64_t hash = hash_of(fields, line), place = hash & (uint64_t)(size - 1);
        int32_t code;
        while ((code = table->at[place]) != UNKNOWN &&
               !(hashes->at[code] == hash && same(fields, line, first->at[code])))
            place = (place + 1) & (uint64_t)(size - 1);
        if (code == UNKNOWN) {
            table->at[place] = code = (int32_t)count;
            first->at[count] = line;
            hashes->at[count++] = hash;
        }
        codes->at[line] = code;
        if (count * 2 > size) {
            size *= 2;
            memset(table->at, UNKNOWN, (size_t)size * sizeof *table->at);
            for (code = 0; code < count; code++) {
                place = hashes->at[code] & (uint64_t)(size - 1);
                while (table->at[place] != UNKNOWN)
                    place = (place + 1) & (uint64_t)(size - 1);
                table->at[place] = code;
            }
        }
    }
    return count;
}

EXPORTED void columns_lines(const Fields *fields, const Bytes *lines) {
    uint8_t *to = lines->at;
    for (int64_t i = 0; i < fields->begin.n[0]; i++) {
        size_t length = (size_t)(fields->end.at[i] - fields->begin.at[i]);
        memcpy(to, fields->text.at + fields->begin.at[i], length);
        to[length] = '\n';
        to += length + 1;
    }
}

/* Reads YYYY-MM-DD, any byte, HH:MM:SS as if it were UTC. */
static int64_t local_moment(const uint8_t *at) {
    int64_t year = digits(at, 4), month = digits(at + 5, 2), day = digits(at + 8, 2);
    int64_t hour = digits(at + 11, 2), minute = digits(at + 14, 2), second = digits(at + 17, 2);
    if (at[4] != '-' || at[7] != '-' || at[13] != ':' || at[16] != ':')
        return UNREADABLE;
    if (year <= 1970 || month < 1 || month > 12)
        return UNREADABLE;
    static const int8_t lengths[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if (day < 1 || day > lengths[month - 1] + (month == 2 && leap))
        return UNREADABLE;
    if (hour < 0 || hour > 23 || minute < 0 || minute > 59 || second < 0 || second > 59)
        return UNREADABLE;
    /* years begin in March, so that the leap day is the last one */
    int64_t since = year - (month <= 2);
    int64_t of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    int64_t days = 365 * since + since / 4 - since / 100 + since / 400 + of_year - 719468;
    return days * DAY + hour * 3600 + minute * 60 + second;
}

EXPORTED void columns_moments(const Fields *fields, int64_t last_time, const Ints *seconds) {
    for (int64_t i = 0; i < fields->begin.n[0]; i++) {
        const uint8_t *at = fields->text.at + fields->begin.at[i];
        int64_t length = fields->end.at[i] - fields->begin.at[i], found = UNREADABLE;
        if (length == MOMENT_LENGTH)
            found = local_moment(at);
        else if (length <= MOST_DIGITS)
            found = digits(at, length);
        seconds->at[i] = 0 < found && found <= last_time ? found : UNREADABLE;
    }
}

EXPORTED void columns_leading_numbers(const Fields *fields, const Ints *numbers,
                                      const Bytes *behind) {
    for (int64_t i = 0; i < fields->begin.n[0]; i++) {
        const uint8_t *begin = fields->text.at + fields->begin.at[i];
        const uint8_t *end = fields->text.at + fields->end.at[i], *at = digits_end(begin, end);
        bool plain = at > begin && at - begin <= MOST_DIGITS;
        numbers->at[i] = plain ? digits(begin, at - begin) : UNREADABLE;
        behind->at[i] = at < end ? *at : 0;
    }
}

EXPORTED void columns_holds(const Fields *fields, int64_t byte, const Bools *found) {
    for (int64_t i = 0; i < fields->begin.n[0]; i++) {
        size_t length = (size_t)(fields->end.at[i] - fields->begin.at[i]);
        found->at[i] = memchr(fields->text.at + fields->begin.at[i], (int)byte, length) != NULL;
    }
}
