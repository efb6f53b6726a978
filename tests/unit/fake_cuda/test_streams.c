/* SPDX-License-Identifier: MIT
 * Streams, events, kernels and modules of the fake CUDA driver: order, asynchrony, refusals, faults.
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "unit/fake_cuda/fake_test.h"

FAKE_TEST(work_is_asynchronous_and_in_order) {
  const cu_address memory = make_memory(f);
  cu_event event = NULL;
  sem_t gate;
  assert_cu_ok(f->api->event_create(&event, CU_EVENT_FLAG_DISABLE_TIMING));
  assert_cu_ok(f->api->event_query(event));
  close_gate(f, f->stream, &gate);
  assert_cu_ok(f->api->memset_32_async(memory, 1, 1, f->stream));
  assert_cu_ok(f->api->memset_32_async(memory, 2, 1, f->stream));
  assert_cu_ok(f->api->event_record(event, f->stream));
  assert_code(f->api->stream_query(f->stream), CU_NOT_READY);
  assert_code(f->api->event_query(event), CU_NOT_READY);
  assert_cu_ok(f->api->stream_query(f->other));
  sem_post(&gate);
  assert_cu_ok(f->api->event_synchronize(event));
  assert_int_equal(read_word(f, f->other, memory), 2);
  assert_cu_ok(f->api->stream_synchronize(f->stream));
  assert_cu_ok(f->api->event_destroy(event));
  free_memory(f, memory);
}

FAKE_TEST(a_wait_means_the_record_that_was_there) {
  const cu_address memory = make_memory(f);
  cu_event event = NULL;
  sem_t gate, late;
  assert_cu_ok(f->api->event_create(&event, 0));
  close_gate(f, f->stream, &gate);
  assert_cu_ok(f->api->memset_32_async(memory, 7, 1, f->stream));
  assert_cu_ok(f->api->event_record(event, f->stream));
  assert_cu_ok(f->api->stream_wait_event(f->other, event, 0));
  close_gate(f, f->stream, &late);
  assert_cu_ok(f->api->event_record(event, f->stream));
  assert_code(f->api->stream_query(f->other), CU_NOT_READY);
  sem_post(&gate);
  assert_int_equal(read_word(f, f->other, memory), 7);
  assert_code(f->api->event_query(event), CU_NOT_READY);
  sem_post(&late);
  assert_cu_ok(f->api->context_synchronize());
  assert_cu_ok(f->api->event_destroy(event));
  free_memory(f, memory);
}

FAKE_TEST(time_passes_between_events) {
  cu_event begin = NULL, end = NULL, untimed = NULL;
  float milliseconds = -1;
  sem_t gate;
  assert_cu_ok(f->api->event_create(&begin, 0));
  assert_cu_ok(f->api->event_create(&end, 0));
  assert_cu_ok(f->api->event_create(&untimed, CU_EVENT_FLAG_DISABLE_TIMING));
  assert_code(f->api->event_elapsed_time(&milliseconds, begin, end), CU_INVALID_HANDLE);
  assert_cu_ok(f->api->event_record(begin, f->stream));
  close_gate(f, f->stream, &gate);
  assert_cu_ok(f->api->event_record(end, f->stream));
  assert_code(f->api->event_elapsed_time(&milliseconds, begin, end), CU_NOT_READY);
  sem_post(&gate);
  assert_cu_ok(f->api->stream_synchronize(f->stream));
  assert_cu_ok(f->api->event_elapsed_time(&milliseconds, begin, end));
  assert_true(milliseconds >= 0);
  assert_cu_ok(f->api->event_record(untimed, f->stream));
  assert_code(f->api->event_elapsed_time(&milliseconds, begin, untimed), CU_INVALID_HANDLE);
  assert_cu_ok(f->api->event_destroy(begin));
  assert_cu_ok(f->api->event_destroy(end));
  assert_cu_ok(f->api->event_destroy(untimed));
}

FAKE_TEST(a_destroyed_stream_finishes_its_work) {
  const cu_address memory = make_memory(f);
  cu_stream stream = NULL;
  cu_event event = NULL;
  sem_t gate;
  assert_cu_ok(f->api->stream_create(&stream, CU_STREAM_FLAG_NON_BLOCKING));
  assert_cu_ok(f->api->event_create(&event, 0));
  close_gate(f, stream, &gate);
  assert_cu_ok(f->api->memset_32_async(memory, 3, 1, stream));
  assert_cu_ok(f->api->event_record(event, stream));
  assert_cu_ok(f->api->stream_destroy(stream));
  sem_post(&gate);
  assert_cu_ok(f->api->event_synchronize(event));
  assert_int_equal(read_word(f, f->stream, memory), 3);
  assert_cu_ok(f->api->event_destroy(event));
  free_memory(f, memory);
}

/* The legacy stream waits for blocking streams, not for the others. */
FAKE_TEST(the_legacy_stream_waits_for_blocking_ones) {
  const cu_address memory = make_memory(f);
  cu_stream blocking = NULL;
  sem_t gate;
  _Atomic uint32_t held = 0; /* by a word, since host functions run one after another */
  assert_cu_ok(f->api->stream_create(&blocking, 0));
  close_gate(f, blocking, &gate);
  assert_cu_ok(f->api->stream_wait_value_32(f->stream, (uintptr_t)&held, 1, CU_WAIT_VALUE_EQUAL));
  assert_cu_ok(f->api->memset_32_async(memory, 1, 1, blocking));
  assert_cu_ok(f->api->memset_32_async(memory, 2, 1, NULL));
  assert_cu_ok(f->api->memset_32_async(memory + 4, 3, 1, blocking));
  assert_code(f->api->stream_query(NULL), CU_NOT_READY);
  sem_post(&gate);
  assert_cu_ok(f->api->stream_synchronize(NULL));
  assert_int_equal(read_word(f, f->other, memory), 2);
  assert_int_equal(read_word(f, blocking, memory + 4), 3);
  assert_code(f->api->stream_query(f->stream), CU_NOT_READY);
  atomic_store(&held, 1);
  assert_cu_ok(f->api->stream_synchronize(f->stream));
  assert_cu_ok(f->api->stream_destroy(blocking));
  free_memory(f, memory);
}

