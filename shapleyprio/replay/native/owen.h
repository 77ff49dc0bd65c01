/* Choices of Ref's lattice where organizations stand together in unions: by Owen values.
 *
 * A coalition's unions are the members of each that are in it. First the union with the largest
 * phi - psi is served, phi being its Shapley value among the unions; then its member with the largest
 * phi - psi, phi being its Owen value. As in lattice.py v(C) is in what all have, and what differs is
 * a potential of what is left without a union U, or a member u of it. With m unions, d members of U
 * and n! for n factorial these are, times (m - 1)! or m! (d - 1)!,
 *
 *     sum of (q - 1)! (m - 1 - q)! v(Q) over all sets Q of q unions without U, q > 0
 *     sum of (s - 1)! (d - 1 - s)! q! (m - 1 - q)! v(Q + S) over all such Q, and parts S of U
 *         with s members but u, s > 0
 *
 * and the least sum with psi as often is served. These are few values, so they are added up anew at
 * each choice. */

#ifndef SHAPLEYPRIO_OWEN_H
#define SHAPLEYPRIO_OWEN_H

#include "state.h"

/* Returns who is served next in coalition c of a lattice at moment t. */
int64_t first_by_owen(const World *world, int64_t c, int64_t t);

#endif
