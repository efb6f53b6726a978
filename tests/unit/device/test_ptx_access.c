/* SPDX-License-Identifier: MIT
 * What PTX says about a kernel's parameters (AD-4): which instructions read and write, what leads from a parameter to
 * an address, and where nothing may be said. An answer is two letters for each parameter: r or w for YES, - for NO, and
 * ? for UNKNOWN.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "device/cuda/ptx/ptx_access.h"
#include "support/rondo_test.h"
#include "support/test_allocator.h"

/* All registers that the bodies use, and the parameters p, q and n as %p, %q and %n. */
#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define PARAMETERS ".param .u64 k_param_0,\n.param .u64 k_param_1,\n.param .u64 k_param_2"
#define LOADS                                                                                       \
  ".reg .pred %c<3>; .reg .b32 %r<9>; .reg .f32 %f<9>; .reg .f64 %d<3>; .reg .b64 %rd<20>;\n"       \
  ".reg .b64 %p; .reg .b64 %q; .reg .b64 %n;\n"                                                     \
  "ld.param.u64 %rd1, [k_param_0]; ld.param.u64 %rd2, [k_param_1]; ld.param.u64 %n, [k_param_2];\n" \
  "cvta.to.global.u64 %p, %rd1; cvta.to.global.u64 %q, %rd2;\n"                                     \
  "mov.u32 %r1, %tid.x; cvt.u64.u32 %rd3, %r1;\n"
#define KERNEL(body) HEAD ".visible .entry k(" PARAMETERS ")\n{\n" LOADS body "\nret;\n}\n"

static ptx_findings findings_of(const char *text, const char *name) {
  const rondo_allocator allocator = rondo_allocator_default();
  ptx_findings findings = {0};
  const size_t count = strlen(text);
  char *copy = malloc(count + 1); /* of exactly this size: a sanitizer sees what is read after it */
  assert_non_null(copy);
  memcpy(copy, text, count);
  assert_ok(ptx_examine(&allocator, copy, count, name, &findings));
  free(copy);
  return findings;
}

static void free_findings(ptx_findings *findings) {
  const rondo_allocator allocator = rondo_allocator_default();
  rondo_array_free(&allocator, findings);
}

static void put_answers(const ptx_findings *findings, char *out) {
  for (size_t i = 0; i < findings->count; i++) {
    const ptx_finding *finding = &findings->items[i];
    if (i > 0) *out++ = ' ';
    *out++ = "-r?"[finding->is_read];
    *out++ = "-w?"[finding->is_written];
  }
  *out = '\0';
}

static void expect_text(const char *text, const char *wanted, const char *file, int line) {
  char answers[512];
  ptx_findings findings = findings_of(text, "k");
  assert_true(findings.count < sizeof answers / 3);
  put_answers(&findings, answers);
  if (strcmp(answers, wanted) != 0) print_error("%s:%d: in\n%s\n", file, line, text);
  assert_string_equal(answers, wanted);
  free_findings(&findings);
}

#define EXPECT(body, wanted) expect_text(KERNEL(body), wanted, __FILE__, __LINE__)
#define EXPECT_TEXT(text, wanted) expect_text(text, wanted, __FILE__, __LINE__)

/* Accesses --------------------------------------------------------------------------------------------------------- */

UNIT_TEST(ad4_loads_read_and_stores_write) {
  EXPECT("", "-- -- --");
  EXPECT("ld.global.f32 %f1, [%p]; st.global.f32 [%q+4], %f1;", "r- -w --");
  EXPECT("ld.f32 %f1, [%rd1]; st.f32 [%rd2], %f1;", "r- -w --");
  EXPECT("ld.global.nc.L1::no_allocate.v4.f32 {%f1,%f2,%f3,%f4}, [%p+16];", "r- -- --");
  EXPECT("st.global.v2.u64 [%q+-16], {%rd3, %rd3};", "-- -w --");
  EXPECT("ld.volatile.global.u32 %r2, [%p]; st.release.gpu.global.u32 [%p], %r2;", "rw -- --");
  EXPECT("ldu.global.f32 %f1, [%p]; @%c1 st.global.f32 [%q], 0f00000000;", "r- -w --");
  EXPECT("ld.const.u32 %r2, [%p];", "r- -- --");
}

