/* SPDX-License-Identifier: MIT
 * Statuses, reasons, and the details of the thread's last error.
 */

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "base/error.h"
#include "support/rondo_test.h"

static _Thread_local bool has_no_memory;

void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes) { return has_no_memory ? NULL : __real_malloc(bytes); }

UNIT_TEST(test_names_are_all_there_and_distinct) {
  for (int i = 0; i <= RONDO_DEVICE_LOST; i++) {
    const char *name = rondo_status_name((rondo_status)i);
    assert_string_not_equal(name, "UNKNOWN");
    for (int j = 0; j < i; j++) assert_string_not_equal(name, rondo_status_name((rondo_status)j));
  }
  for (int i = 0; i <= RONDO_REASON_OVERWRITTEN; i++) {
    const char *name = rondo_reason_name((rondo_reason)i);
    assert_string_not_equal(name, "UNKNOWN");
    for (int j = 0; j < i; j++) assert_string_not_equal(name, rondo_reason_name((rondo_reason)j));
  }
  assert_string_equal(rondo_status_name(RONDO_INVALID_LIFETIME), "INVALID_LIFETIME");
  assert_string_equal(rondo_reason_name(RONDO_REASON_CYCLE), "CYCLE");
}

UNIT_TEST(test_numbers_that_are_no_status_are_unknown) {
  assert_string_equal(rondo_status_name((rondo_status)1000), "UNKNOWN");
  assert_string_equal(rondo_status_name((rondo_status)0x7fffffff), "UNKNOWN");
  assert_string_equal(rondo_reason_name((rondo_reason)0x7fffffff), "UNKNOWN");
}

/* Runs the function in a thread of its own, which must return its argument. */
static void run_in_thread(void *(*run)(void *), void *argument) {
  pthread_t thread;
  void *returned;
  assert_int_equal(pthread_create(&thread, NULL, run, argument), 0);
  assert_int_equal(pthread_join(thread, &returned), 0);
  assert_ptr_equal(returned, argument);
}

static void *read_untouched_error(void *argument) {
  rondo_error *out = argument;
  *out = *rondo_last_error();
  const int intact =
      out->message != NULL && *out->message == '\0' && out->driver_name != NULL && *out->driver_name == '\0';
  return intact ? argument : NULL;
}

UNIT_TEST(test_a_new_thread_has_no_error) {
  rondo_error seen;
  assert_int_equal(rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_NONE, "of this thread"), RONDO_NOT_FOUND);
  run_in_thread(read_untouched_error, &seen);
  assert_ok(seen.status);
  assert_int_equal(seen.node, RONDO_NO_NODE);
  assert_string_equal(rondo_last_error()->message, "of this thread");
}

UNIT_TEST(test_fail_fills_the_detail) {
  assert_int_equal(rondo_fail_node(RONDO_INVALID_GRAPH, RONDO_REASON_CYCLE, 7, "node %d of '%s'", 7, "g"),
                   RONDO_INVALID_GRAPH);
  const rondo_error *error = rondo_last_error();
  assert_int_equal(error->status, RONDO_INVALID_GRAPH);
  assert_int_equal(error->reason, RONDO_REASON_CYCLE);
  assert_int_equal(error->node, 7);
  assert_string_equal(error->message, "node 7 of 'g'");

  assert_int_equal(rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_DEVICE, "no device 'x'"), RONDO_NOT_FOUND);
  error = rondo_last_error();
  assert_int_equal(error->node, RONDO_NO_NODE);
  assert_int_equal(error->driver_code, 0);
  assert_string_equal(error->driver_name, "");
}

UNIT_TEST(test_driver_errors_carry_number_and_name) {
  assert_int_equal(
      rondo_fail_driver(RONDO_DEVICE_LOST, RONDO_REASON_NONE, 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "exec '%s'", "e"),
      RONDO_DEVICE_LOST);
  assert_int_equal(rondo_last_error()->driver_code, 700);
  assert_string_equal(rondo_last_error()->driver_name, "CUDA_ERROR_ILLEGAL_ADDRESS");
  assert_string_equal(rondo_last_error()->message, "exec 'e' (CUDA_ERROR_ILLEGAL_ADDRESS 700)");

  assert_int_equal(rondo_fail_driver(RONDO_DEVICE_LOST, RONDO_REASON_NONE, 9, NULL, "x"), RONDO_DEVICE_LOST);
  assert_string_equal(rondo_last_error()->message, "x (9)");
  assert_string_equal(rondo_last_error()->driver_name, "");
}

