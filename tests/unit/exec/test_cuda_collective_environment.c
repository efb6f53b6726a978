/* SPDX-License-Identifier: MIT
 * Groups by an id, and by what a launcher says in the environment, with the fake NCCL, which tells at which address
 * rank 0 listens (MM-2).
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "fake_cuda/fake_nccl.h"
#include "support/test_ranks.h"

static const fake_nccl_control *nccl;
static test_ranks self;
static test_rank *const first = &self.ranks[0];

static void clear_environment(void) {
  static const char *const names[] = {"RANK",         "WORLD_SIZE",          "MASTER_ADDR",
                                      "MASTER_PORT",  "NCCL_COMM_ID",        "TORCHELASTIC_USE_AGENT_STORE",
                                      "SLURM_PROCID", "SLURM_NTASKS",        "SLURM_STEP_ID",
                                      "SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) assert_int_equal(unsetenv(names[i]), 0);
}

static int set_up(void **state) {
  (void)state;
  nccl = fake_nccl_get();
  assert_non_null(nccl);
  nccl->refuse(NULL, 0);
  clear_environment();
  test_ranks_open_devices(&self);
  return 0;
}

static int tear_down(void **state) {
  (void)state;
  test_ranks_close(&self);
  clear_environment();
  assert_int_equal(nccl->live(), 0);
  return 0;
}

#define LAUNCHED_TEST(name) TEST_DEFINE(name, void *no_fixture, set_up, tear_down)

static void set(const char *name, const char *value) { assert_int_equal(setenv(name, value, 1), 0); }

typedef struct variable {
  const char *name, *value;
} variable;

static void set_all(const variable *variables) {
  clear_environment();
  for (; variables->name != NULL; variables++) set(variables->name, variables->value);
}

static rondo_status all_reduce(test_rank *rank, void *user) {
  (void)user;
  TRY(rondo_all_reduce(rank->communicator, rank->fixture.stream, rank->src, rank->dst, 4, RONDO_F32, RONDO_REDUCE_SUM));
  return rondo_stream_synchronize(rank->fixture.stream);
}

static void assert_listened(const char *address) {
  char listened[128];
  nccl->get_address(listened, sizeof listened);
  assert_string_equal(listened, address);
}

/* Environments ---------------------------------------------------------------------------------------------------- */

/* Groups of one rank. NCCL_COMM_ID is as before afterwards. */
LAUNCHED_TEST(rank_0_listens_where_the_launcher_says) {
  static const struct {
    variable variables[8];
    const char *address;
  } rows[] = {
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "node1"}, {"MASTER_PORT", "29400"}}, "node1:29400"},
      {{{"RANK", "0"},
        {"WORLD_SIZE", "1"},
        {"MASTER_ADDR", "node1"},
        {"MASTER_PORT", "29400"},
        {"TORCHELASTIC_USE_AGENT_STORE", "True"}},
       "node1:29401"},
      {{{"SLURM_PROCID", "0"},
        {"SLURM_NTASKS", "1"},
        {"SLURM_STEP_NODELIST", "node[01-04,07],gpu3"},
        {"SLURM_JOB_ID", "7"},
        {"SLURM_STEP_ID", "2"}},
       "node01:15709"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"NCCL_COMM_ID", "10.1.2.3:4567"}, {"MASTER_ADDR", "other"}},
       "10.1.2.3:4567"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"NCCL_COMM_ID", "[fd00::1]:4567"}}, "[fd00::1]:4567"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rondo_communicator_info info = {.struct_size = sizeof info};
    set_all(rows[i].variables);
    const char *const before = getenv("NCCL_COMM_ID");
    assert_ok(rondo_communicator_from_environment(first->fixture.device, NULL, &first->communicator));
    assert_listened(rows[i].address);
    assert_int_equal(before == NULL, getenv("NCCL_COMM_ID") == NULL);
    if (before != NULL) assert_string_equal(getenv("NCCL_COMM_ID"), rows[i].address);
    assert_ok(rondo_communicator_get_info(first->communicator, &info));
    assert_int_equal(info.rank, 0);
    assert_int_equal(info.world_size, 1);
    assert_string_equal(info.engine, "NCCL");
    assert_ok(all_reduce(first, NULL));
    assert_ok(rondo_communicator_destroy(first->communicator));
    first->communicator = NULL;
  }
}

static void join_from_environment(void *user) {
  test_rank *rank = user;
  rank->status = rondo_communicator_from_environment(rank->fixture.device, NULL, &rank->communicator);
}

/* The ranks of a launcher are processes; here the second thread begins when the first waits for it. */
static void join_second(void *user) {
  while (nccl->waiting() == 0) test_sleep_ms(1);
  (void)setenv("RANK", "1", 1);
  join_from_environment(user);
}

LAUNCHED_TEST(ranks_of_one_address_find_each_other) {
  set("WORLD_SIZE", "2");
  set("MASTER_ADDR", "node1");
  set("MASTER_PORT", "1234");
  for (int i = 0; i < 2; i++) { /* groups may follow each other at one address */
    test_thread threads[] = {{join_from_environment, first}, {join_second, &self.ranks[1]}};
    set("RANK", "0");
    test_on_threads(threads, 2);
    for (int k = 0; k < 2; k++) assert_int_equal(self.ranks[k].status, RONDO_OK);
    assert_listened("node1:1234");
    test_ranks_do(&self, all_reduce, NULL);
    assert_null(getenv("NCCL_COMM_ID"));
    for (int k = 0; k < 2 && i == 0; k++) {
      assert_ok(rondo_communicator_destroy(self.ranks[k].communicator));
      self.ranks[k].communicator = NULL;
    }
  }
}

