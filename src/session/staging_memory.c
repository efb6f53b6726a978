/* SPDX-License-Identifier: MIT
 * Staging memory of an instance: host memory for inputs and outputs, and for transfers. A graph uses any block that is
 * large enough. The largest graph is recorded first, so usually there is one block. Threads: the claimant of the
 * worker. The lock guards the counters.
 */
#include <assert.h>
#include <string.h>

#include "session/placement/upstream_parts.h"
#include "session/staging_memory.h"

/* Outputs come after inputs. */
static const rondo_session_value *value_at(const rondo_session_model *model, size_t index) {
  const size_t inputs = model->inputs.count;
  return index < inputs ? &model->inputs.items[index] : &model->outputs.items[index - inputs];
}

/* The offset of a value. The index after the last value gives the total. It cannot overflow,
 * because a program for that many rows exists. */
static size_t stage_offset(const rondo_session_model *model, size_t rows, size_t index) {
  size_t bytes = 0;
  assert(index <= model->inputs.count + model->outputs.count);
  for (size_t i = 0; i < index; i++) bytes += rondo_staging_align(value_at(model, i)->row_bytes * rows);
  return bytes;
}

unsigned char *rondo_stage_input(const rondo_session_model *model, const rondo_stage *stage, size_t index) {
  return stage->memory + stage_offset(model, stage->rows, index);
}

unsigned char *rondo_stage_device_input(const rondo_session_model *model, const rondo_stage *stage, size_t index) {
  return stage->device_memory + stage_offset(model, stage->rows, index);
}

unsigned char *rondo_stage_output(const rondo_session_model *model, const rondo_stage *stage, size_t index) {
  return stage->memory + stage_offset(model, stage->rows, model->inputs.count + index);
}

size_t rondo_stage_bytes(const rondo_session_model *model, size_t rows) {
  return stage_offset(model, rows, model->inputs.count + model->outputs.count);
}

rondo_host_range rondo_stage_range(const rondo_session_model *model, const rondo_stage *stage, size_t index,
                                   size_t rows) {
  const rondo_session_value *value = value_at(model, index);
  assert(rows <= stage->rows);
  return (rondo_host_range){rondo_stage_input(model, stage, index), value->row_bytes * rows, value->name};
}

rondo_status rondo_stage_copy_inputs(const rondo_session_model *model, const rondo_stage *stage, size_t rows,
                                     void *const *addresses, rondo_stream *stream) {
  for (size_t i = 0; i < model->inputs.count; i++) {
    if (addresses[i] == NULL) continue;
    RONDO_TRY(rondo_copy_async(stream, addresses[i], rondo_stage_input(model, stage, i),
                               model->inputs.items[i].row_bytes * rows));
  }
  return RONDO_OK;
}

rondo_status rondo_stage_copy_outputs(const rondo_session_model *model, const rondo_stage *stage, size_t rows,
                                      size_t length, void *const *addresses, rondo_stream *stream) {
  for (size_t i = 0; i < model->outputs.count; i++) {
    const void *address = addresses[model->inputs.count + i];
    if (address == NULL) continue;
    RONDO_TRY(rondo_copy_async(stream, rondo_stage_output(model, stage, i), address,
                               rondo_session_value_bytes(&model->outputs.items[i], length) * rows));
  }
  return RONDO_OK;
}

static void count_staging(rondo_model_instance *instance, size_t more, size_t less) {
  rondo_session *session = instance->model->session;
  pthread_mutex_lock(&session->lock);
  instance->model->info.staging_bytes += more;
  instance->model->info.staging_bytes -= less;
  pthread_mutex_unlock(&session->lock);
}

/* Blocks ----------------------------------------------------------------------------------------------------------- */

static size_t device_bytes(const rondo_session_model *model, size_t rows) {
  return model->body == NULL ? 0 : stage_offset(model, rows, model->inputs.count);
}

/* The sizes of a block for that many rows. */
static rondo_stage stage_of(const rondo_session_model *model, size_t rows) {
  return (rondo_stage){
      .rows = rows, .bytes = rondo_stage_bytes(model, rows), .device_bytes = device_bytes(model, rows)};
}

static bool is_large_enough(const rondo_stage *stage, const rondo_stage *wanted) {
  return stage->memory != NULL && (stage->rows == 0) == (wanted->rows == 0) && stage->rows >= wanted->rows &&
         stage->bytes >= wanted->bytes;
}