UNIT_TEST(test_errno_errors) {
  assert_int_equal(rondo_fail_errno(RONDO_IO_ERROR, ENOSPC, "file '%s'", "f"), RONDO_IO_ERROR);
  assert_int_equal(rondo_last_error()->driver_code, ENOSPC);
  assert_string_equal(rondo_last_error()->driver_name, "ENOSPC");
  assert_string_equal(rondo_last_error()->message, "file 'f' (ENOSPC 28, No space left on device)");

  assert_error(rondo_fail_errno(RONDO_IO_ERROR, ENOMEM, "map"), RONDO_OUT_OF_MEMORY, RONDO_REASON_ALLOCATION_FAILED);
  assert_int_equal(rondo_fail_errno(RONDO_IO_ERROR, 12345, "odd"), RONDO_IO_ERROR);
  assert_string_equal(rondo_last_error()->message, "odd (errno 12345, unknown)");
}

UNIT_TEST(test_long_messages_are_cut_at_a_character) {
  char text[4096];
  for (size_t start = 0; start < 4; start++) { /* each way a four-byte character can fall on the end */
    memset(text, 'a', start);
    for (size_t i = start; i + 4 < sizeof text; i += 4) memcpy(text + i, "\xF0\x9F\x8E\xB5", 5);
    assert_int_equal(rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_NONE, "%s", text), RONDO_INVALID_DATA);
    const char *message = rondo_last_error()->message;
    const size_t length = strlen(message);
    assert_true(length < RONDO_ERROR_MESSAGE_BYTES && length + 8 > RONDO_ERROR_MESSAGE_BYTES);
    assert_string_equal(message + length - 3, "...");
    assert_int_equal((length - 3 - start) % 4, 0);
    assert_memory_equal(message, text, length - 3);
  }
}

UNIT_TEST(test_cut_messages_take_no_more) {
  char text[2000];
  memset(text, 'x', sizeof text - 1);
  text[sizeof text - 1] = '\0';
  for (size_t cut = RONDO_ERROR_MESSAGE_BYTES - 60; cut < RONDO_ERROR_MESSAGE_BYTES + 4; cut++) {
    assert_int_equal(rondo_fail_errno(RONDO_IO_ERROR, EIO, "%s", text + sizeof text - 1 - cut), RONDO_IO_ERROR);
    assert_true(strlen(rondo_last_error()->message) < RONDO_ERROR_MESSAGE_BYTES);
    assert_int_equal(rondo_last_error()->driver_code, EIO);
  }
  assert_int_equal(rondo_fail_driver(RONDO_IO_ERROR, RONDO_REASON_NONE, 1, text, "m"), RONDO_IO_ERROR);
  assert_int_equal(strlen(rondo_last_error()->driver_name), RONDO_ERROR_NAME_BYTES - 1);
}

UNIT_TEST(test_context_comes_before_the_message) {
  assert_int_equal(rondo_fail_node(RONDO_INVALID_LIFETIME, RONDO_REASON_USE_AFTER_FREE, 3, "node 3 reads 'a'"),
                   RONDO_INVALID_LIFETIME);
  assert_int_equal(rondo_fail_context(RONDO_INVALID_LIFETIME, "graph '%s'", "g"), RONDO_INVALID_LIFETIME);
  assert_int_equal(rondo_fail_context(RONDO_INVALID_LIFETIME, "rondo_instantiate"), RONDO_INVALID_LIFETIME);
  const rondo_error *error = rondo_last_error();
  assert_string_equal(error->message, "rondo_instantiate: graph 'g': node 3 reads 'a'");
  assert_int_equal(error->reason, RONDO_REASON_USE_AFTER_FREE);
  assert_int_equal(error->node, 3);
}

UNIT_TEST(test_context_of_another_status_is_the_message) {
  assert_int_equal(rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_UNKNOWN_NAME, "older"), RONDO_NOT_FOUND);
  assert_ok(rondo_fail_context(RONDO_OK, "nothing"));
  assert_string_equal(rondo_last_error()->message, "older");
  assert_int_equal(rondo_fail_context(RONDO_IO_ERROR, "newer"), RONDO_IO_ERROR);
  assert_string_equal(rondo_last_error()->message, "newer");
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_NONE);
}

