/* SPDX-License-Identifier: MIT
 * Builds, binds and runs plans of cuDNN. Threads: as cudnn_plan.h says.
 */
#include "tensor/vendor/cudnn_plan.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "device/device.h"
#include "tensor/vendor/compute_libraries.h"

/* Copies the library's last error message as one line. */
static void read_message(char *message, size_t capacity) {
  message[0] = '\0';
  rondo_cudnn_api.last_words(message, capacity);
  message[capacity - 1] = '\0';
  for (char *c = message; *c != '\0'; c++)
    if (*c == '\n') *c = ' ';
}

/* `doing`: followed by what the plan computes. */
static rondo_status check(int code, const char *doing, const char *what) {
  char message[256];
  if (code == CUDNN_OK) return RONDO_OK;
  const char *name = rondo_cudnn_api.status_name(code);
  const bool is_memory = code == CUDNN_NO_MEMORY || code == CUDNN_NO_HOST_MEMORY;
  read_message(message, sizeof message);
  return rondo_fail_driver(is_memory ? RONDO_OUT_OF_MEMORY : RONDO_EXECUTION_FAILED, RONDO_REASON_NONE, code, name,
                           "%s%s: cuDNN failed%s%s (RONDO_CUDNN_LIBRARY=none disables it)", doing, what,
                           message[0] == '\0' ? "" : ": ", message);
}

static const char describing[] = "describing ", choosing[] = "choosing the engine of ";

/* The library does not support it, or, in a version that does not know such a graph, calls it wrong. Other codes are
 * failures. */
static bool is_lack(int code) {
  return code >= CUDNN_BAD_VALUE && code < CUDNN_NOT_RUN && code != CUDNN_NO_MEMORY && code != CUDNN_NO_HOST_MEMORY;
}

int rondo_cudnn_type(rondo_type type) {
  return type == RONDO_F16 ? CUDNN_F16 : type == RONDO_BF16 ? CUDNN_BF16 : CUDNN_F32;
}

/* Describing ------------------------------------------------------------------------------------------------------- */

static int set_all(cudnn_descriptor descriptor, const rondo_cudnn_setting *settings, size_t count) {
  int code = CUDNN_OK;
  for (size_t i = 0; i < count && code == CUDNN_OK; i++)
    code = rondo_cudnn_api.descriptor_set(descriptor, settings[i].attribute, settings[i].type, settings[i].count,
                                          settings[i].elements);
  return code == CUDNN_OK ? rondo_cudnn_api.finalize(descriptor) : code;
}

static void drop(cudnn_descriptor *descriptor) {
  if (*descriptor != NULL) (void)rondo_cudnn_api.descriptor_destroy(*descriptor); /* it exists, so this cannot fail */
  *descriptor = NULL;
}

rondo_status rondo_cudnn_add(rondo_cudnn_plan *plan, cudnn_kind kind, const rondo_cudnn_setting *settings, size_t count,
                             cudnn_descriptor *out) {
  cudnn_descriptor made = NULL;
  *out = NULL;
  if (plan->is_lacking) return RONDO_OK;
  RONDO_TRY(rondo_array_reserve(&plan->maker->allocator, &plan->descriptors, plan->descriptors.count + 1));
  RONDO_TRY(check(rondo_cudnn_api.descriptor_create(kind, &made), describing, plan->what));
  plan->descriptors.items[plan->descriptors.count++] = made;
  const int code = set_all(made, settings, count);
  plan->is_lacking = is_lack(code);
  if (plan->is_lacking) return RONDO_OK;
  *out = made;
  return check(code, describing, plan->what);
}

/* Choosing --------------------------------------------------------------------------------------------------------- */

#define MAX_CONFIGS 64

/* What an engine is chosen for. */
typedef struct choice {
  rondo_cudnn_plan *plan;
  cudnn_descriptor graph;
  bool is_f32;
  double most_workspace_bytes;
} choice;

/* Whether an engine with this numerical note may be used. F32 may be computed by transforms, whose rounding errors are
 * those of F32 as long as Winograd's tiles are small. Values of 16 bits may not, because they would be rounded after
 * the transform. All other notes are refused: results that differ from run to run, sums in less than F32, large tiles.
 */
