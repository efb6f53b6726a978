/* SPDX-License-Identifier: MIT
 * Runs a part of a batch on an instance. A part runs as a recorded graph, or eagerly as a graph that is not recorded.
 * Does not allocate once warm, and takes no lock except the timer's (utilisation.c).
 *
 * If possible, the device copies inputs directly from the memory of the requests: always on a CPU device, and from
 * page-locked memory on a GPU. A driver would copy other memory through its own buffer and wait, so these rows are
 * first collected in staging memory. All copies, and the zeros of the padding, form one list, which a GPU runs as one
 * kernel (exec/stream/copy_list.h). Values of requests in memory of the device are copied there row by row of the
 * batch, whatever memory the others have; outputs after the graph has ended.
 *
 * Inputs with a length, whose rows are shorter than those of the graph, also go through staging memory, and so do the
 * inputs that the session writes.
 *
 * Inputs of upstream parts always go through staging memory. Upstream parts run while the other inputs are copied. The
 * graph is launched after their results have arrived.
 */
#include <assert.h>
#include <string.h>

#include "base/clock.h"
#include "session/function_instance.h"
#include "session/model_instance.h"
#include "session/placement/upstream_parts.h"
#include "session/serve/batch_part.h"
#include "session/serve/cache_slots.h"
#include "session/serve/utilisation.h"
#include "session/staging_memory.h"
#include "tensor/run/arena_use.h"

/* The rows of a request that belong to the part. They are at `row` in the request and at `at` in the part. */
typedef struct piece {
  const rondo_slot *request;
  size_t row, at, rows;
} piece;

/* Finds the next piece, starting at request *index. False: there is none. */
static bool next_piece(const rondo_part *part, size_t *index, piece *out) {
  const rondo_batch *batch = part->batch;
  for (; *index < batch->count; (*index)++) {
    const size_t begin = batch->first[*index], end = begin + batch->requests[*index]->rows;
    const size_t from = begin > part->first ? begin : part->first;
    const size_t to = end < part->first + part->rows ? end : part->first + part->rows;
    if (from >= to) continue;
    const rondo_slot *request = batch->requests[*index];
    *out = (piece){.request = request, .row = from - begin, .at = from - part->first, .rows = to - from};
    if (part->is_by_slot) out->at = request->sequence->index;
    (*index)++;
    return true;
  }
  return false;
}

static const unsigned char *source_of(const piece *p, size_t input, size_t row_bytes) {
  return (const unsigned char *)p->request->inputs[input] + p->row * row_bytes;
}

/* The valid positions of a row of a request, in the current part. */
static size_t valid_of(const rondo_slot *request, size_t row) {
  return request->lengths == NULL ? request->positions : (size_t)request->lengths[row];
}

/* The byte of a request's value at which its current positions of a row begin. */
static size_t position_offset(const piece *p, const rondo_session_value *value, size_t row) {
  return ((p->row + row) * p->request->length + p->request->from) * value->position_bytes;
}

static void scatter_positions(const piece *p, const rondo_session_value *value, size_t row_bytes,
                              const unsigned char *from, unsigned char *to) {
  for (size_t i = 0; i < p->rows; i++)
    memcpy(to + position_offset(p, value, i), from + (p->at + i) * row_bytes,
           p->request->positions * value->position_bytes);
}

/* The rows of an output of a graph with so many positions. */
static void scatter(const rondo_part *part, size_t output, const rondo_session_value *value, size_t length,
                    const unsigned char *from) {
  const size_t row_bytes = rondo_session_value_bytes(value, length);
  piece p;
  for (size_t i = 0; next_piece(part, &i, &p);) {
    unsigned char *to = p.request->outputs[output];
    if (to == NULL || (p.request->device_outputs >> output & 1) != 0) continue;
    if (value->position_bytes > 0)
      scatter_positions(&p, value, row_bytes, from, to);
    else
      memcpy(to + p.row * row_bytes, from + p.at * row_bytes, p.rows * row_bytes);
  }
}

