/* SPDX-License-Identifier: MIT
 * Support for the tests of the public interface: assertions on statuses, which print the message of rondo_last_error();
 * a fixture with a device and a stream, whose teardown checks for leaks; device memory that the host accesses only
 * through copies; and a gate that blocks a stream until the test opens it.
 *
 * RONDO_TEST_DEVICE names the device; the default is "cpu". If RONDO_TEST_ADOPTED is set, the fixture's stream belongs
 * to another handle of the device, and the fixture adopts it. A failed assertion leaves the test by a long jump, so
 * only the test's own thread may assert. Other threads return their statuses, and the test checks them after the join.
 */
#ifndef RONDO_TESTS_SUPPORT_RONDO_TEST_H
#define RONDO_TESTS_SUPPORT_RONDO_TEST_H

/* cmocka.h requires these headers before it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <rondo/rondo.h>
#include <semaphore.h>

#include "support/test_allocator.h"
#include "support/test_cases.h"
#include "support/test_kernels.h"

/* Statuses -------------------------------------------------------------------------------------------------------- */

/* The call succeeds and does not change the thread's last error. The second part is asserted only in the conformance
 * suite, in the tests of operators and in tests/support: other tests call internal functions, and only the public ones
 * restore the error. */
#ifdef RONDO_TEST_LAST_ERROR
#define assert_ok(call) (test_note_error(), test_assert_ok((call), #call, __FILE__, __LINE__))
#else
#define assert_ok(call) test_assert_status((call), RONDO_OK, #call, __FILE__, __LINE__)
#endif
/* The call returns a status without error details (RONDO_NOT_READY). */
#define assert_status(call, status) test_assert_status((call), (status), #call, __FILE__, __LINE__)
/* The call fails with this status and reason, and rondo_last_error() has a message. */
#define assert_error(call, status, reason) test_assert_error((call), (status), (reason), #call, __FILE__, __LINE__)
/* The call fails for this reason; the header does not specify the status. */
#define assert_reason(call, reason) test_assert_error((call), RONDO_OK, (reason), #call, __FILE__, __LINE__)
/* The call fails with this status; the header does not specify the reason. */
#define assert_fails(call, status) test_assert_fails((call), (status), #call, __FILE__, __LINE__)
/* The message of the last error contains this text. */
#define assert_message(text) test_assert_message((text), __FILE__, __LINE__)
/* All `count` floats agree within `tolerance`, relative to the larger of 1 and the expected value. */
#define assert_near(actual, expected, count, tolerance) \
  test_assert_near((actual), (expected), (count), (tolerance), __FILE__, __LINE__)
/* Like assert_error with INVALID_ARGUMENT. */
#define assert_invalid(call, reason) assert_error(call, RONDO_INVALID_ARGUMENT, reason)

/* The next test_assert_ok on this thread compares with its current last error. Bodies and builders call it when calls
 * inside them fail, but the outer call succeeds. */
void test_note_error(void);
void test_assert_ok(rondo_status actual, const char *call, const char *file, int line);
void test_assert_status(rondo_status actual, rondo_status expected, const char *call, const char *file, int line);
void test_assert_error(rondo_status actual, rondo_status expected, rondo_reason reason, const char *call,
                       const char *file, int line);
void test_assert_fails(rondo_status actual, rondo_status expected, const char *call, const char *file, int line);
void test_assert_message(const char *text, const char *file, int line);
void test_assert_near(const float *actual, const float *expected, size_t count, float tolerance, const char *file,
                      int line);

/* Returns from a function that returns a status if the call fails. */
#define TRY(call)                                  \
  do {                                             \
    const rondo_status try_status = (call);        \
    if (try_status != RONDO_OK) return try_status; \
  } while (0)

/* Devices and fixtures -------------------------------------------------------------------------------------------- */

/* The name of the device under test, and whether it begins with `prefix`, such as "cpu". */
const char *test_device_name(void);
bool test_device_is(const char *prefix);

