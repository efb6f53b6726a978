/* SPDX-License-Identifier: MIT
 * What tests ask of HTML pages and SVG pictures: that they are well-formed XML, hold what they should, and need nothing
 * from outside.
 */
#ifndef RONDO_TESTS_SUPPORT_TEST_MARKUP_H
#define RONDO_TESTS_SUPPORT_TEST_MARKUP_H

#include <stddef.h>

/* Elements are closed in order, attributes quoted and each once, "<" and "&" escaped, and all is UTF-8 (XML 1.0,
 * productions 1, 2, 40 to 44, 66, 68; entities that XML knows by itself). Fails the test at the place. */
#define assert_well_formed(text) test_assert_well_formed((text), __FILE__, __LINE__)
void test_assert_well_formed(const char *text, const char *file, int line);

/* No reference to another resource: no src, no href but to the page itself, no url( and no @import. */
#define assert_self_contained(text) test_assert_self_contained((text), __FILE__, __LINE__)
void test_assert_self_contained(const char *text, const char *file, int line);

/* How often `part` stands in `text`. */
size_t test_count(const char *text, const char *part);

#endif
