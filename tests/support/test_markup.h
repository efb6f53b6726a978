/* SPDX-License-Identifier: MIT
 * Checks of HTML pages and SVG pictures: they are well-formed XML, contain the expected text, and need no other
 * resource.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_MARKUP_H
#define RONDO_TESTS_SUPPORT_TEST_MARKUP_H

#include <stddef.h>

/* Fails the test, and prints the position, unless elements are closed in order, attributes are quoted and unique, "<"
 * and "&" are escaped, and everything is UTF-8 (XML 1.0, productions 1, 2, 40 to 44, 66, 68; XML's predefined
 * entities). */
#define assert_well_formed(text) test_assert_well_formed((text), __FILE__, __LINE__)
void test_assert_well_formed(const char *text, const char *file, int line);

/* The text refers to no other resource: no src, no href except to the page itself, no url( and no @import. */
#define assert_self_contained(text) test_assert_self_contained((text), __FILE__, __LINE__)
void test_assert_self_contained(const char *text, const char *file, int line);

/* The number of occurrences of `part` in `text`. */
size_t test_count(const char *text, const char *part);

#endif