LAUNCHED_TEST(wrong_environments_are_told) {
  static const struct {
    variable variables[5];
    rondo_status status;
    rondo_reason reason;
    const char *says;
  } rows[] = {
      {{{"WORLD_SIZE", "1"}}, RONDO_UNAVAILABLE, RONDO_REASON_UNKNOWN_NAME, "RANK is not set"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}}, RONDO_UNAVAILABLE, RONDO_REASON_UNKNOWN_NAME, "MASTER_ADDR"},
      {{{"RANK", "2"}, {"WORLD_SIZE", "2"}, {"NCCL_COMM_ID", "n:1"}},
       RONDO_INVALID_DATA,
       RONDO_REASON_MALFORMED,
       "RANK is '2', but WORLD_SIZE is '2'"},
      {{{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"NCCL_COMM_ID", "n"}},
       RONDO_INVALID_DATA,
       RONDO_REASON_MALFORMED,
       "NCCL_COMM_ID is 'n'"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rondo_communicator *made = first->communicator;
    set_all(rows[i].variables);
    assert_error(rondo_communicator_from_environment(first->fixture.device, NULL, &made), rows[i].status,
                 rows[i].reason);
    assert_message("rondo_communicator_from_environment");
    assert_message(rows[i].says);
    assert_null(made);
  }
}

/* The environment is restored, also after failures. */
LAUNCHED_TEST(refusals_while_joining_are_told) {
  static const char *const calls[] = {"ncclGetUniqueId", "ncclGroupStart", "ncclCommInitRank", "ncclGroupEnd"};
  static const variable variables[] = {
      {"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "n"}, {"MASTER_PORT", "1"}, {NULL, NULL}};
  set_all(variables);
  for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
    rondo_communicator *made;
    nccl->refuse(calls[i], 2);
    assert_fails(rondo_communicator_from_environment(first->fixture.device, NULL, &made), RONDO_EXECUTION_FAILED);
    assert_message("rank 0 of 1 at n:1");
    assert_message("unhandled system error");
    assert_null(made);
    assert_null(getenv("NCCL_COMM_ID"));
    assert_int_equal(nccl->live(), 0);
  }
  assert_ok(rondo_communicator_from_environment(first->fixture.device, NULL, &first->communicator));
}

/* Ids ------------------------------------------------------------------------------------------------------------- */

static rondo_communicator_id id;

static rondo_status join_by_id(test_rank *rank, void *user) {
  (void)user;
  return rondo_communicator_from_id(rank->fixture.device, &id, rank->rank, rank->world_size, NULL, &rank->communicator);
}

LAUNCHED_TEST(ranks_of_one_id_find_each_other) {
  assert_ok(rondo_communicator_make_id(first->fixture.device, &id));
  test_ranks_do(&self, join_by_id, NULL);
  test_ranks_do(&self, all_reduce, NULL);
}

/* It is for groups by the environment only: at that address there may be another group, or another machine. */
LAUNCHED_TEST(other_groups_do_not_use_the_address) {
  rondo_device *devices[] = {first->fixture.device, self.ranks[1].fixture.device};
  rondo_communicator *made[2];
  set("NCCL_COMM_ID", "elsewhere:1");
  assert_ok(rondo_communicator_make_id(first->fixture.device, &id));
  test_ranks_do(&self, join_by_id, NULL);
  test_ranks_do(&self, all_reduce, NULL);
  assert_ok(rondo_communicator_create_all(devices, 2, NULL, made));
  assert_string_equal(getenv("NCCL_COMM_ID"), "elsewhere:1");
  for (int i = 0; i < 2; i++) assert_ok(rondo_communicator_destroy(made[i]));
  set("NCCL_COMM_ID", ""); /* which NCCL takes for an address */
  assert_ok(rondo_communicator_create_all(devices, 1, NULL, made));
  assert_string_equal(getenv("NCCL_COMM_ID"), "");
  assert_ok(rondo_communicator_destroy(made[0]));
}

LAUNCHED_TEST(arguments_are_checked) {
  rondo_device *device = first->fixture.device, *cpu = test_device("cpu", NULL);
  rondo_communicator *made;
  nccl->refuse("ncclGetUniqueId", 1);
  assert_fails(rondo_communicator_make_id(device, &id), RONDO_EXECUTION_FAILED);
  assert_message("unhandled cuda error");
  assert_ok(rondo_communicator_make_id(device, &id));
  assert_invalid(rondo_communicator_from_id(device, NULL, 0, 1, NULL, &made), RONDO_REASON_NULL_ARGUMENT);
  assert_invalid(rondo_communicator_from_id(device, &id, 2, 2, NULL, &made), RONDO_REASON_OUT_OF_RANGE);
  assert_invalid(rondo_communicator_from_id(device, &id, 0, 0, NULL, &made), RONDO_REASON_OUT_OF_RANGE);
  assert_error(rondo_communicator_make_id(cpu, &id), RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE);
  assert_error(rondo_communicator_from_id(cpu, &id, 0, 1, NULL, &made), RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE);
  assert_error(rondo_communicator_from_environment(cpu, NULL, &made), RONDO_UNSUPPORTED, RONDO_REASON_OTHER_DEVICE);
  assert_ok(rondo_device_close(cpu));
}