static void drop(rondo_model_instance *instance, rondo_stage *stage, rondo_status *kept) {
  const rondo_session_model *model = instance->model;
  if (stage->memory == NULL) return;
  count_staging(instance, 0, stage->bytes + stage->device_bytes);
  rondo_status_keep_first(kept, rondo_host_free(model->staging_device, stage->memory));
  if (stage->device_memory != NULL)
    rondo_status_keep_first(kept, rondo_free(model->session->device, stage->device_memory));
  *stage = (rondo_stage){.memory = NULL};
}

static rondo_status make(rondo_model_instance *instance, const rondo_stage *wanted, rondo_stage *out) {
  const rondo_session_model *model = instance->model;
  void *memory = NULL, *device_memory = NULL;
  const rondo_status made = rondo_host_malloc(model->staging_device, wanted->bytes, &memory);
  RONDO_TRY(wanted->rows > 0
                ? rondo_fail_context(made, "staging memory of model '%s' for %zu rows", model->name, wanted->rows)
                : rondo_fail_context(made, "memory for transfers between the devices of model '%s'", model->name));
  memset(memory, 0, wanted->bytes);
  *out = *wanted;
  out->memory = memory;
  count_staging(instance, out->bytes + out->device_bytes, 0);
  const rondo_status status =
      out->device_bytes == 0 ? RONDO_OK
                             : rondo_malloc(model->session->device, out->device_bytes, model->name, &device_memory);
  out->device_memory = device_memory;
  if (status == RONDO_OK) return RONDO_OK;
  rondo_saved_error error;
  rondo_error_save(&error);
  rondo_status ignored = RONDO_OK;
  drop(instance, out, &ignored);
  return rondo_error_raise(&error);
}

static rondo_status find(rondo_model_instance *instance, rondo_stage wanted, rondo_stage *out) {
  for (size_t i = 0; i < instance->stages.count; i++) {
    *out = instance->stages.items[i];
    if (is_large_enough(out, &wanted)) return RONDO_OK;
  }
  RONDO_TRY(rondo_array_reserve(&instance->model->session->allocator, &instance->stages, instance->stages.count + 1));
  RONDO_TRY(make(instance, &wanted, out));
  instance->stages.items[instance->stages.count++] = *out;
  return RONDO_OK;
}

rondo_status rondo_model_instance_find_stage(rondo_model_instance *instance, size_t rows, rondo_stage *out) {
  assert(rows > 0);
  return find(instance, stage_of(instance->model, rows), out);
}

rondo_status rondo_model_instance_find_transfer_memory(rondo_model_instance *instance, size_t bytes,
                                                       unsigned char **out) {
  rondo_stage found = {.memory = NULL};
  if (bytes > 0) RONDO_TRY(find(instance, (rondo_stage){.bytes = bytes}, &found));
  *out = found.memory;
  return RONDO_OK;
}

/* Replaces a block for eager runs if it is too small. */
static rondo_status reserve(rondo_model_instance *instance, rondo_stage wanted, rondo_stage *kept) {
  rondo_stage larger;
  rondo_status status = RONDO_OK;
  if (is_large_enough(kept, &wanted)) return RONDO_OK;
  RONDO_TRY(make(instance, &wanted, &larger));
  drop(instance, kept, &status);
  *kept = larger;
  return status;
}

rondo_status rondo_model_instance_reserve_eager(rondo_model_instance *instance, size_t rows,
                                                const rondo_upstream *upstream) {
  RONDO_TRY(reserve(instance, stage_of(instance->model, rows), &instance->eager_stage));
  if (upstream == NULL || upstream->bytes == 0) return RONDO_OK;
  return reserve(instance, (rondo_stage){.bytes = upstream->bytes}, &instance->eager_transfer);
}

void rondo_model_instance_drop_stages(rondo_model_instance *instance, rondo_status *kept) {
  for (size_t i = 0; i < instance->stages.count; i++) drop(instance, &instance->stages.items[i], kept);
  instance->stages.count = 0;
}

void rondo_model_instance_close_stages(rondo_model_instance *instance, rondo_status *kept) {
  rondo_model_instance_drop_stages(instance, kept);
  drop(instance, &instance->eager_stage, kept);
  drop(instance, &instance->eager_transfer, kept);
  rondo_array_free(&instance->model->session->allocator, &instance->stages);
}