static bool is_accepted(int note, bool is_f32, bool allow_tf32) {
  switch (note) {
    case CUDNN_NOTE_STRICT_NOT_NUMBER:
      return true;
    case CUDNN_NOTE_TENSOR_CORE:
      return !is_f32 || allow_tf32;
    case CUDNN_NOTE_ROUNDS_FACTORS:
      return is_f32 && allow_tf32;
    case CUDNN_NOTE_FOURIER:
    case CUDNN_NOTE_WINOGRAD:
    case CUDNN_NOTE_WINOGRAD_4:
    case CUDNN_NOTE_WINOGRAD_6:
      return is_f32;
    default:
      return false;
  }
}

static bool may_take(const choice *c, const int *notes, int64_t count) {
  for (int64_t i = 0; i < count; i++)
    if (!is_accepted(notes[i], c->is_f32, c->plan->maker->allow_tf32)) return false;
  return true;
}

static rondo_status check_engine(const choice *c, cudnn_descriptor config, bool *out_may_take) {
  cudnn_descriptor engine = NULL;
  int notes[CUDNN_NOTES];
  int64_t count = 0;
  int code = rondo_cudnn_api.descriptor_create(CUDNN_ENGINE, &engine);
  if (code == CUDNN_OK)
    code = rondo_cudnn_api.descriptor_get(config, CUDNN_CONFIG_ENGINE, CUDNN_OF_DESCRIPTOR, 1, &count, &engine);
  if (code == CUDNN_OK)
    code = rondo_cudnn_api.descriptor_get(engine, CUDNN_ENGINE_NOTES, CUDNN_OF_NOTE, CUDNN_NOTES, &count, notes);
  const rondo_status status = check(code, choosing, c->plan->what);
  drop(&engine);
  *out_may_take = status == RONDO_OK && may_take(c, notes, count);
  return status;
}

/* Removes the last descriptor, which is not used. */
static void drop_last(rondo_cudnn_plan *plan) { drop(&plan->descriptors.items[--plan->descriptors.count]); }

/* Uses the plan of this configuration, unless it cannot be built or needs too much memory. */
static rondo_status try_config(const choice *c, cudnn_descriptor config) {
  rondo_cudnn_plan *plan = c->plan;
  cudnn_descriptor made;
  bool takes = false;
  int64_t bytes = 0, count = 0;
  RONDO_TRY(check_engine(c, config, &takes));
  if (!takes) return RONDO_OK;
  RONDO_TRY(rondo_cudnn_add(plan, CUDNN_PLAN,
                            RONDO_CUDNN_SETTINGS({CUDNN_PLAN_CONFIG, CUDNN_OF_DESCRIPTOR, 1, &config},
                                                 {CUDNN_PLAN_HANDLE, CUDNN_OF_HANDLE, 1, &plan->maker->handle}),
                            &made));
  plan->is_lacking = false;
  if (made != NULL)
    RONDO_TRY(check(rondo_cudnn_api.descriptor_get(made, CUDNN_PLAN_WORKSPACE, CUDNN_OF_INT64, 1, &count, &bytes),
                    choosing, plan->what));
  if (made == NULL || (double)bytes > c->most_workspace_bytes) {
    drop_last(plan);
    return RONDO_OK;
  }
  plan->plan = made;
  plan->workspace_bytes = (size_t)bytes;
  return RONDO_OK;
}

/* The configuration that is used is kept with the plan. */
static rondo_status try_configs(const choice *c, cudnn_descriptor *configs, int64_t count) {
  rondo_cudnn_plan *plan = c->plan;
  for (int64_t i = 0; i < count && plan->plan == NULL; i++) {
    RONDO_TRY(rondo_array_reserve(&plan->maker->allocator, &plan->descriptors, plan->descriptors.count + 2));
    RONDO_TRY(try_config(c, configs[i]));
    if (plan->plan == NULL) continue;
    plan->descriptors.items[plan->descriptors.count++] = configs[i];
    configs[i] = NULL;
  }
  return RONDO_OK;
}