UNIT_TEST(ad4_atomics_read_and_write) {
  EXPECT("atom.global.add.u32 %r2, [%p], 1; red.global.add.f32 [%q], %f1;", "rw rw --");
  EXPECT("atom.global.cas.b64 %rd4, [%p], %rd5, %rd6;", "rw -- --");
  EXPECT("atom.shared.add.u32 %r2, [%p], 1; red.shared::cta.add.u32 [%q], 1;", "?? ?? --");
}

UNIT_TEST(ad4_asynchronous_copies_read_and_write) {
  EXPECT("cp.async.ca.shared.global [%r2], [%p], 16;", "r- -- --");
  EXPECT("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r2], [%p], %r3, [%r4];", "r- -- --");
  EXPECT("cp.async.bulk.global.shared::cta.bulk_group [%q], [%r2], %r3;", "-- -w --");
  EXPECT("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%q], [%r2], %r3;", "-- rw --");
  EXPECT("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%q, {%r2, %r3}], [%r4];", "-- ?? --");
  EXPECT("cp.async.commit_group; cp.async.wait_group 0; prefetch.global.L2 [%p];", "-- -- --");
}

UNIT_TEST(ad4_matrices_are_loaded_and_stored) {
  EXPECT("wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {%r2, %r3}, [%p], %r4;", "r- -- --");
  EXPECT("wmma.store.d.sync.aligned.row.m16n16k16.global.f32 [%q], {%f1, %f2}, %r4;", "-- -w --");
  EXPECT("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r2, %r3, %r4, %r5}, [%r6];", "-- -- --");
}

UNIT_TEST(ad4_other_spaces_are_no_parameters_memory) {
  EXPECT("st.shared.f32 [%r2], %f1; ld.local.f32 %f2, [%rd4]; st.local.u64 [%rd4], %rd3;", "-- -- --");
  EXPECT("st.shared.u32 [%p], %r1;", "?? -- --");
}

/* Addresses -------------------------------------------------------------------------------------------------------- */

UNIT_TEST(ad4_addresses_are_followed_with_their_offsets) {
  EXPECT("mul.wide.u32 %rd4, %r1, 4; add.s64 %rd5, %p, %rd4; st.global.f32 [%rd5], %f1;", "-w -- --");
  EXPECT("shl.b64 %rd4, %rd3, 2; add.s64 %rd5, %rd4, %p; st.global.f32 [%rd5], %f1;", "-w -- --");
  EXPECT("mad.wide.u32 %rd4, %r1, 4, %p; sub.s64 %rd5, %rd4, 8; ld.global.f32 %f1, [%rd5];", "r- -- --");
  EXPECT("mad.lo.s64 %rd4, %rd3, 24, %q; st.global.f32 [%rd4], %f1;", "-- -w --");
  EXPECT("mov.u64 %rd4, %p; mov.b64 %d1, %rd4; mov.f64 %d2, %d1; mov.b64 %rd5, %d2; st.u8 [%rd5], %r1;", "-w -- --");
  EXPECT("cvta.global.u64 %rd4, %q; cvta.to.global.u64 %rd5, %rd4; st.global.u8 [%rd5], 0;", "-- -w --");
  EXPECT("selp.b64 %rd4, %p, 0, %c1; st.global.u8 [%rd4], 0;", "-w -- --");
  EXPECT("or.b64 %rd4, %p, 4; st.global.u8 [%rd4], 0;", "-w -- --");
  EXPECT("cvt.s64.s32 %rd4, %r1; rem.s64 %rd5, %rd4, %rd3; add.s64 %rd6, %p, %rd5; st.u8 [%rd6], 0;", "-w -- --");
}

