/* SPDX-License-Identifier: MIT
 * Rank, number of ranks and address from the environment of torchrun, Slurm and others, and what is said about
 * environments that lack something or are wrong (MM-2).
 */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "exec/collective/launcher_environment.h"
#include "support/rondo_test.h"

#define TORCHRUN "RANK=3 WORLD_SIZE=8 "
#define SLURM "SLURM_PROCID=5 SLURM_NTASKS=16 SLURM_JOB_ID=42 SLURM_STEP_ID=0 "
#define SLURM_PORT "19242" /* 15000 + 42 * 101 % 10001 */

static int clear(void **state) {
  static const char *const names[] = {
      "RANK",         "WORLD_SIZE",   "MASTER_ADDR",  "MASTER_PORT",         "TORCHELASTIC_USE_AGENT_STORE",
      "NCCL_COMM_ID", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST",
      "SLURM_JOB_ID", "SLURM_STEP_ID"};
  (void)state;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) assert_int_equal(unsetenv(names[i]), 0);
  return 0;
}

/* Sets the variables "NAME=VALUE NAME=VALUE", and no others. */
static void set_variables(const char *variables) {
  char copy[1024], *rest = NULL;
  assert_true(strlen(variables) < sizeof copy);
  strcpy(copy, variables);
  clear(NULL);
  for (char *at = strtok_r(copy, " ", &rest); at != NULL; at = strtok_r(NULL, " ", &rest)) {
    char *value = strchr(at, '=');
    assert_non_null(value);
    *value = '\0';
    assert_int_equal(setenv(at, value + 1, 1), 0);
  }
}

#define LAUNCHER_TEST(name) TEST_REGISTER(name, void *no_fixture, clear, clear, false)

LAUNCHER_TEST(ranks_and_addresses) {
  static const struct {
    const char *variables;
    uint32_t rank, world_size;
    const char *address;
  } rows[] = {
      {"RANK=0 WORLD_SIZE=1 MASTER_ADDR=10.0.0.1 MASTER_PORT=29500", 0, 1, "10.0.0.1:29500"},
      {TORCHRUN "MASTER_ADDR=node-1.cluster MASTER_PORT=29500", 3, 8, "node-1.cluster:29500"},
      {TORCHRUN "MASTER_ADDR=n MASTER_PORT=29500 TORCHELASTIC_USE_AGENT_STORE=True", 3, 8, "n:29501"},
      {TORCHRUN "MASTER_ADDR=n MASTER_PORT=29500 TORCHELASTIC_USE_AGENT_STORE=False", 3, 8, "n:29500"},
      {TORCHRUN "MASTER_ADDR=n MASTER_PORT=65534 TORCHELASTIC_USE_AGENT_STORE=True", 3, 8, "n:65535"},
      {TORCHRUN "MASTER_ADDR=::1 MASTER_PORT=1", 3, 8, "[::1]:1"},
      {TORCHRUN "MASTER_ADDR=[fd00::7] MASTER_PORT=80", 3, 8, "[fd00::7]:80"},
      {TORCHRUN "MASTER_ADDR=fe80::1%eth0 MASTER_PORT=80", 3, 8, "[fe80::1%eth0]:80"},
      {TORCHRUN "MASTER_ADDR=n MASTER_PORT=1 NCCL_COMM_ID=10.0.0.9:7000", 3, 8, "10.0.0.9:7000"},
      {TORCHRUN "NCCL_COMM_ID=[fd00::7%ib0]:7000", 3, 8, "[fd00::7%ib0]:7000"},
      {TORCHRUN "NCCL_COMM_ID= MASTER_ADDR=n MASTER_PORT=1", 3, 8, "n:1"},
      {TORCHRUN SLURM "MASTER_ADDR=n MASTER_PORT=2", 3, 8, "n:2"},
      {"WORLD_SIZE=9 " SLURM "MASTER_ADDR=n MASTER_PORT=2", 5, 16, "n:2"},
      {"RANK= WORLD_SIZE= " SLURM "SLURM_STEP_NODELIST=a", 5, 16, "a:" SLURM_PORT},
      {SLURM "SLURM_STEP_NODELIST=node[01-04,07],gpu3 SLURM_JOB_NODELIST=z", 5, 16, "node01:" SLURM_PORT},
      {SLURM "SLURM_JOB_NODELIST=gpu3,node[01-04]", 5, 16, "gpu3:" SLURM_PORT},
      {SLURM "SLURM_STEP_NODELIST=rack[1-2]n[0003,7-9]-ib.local,a", 5, 16, "rack1n0003-ib.local:" SLURM_PORT},
      {SLURM "SLURM_STEP_NODELIST=node[7,9]", 5, 16, "node7:" SLURM_PORT},
      {SLURM "SLURM_STEP_NODELIST=a SLURM_STEP_ID=1", 5, 16, "a:19243"},
      {"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=42 SLURM_JOB_NODELIST=a", 0, 2, "a:" SLURM_PORT},
      {"RANK=65535 WORLD_SIZE=65536 MASTER_ADDR=n MASTER_PORT=65535", 65535, 65536, "n:65535"},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    rondo_launcher launcher;
    set_variables(rows[i].variables);
    assert_ok(rondo_launcher_read(&launcher));
    assert_int_equal(launcher.rank, rows[i].rank);
    assert_int_equal(launcher.world_size, rows[i].world_size);
    assert_string_equal(launcher.address, rows[i].address);
  }
}

