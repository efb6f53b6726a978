/* SPDX-License-Identifier: MIT
 * What an update changes is given to the driver here, all of it or nothing. The exec's lowering has what was there
 * before until the driver has taken everything, so that a change which it refuses half-way is taken back from there.
 * Threads: one at a time an exec.
 */
#include "exec/launch/exec_internal.h"

#include "exec/launch/instantiate.h"
#include "exec/launch/update_commit.h"

/* For drivers that take them one by one alone. */
static rondo_status set_each(rondo_executable *executable, const rondo_node_change *changes, size_t count,
                             size_t *out_done) {
  rondo_status status = RONDO_OK;
  size_t done = 0;
  while (done < count && status == RONDO_OK) {
    status = executable->ops->set_params(executable, changes[done].index, &changes[done].node);
    done += status == RONDO_OK;
  }
  *out_done = done;
  return status;
}

void rondo_exec_rebind(rondo_exec *exec, uint32_t place) {
  const rondo_executable_ops *ops = exec->executable->ops;
  if (ops->rebind != NULL) ops->rebind(exec->executable, place, &exec->lowering.nodes.items[place]);
}

/* The thread's last error stays: it says what was refused. */
static void take_back(rondo_exec *exec, const rondo_node_change *changes, size_t count) {
  rondo_executable *executable = exec->executable;
  rondo_saved_error refusal;
  rondo_error_save(&refusal);
  for (size_t i = count; i-- > 0;) {
    const uint32_t place = changes[i].index;
    if (executable->ops->set_params(executable, place, &exec->lowering.nodes.items[place]) == RONDO_OK) continue;
    exec->broken = true;
    if (executable->ops->rebind != NULL)
      executable->ops->rebind(executable, place, NULL); /* what it has is freed next */
  }
  rondo_exec_note_extras(exec);
  rondo_error_restore(&refusal);
}

rondo_status rondo_exec_commit(rondo_exec *exec, const rondo_node_change *changes, size_t count) {
  rondo_executable *executable = exec->executable;
  size_t done;
  const rondo_status status = executable->ops->set_many != NULL
                                  ? executable->ops->set_many(executable, changes, count, &done)
                                  : set_each(executable, changes, count, &done);
  if (status != RONDO_OK) take_back(exec, changes, done);
  return status;
}