/* A loop, whose pointer is set before its first use in the text, or after. */
UNIT_TEST(ad4_addresses_are_followed_around_loops) {
  EXPECT("mov.u64 %rd4, %p; L: ld.global.f32 %f1, [%rd4]; add.s64 %rd4, %rd4, 4; @%c1 bra L;", "r- -- --");
  EXPECT("L: st.global.f32 [%rd6], %f1; mov.u64 %rd6, %rd5; mov.u64 %rd5, %rd4; mov.u64 %rd4, %q; bra L;", "-- -w --");
}

/* The index is a parameter of 8 bytes, or comes from memory: scaled, it is no address. */
UNIT_TEST(ad4_indices_are_no_addresses) {
  EXPECT("shl.b64 %rd4, %n, 3; add.s64 %rd5, %p, %rd4; st.global.f32 [%rd5], %f1;", "-w -- ??");
  EXPECT("ld.global.u64 %rd4, [%q]; mul.lo.s64 %rd5, %rd4, %n; mad.lo.s64 %rd6, %rd5, 4, %p; st.u32 [%rd6], 0;",
         "-w r- ??");
  EXPECT(
      "div.u64 %rd4, %rd3, %n; rem.u64 %rd5, %rd3, %n; mul.lo.s64 %rd6, %rd4, %rd5; add.s64 %rd7, %p, %rd6;"
      "st.global.u8 [%rd7], 0;",
      "-w -- ??");
}

/* What cannot be told ---------------------------------------------------------------------------------------------- */

UNIT_TEST(ad4_one_of_several_is_unknown) {
  EXPECT("selp.b64 %rd4, %p, %q, %c1; st.global.u8 [%rd4], 0;", "?? ?? --");
  EXPECT("@%c1 mov.u64 %rd4, %p; @!%c1 mov.u64 %rd4, %q; st.global.u8 [%rd4], 0;", "?? ?? --");
  EXPECT("min.u64 %rd4, %p, %q; ld.global.u8 %r2, [%rd4]; st.global.u8 [%p], 0;", "?w ?? --");
  EXPECT("add.s64 %rd4, %p, %n; st.global.u8 [%rd4], 0;", "?? -- ??");
  EXPECT("sub.s64 %rd4, %q, %p; add.s64 %rd5, %p, %rd4; st.global.u8 [%rd5], 0;", "?? ?? --");
}

UNIT_TEST(ad4_what_is_stored_or_passed_on_is_unknown) {
  EXPECT("st.global.u64 [%q], %p;", "?? -w --");
  EXPECT("st.local.v2.u64 [%rd4], {%rd3, %p}; atom.global.exch.b64 %rd5, [%q], %n;", "?? rw ??");
  EXPECT(
      "{ .param .b64 param0; st.param.b64 [param0+0], %p; .param .b32 retval0;\n"
      "call.uni (retval0), help, (param0); ld.param.b32 %r2, [retval0+0]; }",
      "?? -- --");
  EXPECT("call (%rd4), help, (%p);", "?? -- --");
  EXPECT("mystery.u64 %rd4, %p; st.global.u8 [%rd4], 0; st.global.u8 [%q], 0;", "?? -w --");
  EXPECT("multimem.st.global.u32 [%p], %r1;", "?? -- --");
  EXPECT("mov.u64 %rd4, %p; mystery.b64 %rd4; st.global.u8 [%rd4], 0;", "?? -- --");
}

UNIT_TEST(ad4_halves_of_addresses_are_unknown) {
  EXPECT(
      "mov.b64 {%r2, %r3}, %p; shfl.sync.idx.b32 %r4|%c1, %r2, 0, 31, -1; mov.b64 %rd4, {%r4, %r3};"
      "st.global.u8 [%rd4], 0;",
      "?? -- --");
  EXPECT("cvt.u32.u64 %r2, %p; cvt.u64.u32 %rd4, %r2; add.s64 %rd5, %rd4, %n; st.global.u8 [%rd5], 0;", "?? -- -w");
}

