/* SPDX-License-Identifier: MIT
 * What the server calls: of the backend, of models and of instances. The server calls nothing for a model after its
 * ModelFinalize, and loads and unloads different models at the same time.
 */
#include <stdio.h>

#include "base/error.h"
#include "triton/execution.h"
#include "triton/served_session.h"
#include "triton/server_functions.h"

/* The backend ------------------------------------------------------------------------------------------------------ */

enum { MOST_DEFAULT_BATCH = 1 << 20, DEFAULT_BATCH = 4 };

/* The server's command line says how large batches are by default: --backend-config=rondo,default-max-batch-size=64. */
static rondo_status read_default_batch(triton_backend *handle, size_t *out) {
  triton_message *message;
  const char *text;
  size_t bytes;
  rondo_json_document document = {0};
  const rondo_allocator allocator = rondo_allocator_default();
  *out = DEFAULT_BATCH;
  RONDO_TRY(rondo_triton_check(rondo_triton_server.backend_config(handle, &message), "TRITONBACKEND_BackendConfig"));
  RONDO_TRY(rondo_triton_check(rondo_triton_server.message_text(message, &text, &bytes),
                               "TRITONSERVER_MessageSerializeToJson"));
  RONDO_TRY(rondo_json_parse(&allocator, text, bytes, &document));
  const rondo_json_value *options = rondo_json_get(rondo_json_root(&document), "cmdline");
  const char *size = rondo_json_text_of(rondo_json_get(options, "default-max-batch-size"));
  rondo_status status = RONDO_OK;
  if (size != NULL && !rondo_triton_parse_number(size, 1, MOST_DEFAULT_BATCH, out))
    status = rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                        "--backend-config=rondo,default-max-batch-size is '%s': give a number from 1 to %d", size,
                        MOST_DEFAULT_BATCH);
  rondo_json_document_free(&document);
  return status;
}

static void free_backend(rondo_triton_backend *backend) {
  const rondo_allocator allocator = backend->devices.allocator;
  rondo_triton_metric_families_close(&backend->metrics);
  rondo_triton_histories_free(&backend->histories);
  rondo_array_free(&allocator, &backend->devices.items); /* it is empty */
  pthread_mutex_destroy(&backend->devices.lock);
  rondo_release(&allocator, backend, 1, sizeof *backend);
}

static rondo_status initialize(triton_backend *handle) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_triton_backend *backend;
  size_t batch;
  RONDO_TRY(rondo_triton_find_server());
  RONDO_TRY(read_default_batch(handle, &batch));
  RONDO_TRY(rondo_allocate_items(&allocator, 1, sizeof *backend, &backend));
  backend->default_batch_size = batch;
  backend->devices.allocator = allocator;
  pthread_mutex_init(&backend->devices.lock, NULL);
  rondo_triton_histories_init(&allocator, &backend->histories);
  rondo_triton_metric_families_open(&backend->metrics);
  const rondo_status status =
      rondo_triton_check(rondo_triton_server.backend_set_state(handle, backend), "TRITONBACKEND_BackendSetState");
  if (status != RONDO_OK) free_backend(backend);
  return status;
}

/* A process without TRITONSERVER_ErrorNew is not a server: it cannot be told why, but it is told that. */
triton_error *TRITONBACKEND_Initialize(triton_backend *handle) {
  static char nameless;
  const rondo_status status = initialize(handle);
  if (status != RONDO_OK && rondo_triton_server.error_new == NULL) return (triton_error *)(void *)&nameless;
  return rondo_triton_error(status);
}

triton_error *TRITONBACKEND_Finalize(triton_backend *handle) {
  void *state = NULL;
  triton_error *error = rondo_triton_server.backend_state(handle, &state);
  if (error == NULL && state != NULL) free_backend(state);
  return error;
}

/* One instance is enough: the session of all instances runs requests together. */
triton_error *TRITONBACKEND_GetBackendAttribute(triton_backend *handle, triton_backend_attribute *attribute) {
  (void)handle;
  if (rondo_triton_server.prefer_instances == NULL) return NULL;
  triton_error *error = rondo_triton_server.prefer_instances(attribute, TRITON_INSTANCE_GPU, 0, NULL, 0);
  return error != NULL ? error : rondo_triton_server.prefer_instances(attribute, TRITON_INSTANCE_CPU, 1, NULL, 0);
}

/* Models ----------------------------------------------------------------------------------------------------------- */

