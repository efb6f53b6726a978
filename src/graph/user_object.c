/* SPDX-License-Identifier: MIT
 * See user_object.h. Both counts are in one word, so whoever makes it 0 is the only one left and destroys the object.
 */
#include "graph/user_object.h"

#include <assert.h>
#include <inttypes.h>
#include <stdatomic.h>

#include "base/error.h"
#include "graph/graph.h"

#define ONE_ENTRY (UINT64_C(1) << 32)

struct rondo_user_object {
  rondo_allocator allocator;
  void *user;
  void (*release)(void *user);
  _Atomic uint64_t references; /* lower half: of the caller; upper half: entries of lists */
};

static rondo_status check_count(const char *call, uint32_t count) {
  if (count > 0) return RONDO_OK;
  return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_BAD_SIZE, "%s: a count of 0 references: pass at least 1",
                    call);
}

rondo_status rondo_user_object_make(const char *call, const rondo_allocator *allocator, void *user,
                                    void (*release)(void *user), uint32_t count, rondo_user_object **out) {
  *out = NULL;
  RONDO_TRY(check_count(call, count));
  RONDO_TRY(rondo_fail_context(rondo_allocate_items(allocator, 1, sizeof **out, out), "%s", call));
  (*out)->allocator = *allocator;
  (*out)->user = user;
  (*out)->release = release;
  atomic_init(&(*out)->references, count);
  return RONDO_OK;
}

/* The program's function may use Rondo, which must not change the thread's last error. */
static void destroy(rondo_user_object *object) {
  const rondo_allocator allocator = object->allocator;
  rondo_saved_error before;
  rondo_error_save(&before);
  object->release(object->user);
  rondo_release(&allocator, object, 1, sizeof *object);
  rondo_error_restore(&before);
}

static void subtract(rondo_user_object *object, uint64_t references) {
  const uint64_t before = atomic_fetch_sub_explicit(&object->references, references, memory_order_acq_rel);
  assert(before >= references);
  if (before == references) destroy(object);
}

rondo_status rondo_user_object_add(const char *call, rondo_user_object *object, uint32_t count) {
  RONDO_TRY(check_count(call, count));
  uint64_t before = atomic_load_explicit(&object->references, memory_order_relaxed);
  do {
    if (count > UINT32_MAX - (uint32_t)before)
      return rondo_fail(RONDO_LIMIT_EXCEEDED, RONDO_REASON_OUT_OF_RANGE,
                        "%s: the caller has %" PRIu32 " references, and %" PRIu32
                        " more than fit: release some, or create another object",
                        call, (uint32_t)before, count);
  } while (!atomic_compare_exchange_weak_explicit(&object->references, &before, before + count, memory_order_relaxed,
                                                  memory_order_relaxed));
  return RONDO_OK;
}

/* Replaces references of the caller by `instead`, all or none. */
static rondo_status take(const char *call, rondo_user_object *object, uint32_t count, uint64_t instead) {
  RONDO_TRY(check_count(call, count));
  uint64_t before = atomic_load_explicit(&object->references, memory_order_relaxed), after;
  do {
    if (count > (uint32_t)before)
      return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                        "%s: %" PRIu32 " references, but the caller has only %" PRIu32
                        " (those of graphs are released by rondo_graph_release_object, or with the graph)",
                        call, count, (uint32_t)before);
    after = before - count + instead;
  } while (!atomic_compare_exchange_weak_explicit(&object->references, &before, after, memory_order_acq_rel,
                                                  memory_order_relaxed));
  if (after == 0) destroy(object);
  return RONDO_OK;
}

rondo_status rondo_user_object_remove(const char *call, rondo_user_object *object, uint32_t count) {
  return take(call, object, count, 0);
}

/* Lists ----------------------------------------------------------------------------------------------------------- */

static void retain(rondo_user_object *object) {
  const uint64_t before = atomic_fetch_add_explicit(&object->references, ONE_ENTRY, memory_order_relaxed);
  assert(before != 0);
  (void)before;
}

/* The entry to which the references are added: the last one, if it has the object and room for them. */
static rondo_object_entry *last_entry(const rondo_object_list *list, const rondo_user_object *object, uint32_t count) {
  rondo_object_entry *last = list->count == 0 ? NULL : &list->items[list->count - 1];
  return last != NULL && last->object == object && count <= UINT32_MAX - last->count ? last : NULL;
}

