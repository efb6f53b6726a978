/* SPDX-License-Identifier: MIT
 * Intrusive lists: each member has a pointer to the next one and a link, which is the address of the pointer to the
 * member. So inserting and removing take constant time, and removing does not need the head. The head of an empty list
 * is NULL. While a list has members, neither they nor the head may move.
 */
#ifndef RONDO_BASE_LINKED_LIST_H
#define RONDO_BASE_LINKED_LIST_H

/* Inserts `item` at the front. `next` and `link` are the names of its fields. */
#define RONDO_LIST_INSERT(head, item, next, link)                 \
  do {                                                            \
    (item)->next = (head);                                        \
    (item)->link = &(head);                                       \
    if ((item)->next != NULL) (item)->next->link = &(item)->next; \
    (head) = (item);                                              \
  } while (0)

#define RONDO_LIST_REMOVE(item, next, link)                      \
  do {                                                           \
    *(item)->link = (item)->next;                                \
    if ((item)->next != NULL) (item)->next->link = (item)->link; \
    (item)->next = NULL;                                         \
    (item)->link = NULL;                                         \
  } while (0)

#endif