/* The destination of an input: `rows` rows of `length` positions at `address`, and the staging memory. */
typedef struct input_target {
  unsigned char *address;
  unsigned char *stage;
  const rondo_session_value *value;
  size_t rows, length, row_bytes;
} input_target;

static void gather_positions(const piece *p, size_t input, const input_target *to) {
  const unsigned char *from = p->request->inputs[input];
  for (size_t i = 0; i < p->rows; i++) {
    const size_t bytes = valid_of(p->request, p->row + i) * to->value->position_bytes;
    unsigned char *row = to->stage + (p->at + i) * to->row_bytes;
    memcpy(row, from + position_offset(p, to->value, i), bytes);
    memset(row + bytes, 0, to->row_bytes - bytes);
  }
}

static void gather(const rondo_part *part, size_t input, const input_target *to) {
  piece p;
  for (size_t i = 0; next_piece(part, &i, &p);) {
    if (to->value->position_bytes > 0)
      gather_positions(&p, input, to);
    else
      memcpy(to->stage + p.at * to->row_bytes, source_of(&p, input, to->row_bytes), p.rows * to->row_bytes);
  }
}

/* Inputs that the session writes ----------------------------------------------------------------------------------- */

/* Row `at` of the graph, which is row `row` of the request. */
static void write_row(const rondo_slot *request, size_t length, rondo_row_role role, size_t row, size_t at,
                      int32_t *to) {
  const size_t valid = valid_of(request, row);
  switch (role) {
    case RONDO_ROW_LENGTH:
      to[at] = (int32_t)valid;
      break;
    case RONDO_ROW_SLOT:
      to[at] = request->sequence == NULL ? 0 : (int32_t)request->sequence->index;
      break;
    case RONDO_ROW_START:
      to[at] = (int32_t)request->start;
      break;
    case RONDO_ROW_SOURCE:
      to[at] = (int32_t)request->source;
      break;
    case RONDO_ROW_LAST:
      to[at] = (int32_t)(at * length + valid - 1);
      break;
    case RONDO_ROW_POSITIONS:
      for (size_t i = 0; i < valid; i++) to[at * length + i] = (int32_t)(request->start + i);
      break;
    case RONDO_ROW_GIVEN:
    case RONDO_ROW_ROLES:
      assert(false);
      break;
  }
}

/* Writes all rows of the graph, including the padding. */
static void write_rows(const rondo_part *part, const input_target *target) {
  const rondo_row_role role = target->value->role;
  int32_t *to = (int32_t *)(void *)target->stage;
  piece p;
  memset(to, 0, target->rows * target->row_bytes);
  for (size_t i = 0; i < target->rows && role == RONDO_ROW_LAST; i++) to[i] = (int32_t)(i * target->length);
  for (size_t i = 0; next_piece(part, &i, &p);)
    for (size_t row = 0; row < p.rows; row++) write_row(p.request, target->length, role, p.row + row, p.at + row, to);
}

/* Copying inputs --------------------------------------------------------------------------------------------------- */

/* Whether the rows of each request are copied from where they are; those of some may be collected even so. */
static bool is_direct(const rondo_part *part, size_t input) {
  const rondo_session_value *value = &part->batch->model->inputs.items[input];
  piece p;
  bool all_direct = true, has_device = false;
  if (value->role != RONDO_ROW_GIVEN || value->position_bytes > 0 || part->is_by_slot) return false;
  for (size_t i = 0; next_piece(part, &i, &p);) {
    all_direct &= (p.request->direct >> input & 1) != 0;
    has_device |= (p.request->device_inputs >> input & 1) != 0;
  }
  return all_direct || has_device;
}

/* The size of so many rows of all inputs. */
static size_t bytes_of(const rondo_session_model *model, size_t rows) {
  size_t bytes = 0;
  for (size_t i = 0; i < model->inputs.count; i++) bytes += model->inputs.items[i].row_bytes * rows;
  return bytes;
}

