/* SPDX-License-Identifier: MIT
 * A model with lengths is one model for each length, which share states, streams and arenas. Each has its own queue,
 * sizes and times, so everything about rows works as for a model without lengths. Threads: of the caller that adds the
 * model; the lock guards the list.
 */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exec/api_check.h"
#include "session/model_lengths.h"
#include "session/session_model.h"
#include "session/sizing/choose_lengths.h"

enum { DEFAULT_LENGTHS = 8, NAME_BYTES = 24 };

static const char call[] = "rondo_session_add_model";

/* Options ---------------------------------------------------------------------------------------------------------- */

static rondo_status fail_options(const char *problem) {
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_OPTIONS, "%s: %s", call, problem);
}

static bool has_row_inputs(const rondo_row_inputs *names) {
  return names->length != NULL || names->slot != NULL || names->start != NULL || names->positions != NULL ||
         names->source != NULL || names->last != NULL;
}

static rondo_status check_unsized(const rondo_model_options *o) {
  if (o->length_count == 0 && o->history_lengths == NULL && o->slots == 0 && o->source == NULL && !o->exact_lengths &&
      !has_row_inputs(&o->row_inputs))
    return RONDO_OK;
  return fail_options("lengths, exact_lengths, slots, source and row_inputs need build_sized (rondo_model_options)");
}

/* What only the model itself has. */
static rondo_status check_source(const rondo_model_options *o) {
  const rondo_model_options *source = o->source;
  if (source == NULL && o->row_inputs.source == NULL) return RONDO_OK;
  if (source == NULL) return fail_options("the row input `source` needs a network that reads sources (source)");
  if (o->slots == 0) return fail_options("a model with a source needs slots, whose caches the source is written to");
  if (source->build_sized == NULL) return fail_options("the options of the source need build_sized");
  if (source->row_inputs.slot == NULL || source->row_inputs.length == NULL)
    return fail_options("the options of the source need the inputs `slot` and `length` (row_inputs)");
  if (source->exact_lengths) return fail_options("a source has padding: leave out exact_lengths of its options");
  if (source->slots == 0 && source->source == NULL && source->row_inputs.source == NULL && source->weights == NULL)
    return RONDO_OK;
  return fail_options("slots, source and weights are those of the model: leave them out of the options of its source");
}

static rondo_status check_slots(const rondo_model_options *o) {
  if (o->slots == 0) return RONDO_OK;
  if (o->exact_lengths) return fail_options("a model with slots has padding: leave out exact_lengths");
  if (o->slot_positions == 0)
    return fail_options("a model with slots needs slot_positions, the maximum number of positions of a sequence");
  if (o->row_inputs.slot == NULL || o->row_inputs.length == NULL)
    return fail_options("a model with slots needs the inputs `slot` and `length` (rondo_model_options.row_inputs)");
  if (o->slots <= INT32_MAX && o->slot_positions <= INT32_MAX) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                    "%s: %zu slots of %zu positions: the maximum of both is %d", call, o->slots, o->slot_positions,
                    INT32_MAX);
}

static rondo_status check_length(const rondo_model_options *o, size_t length) {
  const size_t most = o->slots > 0 ? o->slot_positions : INT32_MAX;
  if (length > 0 && length <= most) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: length %zu is not between 1 and %zu", call,
                    length, most);
}

rondo_status rondo_model_lengths_check(const rondo_model_options *o) {
  if (o->build_sized == NULL) return check_unsized(o);
  if (o->build != NULL || o->body != NULL) return fail_options("build_sized replaces build and body: give one of them");
  if (o->device_count > 0) return fail_options("a model with build_sized cannot be divided: leave out its devices");
  if (o->length_count > 0) RONDO_TRY(rondo_require(call, "lengths", o->lengths));
  if (o->length_count > RONDO_SESSION_MAX_LENGTHS || o->max_lengths > RONDO_SESSION_MAX_LENGTHS)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE, "%s: %zu lengths: the maximum is %d", call,
                      o->length_count > RONDO_SESSION_MAX_LENGTHS ? o->length_count : (size_t)o->max_lengths,
                      RONDO_SESSION_MAX_LENGTHS);
  for (size_t i = 0; i < o->length_count; i++) RONDO_TRY(check_length(o, o->lengths[i]));
  for (size_t i = 0; o->history_lengths != NULL && i < o->history_count; i++)
    if (o->slots == 0 || o->length_count == 0) RONDO_TRY(check_length(o, o->history_lengths[i]));
  RONDO_TRY(check_slots(o));
  return check_source(o);
}

