/* SPDX-License-Identifier: MIT
 * The server's functions. Each that returns an error fails if its number came. Objects that the backend owns are
 * counted until they are deleted; what the server owns is part of the test's objects.
 */
#include "fake_triton/fake_triton.h"

#include <jansson.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct TRITONSERVER_Error {
  triton_error_code code;
  char message[FAKE_TEXT];
};
struct TRITONSERVER_Message {
  char text[FAKE_TEXT];
};
struct TRITONSERVER_Parameter {
  char name[64], value[64];
};
struct TRITONSERVER_MetricFamily {
  char name[64];
  triton_metric_kind kind;
};
/* Those with the same family and labels are one. */
struct TRITONSERVER_Metric {
  triton_metric_family *family;
  char labels[256];
  uint32_t users;
  double value;
};
struct TRITONBACKEND_Response {
  triton_request *request;
  triton_output outputs[FAKE_TENSORS];
  uint32_t count;
};

enum { MOST_METRICS = 64 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t calls, failing;
static const char *failed;
static atomic_uint alive;
static bool has_no_metrics;
static uint32_t version_major, version_minor;
static char logged[FAKE_TEXT];
static triton_metric *metrics[MOST_METRICS];
static void (*on_report)(void);

void fake_triton_reset(void) {
  fake_triton_fail_call(0);
  atomic_store(&alive, 0);
  has_no_metrics = false;
  fake_triton_on_report(NULL);
  fake_triton_set_version(1, 19);
  logged[0] = '\0';
  memset(metrics, 0, sizeof metrics);
}

void fake_triton_fail_call(uint64_t number) {
  pthread_mutex_lock(&lock);
  calls = 0;
  failing = number;
  failed = NULL;
  pthread_mutex_unlock(&lock);
}

uint64_t fake_triton_calls(void) {
  pthread_mutex_lock(&lock);
  const uint64_t count = calls;
  pthread_mutex_unlock(&lock);
  return count;
}

const char *fake_triton_failed(void) {
  pthread_mutex_lock(&lock);
  const char *name = failed;
  pthread_mutex_unlock(&lock);
  return name;
}

uint32_t fake_triton_alive(void) { return atomic_load(&alive); }
void fake_triton_without_metrics(void) { has_no_metrics = true; }
const char *fake_triton_logged(void) { return logged; }
void fake_triton_set_version(uint32_t major, uint32_t minor) {
  version_major = major;
  version_minor = minor;
}

void fake_triton_on_report(void (*call)(void)) {
  pthread_mutex_lock(&lock);
  on_report = call;
  pthread_mutex_unlock(&lock);
}

double fake_triton_metric(const char *family) {
  double value = -1;
  pthread_mutex_lock(&lock);
  for (size_t i = 0; i < MOST_METRICS; i++)
    if (metrics[i] != NULL && strcmp(metrics[i]->family->name, family) == 0) value = metrics[i]->value;
  pthread_mutex_unlock(&lock);
  return value;
}

static void *make(size_t bytes) {
  atomic_fetch_add(&alive, 1);
  return calloc(1, bytes);
}

static void drop(void *object) {
  if (object != NULL) atomic_fetch_sub(&alive, 1);
  free(object);
}

/* The last call that failed on purpose has its name in the message. */
static triton_error *fail_on_purpose(const char *name) {
  pthread_mutex_lock(&lock);
  const bool is_it = ++calls == failing;
  if (is_it) failed = name;
  pthread_mutex_unlock(&lock);
  return is_it ? TRITONSERVER_ErrorNew(TRITON_ERROR_UNAVAILABLE, "failed on purpose") : NULL;
}

#define MAY_FAIL()                                         \
  do {                                                     \
    triton_error *on_purpose_ = fail_on_purpose(__func__); \
    if (on_purpose_ != NULL) return on_purpose_;           \
  } while (0)

/* Errors, messages, metrics ---------------------------------------------------------------------------------------- */

triton_error *TRITONSERVER_ErrorNew(triton_error_code code, const char *message) {
  triton_error *error = make(sizeof *error);
  error->code = code;
  (void)snprintf(error->message, sizeof error->message, "%s", message);
  return error;
}
void TRITONSERVER_ErrorDelete(triton_error *error) { drop(error); }
const char *TRITONSERVER_ErrorMessage(triton_error *error) { return error->message; }
triton_error_code TRITONSERVER_ErrorCode(triton_error *error) { return error->code; }

triton_error *TRITONSERVER_LogMessage(triton_log_level level, const char *file, int line, const char *message) {
  (void)level, (void)file, (void)line;
  pthread_mutex_lock(&lock);
  (void)snprintf(logged, sizeof logged, "%s", message);
  pthread_mutex_unlock(&lock);
  return NULL;
}

triton_error *TRITONSERVER_MessageNewFromSerializedJson(triton_message **out, const char *text, size_t bytes) {
  MAY_FAIL();
  *out = make(sizeof **out);
  memcpy((*out)->text, text, bytes < FAKE_TEXT ? bytes : FAKE_TEXT - 1);
  return NULL;
}
triton_error *TRITONSERVER_MessageDelete(triton_message *message) {
  drop(message);
  return NULL;
}
triton_error *TRITONSERVER_MessageSerializeToJson(triton_message *message, const char **text, size_t *bytes) {
  MAY_FAIL();
  *text = message->text;
  *bytes = strlen(message->text);
  return NULL;
}

triton_parameter *TRITONSERVER_ParameterNew(const char *name, triton_parameter_type type, const void *value) {
  triton_parameter *parameter = make(sizeof *parameter);
  (void)type;
  (void)snprintf(parameter->name, sizeof parameter->name, "%s", name);
  (void)snprintf(parameter->value, sizeof parameter->value, "%s", (const char *)value);
  return parameter;
}
void TRITONSERVER_ParameterDelete(triton_parameter *parameter) { drop(parameter); }

triton_error *TRITONSERVER_MetricFamilyNew(triton_metric_family **out, triton_metric_kind kind, const char *name,
                                           const char *description) {
  MAY_FAIL();
  (void)description;
  if (has_no_metrics) return TRITONSERVER_ErrorNew(TRITON_ERROR_UNAVAILABLE, "metrics are off");
  *out = make(sizeof **out);
  (*out)->kind = kind;
  (void)snprintf((*out)->name, sizeof(*out)->name, "%s", name);
  return NULL;
}
triton_error *TRITONSERVER_MetricFamilyDelete(triton_metric_family *family) {
  drop(family);
  return NULL;
}
/* Under the lock. The metric, or a place for a new one; NULL: there is none. */
static triton_metric **find_metric(const triton_metric_family *family, const char *labels) {
  triton_metric **place = NULL;
  for (size_t i = 0; i < MOST_METRICS; i++) {
    if (metrics[i] == NULL)
      place = place == NULL ? &metrics[i] : place;
    else if (metrics[i]->family == family && strcmp(metrics[i]->labels, labels) == 0)
      return &metrics[i];
  }
  return place;
}

triton_error *TRITONSERVER_MetricNew(triton_metric **out, triton_metric_family *family, const triton_parameter **labels,
                                     uint64_t count) {
  char text[256] = "";
  size_t used = 0;
  MAY_FAIL();
  for (uint64_t i = 0; i < count && used < sizeof text; i++)
    used += (size_t)snprintf(text + used, sizeof text - used, "%s=%s,", labels[i]->name, labels[i]->value);
  pthread_mutex_lock(&lock);
  triton_metric **place = find_metric(family, text);
  if (place != NULL && *place == NULL) {
    *place = calloc(1, sizeof **place);
    (*place)->family = family;
    memcpy((*place)->labels, text, sizeof text);
  }
  if (place != NULL) (*place)->users++;
  pthread_mutex_unlock(&lock);
  if (place == NULL) return TRITONSERVER_ErrorNew(TRITON_ERROR_INTERNAL, "too many metrics");
  atomic_fetch_add(&alive, 1);
  *out = *place;
  return NULL;
}
triton_error *TRITONSERVER_MetricDelete(triton_metric *metric) {
  pthread_mutex_lock(&lock);
  const bool is_last = --metric->users == 0;
  for (size_t i = 0; i < MOST_METRICS && is_last; i++)
    if (metrics[i] == metric) metrics[i] = NULL;
  pthread_mutex_unlock(&lock);
  atomic_fetch_sub(&alive, 1);
  if (is_last) free(metric);
  return NULL;
}
static triton_error *set_metric(triton_metric *metric, triton_metric_kind kind, double value) {
  if (metric->family->kind != kind) return TRITONSERVER_ErrorNew(TRITON_ERROR_UNSUPPORTED, "of another kind");
  pthread_mutex_lock(&lock);
  metric->value = kind == TRITON_METRIC_GAUGE ? value : metric->value + value;
  void (*call)(void) = on_report;
  on_report = NULL;
  pthread_mutex_unlock(&lock);
  if (call != NULL) call();
  return NULL;
}
triton_error *TRITONSERVER_MetricIncrement(triton_metric *metric, double value) {
  return set_metric(metric, TRITON_METRIC_COUNTER, value);
}
triton_error *TRITONSERVER_MetricSet(triton_metric *metric, double value) {
  return set_metric(metric, TRITON_METRIC_GAUGE, value);
}

/* Backend, models, instances --------------------------------------------------------------------------------------- */

triton_error *TRITONBACKEND_ApiVersion(uint32_t *major, uint32_t *minor) {
  MAY_FAIL();
  *major = version_major;
  *minor = version_minor;
  return NULL;
}
triton_error *TRITONBACKEND_BackendConfig(triton_backend *backend, triton_message **out) {
  static triton_message message; /* the server's own */
  MAY_FAIL();
  (void)snprintf(message.text, sizeof message.text, "%s", backend->config);
  *out = &message;
  return NULL;
}
triton_error *TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(triton_backend_attribute *attribute,
                                                                      triton_instance_kind kind, uint64_t count,
                                                                      const uint64_t *ids, uint64_t id_count) {
  (void)attribute, (void)kind, (void)count, (void)ids, (void)id_count;
  MAY_FAIL();
  return NULL;
}

/* A call that returns a member of an object, or sets one. */
#define GET(symbol, object_type, type, member)           \
  triton_error *symbol(object_type *object, type *out) { \
    MAY_FAIL();                                          \
    *out = object->member;                               \
    return NULL;                                         \
  }
#define SET_STATE(symbol, object_type)                     \
  triton_error *symbol(object_type *object, void *state) { \
    MAY_FAIL();                                            \
    object->state = state;                                 \
    return NULL;                                           \
  }
/* Of calls while something ends, none fails: the server would lose what the state owns. */
#define GET_STATE(symbol, object_type)                      \
  triton_error *symbol(object_type *object, void **state) { \
    *state = object->state;                                 \
    return NULL;                                            \
  }
GET_STATE(TRITONBACKEND_BackendState, triton_backend)
SET_STATE(TRITONBACKEND_BackendSetState, triton_backend)
GET(TRITONBACKEND_ModelName, triton_model, const char *, name)
GET(TRITONBACKEND_ModelVersion, triton_model, uint64_t, version)
GET(TRITONBACKEND_ModelAutoCompleteConfig, triton_model, bool, completes)
GET(TRITONBACKEND_ModelBackend, triton_model, triton_backend *, backend)
GET_STATE(TRITONBACKEND_ModelState, triton_model)
SET_STATE(TRITONBACKEND_ModelSetState, triton_model)
GET(TRITONBACKEND_ModelInstanceKind, triton_instance, triton_instance_kind, kind)
GET(TRITONBACKEND_ModelInstanceDeviceId, triton_instance, int32_t, device)
GET(TRITONBACKEND_ModelInstanceModel, triton_instance, triton_model *, model)
GET_STATE(TRITONBACKEND_ModelInstanceState, triton_instance)
SET_STATE(TRITONBACKEND_ModelInstanceSetState, triton_instance)

triton_error *TRITONBACKEND_ModelRepository(triton_model *model, triton_artifact_type *kind, const char **location) {
  MAY_FAIL();
  *kind = TRITON_ARTIFACT_FILESYSTEM;
  *location = model->repository;
  return NULL;
}
triton_error *TRITONBACKEND_ModelConfig(triton_model *model, uint32_t version, triton_message **out) {
  MAY_FAIL();
  (void)version;
  return TRITONSERVER_MessageNewFromSerializedJson(out, model->config, strlen(model->config));
}
triton_error *TRITONBACKEND_ModelSetConfig(triton_model *model, uint32_t version, triton_message *message) {
  MAY_FAIL();
  (void)version;
  json_t *config = json_loads(model->config, 0, NULL), *given = json_loads(message->text, 0, NULL);
  const int updated = json_object_update(config, given);
  char *text = json_dumps(config, JSON_COMPACT);
  (void)snprintf(model->config, sizeof model->config, "%s", text);
  (void)snprintf(model->completion, sizeof model->completion, "%s", message->text);
  model->completed++;
  free(text);
  json_decref(given);
  json_decref(config);
  return updated == 0 ? NULL : TRITONSERVER_ErrorNew(TRITON_ERROR_INVALID_ARGUMENT, "not an object");
}
triton_error *TRITONBACKEND_ModelInstanceReportStatistics(triton_instance *instance, triton_request *request,
                                                          bool success, uint64_t began, uint64_t run, uint64_t ran,
                                                          uint64_t ended) {
  MAY_FAIL();
  if (atomic_load(&request->released) > 0 || began == 0 || began > run || run > ran || ran > ended)
    return TRITONSERVER_ErrorNew(TRITON_ERROR_INTERNAL, "statistics of a released request, or times out of order");
  atomic_fetch_add(success ? &instance->succeeded : &instance->failed, 1);
  return NULL;
}
triton_error *TRITONBACKEND_ModelInstanceReportBatchStatistics(triton_instance *instance, uint64_t batch_size,
                                                               uint64_t began, uint64_t run, uint64_t ran,
                                                               uint64_t ended) {
  MAY_FAIL();
  (void)began, (void)run, (void)ran, (void)ended;
  atomic_fetch_add(&instance->batches, 1);
  atomic_fetch_add(&instance->batch_rows, (unsigned)batch_size);
  return NULL;
}

/* Requests and responses ------------------------------------------------------------------------------------------- */

triton_error *TRITONBACKEND_RequestIsCancelled(triton_request *request, bool *is_cancelled) {
  *is_cancelled = atomic_load(&request->is_cancelled); /* does not fail: a thread of its own asks, at any time */
  return NULL;
}
GET(TRITONBACKEND_InferenceRequestTimeoutMicroseconds, triton_request, uint64_t, timeout_us)
GET(TRITONBACKEND_RequestOutputCount, triton_request, uint32_t, output_count)
GET(TRITONBACKEND_RequestFlags, triton_request, uint32_t, flags)
GET(TRITONBACKEND_RequestParameterCount, triton_request, uint32_t, parameter_count)

triton_error *TRITONBACKEND_RequestCorrelationId(triton_request *request, uint64_t *out) {
  if (request->correlation_text != NULL) return TRITONSERVER_ErrorNew(TRITON_ERROR_INVALID_ARGUMENT, "it is a text");
  *out = request->correlation; /* a failure would say the same */
  return NULL;
}
triton_error *TRITONBACKEND_RequestCorrelationIdString(triton_request *request, const char **out) {
  MAY_FAIL();
  if (request->correlation_text == NULL) return TRITONSERVER_ErrorNew(TRITON_ERROR_INVALID_ARGUMENT, "it is a number");
  *out = request->correlation_text;
  return NULL;
}
triton_error *TRITONBACKEND_RequestParameter(triton_request *request, uint32_t index, const char **key,
                                             triton_parameter_type *type, const void **value) {
  MAY_FAIL();
  *key = request->parameters[index].key;
  *type = request->parameters[index].type;
  *value = request->parameters[index].value;
  return NULL;
}

triton_error *TRITONBACKEND_RequestInput(triton_request *request, const char *name, triton_input **out) {
  MAY_FAIL();
  for (uint32_t i = 0; i < request->input_count; i++) {
    if (strcmp(request->inputs[i].name, name) != 0) continue;
    *out = &request->inputs[i];
    return NULL;
  }
  return TRITONSERVER_ErrorNew(TRITON_ERROR_INVALID_ARGUMENT, name);
}
triton_error *TRITONBACKEND_RequestOutputName(triton_request *request, uint32_t index, const char **name) {
  MAY_FAIL();
  *name = request->outputs[index];
  return NULL;
}
triton_error *TRITONBACKEND_RequestRelease(triton_request *request, uint32_t flags) {
  triton_error *error = fail_on_purpose(__func__);
  (void)flags;
  if (error != NULL)
    atomic_fetch_add(&request->release_failed, 1);
  else
    atomic_fetch_add(&request->released, 1);
  return error;
}
triton_error *TRITONBACKEND_InputProperties(triton_input *input, const char **name, triton_data_type *type,
                                            const int64_t **shape, uint32_t *rank, uint64_t *bytes, uint32_t *pieces) {
  MAY_FAIL();
  *name = input->name;
  *type = input->type;
  *shape = input->shape;
  *rank = input->rank;
  *bytes = input->bytes;
  *pieces = input->pieces;
  return NULL;
}
triton_error *TRITONBACKEND_InputBuffer(triton_input *input, uint32_t index, const void **buffer, uint64_t *bytes,
                                        triton_memory_type *memory, int64_t *memory_id) {
  MAY_FAIL();
  const uint64_t each = input->bytes / input->pieces, first = each * index;
  *buffer = (const char *)input->data + first;
  *bytes = index + 1 == input->pieces ? input->bytes - first : each;
  *memory = input->memory;
  *memory_id = input->memory_id;
  return NULL;
}
triton_error *TRITONBACKEND_ResponseNew(triton_response **out, triton_request *request) {
  MAY_FAIL();
  *out = make(sizeof **out);
  (*out)->request = request;
  return NULL;
}
triton_error *TRITONBACKEND_ResponseOutput(triton_response *response, triton_output **out, const char *name,
                                           triton_data_type type, const int64_t *shape, uint32_t rank) {
  MAY_FAIL();
  triton_output *output = &response->outputs[response->count++];
  output->name = name;
  output->request = response->request;
  output->type = type;
  output->rank = rank;
  memcpy(output->shape, shape, rank * sizeof *shape);
  *out = output;
  return NULL;
}
/* A buffer is in the answer, because a response is gone once it was sent. */
triton_error *TRITONBACKEND_OutputBuffer(triton_output *output, void **buffer, uint64_t bytes,
                                         triton_memory_type *memory, int64_t *memory_id) {
  MAY_FAIL();
  if (bytes > FAKE_BYTES) return TRITONSERVER_ErrorNew(TRITON_ERROR_INTERNAL, "more than the server has");
  output->bytes = bytes;
  *buffer = output->data;
  for (uint32_t i = 0; i < output->request->output_count; i++) {
    if (output->request->device_outputs[i] == NULL || strcmp(output->request->outputs[i], output->name) != 0) continue;
    *buffer = output->request->device_outputs[i];
    *memory = TRITON_MEMORY_GPU;
    *memory_id = 0;
  }
  return NULL;
}
triton_error *TRITONBACKEND_ResponseSend(triton_response *response, uint32_t flags, triton_error *error) {
  triton_request *request = response->request;
  triton_error *on_purpose = fail_on_purpose(__func__);
  request->has_error = error != NULL;
  if (error != NULL) {
    request->code = error->code;
    (void)snprintf(request->message, sizeof request->message, "%s", error->message);
  }
  memcpy(request->answer, response->outputs, sizeof request->answer);
  request->answer_count = response->count;
  if (error == NULL && response->count > 0 && request->token_count < FAKE_RESPONSES)
    memcpy(&request->tokens[request->token_count++], response->outputs[0].data, sizeof *request->tokens);
  if ((flags & TRITON_RESPONSE_COMPLETE_FINAL) != 0) atomic_fetch_add(&request->finals, 1);
  drop(response);
  atomic_fetch_add(&request->sent, 1);
  return on_purpose;
}