/* The body of main for programs that do not define their tests with the macros below: runs a group of cmocka tests. If
 * the device under test cannot be opened, returns 77 (skipped), or 1 if the device's name begins with RONDO_REQUIRE. */
#define test_main(tests) test_run_group(#tests, (tests), sizeof(tests) / sizeof((tests)[0]), true)
int test_run_group(const char *name, const struct CMUnitTest *tests, size_t count, bool needs_device);

/* The fixture of most tests. */
typedef struct test_fixture {
  test_allocator allocator; /* of the device; the teardown checks that everything was freed */
  rondo_device *device;
  rondo_stream *stream;
  rondo_device *owner; /* if RONDO_TEST_ADOPTED is set: the stream is one of this device's handle, adopted (AD-1) */
  rondo_stream *owner_stream;
  rondo_kernel *kernels[TEST_KERNEL_COUNT]; /* created on first use; on CUDA by the setup, because creating them waits
                                               for the device */
} test_fixture;

/* Setup and teardown. The second setup opens a CPU device with four workers, for tests that block a stream. The
 * teardown closes the device, which must succeed, and checks that all host memory was freed. */
int test_setup(void **state);
int test_setup_workers(void **state);
/* A setup that opens a CPU device with these options, and other devices like test_setup. */
int test_setup_with(void **state, rondo_device_options options);
int test_teardown(void **state);
#define test_case(function) cmocka_unit_test_setup_teardown(function, test_setup, test_teardown)

/* Tests with this fixture, which is `t`; TEST_WORKERS uses the second setup. See test_cases.h. */
#define TEST(name) TEST_DEFINE(name, test_fixture *t, test_setup, test_teardown)
#define TEST_WORKERS(name) TEST_DEFINE(name, test_fixture *t, test_setup_workers, test_teardown)

/* More objects of the fixture's device. The teardown destroys those that the test has not destroyed, including graphs
 * of test_capture_end, programs and their compiled programs, words of test_words and gates of test_gate_make. Several
 * threads may create objects at the same time. */
rondo_stream *test_stream(test_fixture *fixture, const char *name);
rondo_event *test_event(test_fixture *fixture);
rondo_graph *test_graph(test_fixture *fixture);
rondo_kernel *test_kernel(test_fixture *fixture, test_kernel_id id); /* the fixture's */
rondo_kernel *test_kernel_make(test_fixture *fixture, const rondo_kernel_options *options);
rondo_recording *test_recording(const test_fixture *fixture, const rondo_recording_options *options);
rondo_executor *test_executor(const test_fixture *fixture, const rondo_executor_options *options);
rondo_exec *test_instantiate(rondo_graph *graph);
/* Instantiates the graph, and destroys it. */
rondo_exec *test_exec_of(rondo_graph *graph);
rondo_exec *test_instantiate_with(rondo_graph *graph, const rondo_instantiate_options *options);
/* A second device. */
rondo_device *test_device(const char *name, const rondo_device_options *options);

/* A stream of another handle of the device, and that stream adopted. out_theirs may be NULL. */
rondo_stream *test_adopted_stream(rondo_device *device, rondo_stream **out_theirs);
/* Whether RONDO_TEST_ADOPTED is set: streams are adopted ones where that makes no other difference (AD-1). */
bool test_adopts_streams(void);

/* Makes the teardown destroy another object, after execs, graphs, events and words. Returns the object. */
void *test_leave(void (*destroy)(void *object), void *object);

