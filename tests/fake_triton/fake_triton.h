/* SPDX-License-Identifier: MIT
 * A Triton Inference Server in memory: the functions that the backend uses, over objects that a test makes. It counts
 * what is alive and what the backend reports, and lets one call fail. The program that links it exports the functions,
 * as the server does.
 *
 * Threads: any, as for the server; a test changes objects only while the backend does not use them.
 */
#ifndef RONDO_TESTS_FAKE_TRITON_H
#define RONDO_TESTS_FAKE_TRITON_H

#include <stdatomic.h>

#include "triton/server_abi.h"

#define FAKE_DECLARE(result, member, symbol, arguments) TRITON_EXPORT result symbol arguments;
TRITON_FUNCTIONS(FAKE_DECLARE)
TRITON_OPTIONAL_FUNCTIONS(FAKE_DECLARE)

enum { FAKE_TENSORS = 4, FAKE_DIMS = 4, FAKE_BYTES = 512, FAKE_TEXT = 1024, FAKE_RESPONSES = 64 };

struct TRITONBACKEND_Backend {
  const char *config; /* JSON */
  void *state;
};

struct TRITONBACKEND_Model {
  triton_backend *backend;
  const char *name, *repository;
  uint64_t version;
  bool completes;             /* the backend may complete the configuration */
  char config[FAKE_TEXT];     /* JSON, of which ModelSetConfig replaces members */
  char completion[FAKE_TEXT]; /* what it was given last */
  uint32_t completed;         /* how often it was called */
  void *state;
};

struct TRITONBACKEND_ModelInstance {
  triton_model *model;
  triton_instance_kind kind;
  int32_t device;
  void *state;
  atomic_uint succeeded, failed, batches, batch_rows; /* that were reported */
};

struct TRITONBACKEND_Input {
  const char *name;
  triton_data_type type;
  int64_t shape[FAKE_DIMS];
  uint32_t rank, pieces; /* the memory is given in so many pieces; the bytes of a piece are rounded down */
  uint64_t bytes;
  triton_memory_type memory;
  int64_t memory_id;
  const void *data;
};

struct TRITONBACKEND_Output {
  const char *name;
  triton_request *request;
  triton_data_type type;
  int64_t shape[FAKE_DIMS];
  uint32_t rank;
  uint64_t bytes;
  _Alignas(16) unsigned char data[FAKE_BYTES];
};

typedef struct fake_parameter {
  const char *key;
  triton_parameter_type type;
  const void *value;
} fake_parameter;

/* A request and, once it was sent, its answer: the last of its responses. */
struct TRITONBACKEND_Request {
  triton_input inputs[FAKE_TENSORS];
  uint32_t input_count, output_count;
  const char *outputs[FAKE_TENSORS];  /* that are wanted */
  void *device_outputs[FAKE_TENSORS]; /* where outputs that are wanted go, in memory of GPU 0; NULL: to the answer */
  uint64_t timeout_us;
  uint64_t correlation;         /* if there is no text */
  const char *correlation_text; /* NULL: it is a number */
  uint32_t flags;
  fake_parameter parameters[FAKE_TENSORS];
  uint32_t parameter_count;
  atomic_bool is_cancelled;
  atomic_uint sent, finals, released, release_failed;
  int32_t tokens[FAKE_RESPONSES]; /* the first number of the first output of each response without an error */
  uint32_t token_count;
  bool has_error;
  triton_error_code code;
  char message[FAKE_TEXT];
  triton_output answer[FAKE_TENSORS];
  uint32_t answer_count;
};

/* Everything as if the server had just started. No call fails. */
void fake_triton_reset(void);

/* Lets the call with this number fail, from 1; 0: none. Counts from then on. */
void fake_triton_fail_call(uint64_t number);
uint64_t fake_triton_calls(void);
const char *fake_triton_failed(void); /* the function that failed; NULL: none did */

/* Errors, messages, responses, parameters, metrics and families that exist. */
uint32_t fake_triton_alive(void);

/* Metrics do not exist in the server. */
void fake_triton_without_metrics(void);
/* The value of a metric that exists, by its family's name. */
double fake_triton_metric(const char *family);
/* Calls `call` once, during the next call that sets a metric, in its thread; NULL: nothing. */
void fake_triton_on_report(void (*call)(void));
/* The last line of the log. */
const char *fake_triton_logged(void);
/* The version of the interface, in place of 1.19. */
void fake_triton_set_version(uint32_t major, uint32_t minor);

#endif
