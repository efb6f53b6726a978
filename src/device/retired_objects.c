/* SPDX-License-Identifier: MIT
 * See retired_objects.h. If the driver cannot mark the end of the launches, the objects are released when the device
 * closes.
 */
#include "device/retired_objects.h"

#include "graph/user_object.h"

struct rondo_launched_objects {
  rondo_launched_objects *next; /* retired ones */
  rondo_device *device;
  rondo_device_event *ended; /* of the launches */
  bool is_marked;            /* it was recorded */
  uint64_t last;             /* number of the queue of the last launch */
  rondo_object_list list;
};

static void free_event(rondo_launched_objects *objects) {
  if (objects->ended != NULL) objects->ended->ops->destroy(objects->ended);
  objects->ended = NULL;
}

/* The user's functions may destroy more execs. */
static void free_with(const rondo_allocator *allocator, rondo_launched_objects *objects) {
  rondo_object_list_free(allocator, &objects->list);
  rondo_release(allocator, objects, 1, sizeof *objects);
}

rondo_status rondo_launched_objects_make(rondo_device *device, const rondo_graph *graph, rondo_launched_objects **out) {
  rondo_launched_objects *made;
  *out = NULL;
  if (!rondo_graph_has_objects(graph)) return RONDO_OK;
  RONDO_TRY(rondo_allocate_items(&device->allocator, 1, sizeof *made, &made));
  made->device = device;
  rondo_status status = device->ops->event_create(device, false, &made->ended);
  if (status == RONDO_OK) status = rondo_object_list_gather(&device->allocator, &made->list, graph);
  if (status == RONDO_OK)
    *out = made;
  else
    rondo_launched_objects_free(made);
  return status;
}

void rondo_launched_objects_free(rondo_launched_objects *objects) {
  if (objects == NULL) return;
  free_event(objects);
  free_with(&objects->device->allocator, objects);
}

static void put(rondo_device *device, rondo_launched_objects *objects) {
  objects->next = atomic_load_explicit(&device->retired, memory_order_relaxed);
  while (!atomic_compare_exchange_weak_explicit(&device->retired, &objects->next, objects, memory_order_release,
                                                memory_order_relaxed)) {
  }
}

void rondo_launched_objects_retire(rondo_launched_objects *objects, rondo_executable *executable, uint64_t last) {
  rondo_saved_error before;
  if (objects == NULL) return;
  rondo_error_save(&before);
  objects->last = last;
  objects->is_marked = last != RONDO_QUEUE_NONE && executable->ops->record(executable, objects->ended) == RONDO_OK;
  put(objects->device, objects);
  rondo_error_restore(&before);
}

static bool is_over(const rondo_launched_objects *objects, uint64_t waited) {
  if (objects->last == RONDO_QUEUE_NONE || objects->last == waited) return true;
  return objects->is_marked && objects->ended->ops->query(objects->ended) == RONDO_OK;
}

/* Takes the objects from the list that are over, and retires the others again. */
static rondo_launched_objects *keep_over(rondo_device *device, rondo_launched_objects *list, uint64_t waited) {
  rondo_launched_objects *over = NULL;
  while (list != NULL) {
    rondo_launched_objects *const objects = list;
    list = objects->next;
    if (is_over(objects, waited)) {
      objects->next = over;
      over = objects;
    } else {
      put(device, objects);
    }
  }
  return over;
}

static void free_all(rondo_launched_objects *list) {
  while (list != NULL) {
    rondo_launched_objects *const objects = list;
    list = objects->next;
    rondo_launched_objects_free(objects);
  }
}

void rondo_retired_objects_settle(rondo_device *device, uint64_t waited) {
  rondo_saved_error before;
  rondo_launched_objects *over;
  if (rondo_in_callback() || device->is_inherited) return;
  rondo_error_save(&before);
  /* releasing them may retire others */
  while ((over = keep_over(device, rondo_retired_objects_take(device), waited)) != NULL) free_all(over);
  rondo_error_restore(&before);
}

rondo_launched_objects *rondo_retired_objects_take(rondo_device *device) {
  if (rondo_this_thread.is_own || device->is_inherited) return NULL;
  return atomic_exchange_explicit(&device->retired, NULL, memory_order_acquire);
}

void rondo_retired_objects_end(rondo_device *device, rondo_launched_objects *list, bool are_over) {
  free_all(are_over ? list : keep_over(device, list, RONDO_QUEUE_NONE));
}

void rondo_retired_objects_unmark(rondo_launched_objects *list) {
  for (; list != NULL; list = list->next) free_event(list);
}

void rondo_retired_objects_free(const rondo_allocator *allocator, rondo_launched_objects *list) {
  while (list != NULL) {
    rondo_launched_objects *const objects = list;
    list = objects->next;
    free_with(allocator, objects);
  }
}
