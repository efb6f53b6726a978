/* SPDX-License-Identifier: MIT
 * Choices are numbered by sorting the branches by parent and the caller's number. Each branch has a jump to an
 * ancestor, so that any ancestor is reached in logarithmic time (Myers, "An applicative random-access stack", 1983).
 */
#include "plan/partial_order/order_branch.h"

#include "base/error.h"
#include "plan/radix_sort.h"

/* `sorted` holds the branches by parent and then by the caller's number of the choice. */
static void number_choices(rondo_branches *branches, const rondo_sort_entry *sorted, uint32_t count) {
  for (uint32_t i = 0; i < count; i++) {
    if (i == 0 || sorted[i].key != sorted[i - 1].key) branches->choice_begin[branches->choice_count++] = i;
    branches->sorted[i] = sorted[i].value;
    branches->choice[sorted[i].value] = branches->choice_count - 1;
  }
  branches->choice_begin[branches->choice_count] = count;
}

/* The jump of a branch with this parent. If two jumps from the parent have equal lengths, it goes as far as both; else
 * it goes to the parent. */
static uint32_t choose_jump(const rondo_branches *branches, uint32_t parent) {
  const uint32_t *depth = branches->depth;
  const uint32_t first = branches->jump[parent];
  const uint32_t second = branches->jump[first];
  return depth[parent] - depth[first] == depth[first] - depth[second] ? second : parent;
}

static rondo_status fill(rondo_scratch *scratch, const rondo_plan_problem *problem, rondo_branches *out) {
  const size_t count = out->count;
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof(uint32_t), &out->parent));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof(uint32_t), &out->choice));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof(uint32_t), &out->depth));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof(uint32_t), &out->jump));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof(uint32_t), &out->sorted));
  RONDO_TRY(rondo_scratch_take(scratch, count, sizeof(uint32_t), &out->choice_begin));
  rondo_sort_entry *entries = NULL;
  RONDO_TRY(rondo_scratch_take(scratch, problem->branch_count, 2 * sizeof *entries, &entries));
  for (uint32_t i = 0; i < problem->branch_count; i++) {
    const uint32_t parent = problem->branches[i].parent;
    out->parent[i + 1] = parent == RONDO_PLAN_NO_BRANCH ? 0 : parent + 1;
    out->depth[i + 1] = out->depth[out->parent[i + 1]] + 1;
    out->jump[i + 1] = choose_jump(out, out->parent[i + 1]);
    entries[i] = (rondo_sort_entry){(uint64_t)out->parent[i + 1] << 32 | problem->branches[i].choice, i + 1};
  }
  if (problem->branch_count > 1) rondo_sort_entries(entries, entries + problem->branch_count, problem->branch_count);
  number_choices(out, entries, problem->branch_count);
  return RONDO_OK;
}

rondo_status rondo_branches_make(rondo_scratch *scratch, const rondo_plan_problem *problem, rondo_branches *out) {
  *out = (rondo_branches){.count = problem->branch_count + 1};
  return fill(scratch, problem, out);
}

/* The ancestor of a branch at a depth, or the branch itself. */
static uint32_t around(const rondo_branches *branches, uint32_t branch, uint32_t depth) {
  while (branches->depth[branch] > depth) {
    const uint32_t jump = branches->jump[branch];
    branch = branches->depth[jump] >= depth ? jump : branches->parent[branch];
  }
  return branch;
}

/* True if they are in different branches of one choice. The length of a jump depends on the depth alone, so jumps of
 * branches at one depth end at one depth. */
bool rondo_branches_exclude(const rondo_branches *branches, uint32_t a, uint32_t b) {
  a = around(branches, a, branches->depth[b]);
  b = around(branches, b, branches->depth[a]);
  if (a == b) return false;
  while (branches->parent[a] != branches->parent[b]) {
    const uint32_t *up = branches->jump[a] != branches->jump[b] ? branches->jump : branches->parent;
    a = up[a];
    b = up[b];
  }
  return branches->choice[a] == branches->choice[b];
}