/* A callback that fails without a word is not explained by what failed before it. */
UNIT_TEST(test_a_callback_is_not_explained_by_an_older_error) {
  assert_int_equal(rondo_fail(RONDO_IO_ERROR, RONDO_REASON_NONE, "older"), RONDO_IO_ERROR);
  uint64_t before = rondo_error_number();
  assert_int_equal(rondo_fail_callback(RONDO_IO_ERROR, before, "the body of '%s'", "f"), RONDO_IO_ERROR);
  assert_string_equal(rondo_last_error()->message,
                      "the body of 'f' returned IO_ERROR, and no call of Rondo that failed says why");
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_HOST_FUNCTION_FAILED);

  before = rondo_error_number();
  assert_int_equal(rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_NONE, "inner"), RONDO_NOT_FOUND);
  assert_int_equal(rondo_fail_callback(RONDO_NOT_FOUND, before, "the body"), RONDO_NOT_FOUND);
  assert_string_equal(rondo_last_error()->message, "inner");
  before = rondo_error_number();
  assert_ok(rondo_fail_callback(RONDO_OK, before, "the body"));
  assert_string_equal(rondo_last_error()->message, "inner");

  before = rondo_error_number();
  rondo_status_ignore(rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_NONE, "dropped"), "a test of it");
  assert_int_equal(rondo_error_number(), before);
  assert_int_equal(rondo_fail_callback(RONDO_NOT_FOUND, before, "the body"), RONDO_NOT_FOUND);
  assert_message("the body returned NOT_FOUND");
}

UNIT_TEST(test_a_message_may_quote_the_last_one) {
  assert_int_equal(rondo_fail_driver(RONDO_IO_ERROR, RONDO_REASON_NONE, 5, "FIVE", "inner"), RONDO_IO_ERROR);
  const rondo_error *error = rondo_last_error();
  assert_int_equal(rondo_fail_driver(RONDO_INVALID_DATA, RONDO_REASON_NONE, error->driver_code, error->driver_name,
                                     "outer: %s", error->message),
                   RONDO_INVALID_DATA);
  assert_string_equal(rondo_last_error()->message, "outer: inner (FIVE 5) (FIVE 5)");
  assert_string_equal(rondo_last_error()->driver_name, "FIVE");
}

UNIT_TEST(test_not_ready_keeps_the_detail) {
  assert_int_equal(rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_NONE, "kept"), RONDO_NOT_FOUND);
  assert_int_equal(rondo_fail(RONDO_NOT_READY, RONDO_REASON_NONE, "dropped"), RONDO_NOT_READY);
  assert_int_equal(rondo_fail_context(RONDO_NOT_READY, "dropped"), RONDO_NOT_READY);
  assert_int_equal(rondo_last_error()->status, RONDO_NOT_FOUND);
  assert_string_equal(rondo_last_error()->message, "kept");
}

static void *fail_and_save(void *argument) {
  if (rondo_fail_node(RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED, 5, "node 5 'h' failed") !=
      RONDO_EXECUTION_FAILED)
    return NULL;
  rondo_error_save(argument);
  return argument;
}

UNIT_TEST(test_an_error_moves_between_threads) {
  rondo_saved_error saved;
  assert_int_equal(rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_NONE, "older"), RONDO_NOT_FOUND);
  run_in_thread(fail_and_save, &saved);
  assert_string_equal(rondo_last_error()->message, "older");
  assert_error(rondo_error_raise(&saved), RONDO_EXECUTION_FAILED, RONDO_REASON_HOST_FUNCTION_FAILED);
  assert_int_equal(rondo_last_error()->node, 5);
  assert_string_equal(rondo_last_error()->message, "node 5 'h' failed");
}

/* A status that is dropped takes its detail with it. */
UNIT_TEST(test_what_is_dropped_leaves_the_last_error) {
  rondo_saved_error fresh = {.node = RONDO_NO_NODE};
  rondo_error_restore(&fresh);
  rondo_status_ignore(rondo_fail(RONDO_IO_ERROR, RONDO_REASON_NONE, "dropped"), "there is another way");
  assert_ok(rondo_last_error()->status);
  assert_string_equal(rondo_last_error()->message, "");
  assert_int_equal(rondo_fail_driver(RONDO_OUT_OF_MEMORY, RONDO_REASON_CYCLE, 7, "SEVEN", "kept"), RONDO_OUT_OF_MEMORY);
  rondo_status_ignore(rondo_fail(RONDO_IO_ERROR, RONDO_REASON_NONE, "dropped, and longer"), "there is another way");
  assert_int_equal(rondo_last_error()->reason, RONDO_REASON_CYCLE);
  assert_int_equal(rondo_last_error()->driver_code, 7);
  assert_string_equal(rondo_last_error()->driver_name, "SEVEN");
  assert_string_equal(rondo_last_error()->message, "kept (SEVEN 7)");
}