/* The teardown does not destroy again what the test has destroyed with these functions. */
#define rondo_session_destroy(session) test_destroy_session(session)
#define rondo_tree_destroy(tree) test_destroy_tree(tree)
#define rondo_recording_destroy(recording) test_destroy_recording(recording)
#define rondo_executor_destroy(executor) test_destroy_executor(executor)
#define rondo_compiled_destroy(compiled) test_destroy_compiled(compiled)
#define rondo_divided_destroy(divided) test_destroy_divided(divided)
#define rondo_device_close(device) test_destroy_device(device)
#define rondo_program_destroy(program) test_destroy_program(program)
#define rondo_exec_destroy(exec) test_destroy_exec(exec)
#define rondo_graph_destroy(graph) test_destroy_graph(graph)
#define rondo_event_destroy(event) test_destroy_event(event)
#define rondo_generator_destroy(generator) test_destroy_generator(generator)
#define rondo_kernel_destroy(kernel) test_destroy_kernel(kernel)
#define rondo_stream_destroy(stream) test_destroy_stream(stream)
#define rondo_free(device, address) test_destroy_words((device), (address))
rondo_status test_destroy_session(rondo_session *session);
rondo_status test_destroy_tree(rondo_tree *tree);
rondo_status test_destroy_recording(rondo_recording *recording);
rondo_status test_destroy_executor(rondo_executor *executor);
rondo_status test_destroy_compiled(rondo_compiled *compiled);
rondo_status test_destroy_divided(rondo_divided *divided);
rondo_status test_destroy_device(rondo_device *device);
void test_destroy_program(rondo_program *program);
void test_destroy_exec(rondo_exec *exec);
rondo_status test_destroy_graph(rondo_graph *graph);
void test_destroy_event(rondo_event *event);
void test_destroy_generator(rondo_generator *generator);
void test_destroy_kernel(rondo_kernel *kernel);
rondo_status test_destroy_stream(rondo_stream *stream);
rondo_status test_destroy_words(rondo_device *device, void *address);
/* Destroys what is left, for teardowns that inspect the device before they call test_teardown. Returns false, after a
 * message, if an object could not be destroyed. */
bool test_destroy_left(void);

/* Destroys a stream or graph, which must succeed. */
void test_stream_destroy(rondo_stream *stream);
void test_graph_destroy(rondo_graph *graph);

/* Ends the stream's capture, which must succeed. */
rondo_graph *test_capture_end(rondo_stream *stream);

/* Makes `to` wait for the work enqueued on `from`, by an event. */
void test_order(test_fixture *fixture, rondo_stream *from, rondo_stream *to);

/* Two graphs of the same work: they do not differ, not even in addresses, and have the same fingerprint. */
#define assert_same_graph(a, b) test_assert_same_graph((a), (b), __FILE__, __LINE__)
void test_assert_same_graph(const rondo_graph *a, const rondo_graph *b, const char *file, int line);

/* Memory of the device, which the test frees. */
void *test_allocate(test_fixture *fixture, size_t bytes, const char *name);
void *test_allocate_async(rondo_stream *stream, size_t bytes);

/* Queries of a graph. */
rondo_node_params test_node_params(const rondo_graph *graph, rondo_node node);
size_t test_node_count(const rondo_graph *graph);
size_t test_edge_count(const rondo_graph *graph);

/* Defines test_..., a function that returns what rondo_..._get_... fills in; the call must succeed. */
#define TEST_GETTER(type, name, object, getter) \
  type name(object *of) {                       \
    type info = {.struct_size = sizeof info};   \
    assert_ok(getter(of, &info));               \
    return info;                                \
  }

/* Information about objects. */
rondo_device_info test_device_info(const rondo_device *device);
rondo_exec_info test_exec_info(const rondo_exec *exec);
rondo_capture_info test_capture_info(const rondo_stream *stream);
rondo_capture_state test_capture_state(const rondo_stream *stream);
rondo_buffer_info test_buffer_info(const rondo_buffer *buffer);
rondo_recording_info test_recording_info(const rondo_recording *recording);
rondo_compiled_info test_compiled_info(const rondo_compiled *compiled);
rondo_pool_statistics test_pool_statistics(rondo_pool *pool);

/* Host functions: one does nothing, one fails with RONDO_IO_ERROR, one adds 1 to a uint32_t. And a body of a tree's
 * function that does nothing. */