static void free_model(rondo_triton_model_state *model) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_triton_source_free(&model->source);
  rondo_triton_config_free(&model->config);
  rondo_release_text(&allocator, model->name);
  pthread_cond_destroy(&model->opened);
  pthread_mutex_destroy(&model->lock);
  rondo_release(&allocator, model, 1, sizeof *model);
}

static rondo_status read_config(triton_model *handle, rondo_triton_config *out) {
  triton_message *message;
  const char *text;
  size_t bytes;
  RONDO_TRY(rondo_triton_check(rondo_triton_server.model_config(handle, TRITON_CONFIG_VERSION, &message),
                               "TRITONBACKEND_ModelConfig"));
  rondo_status status = rondo_triton_check(rondo_triton_server.message_text(message, &text, &bytes),
                                           "TRITONSERVER_MessageSerializeToJson");
  if (status == RONDO_OK) status = rondo_triton_config_read(text, bytes, out);
  rondo_triton_ignore(rondo_triton_server.message_delete(message));
  return status;
}

static rondo_status load_source(triton_model *handle, rondo_triton_model_state *model) {
  triton_artifact_type kind;
  const char *repository;
  char folder[4096];
  RONDO_TRY(rondo_triton_check(rondo_triton_server.model_repository(handle, &kind, &repository),
                               "TRITONBACKEND_ModelRepository"));
  const int length = snprintf(folder, sizeof folder, "%s/%llu", repository, (unsigned long long)model->version);
  if (kind != TRITON_ARTIFACT_FILESYSTEM || length < 0 || (size_t)length >= sizeof folder)
    return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                      "the model's repository is not a folder, or its path has more than %zu bytes",
                      sizeof folder - 24);
  return rondo_triton_source_load(folder, &model->config, &model->source);
}

/* Gives the server a configuration in which nothing is missing, and reads it again, as the server completes it too. */
static rondo_status set_config(triton_model *handle, rondo_triton_model_state *model) {
  const rondo_allocator allocator = rondo_allocator_default();
  triton_message *message;
  char *text;
  RONDO_TRY(rondo_triton_config_complete(&model->config, &model->source.inputs, &model->source.outputs,
                                         model->backend->default_batch_size, &text));
  rondo_status status = rondo_triton_check(rondo_triton_server.message_new(&message, text, strlen(text)),
                                           "TRITONSERVER_MessageNewFromSerializedJson");
  if (status == RONDO_OK) {
    status = rondo_triton_check(rondo_triton_server.model_set_config(handle, TRITON_CONFIG_VERSION, message),
                                "TRITONBACKEND_ModelSetConfig");
    rondo_triton_ignore(rondo_triton_server.message_delete(message));
  }
  rondo_release_text(&allocator, text);
  RONDO_TRY(status);
  rondo_triton_config_free(&model->config);
  return read_config(handle, &model->config);
}

static rondo_status complete_config(triton_model *handle, rondo_triton_model_state *model) {
  bool is_asked = false;
  if (!rondo_triton_config_is_incomplete(&model->config)) return RONDO_OK;
  RONDO_TRY(rondo_triton_check(rondo_triton_server.model_auto_complete(handle, &is_asked),
                               "TRITONBACKEND_ModelAutoCompleteConfig"));
  return is_asked ? set_config(handle, model) : RONDO_OK;
}

static rondo_status load_model(triton_model *handle, rondo_triton_model_state *model) {
  triton_backend *backend;
  const rondo_allocator allocator = rondo_allocator_default();
  const char *name;
  void *state = NULL;
  RONDO_TRY(rondo_triton_check(rondo_triton_server.model_backend(handle, &backend), "TRITONBACKEND_ModelBackend"));
  RONDO_TRY(rondo_triton_check(rondo_triton_server.backend_state(backend, &state), "TRITONBACKEND_BackendState"));
  model->backend = state;
  RONDO_TRY(rondo_triton_check(rondo_triton_server.model_name(handle, &name), "TRITONBACKEND_ModelName"));
  RONDO_TRY(rondo_allocate_text(&allocator, name, &model->name));
  RONDO_TRY(
      rondo_triton_check(rondo_triton_server.model_version(handle, &model->version), "TRITONBACKEND_ModelVersion"));
  RONDO_TRY(read_config(handle, &model->config));
  RONDO_TRY(load_source(handle, model));
  RONDO_TRY(complete_config(handle, model));
  RONDO_TRY(rondo_triton_config_check(&model->config, &model->source.inputs, &model->source.outputs));
  return rondo_triton_check(rondo_triton_server.model_set_state(handle, model), "TRITONBACKEND_ModelSetState");
}