static rondo_status copy_direct(const input_target *to, rondo_copy_list *list, const rondo_part *part, size_t input) {
  piece p;
  for (size_t i = 0; next_piece(part, &i, &p);) {
    const size_t at = p.at * to->row_bytes, bytes = p.rows * to->row_bytes;
    const unsigned char *from = source_of(&p, input, to->row_bytes);
    const bool is_staged = (p.request->direct >> input & 1) == 0;
    if (is_staged) memcpy(to->stage + at, from, bytes);
    RONDO_TRY(rondo_copy_list_add(list, to->address + at, is_staged ? to->stage + at : from, bytes));
  }
  return RONDO_OK;
}

/* Padding is zeros, which are valid as indices. So results do not depend on what ran before. */
static rondo_status fill_padding(const input_target *to, rondo_copy_list *list, const rondo_part *part) {
  return part->rows == to->rows ? RONDO_OK
                                : rondo_copy_list_add_zeros(list, to->address + part->rows * to->row_bytes,
                                                            (to->rows - part->rows) * to->row_bytes);
}

/* Includes the padding. */
static void write_stage(const input_target *to, const rondo_part *part, size_t input) {
  if (to->value->role != RONDO_ROW_GIVEN) {
    write_rows(part, to);
    return;
  }
  const size_t first = part->is_by_slot ? 0 : part->rows; /* row of padding */
  memset(to->stage + first * to->row_bytes, 0, (to->rows - first) * to->row_bytes);
  gather(part, input, to);
}

static rondo_status copy_stage(const input_target *to, rondo_copy_list *list) {
  return rondo_copy_list_add(list, to->address, to->stage, to->rows * to->row_bytes);
}

static rondo_status copy_through_stage(const input_target *to, rondo_copy_list *list, const rondo_part *part,
                                       size_t input) {
  write_stage(to, part, input);
  return copy_stage(to, list);
}

/* Collects the rows of the inputs that upstream parts read. */
static void stage_upstream_inputs(const rondo_upstream *upstream, const rondo_stage *stage, const rondo_part *part) {
  for (size_t i = 0; i < upstream->model->inputs.count; i++) {
    const input_target to = {.stage = rondo_stage_input(upstream->model, stage, i),
                             .rows = upstream->rows,
                             .value = &upstream->model->inputs.items[i],
                             .row_bytes = upstream->model->inputs.items[i].row_bytes};
    if (rondo_upstream_reads(upstream, i)) write_stage(&to, part, i);
  }
}

/* Running ---------------------------------------------------------------------------------------------------------- */

static rondo_stream_worker *worker_of(const rondo_model_instance *instance) {
  return &instance->model->session->workers[instance->worker];
}

/* `address` is NULL if the work does not read the input. The device memory of a function's inputs has the offsets of
 * the staging memory. */
static input_target input_target_of(const rondo_model_instance *instance, const rondo_instance_graph *g,
                                    bool is_recorded, size_t input) {
  const rondo_session_model *model = instance->model;
  input_target to = {.stage = rondo_stage_input(model, &g->stage, input),
                     .rows = g->rows,
                     .length = g->length,
                     .value = &model->inputs.items[input],
                     .row_bytes = rondo_session_value_bytes(&model->inputs.items[input], g->length)};
  if (is_recorded)
    to.address = g->copies[input].copy.dst;
  else
    to.address =
        instance->tree != NULL ? rondo_stage_device_input(model, &g->stage, input) : g->program.addresses[input];
  return to;
}

static rondo_status copy_input(const input_target *to, rondo_copy_list *list, const rondo_part *part, size_t input,
                               bool is_direct) {
  if (to->address == NULL) return RONDO_OK;
  return is_direct ? copy_direct(to, list, part, input) : copy_through_stage(to, list, part, input);
}