/* Choosing lengths ------------------------------------------------------------------------------------------------- */

typedef struct length_choice {
  size_t items[RONDO_SESSION_MAX_LENGTHS]; /* ascending */
  size_t count;
} length_choice;

static int by_value(const void *a, const void *b) {
  const size_t x = *(const size_t *)a, y = *(const size_t *)b;
  return (x > y) - (x < y);
}

static rondo_status take_given(const rondo_model_options *o, length_choice *out) {
  out->count = o->length_count;
  memcpy(out->items, o->lengths, o->length_count * sizeof *out->items);
  qsort(out->items, out->count, sizeof *out->items, by_value);
  for (size_t i = 1; i < out->count; i++)
    if (out->items[i] == out->items[i - 1])
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_DUPLICATE_NAME, "%s: length %zu is given twice", call,
                        out->items[i]);
  return RONDO_OK;
}

static rondo_status choose(const rondo_session *session, const rondo_model_options *o, length_choice *out) {
  const rondo_allocator *allocator = &session->allocator;
  rondo_length_demand *demands = NULL;
  RONDO_TRY(rondo_allocate_items(allocator, o->history_count, sizeof *demands, &demands));
  for (size_t i = 0; i < o->history_count; i++)
    demands[i] = (rondo_length_demand){.length = o->history_lengths[i], .rows = (double)o->history[i]};
  const uint32_t most = o->max_lengths == 0 ? DEFAULT_LENGTHS : o->max_lengths;
  rondo_status status = RONDO_OK;
  if (o->exact_lengths)
    out->count = rondo_lengths_choose_exact(demands, o->history_count, most, out->items);
  else
    status = rondo_lengths_choose(allocator, demands, o->history_count, most, out->items, &out->count);
  rondo_release(allocator, demands, o->history_count, sizeof *demands);
  return status;
}

static rondo_status find_lengths(const rondo_session *session, const rondo_model_options *o, length_choice *out) {
  if (o->length_count > 0) return take_given(o, out);
  if (o->history_lengths != NULL && o->history_count > 0) return choose(session, o, out);
  *out = (length_choice){.items = {1}, .count = 1};
  return RONDO_OK;
}

/* Making ----------------------------------------------------------------------------------------------------------- */

/* Whether the graphs of length `index` run requests of this length. A longer request of a sequence runs in parts, with
 * the longest length. */
static bool runs(const rondo_model_options *o, const length_choice *lengths, size_t index, size_t length) {
  size_t at = 0;
  if (o->exact_lengths) return lengths->items[index] == length;
  while (at + 1 < lengths->count && lengths->items[at] < length) at++;
  return at == index;
}

/* The rows of the requests that length `index` runs. Without requests, one of one row. */
static size_t list_history(const rondo_model_options *o, const length_choice *lengths, size_t index, size_t *out) {
  size_t count = 0;
  for (size_t i = 0; i < o->history_count; i++)
    if (o->history_lengths == NULL || runs(o, lengths, index, o->history_lengths[i])) out[count++] = o->history[i];
  if (count == 0) out[count++] = 1;
  return count;
}

/* A network that is made: its name and lengths, and the models that are made already, NULL before. */
typedef struct made_network {
  const char *name;
  const rondo_model_options *options;
  length_choice lengths;
  size_t source_length; /* a length of the network that reads sources; 0: there is none */
  rondo_session_model *head, *first;
} made_network;