/* An address whose lower bits were cleared, from which an offset in a parameter leads on, is not the parameter's. */
UNIT_TEST(ad4_addresses_that_were_computed_with_are_unknown) {
  EXPECT("shr.u64 %rd4, %p, 4; shl.b64 %rd5, %rd4, 4; add.s64 %rd6, %rd5, %n; st.global.u8 [%rd6], 0;", "?? -- ??");
  EXPECT("shl.b64 %rd4, %p, 16; shr.s64 %rd5, %rd4, 16; add.s64 %rd6, %rd5, %n; st.global.u8 [%rd6], 0;", "?? -- ??");
  EXPECT("and.b64 %rd4, %p, -16; add.s64 %rd6, %rd4, %n; st.global.u8 [%rd6], 0;", "?? -- ??");
  EXPECT("div.u64 %rd4, %p, 3; mul.lo.s64 %rd5, %rd4, 3; add.s64 %rd6, %rd5, %n; st.global.u8 [%rd6], 0;", "?? -- ??");
  EXPECT("mul.hi.u64 %rd4, 1024, %p; mul.lo.s64 %rd5, %rd4, 3; add.s64 %rd6, %rd5, %n; st.u8 [%rd6], 0;", "?? -- ??");
  EXPECT("neg.s64 %rd4, %p; not.b64 %rd5, %q; add.s64 %rd6, %rd4, %n; st.global.u8 [%rd6], 0;", "?? ?? ??");
  EXPECT("shl.b64 %rd4, %rd3, 32; add.s64 %rd5, %rd4, %rd3; add.s64 %rd6, %rd5, %n; st.global.u8 [%rd6], 0;",
         "-- -- ??");
  EXPECT("mul.lo.s64 %rd4, %rd3, 4294967296; add.s64 %rd6, %rd4, %n; st.global.u8 [%rd6], 0;", "-- -- ??");
  EXPECT("cvt.rn.f64.u64 %d1, %p; cvt.rzi.u64.f64 %rd4, %d1; add.s64 %rd6, %rd4, %n; st.u8 [%rd6], 0;", "?? -- ??");
}

/* The base is not from a parameter, and the parameter is an offset. */
UNIT_TEST(ad4_offsets_of_other_memory_are_not_written) {
  EXPECT("ld.global.u64 %rd4, [%q]; add.s64 %rd5, %rd4, %n; st.global.u8 [%rd5], 0;", "-- r- ??");
  EXPECT("mov.u64 %rd4, table; add.s64 %rd5, %rd4, %n; st.global.u8 [%rd5], 0;", "-- -- ??");
  EXPECT("mov.u64 %rd4, table+16; add.s64 %rd5, %n, %rd4; st.u8 [%rd5], 0;", "-- -- ??");
  EXPECT("cvta.shared.u64 %rd4, %rd3; add.s64 %rd5, %rd4, %n; st.u8 [%rd5], 0;", "-- -- ??");
  EXPECT("mov.u64 %rd4, %SPL; add.u64 %rd5, %rd4, %n; st.u8 [%rd5], 0; st.global.u8 [table], 0;", "-- -- ??");
  EXPECT("atom.global.exch.b64 %rd4, [%q], 0; add.s64 %rd5, %rd4, %n; st.u8 [%rd5], 0;", "-- rw ??");
}

/* Names that are no compiler's registers. */
UNIT_TEST(ad4_other_names_are_unknown) {
  EXPECT("{ .reg .u64 t; mov.u64 t, %p; st.global.u8 [t], 0; }", "?? -- --");
  EXPECT("mov.b64 %v.x, %p; st.local.v2.u64 [%rd4], %v;", "?? -- --");
  EXPECT("st.global.u8 [%p+%q], 0; st.global.u8 [64], 0;", "?? ?? --");
}

/* Parameters ------------------------------------------------------------------------------------------------------- */