rondo_status rondo_object_list_add(const char *call, const rondo_allocator *allocator, rondo_object_list *list,
                                   rondo_user_object *object, uint32_t count, bool give) {
  RONDO_TRY(check_count(call, count));
  rondo_object_entry *last = last_entry(list, object, count);
  if (last == NULL) RONDO_TRY(rondo_fail_context(rondo_array_reserve(allocator, list, list->count + 1), "%s", call));
  if (give)
    RONDO_TRY(take(call, object, count, last == NULL ? ONE_ENTRY : 0));
  else if (last == NULL)
    retain(object);
  if (last != NULL)
    last->count += count;
  else
    list->items[list->count++] = (rondo_object_entry){.object = object, .count = count};
  return RONDO_OK;
}

static uint64_t count_references(const rondo_object_list *list, const rondo_user_object *object) {
  uint64_t count = 0;
  for (size_t i = 0; i < list->count; i++)
    if (list->items[i].object == object) count += list->items[i].count;
  return count;
}

/* Removes up to *count references of the last entry with the object. Returns how many entries are gone. */
static uint32_t remove_some(rondo_object_list *list, const rondo_user_object *object, uint32_t *count) {
  size_t at = list->count - 1;
  while (list->items[at].object != object) at--;
  rondo_object_entry *entry = &list->items[at];
  const uint32_t removed = *count < entry->count ? *count : entry->count;
  *count -= removed;
  entry->count -= removed;
  if (entry->count > 0) return 0;
  rondo_array_remove(list, at);
  return 1;
}

rondo_status rondo_object_list_remove(const char *call, rondo_object_list *list, rondo_user_object *object,
                                      uint32_t count) {
  RONDO_TRY(check_count(call, count));
  const uint64_t there = count_references(list, object);
  uint64_t entries = 0;
  if (count > there)
    return rondo_fail(RONDO_INVALID_ARGUMENT, RONDO_REASON_OUT_OF_RANGE,
                      "%s: %" PRIu32 " references, but the graph has only %" PRIu64 " to this object", call, count,
                      there);
  while (count > 0) entries += remove_some(list, object, &count);
  if (entries > 0) subtract(object, entries * ONE_ENTRY);
  return RONDO_OK;
}

rondo_status rondo_object_list_copy(const rondo_allocator *allocator, rondo_object_list *to,
                                    const rondo_object_list *from) {
  RONDO_TRY(rondo_array_copy(allocator, to, from));
  for (size_t i = 0; i < to->count; i++) retain(to->items[i].object);
  return RONDO_OK;
}

rondo_status rondo_object_list_gather(const rondo_allocator *allocator, rondo_object_list *list,
                                      const rondo_graph *graph) {
  const size_t first = list->count, count = graph->objects.count;
  RONDO_TRY(rondo_array_reserve(allocator, list, first + count));
  for (size_t i = 0; i < count; i++) retain((list->items[first + i] = graph->objects.items[i]).object);
  list->count += count;
  const rondo_graph *child;
  for (uint32_t at = 0; (child = rondo_graph_next_child(graph, &at)) != NULL;)
    RONDO_TRY(rondo_object_list_gather(allocator, list, child));
  return RONDO_OK;
}

/* The user's function may come back, to a list that is whole. */
void rondo_object_list_free(const rondo_allocator *allocator, rondo_object_list *list) {
  while (list->count > 0) subtract(list->items[--list->count].object, ONE_ENTRY);
  rondo_array_free(allocator, list);
}

bool rondo_object_list_has(const rondo_object_list *list, const void *user) {
  for (size_t i = 0; i < list->count; i++)
    if (list->items[i].object->user == user) return true;
  return false;
}

bool rondo_graph_has_objects(const rondo_graph *graph) {
  if (graph->objects.count > 0) return true;
  const rondo_graph *child;
  for (uint32_t at = 0; (child = rondo_graph_next_child(graph, &at)) != NULL;)
    if (rondo_graph_has_objects(child)) return true;
  return false;
}

void rondo_object_list_check(const rondo_object_list *list) {
#ifdef NDEBUG
  (void)list;
#else
  rondo_array_check(list);
  for (size_t i = 0; i < list->count; i++) {
    const rondo_object_entry *entry = &list->items[i];
    assert(entry->count > 0 && atomic_load(&entry->object->references) >= ONE_ENTRY);
  }
#endif
}