typedef struct bad_row {
  const char *variables;
  const char *says[3]; /* what the message contains; NULL: nothing more */
} bad_row;

static void check_bad(const bad_row *rows, size_t count, rondo_status status, rondo_reason reason) {
  for (size_t i = 0; i < count; i++) {
    rondo_launcher launcher;
    set_variables(rows[i].variables);
    assert_error(rondo_launcher_read(&launcher), status, reason);
    for (size_t k = 0; k < 3 && rows[i].says[k] != NULL; k++) assert_message(rows[i].says[k]);
  }
}

LAUNCHER_TEST(what_is_missing_is_named) {
  static const bad_row rows[] = {
      {"", {"RANK is not set, WORLD_SIZE is not set, SLURM_PROCID is not set, SLURM_NTASKS is not set", "torchrun"}},
      {"RANK=3", {"RANK is '3', WORLD_SIZE is not set"}},
      {"WORLD_SIZE=3 SLURM_PROCID=1", {"WORLD_SIZE is '3', SLURM_PROCID is '1', SLURM_NTASKS is not set"}},
      {TORCHRUN, {"NCCL_COMM_ID, MASTER_ADDR, SLURM_STEP_NODELIST and SLURM_JOB_NODELIST", "host:port"}},
      {TORCHRUN "MASTER_ADDR=n", {"MASTER_ADDR is 'n', but MASTER_PORT is not set"}},
      {TORCHRUN "MASTER_PORT=7", {"MASTER_PORT is '7', but MASTER_ADDR is not set"}},
      {TORCHRUN "MASTER_ADDR=n SLURM_JOB_NODELIST=a SLURM_JOB_ID=1", {"MASTER_PORT is not set"}},
      {"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_NODELIST=a", {"SLURM_JOB_ID", "NCCL_COMM_ID"}},
  };
  check_bad(rows, sizeof rows / sizeof *rows, RONDO_UNAVAILABLE, RONDO_REASON_UNKNOWN_NAME);
}

#define LONG_NAME "a123456789b123456789c123456789d123456789e123456789f1234567890123" /* 64 characters */
#define AT " MASTER_ADDR=n MASTER_PORT=1"

LAUNCHER_TEST(numbers_and_ports_of_another_form_are_refused) {
  static const bad_row rows[] = {
      {"RANK=one WORLD_SIZE=2" AT, {"RANK is 'one'", "0 to 65535"}},
      {"RANK=-1 WORLD_SIZE=2" AT, {"RANK is '-1'"}},
      {"RANK=1. WORLD_SIZE=2" AT, {"RANK is '1.'"}},
      {"RANK=65536 WORLD_SIZE=65536" AT, {"RANK is '65536'"}},
      {"RANK=0 WORLD_SIZE=65537" AT, {"WORLD_SIZE is '65537'", "0 to 65536"}},
      {"RANK=0 WORLD_SIZE=99999999999999999999" AT, {"WORLD_SIZE"}},
      {"RANK=2 WORLD_SIZE=2" AT, {"RANK is '2', but WORLD_SIZE is '2'", "from 0 to WORLD_SIZE - 1"}},
      {"RANK=0 WORLD_SIZE=0" AT, {"WORLD_SIZE is '0'"}},
      {"SLURM_PROCID=9 SLURM_NTASKS=8" AT, {"SLURM_PROCID is '9', but SLURM_NTASKS is '8'"}},
      {TORCHRUN "MASTER_ADDR=n MASTER_PORT=0", {"MASTER_PORT is '0'", "1 to 65535"}},
      {TORCHRUN "MASTER_ADDR=n MASTER_PORT=65536", {"MASTER_PORT is '65536'"}},
      {TORCHRUN "MASTER_ADDR=n MASTER_PORT=65535 TORCHELASTIC_USE_AGENT_STORE=True", {"1 to 65534"}},
      {TORCHRUN "MASTER_ADDR=n MASTER_PORT=http", {"MASTER_PORT is 'http'"}},
      {TORCHRUN "NCCL_COMM_ID=n:0", {"NCCL_COMM_ID is 'n:0'", "1 to 65535"}},
      {"SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_JOB_ID=j SLURM_JOB_NODELIST=a", {"SLURM_JOB_ID is 'j'"}},
      {SLURM "SLURM_STEP_ID=batch SLURM_JOB_NODELIST=a", {"SLURM_STEP_ID is 'batch'"}},
  };
  check_bad(rows, sizeof rows / sizeof *rows, RONDO_INVALID_DATA, RONDO_REASON_MALFORMED);
}

