/* SPDX-License-Identifier: MIT
 * The reader of PTX: any bytes give findings that are consistent. One entry by its name gives what it gives among all.
 * The first half of the text gives the findings of as many entries as are whole in it, and at most one more, of which
 * it says nothing.
 */
#include <string.h>

#include "base/hash.h"
#include "device/cuda/ptx/ptx_access.h"
#include "fuzz/fuzz_target.h"

static void examine(const rondo_allocator *allocator, const char *text, size_t size, const char *name,
                    ptx_findings *out) {
  *out = (ptx_findings){0};
  REQUIRE(ptx_examine(allocator, text, size, name, out) == RONDO_OK);
}

static void require_site(uint32_t answer, const ptx_site *site) {
  REQUIRE(answer <= PTX_UNKNOWN && memchr(site->opcode, '\0', sizeof site->opcode) != NULL);
  REQUIRE((answer == PTX_YES) == (site->line > 0) && (answer == PTX_YES) == (site->opcode[0] != '\0'));
}

static void require_consistent(const ptx_findings *findings) {
  for (size_t i = 0; i < findings->count; i++) {
    const ptx_finding *finding = &findings->items[i];
    require_site(finding->is_read, &finding->read);
    require_site(finding->is_written, &finding->write);
    REQUIRE(finding->bytes > 0);
    if (finding->parameter > 0)
      REQUIRE(i > 0 && finding[-1].parameter + 1 == finding->parameter && finding[-1].entry == finding->entry);
    const bool is_definite = finding->is_read == PTX_YES || finding->is_written == PTX_YES;
    REQUIRE(!is_definite || finding->bytes == 8);
  }
}

/* All entries of the name are among all. */
static void require_named(const rondo_allocator *allocator, const char *text, size_t size, const ptx_findings *all) {
  static const char name[] = "k";
  const uint64_t entry = rondo_hash_text(RONDO_HASH_START, name);
  ptx_findings named;
  size_t found = 0;
  examine(allocator, text, size, name, &named);
  for (size_t i = 0; i < all->count; i++) {
    if (all->items[i].entry != entry) continue;
    REQUIRE(found < named.count && memcmp(&all->items[i], &named.items[found], sizeof named.items[found]) == 0);
    found++;
  }
  rondo_array_free(allocator, &named);
}

static void require_cut(const rondo_allocator *allocator, const char *text, size_t size, const ptx_findings *all) {
  ptx_findings cut;
  examine(allocator, text, size / 2, NULL, &cut);
  require_consistent(&cut);
  REQUIRE(cut.count <= all->count);
  for (size_t i = 0; i < cut.count; i++) {
    const bool is_same = memcmp(&cut.items[i], &all->items[i], sizeof cut.items[i]) == 0;
    REQUIRE(is_same || (cut.items[i].is_read == PTX_UNKNOWN && cut.items[i].is_written == PTX_UNKNOWN));
    REQUIRE(is_same || cut.items[i].entry == cut.items[cut.count - 1].entry);
  }
  rondo_array_free(allocator, &cut);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const rondo_allocator allocator = rondo_allocator_default();
  const char *text = (const char *)data;
  ptx_findings all;
  examine(&allocator, text, size, NULL, &all);
  require_consistent(&all);
  require_named(&allocator, text, size, &all);
  require_cut(&allocator, text, size, &all);
  rondo_array_free(&allocator, &all);
  return 0;
}