static rondo_status make_length(rondo_session *session, const made_network *of, size_t index,
                                rondo_session_model **out) {
  const rondo_model_options *o = of->options;
  const length_choice *lengths = &of->lengths;
  const rondo_allocator *allocator = &session->allocator;
  const size_t bytes = strlen(of->name) + NAME_BYTES, capacity = o->history_count + 1;
  size_t *history = NULL;
  char *full = NULL;
  rondo_status status = rondo_allocate_items(allocator, capacity, sizeof *history, &history);
  if (status == RONDO_OK) status = rondo_allocate_items(allocator, bytes, 1, &full);
  if (status == RONDO_OK) {
    (void)snprintf(full, bytes, "%s[%zu]", of->name, lengths->items[index]);
    const rondo_model_part part = {.name = full,
                                   .whole_name = of->first == NULL ? of->name : NULL,
                                   .head = of->head,
                                   .network = of->first,
                                   .source_length = of->source_length,
                                   .length = lengths->items[index],
                                   .history = history,
                                   .history_count = list_history(o, lengths, index, history)};
    status = rondo_model_make(session, &part, o, out);
  }
  rondo_release(allocator, full, bytes, 1);
  rondo_release(allocator, history, capacity, sizeof *history);
  return status;
}

/* Appends the lengths to the list. */
static rondo_status make_network(rondo_session *session, made_network *of, rondo_session_model **list) {
  rondo_session_model **end = list;
  while (*end != NULL) end = &(*end)->next;
  for (size_t i = 0; i < of->lengths.count; i++) {
    RONDO_TRY(make_length(session, of, i, end));
    if (of->head == NULL) of->head = *end;
    if (of->first == NULL) of->first = *end;
    end = &(*end)->next;
  }
  return RONDO_OK;
}

/* The name of the network that reads sources; the caller releases it. */
static rondo_status name_source(const rondo_session *session, const char *name, char **out) {
  static const char suffix[] = ".source";
  const size_t bytes = strlen(name) + sizeof suffix;
  RONDO_TRY(rondo_allocate_items(&session->allocator, bytes, 1, out));
  (void)snprintf(*out, bytes, "%s%s", name, suffix);
  return RONDO_OK;
}

static rondo_status make_source(rondo_session *session, const char *name, made_network *of,
                                rondo_session_model **list) {
  char *full = NULL;
  RONDO_TRY(name_source(session, name, &full));
  of->name = full;
  of->head = *list;
  const rondo_status status = make_network(session, of, list);
  rondo_release_text(&session->allocator, full);
  return status;
}

static rondo_status make_lengths(rondo_session *session, const char *name, const rondo_model_options *o,
                                 rondo_session_model **out) {
  made_network of = {.name = name, .options = o}, source = {.options = o->source};
  RONDO_TRY(find_lengths(session, o, &of.lengths));
  if (o->source != NULL) RONDO_TRY(find_lengths(session, o->source, &source.lengths));
  of.source_length = source.lengths.items[0];
  RONDO_TRY(make_network(session, &of, out));
  return o->source == NULL ? RONDO_OK : make_source(session, name, &source, out);
}

rondo_status rondo_model_lengths_make(rondo_session *session, const char *name, const rondo_model_options *o,
                                      rondo_session_model **out) {
  const rondo_model_part only = {.name = name, .history = o->history, .history_count = o->history_count};
  *out = NULL;
  if (o->build_sized == NULL) return rondo_model_make(session, &only, o, out);
  const rondo_status status = make_lengths(session, name, o, out);
  if (status == RONDO_OK) return RONDO_OK;
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status_ignore(rondo_model_lengths_free(*out), "the first failure is reported");
  *out = NULL;
  return rondo_error_raise(&error);
}

rondo_status rondo_model_lengths_free(rondo_session_model *first) {
  rondo_status status = RONDO_OK;
  while (first != NULL) {
    rondo_session_model *next = first->next;
    rondo_status_keep_first(&status, rondo_model_free(first));
    first = next;
  }
  return status;
}

/* Finding ---------------------------------------------------------------------------------------------------------- */

rondo_session_model *rondo_model_lengths_find(rondo_session_model *network, size_t length) {
  rondo_session_model *at = network;
  assert(network->network == network);
  while (at->length < length && at->next != NULL && at->next->network == network) at = at->next;
  return at;
}

rondo_session_model *rondo_model_lengths_end(const rondo_session_model *network) {
  rondo_session_model *at = network->next;
  while (at != NULL && at->network == network) at = at->next;
  return at;
}

rondo_session_model *rondo_model_group_end(const rondo_session_model *head) {
  rondo_session_model *at = head->next;
  while (at != NULL && at->head == head) at = at->next;
  return at;
}

bool rondo_model_is_whole(const rondo_session_model *model, const char *name) {
  return model->whole_name == NULL ? model->length == 0 : strcmp(model->whole_name, name) == 0;
}