UNIT_TEST(ad4_the_address_of_a_parameter_leads_anywhere) {
  EXPECT("mov.b64 %rd4, k_param_0; cvta.param.u64 %rd5, %rd4; ld.u64 %rd6, [%rd5]; st.u8 [%rd6], 0;", "?? -- --");
  EXPECT("mov.u32 %r2, k_param_1; ld.param.u64 %rd4, [%r2]; st.global.u8 [%rd4], 0;", "-- ?? --");
  EXPECT("ld.param.u64 %rd4, [k_param_0+8]; st.global.u8 [%rd4], 0; st.global.u8 [%q], 0;", "?? ?? ??");
  EXPECT("ld.param.u32 %r2, [k_param_0+4];", "?? -- --");
}

UNIT_TEST(ad4_parameters_have_their_sizes) {
  static const uint32_t bytes[] = {8, 24, 1, 4, 16, 8, 8};
  ptx_findings findings =
      findings_of(HEAD
                  ".visible .entry k(.param .u64 .ptr .global .align 16 a, .param .align 8 .b8 b[24],.param .s8 c\n"
                  ", .param .f32 d, .param .align 16 .v4 .f32 e [4], .param .b8 f[0x8], .param .texref g) { ret; }",
                  "k");
  assert_int_equal(findings.count, 7);
  for (uint32_t i = 0; i < 7; i++) {
    assert_int_equal(findings.items[i].parameter, i);
    assert_int_equal(findings.items[i].bytes, bytes[i]);
    assert_true(findings.items[i].entry == rondo_hash_text(RONDO_HASH_START, "k"));
  }
  free_findings(&findings);
}

/* A structure of 8 bytes may be an address as a whole. Words of larger ones are not told apart. */
UNIT_TEST(ad4_structures_are_unknown) {
#define STRUCTURES(body) \
  HEAD ".entry k(.param .align 8 .b8 k_0[16], .param .align 8 .b8 k_1[8], .param .u32 k_2)\n{\n" body "\n}\n"
  EXPECT_TEXT(STRUCTURES("ld.param.u64 %a, [k_0+8]; st.global.u8 [%a], 0;"), "?? -- --");
  EXPECT_TEXT(STRUCTURES("ld.param.u64 %a, [k_1]; st.global.u8 [%a], 0;"), "-- -w --");
  EXPECT_TEXT(STRUCTURES("ld.param.v2.u64 {%a, %b}, [k_0]; st.global.u8 [%b], 0;"), "?? -- --");
  EXPECT_TEXT(STRUCTURES("ld.param.v2.u32 {%a, %b}, [k_1]; ld.param.u32 %c, [k_2]; cvt.u64.u32 %d, %c;"), "-- ?? --");
  EXPECT_TEXT(STRUCTURES("ld.param.u32 %c, [k_0]; mul.wide.u32 %d, %c, 4; ld.param.u64 %a, [k_1];\n"
                         "add.s64 %e, %a, %d; st.u8 [%e], 0;"),
              "?? -w --");
  EXPECT_TEXT(STRUCTURES("ld.param.b128 %a, [k_0]; ld.param.u64 %b, [k_2];"), "?? ?? ??");
}

UNIT_TEST(ad4_malformed_parameters_give_nothing) {
  static const char *const lists[] = {"(.param .u64)",
                                      "(.param .u64 a b)",
                                      "(.param a)",
                                      "(.param .u64 a[x])",
                                      "(.param .u64 a",
                                      "(.param .u64 a[0])",
                                      "(.param .u64 a[99999999999999])",
                                      "(,)",
                                      "(.param .u64 a;)",
                                      "(.param .b8 a[8)",
                                      "",
                                      "()"};
  for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
    char text[128];
    (void)snprintf(text, sizeof text, ".version 8.0\n.entry k%s\n{ ret; }", lists[i]);
    EXPECT_TEXT(text, "");
  }
  EXPECT_TEXT(".entry k(.param .u64 a, .param .u64 a) { ld.param.u64 %b, [a]; st.u8 [%b], 0; }", "?? ??");
  EXPECT_TEXT(".entry k(.param .u64 %a) { ld.param.u64 %b, [%a]; st.u8 [%b], 0; }", "??");
}