static rondo_status initialize_model(triton_model *handle) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_triton_model_state *model;
  RONDO_TRY(rondo_allocate_items(&allocator, 1, sizeof *model, &model));
  pthread_mutex_init(&model->lock, NULL);
  pthread_cond_init(&model->opened, NULL);
  const rondo_status status = load_model(handle, model);
  if (status != RONDO_OK) free_model(model);
  return status;
}

triton_error *TRITONBACKEND_ModelInitialize(triton_model *handle) {
  return rondo_triton_error(initialize_model(handle));
}

triton_error *TRITONBACKEND_ModelFinalize(triton_model *handle) {
  void *state = NULL;
  triton_error *error = rondo_triton_server.model_state(handle, &state);
  if (error == NULL && state != NULL) free_model(state);
  return error;
}

/* Instances -------------------------------------------------------------------------------------------------------- */

/* The name of the instance's device, and that of its kind in configurations. */
static rondo_status find_device(triton_instance *handle, char name[RONDO_TRITON_DEVICE_NAME], const char **out_kind) {
  triton_instance_kind kind;
  int32_t device = 0;
  RONDO_TRY(rondo_triton_check(rondo_triton_server.instance_kind(handle, &kind), "TRITONBACKEND_ModelInstanceKind"));
  RONDO_TRY(
      rondo_triton_check(rondo_triton_server.instance_device(handle, &device), "TRITONBACKEND_ModelInstanceDeviceId"));
  if (kind == TRITON_INSTANCE_CPU) {
    (void)snprintf(name, RONDO_TRITON_DEVICE_NAME, "cpu");
    *out_kind = "KIND_CPU";
    return RONDO_OK;
  }
  (void)snprintf(name, RONDO_TRITON_DEVICE_NAME, "cuda:%d", (int)device);
  *out_kind = "KIND_GPU";
  if (kind == TRITON_INSTANCE_GPU) return RONDO_OK;
  return rondo_fail(RONDO_UNSUPPORTED, RONDO_REASON_NONE,
                    "an instance group of the configuration is neither KIND_CPU nor KIND_GPU: give one of these");
}

static rondo_status open_instance(triton_instance *handle, rondo_triton_instance *instance) {
  char device[RONDO_TRITON_DEVICE_NAME];
  const char *kind;
  triton_model *model;
  void *state = NULL;
  RONDO_TRY(find_device(handle, device, &kind));
  RONDO_TRY(rondo_triton_check(rondo_triton_server.instance_model(handle, &model), "TRITONBACKEND_ModelInstanceModel"));
  RONDO_TRY(rondo_triton_check(rondo_triton_server.model_state(model, &state), "TRITONBACKEND_ModelState"));
  RONDO_TRY(rondo_triton_served_open(state, device, kind, &instance->served));
  rondo_status status = rondo_triton_check(rondo_triton_server.instance_set_state(handle, instance),
                                           "TRITONBACKEND_ModelInstanceSetState");
  if (status != RONDO_OK) RONDO_THEN(status, rondo_triton_served_close(instance->served));
  return status;
}

static rondo_status initialize_instance(triton_instance *handle) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_triton_instance *instance;
  RONDO_TRY(rondo_allocate_items(&allocator, 1, sizeof *instance, &instance));
  instance->handle = handle;
  const rondo_status status = open_instance(handle, instance);
  if (status != RONDO_OK) rondo_release(&allocator, instance, 1, sizeof *instance);
  return status;
}

triton_error *TRITONBACKEND_ModelInstanceInitialize(triton_instance *handle) {
  return rondo_triton_error(initialize_instance(handle));
}

static rondo_status finalize_instance(rondo_triton_instance *instance) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_triton_await_answers(instance);
  const rondo_status status = rondo_triton_served_close(instance->served);
  rondo_release(&allocator, instance, 1, sizeof *instance);
  return status;
}

triton_error *TRITONBACKEND_ModelInstanceFinalize(triton_instance *handle) {
  void *state = NULL;
  triton_error *error = rondo_triton_server.instance_state(handle, &state);
  if (error != NULL || state == NULL) return error;
  return rondo_triton_error(finalize_instance(state));
}

/* An error would leave all requests with the server, and some may be answered, so each gets its own. */
triton_error *TRITONBACKEND_ModelInstanceExecute(triton_instance *handle, triton_request **requests, uint32_t count) {
  void *state = NULL;
  triton_error *error = rondo_triton_server.instance_state(handle, &state);
  if (error != NULL) return error;
  rondo_triton_execute(state, requests, count);
  return NULL;
}
