/* SPDX-License-Identifier: MIT
 * See kept_objects.h. The calls of a tree are ordered, so an event on the stream of the last call is complete when no
 * earlier launch runs. While other code captures that stream, no event can be recorded there; this is tried again
 * later. Threads: as the tree.
 */
#include "tree/record/kept_objects.h"

#include <assert.h>

#include "exec/capture/capture_internal.h"
#include "tree/record/function_body.h"
#include "tree/record/record_call.h"

struct rondo_kept_object {
  rondo_kept_object *next;
  void *object;
  void (*release)(void *object);
  rondo_device_event *done; /* of one that is leaving: when it can be released; NULL: not recorded yet */
};

static void release_all(const rondo_tree *tree, rondo_kept_object **list) {
  while (*list != NULL) {
    rondo_kept_object *const kept = *list;
    *list = kept->next;
    if (kept->done != NULL) kept->done->ops->destroy(kept->done);
    kept->release(kept->object);
    rondo_release(&tree->allocator, kept, 1, sizeof *kept);
  }
}

/* Leaving -------------------------------------------------------------------------------------------------------- */

/* Records when the work that was enqueued so far is done. A failure leaves the event NULL. */
static void mark(const rondo_tree *tree, rondo_kept_object *kept) {
  rondo_stream *stream = rondo_tree_last_stream(tree);
  rondo_device_event *event;
  if (stream == NULL || rondo_stream_find_capture(stream) != NULL) return;
  if (tree->device->ops->event_create(tree->device, false, &event) != RONDO_OK) return;
  if (stream->queue->ops->record(stream->queue, event) == RONDO_OK)
    kept->done = event;
  else
    event->ops->destroy(event);
}

/* A stream that was destroyed was waited for. */
static bool is_done(const rondo_tree *tree, rondo_kept_object *kept, bool waits) {
  if (kept->done == NULL) mark(tree, kept);
  if (kept->done == NULL) return rondo_tree_last_stream(tree) == NULL;
  return (waits ? kept->done->ops->synchronize(kept->done) : kept->done->ops->query(kept->done)) == RONDO_OK;
}

void rondo_kept_leave(rondo_tree *tree, rondo_kept_object **list) {
  if (*list == NULL) return;
  rondo_saved_error before;
  rondo_error_save(&before);
  rondo_kept_object **end = list;
  while (*end != NULL) {
    mark(tree, *end);
    end = &(*end)->next;
  }
  *end = tree->leaving;
  tree->leaving = *list;
  *list = NULL;
  rondo_error_restore(&before);
}

void rondo_kept_settle(rondo_tree *tree, bool waits) {
  rondo_kept_object *done = NULL, **at = &tree->leaving;
  if (tree->leaving == NULL) return;
  rondo_saved_error before;
  rondo_error_save(&before);
  while (*at != NULL) {
    rondo_kept_object *const kept = *at;
    if (!is_done(tree, kept, waits)) {
      at = &kept->next;
      continue;
    }
    *at = kept->next;
    kept->next = done;
    done = kept;
  }
  release_all(tree, &done);
  rondo_error_restore(&before);
}

static void forget(void *object) { (void)object; }

void rondo_kept_end(rondo_tree *tree, bool is_done) {
  for (rondo_kept_object *kept = tree->leaving; kept != NULL && !is_done; kept = kept->next) kept->release = forget;
  release_all(tree, &tree->leaving);
}

/* Keeping -------------------------------------------------------------------------------------------------------- */

rondo_status rondo_call_keep(rondo_call *call, void *object, void (*release)(void *object), bool *out_kept) {
  const char *const name = "rondo_call_keep";
  rondo_kept_object *kept;
  RONDO_TRY(rondo_require(name, "out_kept", out_kept));
  *out_kept = false;
  RONDO_TRY(rondo_require(name, "the call", call));
  RONDO_TRY(rondo_require(name, "release", (const void *)(uintptr_t)release));
  if (call->recorder == NULL) return RONDO_OK;
  rondo_kept_settle(call->tree, false);
  RONDO_TRY(rondo_allocate_items(&call->tree->allocator, 1, sizeof *kept, &kept));
  rondo_recorded_call *made = call->recorder->made;
  *kept = (rondo_kept_object){.next = made->kept, .object = object, .release = release};
  made->kept = kept;
  *out_kept = true;
  return RONDO_OK;
}