/* What a stream says of itself. The nearest priority that there is is taken. */
FAKE_TEST(streams_are_described) {
  cu_stream stream = NULL;
  cu_context context = NULL;
  unsigned flags = 9;
  int least = 9, greatest = 9, priority = 9;
  assert_cu_ok(f->api->stream_priorities(&least, &greatest));
  assert_int_equal(least, 0);
  assert_int_equal(greatest, -5);
  assert_cu_ok(f->api->stream_create_with_priority(&stream, CU_STREAM_FLAG_NON_BLOCKING, -7));
  assert_cu_ok(f->foreign->stream_get_priority(stream, &priority));
  assert_int_equal(priority, greatest);
  assert_cu_ok(f->api->stream_get_context(stream, &context));
  assert_ptr_equal(context, f->context);
  assert_cu_ok(f->api->stream_get_flags(stream, &flags));
  assert_int_equal(flags, CU_STREAM_FLAG_NON_BLOCKING);
  assert_cu_ok(f->api->stream_get_flags((cu_stream)(uintptr_t)CU_THREAD_STREAM, &flags));
  assert_int_equal(flags, CU_STREAM_FLAG_DEFAULT);
  assert_cu_ok(f->api->stream_destroy(stream));
  assert_code(f->api->stream_get_context(stream, &context), CU_INVALID_HANDLE); /* no misuse */
}

typedef struct thread_fill {
  const fixture *f;
  cu_address memory;
  cu_result code;
} thread_fill;

static void *fill_on_own_stream(void *user) {
  thread_fill *fill = user;
  const cu_stream own = (cu_stream)(uintptr_t)CU_THREAD_STREAM;
  fill->code = fill->f->api->context_set_current(fill->f->context);
  if (fill->code == CU_OK) fill->code = fill->f->api->memset_32_async(fill->memory, 5, 1, own);
  if (fill->code == CU_OK) fill->code = fill->f->api->stream_synchronize(own);
  return NULL;
}