/* Lists at most MAX_CONFIGS configurations, the best first. The caller owns their descriptors, also after a failure. */
static rondo_status list_configs(const choice *c, cudnn_descriptor heuristic, cudnn_descriptor *configs,
                                 int64_t *count) {
  const char *what = c->plan->what;
  int64_t listed = 0;
  RONDO_TRY(
      check(rondo_cudnn_api.descriptor_get(heuristic, CUDNN_HEURISTIC_RESULTS, CUDNN_OF_DESCRIPTOR, 0, &listed, NULL),
            choosing, what));
  const int64_t capacity = listed < MAX_CONFIGS ? listed : MAX_CONFIGS;
  for (int64_t i = 0; i < capacity; i++)
    RONDO_TRY(check(rondo_cudnn_api.descriptor_create(CUDNN_CONFIG, &configs[i]), choosing, what));
  if (capacity == 0) return RONDO_OK;
  return check(
      rondo_cudnn_api.descriptor_get(heuristic, CUDNN_HEURISTIC_RESULTS, CUDNN_OF_DESCRIPTOR, capacity, count, configs),
      choosing, what);
}

/* Uses the first acceptable configuration that the heuristic lists, if there is one. */
static rondo_status choose_of(const choice *c, cudnn_descriptor heuristic) {
  cudnn_descriptor configs[MAX_CONFIGS] = {NULL};
  int64_t count = 0;
  rondo_status status = list_configs(c, heuristic, configs, &count);
  if (status == RONDO_OK) status = try_configs(c, configs, count < MAX_CONFIGS ? count : MAX_CONFIGS);
  for (size_t i = 0; i < MAX_CONFIGS; i++) drop(&configs[i]);
  return status;
}

static rondo_status choose(const choice *c, int mode) {
  cudnn_descriptor heuristic = NULL;
  RONDO_TRY(check(rondo_cudnn_api.descriptor_create(CUDNN_HEURISTIC, &heuristic), choosing, c->plan->what));
  const int code = set_all(heuristic, RONDO_CUDNN_SETTINGS({CUDNN_HEURISTIC_GRAPH, CUDNN_OF_DESCRIPTOR, 1, &c->graph},
                                                           {CUDNN_HEURISTIC_MODE, CUDNN_OF_HEURISTIC, 1, &mode}));
  rondo_status status = is_lack(code) ? RONDO_OK : check(code, choosing, c->plan->what);
  if (code == CUDNN_OK) status = choose_of(c, heuristic);
  drop(&heuristic);
  return status;
}

rondo_status rondo_cudnn_choose(rondo_cudnn_plan *plan, const cudnn_descriptor *operations, int64_t count,
                                rondo_type type, double most_workspace_bytes) {
  choice c = {plan, NULL, type == RONDO_F32, most_workspace_bytes};
  RONDO_TRY(rondo_cudnn_add(plan, CUDNN_GRAPH,
                            RONDO_CUDNN_SETTINGS({CUDNN_GRAPH_OPERATIONS, CUDNN_OF_DESCRIPTOR, count, operations},
                                                 {CUDNN_GRAPH_HANDLE, CUDNN_OF_HANDLE, 1, &plan->maker->handle}),
                            &c.graph));
  if (plan->is_lacking) return RONDO_OK;
  RONDO_TRY(choose(&c, CUDNN_HEURISTIC_LEARNED));
  return plan->plan == NULL ? choose(&c, CUDNN_HEURISTIC_SAFE) : RONDO_OK;
}

/* Making ----------------------------------------------------------------------------------------------------------- */

typedef struct making {
  rondo_cudnn_plan *plan;
  rondo_cudnn_describe describe;
  void *user;
} making;

/* rondo_library_call. */
static rondo_status make(void *user) {
  const making *m = user;
  rondo_cudnn_maker *maker = m->plan->maker;
  if (maker->handle == NULL) RONDO_TRY(check(rondo_cudnn_api.create(&maker->handle), "initializing cuDNN", ""));
  return m->describe(m->plan, m->user);
}

rondo_status rondo_cudnn_plan_make(rondo_cudnn_plan *plan, rondo_cudnn_describe describe, void *user) {
  making m = {plan, describe, user};
  return rondo_device_call_library(plan->maker->device, RONDO_LIBRARY_AT_ONCE, make, &m);
}