/* Copies the inputs of the main part. Inputs that upstream parts read are in staging memory already; a recorded graph
 * copies them itself. The padding of all inputs comes before the copies: a GPU that alternates between fills and copies
 * changes engines and waits. An eager run has no padding. */
static rondo_status copy_inputs(const rondo_model_instance *instance, const rondo_instance_graph *g, bool is_recorded,
                                const rondo_part *part) {
  const size_t inputs = instance->model->inputs.count;
  rondo_copy_list *list = &worker_of(instance)->copies;
  uint64_t direct = 0;
  rondo_copy_list_begin(list, instance->stream, bytes_of(instance->model, g->rows));
  for (size_t i = 0; i < inputs; i++) {
    if (rondo_upstream_reads(g->program.upstream, i) || !is_direct(part, i)) continue;
    const input_target to = input_target_of(instance, g, is_recorded, i);
    direct |= UINT64_C(1) << i;
    RONDO_TRY(fill_padding(&to, list, part));
  }
  for (size_t i = 0; i < inputs; i++) {
    const input_target to = input_target_of(instance, g, is_recorded, i);
    if (!rondo_upstream_reads(g->program.upstream, i))
      RONDO_TRY(copy_input(&to, list, part, i, (direct >> i & 1) != 0));
    else if (!is_recorded && to.address != NULL)
      RONDO_TRY(copy_stage(&to, list));
  }
  return rondo_copy_list_end(list);
}

/* Upstream parts run while the other inputs are copied. */
static rondo_status run_upstream_and_copy_inputs(const rondo_model_instance *instance, const rondo_instance_graph *g,
                                                 bool is_recorded, const rondo_part *part) {
  const rondo_upstream *upstream = g->program.upstream;
  stage_upstream_inputs(upstream, &g->stage, part);
  rondo_status status =
      is_recorded ? rondo_upstream_replay(upstream) : rondo_upstream_run_eager(upstream, &g->stage, g->transfer);
  if (status == RONDO_OK) status = copy_inputs(instance, g, is_recorded, part);
  return rondo_upstream_wait(upstream, status);
}

/* A recorded graph, and the body of a function, also copy the outputs. */
static rondo_status launch(rondo_model_instance *instance, const rondo_instance_graph *g, bool is_recorded) {
  RONDO_TRY(rondo_model_instance_launch(instance, g, is_recorded));
  if (is_recorded || instance->tree != NULL) return RONDO_OK;
  return rondo_stage_copy_outputs(instance->model, &g->stage, g->rows, g->length, g->program.addresses,
                                  instance->stream);
}

static rondo_status enqueue(rondo_model_instance *instance, const rondo_instance_graph *g, bool is_recorded,
                            const rondo_part *part) {
  rondo_stream_worker *worker = worker_of(instance);
  const uint64_t begin_ns = rondo_utilisation_read_clock(worker->session);
  if (!is_recorded && g->program.compiled != NULL) rondo_compiled_claim_inputs(g->program.compiled);
  RONDO_TRY(g->program.upstream == NULL ? copy_inputs(instance, g, is_recorded, part)
                                        : run_upstream_and_copy_inputs(instance, g, is_recorded, part));
  RONDO_TRY(rondo_utilisation_begin(worker, instance->stream));
  RONDO_TRY(launch(instance, g, is_recorded));
  RONDO_TRY(rondo_utilisation_end(worker, instance->stream));
  if (is_recorded) worker->enqueue_ns = rondo_utilisation_read_clock(worker->session) - begin_ns;
  rondo_utilisation_collect(worker);
  return RONDO_OK;
}

/* Waits for enqueued work also after a failure, because it uses memory of the requests. */
static rondo_status wait_for(const rondo_model_instance *instance, rondo_compiled *compiled, rondo_status enqueued) {
  RONDO_THEN(enqueued,
             compiled == NULL ? rondo_stream_synchronize(instance->stream) : rondo_compiled_synchronize(compiled));
  return enqueued;
}

