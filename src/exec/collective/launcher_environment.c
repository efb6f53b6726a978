/* SPDX-License-Identifier: MIT
 * See launcher_environment.h. NCCL takes host names of at most 63 characters, and without a message uses the beginning
 * of a longer one; such names are refused here.
 */
#define _GNU_SOURCE
#include "exec/collective/launcher_environment.h"

#include <arpa/inet.h>
#include <assert.h>
#include <inttypes.h>
#include <rondo/collective.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/environment.h"
#include "base/error.h"

enum { HOST_BYTES = 64, SCOPE_BYTES = 16, LOWEST_PORT = 15000, PORTS = 10001, STEPS = 101 };

static const char *get(const char *variable) { return rondo_environment_get(variable); }

static rondo_status fail_value(const char *variable, const char *value, const char *what) {
  return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED, "the environment variable %s is '%.120s': %s", variable,
                    value, what);
}

static rondo_status read_number(const char *variable, const char *value, uint64_t maximum, uint64_t *out) {
  char what[64];
  if (rondo_parse_number(value, maximum, out)) return RONDO_OK;
  (void)snprintf(what, sizeof what, "use a number from 0 to %" PRIu64, maximum);
  return fail_value(variable, value, what);
}

/* Ranks ----------------------------------------------------------------------------------------------------------- */

typedef struct variable_pair {
  const char *rank, *size;
} variable_pair;

static const variable_pair rank_pairs[] = {{"RANK", "WORLD_SIZE"}, {"SLURM_PROCID", "SLURM_NTASKS"}};

static rondo_status fail_without_rank(void) {
  char found[256] = "";
  for (size_t i = 0; i < 4; i++) {
    const char *const variable = i % 2 == 0 ? rank_pairs[i / 2].rank : rank_pairs[i / 2].size;
    const char *const value = get(variable);
    const size_t used = strlen(found);
    (void)snprintf(found + used, sizeof found - used, "%s%s is %s%.20s%s", i == 0 ? "" : ", ", variable,
                   value == NULL ? "not set" : "'", value == NULL ? "" : value, value == NULL ? "" : "'");
  }
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_UNKNOWN_NAME,
                    "the environment has no rank and number of ranks: %s: start the program by torchrun or srun, or "
                    "set RANK and WORLD_SIZE in each process",
                    found);
}

static rondo_status read_ranks(rondo_launcher *out) {
  uint64_t rank, size;
  const variable_pair *pair = rank_pairs;
  if (get(pair->rank) == NULL || get(pair->size) == NULL) pair++;
  if (get(pair->rank) == NULL || get(pair->size) == NULL) return fail_without_rank();
  RONDO_TRY(read_number(pair->rank, get(pair->rank), RONDO_MAX_RANKS - 1, &rank));
  RONDO_TRY(read_number(pair->size, get(pair->size), RONDO_MAX_RANKS, &size));
  if (rank >= size)
    return rondo_fail(RONDO_INVALID_DATA, RONDO_REASON_MALFORMED,
                      "the environment variable %s is '%s', but %s is '%s': ranks count from 0 to %s - 1", pair->rank,
                      get(pair->rank), pair->size, get(pair->size), pair->size);
  out->rank = (uint32_t)rank;
  out->world_size = (uint32_t)size;
  return RONDO_OK;
}

/* Addresses ------------------------------------------------------------------------------------------------------- */

static bool is_host_name(const char *host) {
  return strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._") == strlen(host);
}

/* "::1", or with a network interface "fe80::1%eth0". */
static bool is_ipv6(const char *host) {
  char number[HOST_BYTES];
  struct in6_addr parsed;
  const size_t length = strcspn(host, "%");
  if (host[length] == '%' && (host[length + 1] == '\0' || strlen(host + length + 1) >= SCOPE_BYTES)) return false;
  memcpy(number, host, length);
  number[length] = '\0';
  return inet_pton(AF_INET6, number, &parsed) == 1;
}

/* `host` is the part of the variable's value that names the host, without brackets. */
static rondo_status check_host(const char *variable, const char *host, size_t length, char out[HOST_BYTES]) {
  const char *const value = get(variable);
  if (length == 0) return fail_value(variable, value, "it names no host");
  if (length >= HOST_BYTES)
    return fail_value(variable, value,
                      "NCCL takes host names of at most 63 characters: give a shorter name or the IP address");
  memcpy(out, host, length);
  out[length] = '\0';
  if (is_host_name(out) || is_ipv6(out)) return RONDO_OK;
  return fail_value(variable, value, "that is neither a host name nor an IP address: name rank 0's machine");
}

static void write_address(const char *host, uint64_t port, rondo_launcher *out) {
  const bool is_bare_ipv6 = strchr(host, ':') != NULL;
  const int length = snprintf(out->address, sizeof out->address, "%s%s%s:%" PRIu64, is_bare_ipv6 ? "[" : "", host,
                              is_bare_ipv6 ? "]" : "", port);
  assert(length > 0 && (size_t)length < sizeof out->address);
  (void)length;
}

static rondo_status read_port(const char *variable, const char *text, uint64_t maximum, uint64_t *out) {
  if (rondo_parse_number(text, maximum, out) && *out > 0) return RONDO_OK;
  char what[80];
  (void)snprintf(what, sizeof what, "the port has to be a number from 1 to %" PRIu64, maximum);
  return fail_value(variable, get(variable), what);
}