/* rondo_library_call. */
static rondo_status free_descriptors(void *user) {
  rondo_cudnn_plan *plan = user;
  while (plan->packs.count > 0) drop(&plan->packs.items[--plan->packs.count]);
  while (plan->descriptors.count > 0) drop_last(plan);
  return RONDO_OK;
}

void rondo_cudnn_plan_free(rondo_cudnn_plan *plan) {
  rondo_status_ignore(rondo_device_call_library(plan->maker->device, RONDO_LIBRARY_FREE, free_descriptors, plan),
                      "what cannot be entered has nothing left to free");
  rondo_array_free(&plan->maker->allocator, &plan->packs);
  rondo_array_free(&plan->maker->allocator, &plan->descriptors);
  *plan = (rondo_cudnn_plan){.maker = plan->maker, .what = plan->what};
}

void rondo_cudnn_maker_init(rondo_cudnn_maker *maker, rondo_device *device, const rondo_allocator *allocator) {
  *maker = (rondo_cudnn_maker){.device = device, .allocator = *allocator};
  pthread_mutex_init(&maker->use, NULL);
}

/* rondo_library_call. */
static rondo_status free_handle(void *user) {
  (void)rondo_cudnn_api.destroy(user); /* after the loss of a device, nothing of it remains */
  return RONDO_OK;
}

void rondo_cudnn_maker_deinit(rondo_cudnn_maker *maker) {
  if (maker->handle != NULL)
    rondo_status_ignore(rondo_device_call_library(maker->device, RONDO_LIBRARY_FREE, free_handle, maker->handle),
                        "what cannot be entered has nothing left to free");
  maker->handle = NULL;
  pthread_mutex_destroy(&maker->use);
}

/* Running ---------------------------------------------------------------------------------------------------------- */

rondo_status rondo_cudnn_plan_bind(rondo_cudnn_plan *plan, const int64_t *numbers, const void *const *addresses,
                                   int64_t count, const void *workspace) {
  static const char binding[] = "setting the memory of ";
  const rondo_cudnn_setting settings[] = {{CUDNN_PACK_NUMBERS, CUDNN_OF_INT64, count, numbers},
                                          {CUDNN_PACK_ADDRESSES, CUDNN_OF_ADDRESS, count, addresses},
                                          {CUDNN_PACK_WORKSPACE, CUDNN_OF_ADDRESS, 1, &workspace}};
  cudnn_descriptor pack = NULL;
  assert(plan->plan != NULL);
  RONDO_TRY(rondo_array_reserve(&plan->maker->allocator, &plan->packs, plan->packs.count + 1));
  RONDO_TRY(check(rondo_cudnn_api.descriptor_create(CUDNN_PACK, &pack), binding, plan->what));
  plan->packs.items[plan->packs.count++] = pack;
  return check(set_all(pack, settings, plan->workspace_bytes > 0 ? 3 : 2), binding, plan->what);
}

typedef struct plan_run {
  const rondo_cudnn_plan *plan;
  cudnn_stream stream;
} plan_run;

static rondo_status enqueue(const rondo_cudnn_plan *plan, cudnn_stream stream) {
  const cudnn_handle handle = plan->maker->handle;
  RONDO_TRY(check(rondo_cudnn_api.set_stream(handle, stream), "setting the stream of ", plan->what));
  for (size_t i = 0; i < plan->packs.count; i++)
    RONDO_TRY(check(rondo_cudnn_api.execute(handle, plan->plan, plan->packs.items[i]), "", plan->what));
  return RONDO_OK;
}

/* rondo_library_call. */
static rondo_status execute(void *user) {
  const plan_run *run = user;
  pthread_mutex_t *use = &run->plan->maker->use;
  pthread_mutex_lock(use);
  const rondo_status status = enqueue(run->plan, run->stream);
  pthread_mutex_unlock(use);
  return status;
}

rondo_status rondo_cudnn_plan_run(const rondo_cudnn_plan *plan, rondo_stream *stream) {
  assert(plan->packs.count > 0);
  plan_run run = {plan, rondo_stream_native(stream)};
  return rondo_device_call_library(plan->maker->device, RONDO_LIBRARY_WORK, execute, &run);
}