/* Text ------------------------------------------------------------------------------------------------------------- */

UNIT_TEST(ad4_statements_are_found_in_any_layout) {
  EXPECT("// st.global.u8 [%q], 0;\n/* st.global.u8\n[%q], 0; */ st.global.f32\n  [%p\n+ 4 /* } */ ]\t, %f1 ;",
         "-w -- --");
  EXPECT("{ { .reg .b64 %x; mov.u64 %x, %p; } st.global.u8 [%x], 0; } L1:L2: @ ! %c1 st.u8 [%q], 0;", "-w -w --");
  EXPECT(
      ".loc 1 20 3, function_name $L1, inlined_at 1 2 3\nst.global.u8 [%p], 0; .pragma \"nounroll; }\"; st.u8 [%q], 0;",
      "-w -w --");
  EXPECT(".shared .align 4 .b8 tile[16]; targets: .branchtargets L1, L2; st.global.u8 [%p], 0;", "-w -- --");
}

UNIT_TEST(ad4_entries_are_found_by_name) {
  const char *text =
      HEAD ".extern .func help(.param .b64 a);\n.global .align 8 .b8 k[16] = {1, 2};\n.entry k(" PARAMETERS
           ");\n"
           ".func (.param .b32 r) k2(.param .b64 a) { .reg .b64 %rd<2>; st.u8 [%rd1], 0; ret; }\n"
           ".weak .entry kk(.param .u64 a)\n.maxntid 256, 1, 1\n{ ld.param.u64 %a, [a]; st.u8 [%a], 0; }\n"
           ".visible .entry k(.param .u64 a) .reqntid 1 .pragma \"{\";\n"
           ".visible .entry k /* here */ (.param .u64 a) .minnctapersm 2 { ld.param.u64 %a, [a]; ld.u8 %r, [%a]; }\n"
           ".section .debug_str { .b8 1, 2 }";
  char answers[64];
  EXPECT_TEXT(text, "r-");
  ptx_findings all = findings_of(text, NULL), none = findings_of(text, "missing");
  put_answers(&all, answers);
  assert_string_equal(answers, "-w r-");
  assert_true(all.items[0].entry == rondo_hash_text(RONDO_HASH_START, "kk"));
  assert_int_equal(none.count, 0);
  free_findings(&all);
  free_findings(&none);
}

UNIT_TEST(ad4_the_first_instruction_is_named) {
  ptx_findings findings =
      findings_of(KERNEL("\n@%c1 st.global.f32 [%p], %f1;\nst.global.v4.f32 [%p], {%f1,%f2,%f3,%f4};"
                         "ld.acquire.sys.global.L1::evict_last.L2::128B.v4.b32 {%r1,%r2,%r3,%r4}, [%q];"),
                  "k");
  assert_int_equal(findings.count, 3);
  assert_string_equal(findings.items[0].write.opcode, "st.global.f32");
  assert_int_equal(findings.items[0].write.line, 14);
  assert_string_equal(findings.items[1].read.opcode, "ld.acquire.sys.global.L1::evict_las");
  assert_int_equal(findings.items[1].read.line, 15);
  free_findings(&findings);
}

UNIT_TEST(ad4_code_that_is_no_ptx_is_told_apart) {
  assert_true(ptx_is_text(HEAD));
  assert_true(ptx_is_text("\n// a comment\n/* another */ .version 8.0"));
  assert_false(ptx_is_text(""));
  assert_false(ptx_is_text(".versio"));
  assert_false(
      ptx_is_text("\x7f"
                  "ELF\x02\x01"));
  assert_false(ptx_is_text("\x50\xed\x55\xba"));
  assert_false(ptx_is_text("// fake CUDA image 1\nk\n"));
}

