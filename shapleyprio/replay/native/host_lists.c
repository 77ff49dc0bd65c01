/* Sees of most lists of hosts that they are such (see host_lists.py). */

#include "texts.h"

enum { LONGEST_NAME = 64, MOST_DIGITS = 9 };

static bool is_letter(uint8_t byte) {
    return ('a' <= byte && byte <= 'z') || ('A' <= byte && byte <= 'Z');
}

static bool in_name(uint8_t byte) {
    return is_letter(byte) || is_digit(byte) || byte == '-' || byte == '.';
}

/* Passes over a range such as 7 or 08-12; returns how many numbers it has, 0 if it is not plain. */
static int64_t range(const uint8_t **at, const uint8_t *end) {
    const uint8_t *low = *at, *low_end = digits_end(low, end), *high = low, *high_end = low_end;
    if (low_end < end && *low_end == '-') {
        high = low_end + 1;
        high_end = digits_end(high, end);
    }
    *at = high_end;
    int64_t width = low_end - low, high_width = high_end - high;
    if (width == 0 || width > high_width || high_width > MOST_DIGITS)
        return 0;
    if (width < high_width && (*high == '0' || (*low == '0' && width > 1)))
        return 0; /* padded to two widths */
    int64_t count = digits(high, high_width) - digits(low, width) + 1;
    return count > 0 ? count : 0;
}

/* Passes over an item of a list; returns how many hosts it has, 0 if it is not plain. */
static int64_t item(const uint8_t **at, const uint8_t *end) {
    const uint8_t *first = *at;
    while (*at < end && in_name(**at))
        ++*at;
    if (*at == first || *at - first > LONGEST_NAME || !is_letter(*first))
        return 0;
    if (*at == end || **at != '[')
        return 1;
    if (!is_letter((*at)[-1]))
        return 0;
    int64_t hosts = 0;
    while (**at != ']') {
        ++*at;
        int64_t count = range(at, end);
        if (count == 0 || *at == end || (**at != ',' && **at != ']'))
            return 0;
        hosts += count;
    }
    ++*at;
    return hosts;
}

EXPORTED void host_lists_surely(const Fields *fields, int64_t most, const Bools *found) {
    for (int64_t i = 0; i < fields->begin.n[0]; i++) {
        const uint8_t *at = fields->text.at + fields->begin.at[i];
        const uint8_t *end = fields->text.at + fields->end.at[i];
        int64_t hosts = 0;
        found->at[i] = false;
        while (at < end) {
            int64_t count = item(&at, end);
            hosts += count;
            if (count == 0 || hosts > most)
                break;
            found->at[i] = at == end;
            if (at < end && *at++ != ',')
                break;
        }
    }
}