rondo_status test_host_nothing(void *user);
rondo_status test_host_fails(void *user);
rondo_status test_host_count(void *count);
rondo_status test_body_nothing(rondo_call *call, void *user);

/* Launches the exec on the fixture's stream, and waits. */
void test_launch(test_fixture *fixture, rondo_exec *exec);
/* Instantiates the graph, launches it once on the fixture's stream, and waits. */
void test_run_once(test_fixture *fixture, rondo_graph *graph);

/* Device memory. All functions wait for the fixture's stream, so do not call them while the thread captures. */
uint32_t *test_words(test_fixture *fixture, size_t count); /* zeroed */
void test_words_free(test_fixture *fixture, uint32_t *words);
void test_write(test_fixture *fixture, void *device_address, const void *host, size_t bytes);
void test_read(test_fixture *fixture, void *host, const void *device_address, size_t bytes);
uint32_t test_word(test_fixture *fixture, const uint32_t *device_address);
#define assert_words(fixture, address, expected, count) \
  test_assert_words((fixture), (address), (expected), (count), __FILE__, __LINE__)
void test_assert_words(test_fixture *fixture, const uint32_t *device_address, const uint32_t *expected, size_t count,
                       const char *file, int line);

/* Work whose result depends on its order: word = word * factor + term, for `count` words. */
void test_affine(test_fixture *fixture, rondo_stream *stream, uint32_t *words, size_t count, uint32_t factor,
                 uint32_t term);
/* The same as a graph node. */
rondo_node test_add_affine(test_fixture *fixture, rondo_graph *graph, const rondo_node *dependencies, size_t count,
                           uint32_t *word, uint32_t factor, uint32_t term);

/* Whether each allocation has its own pages and addresses (rondo_device_info.guarded), so that allocations cannot share
 * any. */
bool test_is_guarded(const test_fixture *fixture);

/* The bytes rounded up to the device's pages. */
size_t test_whole_pages(const test_fixture *fixture, size_t bytes);
/* The mappings that Linux lets a process have. */
size_t test_most_mappings(void);

/* Counters of the device. */
rondo_device_statistics test_statistics(const test_fixture *fixture);
rondo_memory_statistics test_memory_statistics(const test_fixture *fixture);

/* Holding a stream ------------------------------------------------------------------------------------------------ */

/* The host function test_gate_pass blocks at the gate until test_gate_open. It fails after a timeout, so that a failing
 * test ends. One test_gate_open lets one call pass. */
typedef struct test_gate {
  sem_t entered;
  sem_t opened;
} test_gate;

test_gate *test_gate_make(void); /* the teardown frees it */
void test_gate_init(test_gate *gate);
rondo_status test_gate_pass(void *gate);
/* Enqueues the gate on the stream and waits until the stream has reached it. */
void test_gate_hold(test_gate *gate, rondo_stream *stream);
void test_gate_await(test_gate *gate);
void test_gate_open(test_gate *gate);
void test_gate_destroy(test_gate *gate);

/* Skips a test that blocks launches while the host continues, if a tool completes each launch before the next
 * (RONDO_TEST_SERIAL=1: CUDA's sanitizers). Call it first. */
void test_skip_if_serial(void);

/* Threads --------------------------------------------------------------------------------------------------------- */

/* Runs the function on a new thread and waits for it. */
void test_on_thread(void (*function)(void *user), void *user);

/* The same on several threads, which start together. */
typedef struct test_thread {
  void (*function)(void *user);
  void *user;
} test_thread;
void test_on_threads(const test_thread *threads, size_t count);

void test_sleep_ms(unsigned milliseconds);

/* Numbers --------------------------------------------------------------------------------------------------------- */

/* A random number generator (Steele, Lea, Flood 2014, "splitmix64") that gives the same sequence everywhere. */
uint64_t test_random(uint64_t *state);
/* In 0 .. bound - 1. */
uint32_t test_random_below(uint64_t *state, uint32_t bound);

#endif