/* "host:port" or "[IPv6]:port". */
static rondo_status read_comm_id(const char *value, rondo_launcher *out) {
  static const char variable[] = "NCCL_COMM_ID";
  char host[HOST_BYTES];
  uint64_t port = 0;
  const bool has_brackets = *value == '[';
  const char *const begin = value + (has_brackets ? 1 : 0);
  const size_t length = strcspn(begin, has_brackets ? "]" : ":");
  const char *const after = begin + length + (has_brackets && begin[length] == ']' ? 1 : 0);
  if (*after != ':' || (!has_brackets && strchr(after + 1, ':') != NULL))
    return fail_value(variable, value, "use host:port, or [address]:port for IPv6");
  RONDO_TRY(check_host(variable, begin, length, host));
  RONDO_TRY(read_port(variable, after + 1, UINT16_MAX, &port));
  write_address(host, port, out);
  return RONDO_OK;
}

/* The server of torchrun itself listens at the port. */
static rondo_status read_master(rondo_launcher *out) {
  static const char host_variable[] = "MASTER_ADDR", port_variable[] = "MASTER_PORT";
  const char *const address = get(host_variable), *const port_text = get(port_variable);
  if (address == NULL || port_text == NULL) {
    const bool has_address = address != NULL;
    return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_UNKNOWN_NAME,
                      "the environment variable %s is '%.120s', but %s is not set: set both, the address of rank 0 and "
                      "a free port",
                      has_address ? host_variable : port_variable, has_address ? address : port_text,
                      has_address ? port_variable : host_variable);
  }
  const char *const agent = get("TORCHELASTIC_USE_AGENT_STORE");
  const bool is_taken = agent != NULL && strcmp(agent, "True") == 0;
  char host[HOST_BYTES];
  uint64_t port = 0;
  const size_t length = strlen(address);
  const bool has_brackets = length > 2 && *address == '[' && address[length - 1] == ']';
  RONDO_TRY(check_host(host_variable, address + has_brackets, length - (has_brackets ? 2 : 0), host));
  RONDO_TRY(read_port(port_variable, port_text, is_taken ? UINT16_MAX - 1 : UINT16_MAX, &port));
  write_address(host, port + is_taken, out);
  return RONDO_OK;
}

/* Slurm ----------------------------------------------------------------------------------------------------------- */

/* The first host of a list: "rack[1-2]n[03-04,07]-ib,gpu3" begins with rack1n03-ib. False if that is no list, or the
 * name is too long. */
static bool find_first_host(const char *list, char out[HOST_BYTES]) {
  enum { NAME, FIRST, REST } part = NAME; /* REST: of the numbers in brackets */
  size_t length = 0;
  for (const char *at = list; *at != '\0' && (part != NAME || *at != ','); at++) {
    const bool is_digit = *at >= '0' && *at <= '9';
    if (part == NAME && *at == '[') {
      part = FIRST;
      if (at[1] < '0' || at[1] > '9') return false;
    } else if (part != NAME && *at == ']') {
      part = NAME;
    } else if (part != NAME && !is_digit) {
      if (*at != ',' && *at != '-') return false;
      part = REST;
    } else if (part != REST) {
      if (length == HOST_BYTES - 1) return false;
      out[length++] = *at;
    }
  }
  out[length] = '\0';
  return part == NAME && length > 0 && is_host_name(out);
}

/* Steps of one job that run at the same time have different ports, and so have most jobs of one machine. */
static rondo_status read_slurm_port(uint64_t *out) {
  const char *const job_text = get("SLURM_JOB_ID"), *const step_text = get("SLURM_STEP_ID");
  uint64_t job, step = 0;
  if (job_text == NULL)
    return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_UNKNOWN_NAME,
                      "the environment variable SLURM_JOB_ID is not set, so there is no port of the job: set "
                      "NCCL_COMM_ID to \"host:port\" of rank 0");
  RONDO_TRY(read_number("SLURM_JOB_ID", job_text, UINT32_MAX, &job));
  if (step_text != NULL) RONDO_TRY(read_number("SLURM_STEP_ID", step_text, UINT32_MAX, &step));
  *out = LOWEST_PORT + (job * STEPS + step) % PORTS;
  return RONDO_OK;
}

static rondo_status read_slurm(rondo_launcher *out) {
  const char *const variable = get("SLURM_STEP_NODELIST") != NULL ? "SLURM_STEP_NODELIST" : "SLURM_JOB_NODELIST";
  char host[HOST_BYTES];
  uint64_t port = 0;
  if (!find_first_host(get(variable), host))
    return fail_value(variable, get(variable),
                      "that is no list of hosts such as node[01-04,07], with names of at most 63 characters: set "
                      "NCCL_COMM_ID to \"host:port\" of rank 0");
  RONDO_TRY(read_slurm_port(&port));
  write_address(host, port, out);
  return RONDO_OK;
}

static rondo_status read_address(rondo_launcher *out) {
  const char *const given = get("NCCL_COMM_ID");
  if (given != NULL) return read_comm_id(given, out);
  if (get("MASTER_ADDR") != NULL || get("MASTER_PORT") != NULL) return read_master(out);
  if (get("SLURM_STEP_NODELIST") != NULL || get("SLURM_JOB_NODELIST") != NULL) return read_slurm(out);
  return rondo_fail(RONDO_UNAVAILABLE, RONDO_REASON_UNKNOWN_NAME,
                    "the environment has no address of rank 0: NCCL_COMM_ID, MASTER_ADDR, SLURM_STEP_NODELIST and "
                    "SLURM_JOB_NODELIST are not set: start the program by torchrun or srun, or set NCCL_COMM_ID to "
                    "\"host:port\"");
}

rondo_status rondo_launcher_read(rondo_launcher *out) {
  *out = (rondo_launcher){0};
  RONDO_TRY(read_ranks(out));
  return read_address(out);
}