/* Wherever the text ends, at most the directives before the body are whole. */
UNIT_TEST(ad4_a_text_that_ends_early_says_nothing) {
  static const char text[] = KERNEL("ld.global.f32 %f1, [%p]; { st.global.f32 [%q], %f1; } /* c */ mov.u64 %rd4, %p;");
  for (size_t count = 0; count < strlen(text) - 2; count++) {
    char cut[sizeof text] = "";
    memcpy(cut, text, count);
    ptx_findings findings = findings_of(cut, NULL);
    for (size_t i = 0; i < findings.count; i++) {
      assert_int_equal(findings.items[i].is_read, PTX_UNKNOWN);
      assert_int_equal(findings.items[i].is_written, PTX_UNKNOWN);
    }
    free_findings(&findings);
  }
}

/* Limits ----------------------------------------------------------------------------------------------------------- */

/* `count` times the line, in which %1 and %2 become its number and the one after. */
static char *repeat(const char *head, const char *line, size_t count, const char *tail) {
  const size_t room = strlen(head) + count * (strlen(line) + 32) + strlen(tail) + 1;
  char *text = malloc(room), *at = text;
  assert_non_null(text);
  at += snprintf(at, room, "%s", head);
  for (size_t i = 0; i < count; i++) {
    for (const char *c = line; *c != '\0'; c++) {
      if (*c == '#')
        at += snprintf(at, 24, "%zu", i);
      else if (*c == '@')
        at += snprintf(at, 24, "%zu", i + 1);
      else
        *at++ = *c;
    }
  }
  (void)snprintf(at, strlen(tail) + 1, "%s", tail);
  return text;
}

#define BEGIN HEAD ".entry k(" PARAMETERS ")\n{\n" LOADS

/* The time is proportional to the text: each of these would take minutes if it were squared. */
UNIT_TEST(ad4_large_texts_take_little_time) {
  char *forward = repeat(BEGIN "mov.u64 %x0, %p;\n", "add.s64 %x@, %x#, 4;\n", 200000, "st.u8 [%x200000], 0; }");
  char *backward = repeat(BEGIN, "mov.u64 %x#, %x@;\n", 200000, "mov.u64 %x200000, %p; st.u8 [%x0], 0; }");
  char *wide = repeat(BEGIN "mystery {%p", ", %x#", 200000, "}; st.u8 [%q], 0; }");
  char *operands = repeat(BEGIN "st.u8 [%p], %x0", ", %x#", 200000, "; }");
  char *parts = repeat(BEGIN "st", ".u8", 200000, " [%p], 0; }");
  char *entries = repeat(HEAD, ".entry k#() { ret; }\n", 100000, "");
  char *braces = repeat(BEGIN, "{ ", 200000, "st.u8 [%p], 0; ");
  EXPECT_TEXT(forward, "-w -- --");
  EXPECT_TEXT(backward, "?? ?? ??"); /* it would take as many passes as it has lines */
  EXPECT_TEXT(wide, "?? -w --");
  EXPECT_TEXT(operands, "-w -- --");
  EXPECT_TEXT(parts, "?? -- --");
  EXPECT_TEXT(entries, "");
  EXPECT_TEXT(braces, "?? ?? ??");
  char *const all[] = {forward, backward, wide, operands, parts, entries, braces};
  for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
}

/* Each allocation fails once. */
UNIT_TEST(ad4_out_of_memory_leaves_nothing) {
  static const char text[] = KERNEL("mad.lo.s64 %rd4, %rd3, 4, %p; st.global.u8 [%rd4], 0;");
  test_allocator allocator;
  rondo_status status = RONDO_OUT_OF_MEMORY;
  test_allocator_init(&allocator);
  for (size_t i = 1; status != RONDO_OK; i++) {
    ptx_findings findings = {0};
    allocator.calls = 0;
    allocator.fail_at = i;
    status = ptx_examine(&allocator.table, text, strlen(text), "k", &findings);
    assert_true(status == RONDO_OK || status == RONDO_OUT_OF_MEMORY);
    rondo_array_free(&allocator.table, &findings);
    assert_true(i < 1000);
  }
  assert_true(test_allocator_is_clean(&allocator));
}
