/* SPDX-License-Identifier: MIT
 * What tests of the backend share: a model repository with one model, version 1, and a server in memory that loads it.
 * With RONDO_TEST_DEVICE=cuda:0, instances are on a GPU.
 */
#ifndef RONDO_TESTS_TRITON_TEST_H
#define RONDO_TESTS_TRITON_TEST_H

#include <rondo/weights.h>

#include "fake_triton/fake_triton.h"

enum { TRITON_TEST_PATH = 64 };

extern char repository[TRITON_TEST_PATH]; /* the model's folder */
extern triton_backend backend;
extern triton_model model;
extern triton_instance instances[2];

void make_repository(void);
void remove_repository(void);
/* In the folder of the version. */
void write_file(const char *name, const void *bytes, size_t count);
void remove_file(const char *name);
void add_weight(rondo_weights *weights, const char *name, size_t rows, size_t columns, const float *data);

/* A server that has loaded nothing, and the JSON of the model's configuration. */
void start_server(const char *config);
/* With the backend, the model and an instance loaded. */
void load_model(const char *config);
/* Removes the repository, too. */
void unload(void);
void assert_loaded(triton_error *error);
/* Deletes the error. */
void assert_refused(triton_error *error, triton_error_code code, const char *text);
/* A model that does not load, for a reason. */
void refuse_model(const char *config, triton_error_code code, const char *text);

void await_release(const triton_request *request);
/* Executes a request and waits for its answer. */
void execute(triton_request *request);
void assert_answer_error(const triton_request *request, triton_error_code code, const char *text);

/* Allocations of the library, of which one may fail: the one with this number, from 1; 0: none. The server's are not
 * among them. */
void fail_allocation(uint64_t number);
bool has_failed_allocation(void);
/* Bytes of the library's allocations that have not been freed. */
size_t live_bytes(void);
extern _Thread_local void (*in_allocation)(void); /* called once, in the thread's next allocation */

/* A function that the server lacks; NULL: none. */
extern const char *lacking;

#endif