static void *fail_without_memory(void *argument) {
  has_no_memory = true;
  const rondo_status status = rondo_fail_driver(RONDO_IO_ERROR, RONDO_REASON_TRUNCATED, 5, "FIVE", "dropped");
  const rondo_error *error = rondo_last_error();
  bool right = status == RONDO_IO_ERROR && error->status == RONDO_IO_ERROR && error->driver_code == 5 &&
               error->reason == RONDO_REASON_TRUNCATED && strstr(error->message, "no memory") != NULL &&
               error->driver_name[0] == '\0';
  rondo_saved_error saved;
  rondo_error_save(&saved);
  right = right && rondo_error_raise(&saved) == RONDO_IO_ERROR && strstr(error->message, "no memory") != NULL;
  has_no_memory = false;
  right = right && rondo_error_raise(&saved) == RONDO_IO_ERROR && strcmp(error->message, saved.message) == 0 &&
          error->message != saved.message;
  right = right && rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_NONE, "again") == RONDO_NOT_FOUND;
  return right && strcmp(rondo_last_error()->message, "again") == 0 ? argument : NULL;
}

UNIT_TEST(test_without_memory_the_codes_are_kept) {
  bool is_right = true;
  run_in_thread(fail_without_memory, &is_right);
}

UNIT_TEST(test_raising_nothing_changes_nothing) {
  const rondo_saved_error nothing = {.status = RONDO_OK};
  assert_int_equal(rondo_fail(RONDO_NOT_FOUND, RONDO_REASON_NONE, "kept"), RONDO_NOT_FOUND);
  assert_ok(rondo_error_raise(&nothing));
  assert_string_equal(rondo_last_error()->message, "kept");
}

UNIT_TEST(test_a_callback_sets_its_error) {
  char message[] = "rank 3 is gone";
  const rondo_error error = {.status = RONDO_IO_ERROR,
                             .reason = RONDO_REASON_PEER_LOST,
                             .node = RONDO_NO_NODE,
                             .driver_code = -7,
                             .driver_name = "MPI_ERR_COMM",
                             .message = message};
  assert_int_equal(rondo_error_set(&error), RONDO_IO_ERROR);
  message[0] = 'R'; /* it was copied */
  const rondo_error *last = rondo_last_error();
  assert_int_equal(last->status, RONDO_IO_ERROR);
  assert_int_equal(last->reason, RONDO_REASON_PEER_LOST);
  assert_int_equal(last->node, RONDO_NO_NODE);
  assert_int_equal(last->driver_code, -7);
  assert_string_equal(last->driver_name, "MPI_ERR_COMM");
  assert_string_equal(last->message, "rank 3 is gone");
  assert_int_equal(rondo_error_set(last), RONDO_IO_ERROR); /* its own texts */
  assert_string_equal(rondo_last_error()->message, "rank 3 is gone");
}

UNIT_TEST(test_an_error_may_be_set_with_little) {
  assert_int_equal(rondo_error_set(&(rondo_error){.status = RONDO_NOT_FOUND}), RONDO_NOT_FOUND);
  assert_string_equal(rondo_last_error()->message, "");
  assert_string_equal(rondo_last_error()->driver_name, "");
  assert_ok(rondo_error_set(NULL));
  assert_ok(rondo_error_set(&(rondo_error){.message = "nothing"}));
  assert_int_equal(rondo_last_error()->status, RONDO_NOT_FOUND);
  static char text[20000];
  memset(text, 'x', sizeof text - 1);
  assert_int_equal(rondo_error_set(&(rondo_error){.status = RONDO_IO_ERROR, .driver_name = text, .message = text}),
                   RONDO_IO_ERROR);
  const size_t kept = strlen(rondo_last_error()->message);
  assert_true(kept > 100 && kept < sizeof text - 1);
}

UNIT_TEST(test_size_text) {
  static const struct {
    uint64_t bytes;
    const char *text;
  } cases[] = {
      {0, "0 B"},
      {17, "17 B"},
      {1023, "1023 B"},
      {1024, "1.0 KiB"},
      {4096, "4.0 KiB"},
      {1536, "1.5 KiB"},
      {1048575, "1.0 MiB"},
      {UINT64_C(1610612736), "1.5 GiB"},
      {UINT64_C(1) << 40, "1.0 TiB"},
      {UINT64_C(1) << 50, "1.0 PiB"},
      {UINT64_MAX, "16.0 EiB"},
  };
  char buffer[RONDO_SIZE_TEXT];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    assert_ptr_equal(rondo_size_text(buffer, cases[i].bytes), buffer);
    assert_string_equal(buffer, cases[i].text);
  }
}