/* Each thread has its own default stream, which may be captured. */
FAKE_TEST(threads_have_default_streams) {
  const cu_address memory = make_memory(f);
  const cu_stream own = (cu_stream)(uintptr_t)CU_THREAD_STREAM;
  cu_graph graph = NULL;
  sem_t gate;
  close_gate(f, own, &gate);
  assert_code(f->api->stream_query(own), CU_NOT_READY);
  thread_fill fill = {f, memory, CU_UNKNOWN};
  pthread_t thread;
  assert_int_equal(pthread_create(&thread, NULL, fill_on_own_stream, &fill), 0);
  assert_int_equal(pthread_join(thread, NULL), 0);
  assert_cu_ok(fill.code);
  sem_post(&gate);
  assert_cu_ok(f->api->stream_synchronize(own));
  assert_int_equal(read_word(f, f->stream, memory), 5);
  assert_cu_ok(f->api->capture_begin(own, CU_CAPTURE_MODE_THREAD_LOCAL));
  assert_cu_ok(f->api->memset_32_async(memory, 6, 1, own));
  assert_cu_ok(f->api->capture_end(own, &graph));
  assert_cu_ok(f->api->graph_destroy(graph));
  assert_int_equal(read_word(f, f->stream, memory), 5);
  free_memory(f, memory);
}

typedef struct calling {
  const fixture *f;
  cu_result code;
} calling;

static void call_driver(void *user) {
  calling *call = user;
  call->code = call->f->api->stream_query(call->f->stream);
}

FAKE_TEST(host_functions_must_not_call_the_driver) {
  calling call = {f, CU_OK};
  assert_cu_ok(f->api->launch_host_function(f->stream, call_driver, &call));
  assert_cu_ok(f->api->stream_synchronize(f->stream));
  assert_code(call.code, CU_NOT_PERMITTED);
  expect_violations(f, 1);
  assert_code(f->api->launch_host_function(f->stream, NULL, NULL), CU_INVALID_VALUE);
}

FAKE_TEST(kernels_run_as_their_functions) {
  const cu_address memory = make_memory(f);
  cu_function function = NULL;
  const cu_module module = make_module(f, "add", &function);
  uint32_t value = 5;
  cu_address address = memory;
  void *params[] = {&value, &address};
  assert_cu_ok(f->api->memset_32_async(memory, 100, 1, f->stream));
  assert_cu_ok(f->api->launch_kernel(function, 3, 2, 1, 32, 1, 1, 0, f->stream, params, NULL));
  value = 1000; /* its copy was taken */
  assert_int_equal(read_word(f, f->stream, memory), 130);
  assert_cu_ok(f->api->module_unload(module));
  assert_code(launch_add(f, function, f->stream, 1, memory), CU_INVALID_HANDLE);
  expect_violations(f, 1);
  free_memory(f, memory);
}

/* The arguments of add_word as one buffer. */
typedef struct add_arguments {
  uint32_t value;
  cu_address address;
} add_arguments;

FAKE_TEST(kernels_take_an_argument_buffer) {
  const cu_address memory = make_memory(f);
  cu_function function = NULL;
  const cu_module module = make_module(f, "add", &function);
  add_arguments arguments = {4, memory};
  size_t offset = 0, bytes = sizeof arguments;
  void *extra[] = {(void *)(uintptr_t)1, &arguments, (void *)(uintptr_t)2, &bytes, NULL};
  assert_cu_ok(f->api->function_param_info(function, 1, &offset, &bytes));
  assert_int_equal(offset, offsetof(add_arguments, address));
  assert_int_equal(bytes, sizeof(void *));
  assert_code(f->api->function_param_info(function, 2, &offset, &bytes), CU_INVALID_VALUE);
  int threads = 0;
  assert_cu_ok(f->api->function_get_attribute(&threads, CU_FUNCTION_ATTRIBUTE_MAX_THREADS, function));
  assert_int_equal(threads, 1024);
  assert_code(f->api->function_get_attribute(&threads, 1000, function), CU_INVALID_VALUE);
  bytes = sizeof arguments;
  assert_cu_ok(f->api->memset_32_async(memory, 0, 1, f->stream));
  assert_cu_ok(f->api->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, f->stream, NULL, extra));
  assert_int_equal(read_word(f, f->stream, memory), 4);
  bytes = 4;
  assert_code(f->api->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, f->stream, NULL, extra), CU_INVALID_VALUE);
  assert_cu_ok(f->api->module_unload(module));
  free_memory(f, memory);
}