/* Copying outputs to the device ------------------------------------------------------------------------------------ */

static bool has_device_outputs(const rondo_part *part) {
  piece p;
  for (size_t i = 0; next_piece(part, &i, &p);)
    if (p.request->device_outputs != 0) return true;
  return false;
}

static rondo_status copy_device_output(const rondo_part *part, size_t output, size_t row_bytes,
                                       const unsigned char *from, rondo_stream *stream) {
  piece p;
  for (size_t i = 0; next_piece(part, &i, &p);) {
    unsigned char *to = p.request->outputs[output];
    if (to != NULL && (p.request->device_outputs >> output & 1) != 0)
      RONDO_TRY(rondo_copy_async(stream, to + p.row * row_bytes, from + p.at * row_bytes, p.rows * row_bytes));
  }
  return RONDO_OK;
}

/* From where the program left them; outputs of a function, whose memory is its own, from staging memory. */
static rondo_status copy_device_outputs(const rondo_model_instance *instance, const rondo_instance_graph *g,
                                        const rondo_part *part) {
  const rondo_session_model *model = instance->model;
  rondo_status status = RONDO_OK;
  if (!has_device_outputs(part)) return RONDO_OK;
  for (size_t i = 0; i < model->outputs.count && status == RONDO_OK; i++) {
    const void *made = g->program.addresses == NULL ? NULL : g->program.addresses[model->inputs.count + i];
    status = copy_device_output(part, i, model->outputs.items[i].row_bytes,
                                made != NULL ? made : rondo_stage_output(model, &g->stage, i), instance->stream);
  }
  RONDO_THEN(status, rondo_stream_synchronize(instance->stream));
  return status;
}

static rondo_status run(rondo_model_instance *instance, const rondo_instance_graph *g, bool is_recorded,
                        const rondo_part *part) {
  const rondo_session_model *model = instance->model;
  rondo_stream_worker *worker = worker_of(instance);
  assert(part->rows <= g->rows);
  worker->sample_begin_ns = rondo_clock_ns();
  RONDO_TRY(wait_for(instance, g->program.compiled, enqueue(instance, g, is_recorded, part)));
  worker->sample_end_ns = rondo_clock_ns();
  rondo_utilisation_keep(worker);
  for (size_t i = 0; i < model->outputs.count; i++)
    scatter(part, i, &model->outputs.items[i], g->length, rondo_stage_output(model, &g->stage, i));
  return copy_device_outputs(instance, g, part);
}

/* Runs the part as a graph of exactly its rows, which is not recorded. It has the length of the model, or if lengths
 * are exact, that of the request. */
static rondo_status run_eager(rondo_model_instance *instance, const rondo_part *part) {
  const rondo_batch *batch = part->batch;
  rondo_instance_graph g = {.rows = part->rows, .length = rondo_batch_length(batch)};
  if (instance->tree == NULL) RONDO_TRY(rondo_model_instance_find_program(instance, part->rows, g.length, &g.program));
  RONDO_TRY(rondo_model_instance_reserve_eager(instance, part->rows, g.program.upstream));
  g.stage = instance->eager_stage;
  g.transfer = instance->eager_transfer.memory;
  return run(instance, &g, false, part);
}

static rondo_status run_graph(rondo_model_instance *instance, const rondo_part *part) {
  assert(part->graph < instance->graphs.count);
  return run(instance, &instance->graphs.items[part->graph], true, part);
}

rondo_status rondo_part_run(rondo_model_instance *instance, const rondo_part *part) {
  assert(part->rows > 0 && part->first + part->rows <= part->batch->rows);
  const rondo_capture_mode before = rondo_set_capture_mode(RONDO_CAPTURE_RELAXED);
  const rondo_status status = part->graph == RONDO_EAGER_PART ? run_eager(instance, part) : run_graph(instance, part);
  (void)rondo_set_capture_mode(before);
  return status;
}
