/* SPDX-License-Identifier: MIT
 * See the header.
 */
#include "mpi/mpi_pairs.h"

#include "mpi/mpi_engine.h"

/* Tags are 14 bits of a hash: every MPI has tags up to 32767. Up to SMALL bytes, the message of the whole is sent at
 * once by both MPIs, without asking the receiver. */
enum { FIRST_TAG = 2, TAG_SHIFT = 64 - 14 };
enum { MOST_RANKS = 8, SMALL = 2 << 10, SEGMENT = 2 * RONDO_MPI_PAIRS_TEMPORARY };

bool rondo_mpi_pairs_fit(const rondo_mpi_group *group, const rondo_collective *work) {
  const bool is_power_of_two = (group->size & (group->size - 1)) == 0;
  return work->operation == RONDO_COLLECTIVE_ALL_REDUCE && group->size > 1 && group->size <= MOST_RANKS &&
         is_power_of_two && work->count > 0;
}

static bool is_halved(const rondo_mpi_pairs *p) { return p->count * p->width > SMALL; }

/* A small segment has no steps that collect. */
static bool is_collecting(const rondo_mpi_pairs *p) { return p->step >= p->levels; }

/* What a rank sums up after so many halvings. */
static rondo_mpi_part part_of(const rondo_mpi_pairs *p, int rank, int halvings) {
  rondo_mpi_part own = {0, p->count};
  if (!is_halved(p)) return own;
  for (int bit = p->group->size / 2; halvings > 0; bit /= 2, halvings--) {
    const size_t low = own.count / 2;
    if ((rank & bit) != 0) own.at += low;
    own.count = (rank & bit) != 0 ? own.count - low : low;
  }
  return own;
}

static int level_of(const rondo_mpi_pairs *p) { return is_collecting(p) ? 2 * p->levels - 1 - p->step : p->step; }

static int partner_of(const rondo_mpi_pairs *p) { return p->group->rank ^ (p->group->size >> (level_of(p) + 1)); }

/* Whether data arrives where the result will be, which then is combined with the source. */
static bool arrives_in_place(const rondo_mpi_pairs *p) {
  return is_collecting(p) || (p->step == 0 && p->src != p->dst);
}

/* What concerns the receive is done while the partner's message is on its way: it is matched when the request is
 * tested. */
static rondo_status start_step(rondo_mpi_pairs *p, MPI_Request requests[2]) {
  const int own = p->group->rank, partner = partner_of(p), halvings = level_of(p) + 1;
  const rondo_mpi_part out = part_of(p, is_collecting(p) ? own : partner, halvings);
  const char *from = (p->step == 0 ? p->src : p->dst) + out.at * p->width;
  const int code = MPI_Isend(from, (int)out.count, p->type, partner, p->tag, p->group->control, &requests[1]);
  if (code != MPI_SUCCESS) return rondo_mpi_fail_peer(code, partner, "sending");
  p->in = part_of(p, is_collecting(p) ? partner : own, halvings);
  char *to = arrives_in_place(p) ? p->dst + p->in.at * p->width : p->temporary;
  return rondo_mpi_check(MPI_Irecv(to, (int)p->in.count, p->type, partner, p->tag, p->group->control, &requests[0]),
                         "receiving");
}

static void combine(const rondo_mpi_pairs *p) {
  const size_t at = p->in.at * p->width;
  if (!is_collecting(p)) p->combine(p->dst + at, arrives_in_place(p) ? p->src + at : p->temporary, p->in.count);
}

static rondo_status start_segment(rondo_mpi_pairs *p, MPI_Request requests[2]) {
  const size_t most = SEGMENT / p->width;
  p->count = p->left < most ? p->left : most;
  p->left -= p->count;
  p->step = 0;
  return start_step(p, requests);
}

rondo_status rondo_mpi_pairs_start(rondo_mpi_pairs *pairs, const rondo_mpi_group *group, const rondo_collective *work,
                                   uint64_t hash, MPI_Datatype type, void *temporary, MPI_Request requests[2]) {
  *pairs = (rondo_mpi_pairs){.group = group,
                             .combine = rondo_combine_find(work->type, work->reduction),
                             .type = type,
                             .tag = FIRST_TAG + (int)(hash >> TAG_SHIFT),
                             .width = rondo_type_bytes(work->type),
                             .left = work->count,
                             .src = work->src,
                             .dst = work->dst,
                             .temporary = temporary};
  while (1 << pairs->levels < group->size) pairs->levels++;
  return start_segment(pairs, requests);
}

rondo_status rondo_mpi_pairs_go_on(rondo_mpi_pairs *pairs, MPI_Request requests[2], bool *out_is_done) {
  combine(pairs);
  *out_is_done = false;
  if (++pairs->step < (is_halved(pairs) ? 2 : 1) * pairs->levels) return start_step(pairs, requests);
  *out_is_done = pairs->left == 0;
  if (*out_is_done) return RONDO_OK;
  pairs->src += pairs->count * pairs->width;
  pairs->dst += pairs->count * pairs->width;
  return start_segment(pairs, requests);
}