FAKE_TEST(launches_that_no_device_takes_are_refused) {
  cu_function function = NULL;
  const cu_module module = make_module(f, "add", &function);
  uint32_t value = 1;
  cu_address address = 0;
  void *params[] = {&value, &address}, *half[] = {&value, NULL};
  assert_code(f->api->launch_kernel(function, 0, 1, 1, 1, 1, 1, 0, f->stream, params, NULL), CU_INVALID_VALUE);
  assert_code(f->api->launch_kernel(function, 1, 65536, 1, 1, 1, 1, 0, f->stream, params, NULL), CU_INVALID_VALUE);
  assert_code(f->api->launch_kernel(function, 1, 1, 1, 1025, 1, 1, 0, f->stream, params, NULL), CU_INVALID_VALUE);
  assert_code(f->api->launch_kernel(function, 1, 1, 1, 64, 32, 1, 0, f->stream, params, NULL), CU_INVALID_VALUE);
  assert_code(f->api->launch_kernel(function, 1, 1, 1, 1, 1, 1, 1 << 20, f->stream, params, NULL), CU_INVALID_VALUE);
  assert_code(f->api->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, f->stream, NULL, NULL), CU_INVALID_VALUE);
  assert_code(f->api->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, f->stream, half, NULL), CU_INVALID_VALUE);
  assert_code(f->api->launch_kernel(NULL, 1, 1, 1, 1, 1, 1, 0, f->stream, params, NULL), CU_INVALID_HANDLE);
  assert_cu_ok(f->api->module_unload(module));
}

FAKE_TEST(modules_are_made_by_the_fake_compiler) {
  char log[64] = "";
  cu_jit_option options[] = {CU_JIT_ERROR_LOG, CU_JIT_ERROR_LOG_BYTES};
  void *values[] = {log, (void *)(uintptr_t)sizeof log};
  cu_module module = NULL;
  cu_function function = NULL;
  assert_code(f->api->module_load(&module, "\177ELF", 2, options, values), CU_INVALID_IMAGE);
  assert_non_null(strstr(log, "not made by the fake compiler"));
  assert_int_equal((uintptr_t)values[1], strlen(log) + 1);
  assert_cu_ok(f->api->module_load(&module, FAKE_IMAGE_HEAD "unheard_of\n", 0, NULL, NULL));
  assert_code(f->api->module_get_function(&function, module, "other"), CU_NOT_FOUND);
  assert_code(f->api->module_get_function(&function, module, "unheard"), CU_NOT_FOUND);
  assert_cu_ok(f->api->module_get_function(&function, module, "unheard_of"));
  assert_code(f->api->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, f->stream, NULL, NULL), CU_NOT_FOUND);
  assert_cu_ok(f->api->module_unload(module));
  assert_code(f->api->module_unload(module), CU_INVALID_HANDLE);
  expect_violations(f, 1);
}

static void *open_late(void *gate) {
  usleep(20000);
  sem_post(gate);
  return NULL;
}

/* So do loading and freeing host memory (docs/cuda-probes.md, 22). */
FAKE_TEST(unloading_waits_for_all_work) {
  const cu_address memory = make_memory(f);
  cu_function function = NULL;
  const cu_module module = make_module(f, "add", &function);
  pthread_t opener;
  sem_t gate;
  close_gate(f, f->stream, &gate);
  assert_cu_ok(launch_add(f, function, f->stream, 1, memory));
  assert_int_equal(pthread_create(&opener, NULL, open_late, &gate), 0);
  assert_cu_ok(f->api->module_unload(module));
  assert_cu_ok(f->api->stream_query(f->stream));
  assert_int_equal(pthread_join(opener, NULL), 0);
  free_memory(f, memory);
}

RUINS_TEST(a_faulting_kernel_loses_the_context) {
  const cu_address memory = make_memory(f);
  cu_function function = NULL;
  cu_event event = NULL;
  sem_t gate;
  (void)make_module(f, "fault_add", &function);
  assert_cu_ok(f->api->event_create(&event, 0));
  close_gate(f, f->stream, &gate);
  assert_cu_ok(launch_add(f, function, f->stream, 1, memory));
  assert_cu_ok(f->api->launch_host_function(f->stream, wait_for_gate, &gate)); /* left out: it would wait for ever */
  assert_cu_ok(f->api->event_record(event, f->stream));
  assert_cu_ok(f->api->stream_wait_event(f->other, event, 0));
  sem_post(&gate);
  assert_code(f->api->event_synchronize(event), CU_ILLEGAL_ADDRESS);
  assert_code(f->api->stream_synchronize(f->other), CU_ILLEGAL_ADDRESS);
  assert_code(launch_add(f, function, f->stream, 1, memory), CU_ILLEGAL_ADDRESS);
  assert_code(f->api->event_destroy(event), CU_ILLEGAL_ADDRESS);
  assert_int_equal(f->fake->live(FAKE_CUDA_EVENT), 0);
  assert_int_equal(f->fake->violations(), 0);
}