LAUNCHER_TEST(hosts_of_another_form_are_refused) {
  static const bad_row rows[] = {
      {TORCHRUN "MASTER_ADDR=a/b MASTER_PORT=1", {"MASTER_ADDR is 'a/b'", "neither a host name nor an IP address"}},
      {TORCHRUN "MASTER_ADDR=1:2 MASTER_PORT=1", {"MASTER_ADDR is '1:2'"}},
      {TORCHRUN "MASTER_ADDR=[] MASTER_PORT=1", {"MASTER_ADDR is '[]'"}},
      {TORCHRUN "MASTER_ADDR=fe80::1% MASTER_PORT=1", {"fe80::1%"}},
      {TORCHRUN "MASTER_ADDR=fe80::1%a123456789123456 MASTER_PORT=1", {"fe80::1%a"}},
      {TORCHRUN "MASTER_ADDR=" LONG_NAME " MASTER_PORT=1", {LONG_NAME, "at most 63 characters"}},
      {TORCHRUN "NCCL_COMM_ID=node", {"NCCL_COMM_ID is 'node'", "host:port"}},
      {TORCHRUN "NCCL_COMM_ID=:80", {"names no host"}},
      {TORCHRUN "NCCL_COMM_ID=fd00::7:80", {"[address]:port for IPv6"}},
      {TORCHRUN "NCCL_COMM_ID=[fd00::7]", {"[address]:port for IPv6"}},
      {TORCHRUN "NCCL_COMM_ID=[fd00::7", {"[address]:port for IPv6"}},
      {TORCHRUN "NCCL_COMM_ID=[]:80", {"names no host"}},
      {TORCHRUN "NCCL_COMM_ID=[fd00::x]:80", {"neither a host name nor an IP address"}},
      {TORCHRUN "NCCL_COMM_ID=" LONG_NAME ":80", {"at most 63 characters"}},
  };
  check_bad(rows, sizeof rows / sizeof *rows, RONDO_INVALID_DATA, RONDO_REASON_MALFORMED);
}

LAUNCHER_TEST(lists_of_hosts_of_another_form_are_refused) {
  static const bad_row rows[] = {
      {SLURM "SLURM_STEP_NODELIST=node[01-04", {"SLURM_STEP_NODELIST is 'node[01-04'", "NCCL_COMM_ID"}},
      {SLURM "SLURM_STEP_NODELIST=node[]", {"node[]"}},
      {SLURM "SLURM_STEP_NODELIST=node[a]", {"node[a]"}},
      {SLURM "SLURM_STEP_NODELIST=node[1;2]", {"node[1;2]"}},
      {SLURM "SLURM_STEP_NODELIST=node[1-", {"node[1-"}},
      {SLURM "SLURM_STEP_NODELIST=node]", {"node]"}},
      {SLURM "SLURM_STEP_NODELIST=node[[1]]", {"node[[1]]"}},
      {SLURM "SLURM_JOB_NODELIST=,node", {"SLURM_JOB_NODELIST is ',node'"}},
      {SLURM "SLURM_JOB_NODELIST=(null)", {"(null)"}},
      {SLURM "SLURM_JOB_NODELIST=" LONG_NAME, {"at most 63 characters"}},
  };
  check_bad(rows, sizeof rows / sizeof *rows, RONDO_INVALID_DATA, RONDO_REASON_MALFORMED);
}
