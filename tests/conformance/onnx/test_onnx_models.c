/* SPDX-License-Identifier: MIT
 * The models of Debian's libonnx-testdata, with their inputs and expected outputs (ON-7). Each model is imported, run
 * and compared: floats within 1e-3 relative, or two units of the last place of 16-bit types, and 1e-5 of the largest
 * element; all else exactly.
 *
 * unsupported.txt lists the cases that cannot be imported, with a reason. A case that fails without being listed
 * fails the test, and so does a listed one that passes. On devices other than "cpu", every tenth case runs, because
 * cpu:check and the fake CUDA driver take long; tests/gpu/run has a real GPU run all.
 *
 *   RONDO_TEST_ONNX_SHARE=N              every N-th case, on any device
 *   RONDO_TEST_ONNX_CASE=node/test_add   this case alone
 *   RONDO_TEST_ONNX_LIST=FILE            writes the list of the cases that failed, instead of comparing with it
 *   RONDO_TEST_ONNX_DATA=FOLDER          another suite; `make pypi` runs that of PyPI's onnx
 *   RONDO_TEST_ONNX_UNSUPPORTED=FILE     its list, in place of unsupported.txt
 */
#define _POSIX_C_SOURCE 200809L
#include <rondo/onnx.h>

#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/rondo_test.h"

#define MOST_VALUES 64
#define PATH_BYTES 512
#define NAME_BYTES 128
#define SHARE 10 /* on devices other than "cpu" */

typedef struct onnx_case {
  char name[PATH_BYTES]; /* "node/test_add" */
  char reason[400];      /* why it failed */
} onnx_case;

typedef struct case_list {
  onnx_case *items;
  size_t count;
} case_list;

/* What a case needs while it runs. Zero is nothing. Elements of sequences are inputs, too. */
typedef struct case_run {
  rondo_device *device;
  rondo_onnx_model *model;
  rondo_onnx_tensor_file *inputs[MOST_VALUES];
  char names[MOST_VALUES][NAME_BYTES];
  size_t input_count;
  rondo_onnx_dimension_size lengths[MOST_VALUES]; /* of sequences */
  char length_names[MOST_VALUES][NAME_BYTES];
  size_t length_count;
  rondo_program *program;
  rondo_onnx_build *build;
  rondo_compiled *compiled;
} case_run;

static const char *data_folder(void) {
  const char *folder = getenv("RONDO_TEST_ONNX_DATA");
  return folder != NULL ? folder : "/usr/share/libonnx-testdata/data";
}

/* Reasons ---------------------------------------------------------------------------------------------------------- */

static bool fail_because(onnx_case *of, const char *format, ...) RONDO_PRINTF(2, 3);
static bool fail_because(onnx_case *of, const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  (void)vsnprintf(of->reason, sizeof of->reason, format, arguments);
  va_end(arguments);
  return false;
}

static bool passed(onnx_case *of, rondo_status status) {
  return status == RONDO_OK || fail_because(of, "%s", rondo_last_error()->message);
}

/* Comparing -------------------------------------------------------------------------------------------------------- */

static double from_f16(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double size = exponent == 31  ? (fraction != 0 ? (double)NAN : (double)INFINITY)
                      : exponent == 0 ? ldexp(fraction, -24)
                                      : ldexp(1024 + fraction, exponent - 25);
  return (bits & 0x8000) != 0 ? -size : size;
}

static double from_bf16(uint16_t bits) {
  const uint32_t wide = (uint32_t)bits << 16;
  float number;
  memcpy(&number, &wide, sizeof number);
  return (double)number;
}

static double from_f8_e4m3(uint8_t bits) {
  const int exponent = bits >> 3 & 15, fraction = bits & 7;
  const double size = (bits & 0x7f) == 0x7f ? (double)NAN
                      : exponent == 0       ? ldexp(fraction, -9)
                                            : ldexp(8 + fraction, exponent - 10);
  return (bits & 0x80) != 0 ? -size : size;
}

static double number_at(rondo_type type, const void *data, size_t index) {
  switch (type) {
    case RONDO_F32:
      return (double)((const float *)data)[index];
    case RONDO_F64:
      return ((const double *)data)[index];
    case RONDO_F16:
      return from_f16(((const uint16_t *)data)[index]);
    case RONDO_F8_E4M3:
      return from_f8_e4m3(((const uint8_t *)data)[index]);
    case RONDO_F8_E5M2:
      return from_f16((uint16_t)(((const uint8_t *)data)[index] << 8));
    default:
      return from_bf16(((const uint16_t *)data)[index]);
  }
}

static bool is_near(double actual, double expected, double relative, double absolute) {
  if (isnan(expected) || isnan(actual)) return isnan(expected) && isnan(actual);
  if (isinf(expected) || isinf(actual)) return actual == expected;
  return fabs(actual - expected) <= absolute + relative * fabs(expected);
}

static double relative_of(rondo_type type) { return type == RONDO_BF16 ? 0x1p-6 : type == RONDO_F16 ? 0x1p-9 : 1e-3; }

/* Elements that cancel to 0, as of a Fourier transform, are as exact as the others are large. */
static double absolute_of(rondo_type type, const void *expected, size_t count) {
  double largest = 1;
  for (size_t i = 0; i < count; i++) {
    const double size = fabs(number_at(type, expected, i));
    if (isfinite(size) && size > largest) largest = size;
  }
  return 1e-5 * largest;
}

static bool is_float(rondo_type type) {
  return type == RONDO_F32 || type == RONDO_F64 || type == RONDO_F16 || type == RONDO_BF16 || type == RONDO_F8_E4M3 ||
         type == RONDO_F8_E5M2;
}

/* Elements of the type. */
static bool compare(onnx_case *of, const char *name, rondo_type type, const void *actual, const void *expected,
                    size_t count) {
  if (!is_float(type))
    return memcmp(actual, expected, count * rondo_type_bytes(type)) == 0 ||
           fail_because(of, "output '%s' differs", name);
  const double relative = relative_of(type), absolute = absolute_of(type, expected, count);
  for (size_t i = 0; i < count; i++) {
    const double is = number_at(type, actual, i), should = number_at(type, expected, i);
    if (!is_near(is, should, relative, absolute))
      return fail_because(of, "output '%s' [%zu] is %g, not %g", name, i, is, should);
  }
  return true;
}

static rondo_onnx_tensor_info info_of(const rondo_onnx_tensor_file *tensor) {
  rondo_onnx_tensor_info info = {.struct_size = sizeof info};
  rondo_status status = rondo_onnx_tensor_get_info(tensor, &info);
  assert_int_equal(status, RONDO_OK);
  return info;
}

static bool has_shape(const rondo_onnx_built_value *built, const rondo_onnx_tensor_info *expected) {
  return built->rank == expected->rank && strcmp(built->type_name, expected->type_name) == 0 &&
         (built->rank == 0 || memcmp(built->shape, expected->shape, built->rank * sizeof *built->shape) == 0);
}

/* Elements of the output that depends on the program, as the program has them. */
static bool compare_computed(onnx_case *of, case_run *run, const rondo_onnx_built_value *built,
                             const rondo_onnx_tensor_file *file, size_t count) {
  const size_t bytes = count * rondo_type_bytes(built->type);
  void *actual = malloc(bytes), *expected = malloc(bytes);
  const bool is_right = passed(of, rondo_compiled_read(run->compiled, built->program_name, actual, bytes)) &&
                        passed(of, rondo_onnx_tensor_to_program(file, expected, bytes)) &&
                        compare(of, built->name, built->type, actual, expected, count);
  free(expected);
  free(actual);
  return is_right;
}

/* Types of less than 8 bits, and others that programs lack, are compared as bytes. */
static bool compare_output(onnx_case *of, case_run *run, const rondo_onnx_built_value *built,
                           const rondo_onnx_tensor_file *file) {
  const rondo_onnx_tensor_info expected = info_of(file);
  if (!has_shape(built, &expected)) return fail_because(of, "output '%s' has another type or shape", built->name);
  if (expected.count == 0) return true;
  if (expected.program_type == 0)
    return fail_because(of, "output '%s' has the type %s", built->name, expected.type_name);
  if (built->program_name != NULL) return compare_computed(of, run, built, file, expected.count);
  if (expected.has_type) return compare(of, built->name, expected.type, built->data, expected.data, expected.count);
  return memcmp(built->data, expected.data, expected.bytes) == 0 ||
         fail_because(of, "output '%s' differs", built->name);
}

/* Running ---------------------------------------------------------------------------------------------------------- */

/* Element `element` of the file of an input or output; NULL: there is no file, or no such element. */
static bool load_tensor(onnx_case *of, const char *folder, const char *what, size_t index,
                        const rondo_onnx_value *value, size_t element, rondo_onnx_tensor_file **out) {
  char path[2 * PATH_BYTES];
  (void)snprintf(path, sizeof path, "%s/%s_%zu.pb", folder, what, index);
  *out = NULL;
  if (access(path, R_OK) != 0) return true;
  const rondo_status status = rondo_onnx_tensor_load_element(path, value, element, NULL, out);
  return status == RONDO_NOT_FOUND || passed(of, status);
}

static bool is_kind(const rondo_onnx_value *value, const char *kind) {
  return value != NULL && strcmp(value->type_name, kind) == 0;
}

/* The elements of an input, or the input itself. An optional without elements is empty. */
static bool load_input(onnx_case *of, case_run *run, const char *folder, size_t index, const rondo_onnx_value *value) {
  const bool is_sequence = is_kind(value, "sequence") || is_kind(value->element, "sequence");
  const char *format = is_sequence ? "%s[%zu]" : "%s";
  size_t element = 0;
  for (; run->input_count < MOST_VALUES; element++) {
    rondo_onnx_tensor_file **at = &run->inputs[run->input_count];
    if (!load_tensor(of, folder, "input", index, value, element, at)) return false;
    if (*at == NULL) break;
    (void)snprintf(run->names[run->input_count++], NAME_BYTES, format, value->name, element);
  }
  if (!is_kind(value, "sequence")) return true;
  char *name = run->length_names[run->length_count];
  (void)snprintf(name, NAME_BYTES, "%s[]", value->name);
  run->lengths[run->length_count++] = (rondo_onnx_dimension_size){name, element};
  return true;
}

static bool load_inputs(onnx_case *of, case_run *run, const char *folder) {
  rondo_onnx_value value = {.struct_size = sizeof value};
  for (size_t i = 0; i < MOST_VALUES && rondo_onnx_get_input(run->model, i, &value) == RONDO_OK; i++)
    if (!load_input(of, run, folder, i, &value)) return false;
  return true;
}

/* The reason is that of the first node. */
static bool fail_unsupported(onnx_case *of, const rondo_onnx_build *build) {
  rondo_onnx_unsupported item = {.struct_size = sizeof item};
  if (!passed(of, rondo_onnx_build_get_unsupported(build, 0, &item))) return false;
  return fail_because(of, "%s: %s", item.op[0] != '\0' ? item.op : item.node, item.reason);
}

/* Shapes and values of all inputs are given: what a model need not know becomes an input of the program. */
static bool build(onnx_case *of, case_run *run) {
  static const size_t scalar[] = {0}; /* no sizes */
  rondo_onnx_given_input given[MOST_VALUES];
  for (size_t i = 0; i < run->input_count; i++) {
    const rondo_onnx_tensor_info info = info_of(run->inputs[i]);
    given[i] = (rondo_onnx_given_input){.name = run->names[i],
                                        .shape = info.rank > 0 ? info.shape : scalar,
                                        .rank = info.rank,
                                        .data = info.data,
                                        .bytes = info.bytes};
  }
  const rondo_onnx_build_options options = {RONDO_ONNX_BUILD_OPTIONS_INIT, .inputs = given,
                                            .input_count = run->input_count, .dimensions = run->lengths,
                                            .dimension_count = run->length_count};
  if (!passed(of, rondo_program_create(NULL, &run->program))) return false;
  const rondo_status status = rondo_onnx_build_program(run->model, &options, run->program, &run->build);
  return status == RONDO_UNSUPPORTED && run->build != NULL ? fail_unsupported(of, run->build) : passed(of, status);
}

static bool write_input(onnx_case *of, case_run *run, size_t index) {
  rondo_onnx_built_value built = {.struct_size = sizeof built};
  const rondo_onnx_tensor_info info = info_of(run->inputs[index]);
  if (!passed(of, rondo_onnx_build_get_input(run->build, index, &built))) return false;
  if (built.program_name == NULL) return true;
  const size_t bytes = info.count * rondo_type_bytes(built.type);
  void *elements = malloc(bytes);
  const bool is_right = passed(of, rondo_onnx_tensor_to_program(run->inputs[index], elements, bytes)) &&
                        passed(of, rondo_compiled_write(run->compiled, built.program_name, elements, bytes));
  free(elements);
  return is_right;
}

static bool has_program_outputs(const rondo_onnx_build *built_model) {
  rondo_onnx_built_value built = {.struct_size = sizeof built};
  bool has = false;
  for (size_t i = 0; rondo_onnx_build_get_output(built_model, i, &built) == RONDO_OK; i++)
    has = has || built.program_name != NULL;
  return has;
}

static bool run_program(onnx_case *of, case_run *run) {
  if (!has_program_outputs(run->build)) return true;
  if (!passed(of, rondo_compile(run->program, run->device, NULL, &run->compiled))) return false;
  if (!passed(of, rondo_weights_apply(rondo_onnx_build_weights(run->build), run->compiled, NULL, NULL))) return false;
  for (size_t i = 0; i < run->input_count; i++)
    if (!write_input(of, run, i)) return false;
  return passed(of, rondo_compiled_run(run->compiled)) && passed(of, rondo_compiled_synchronize(run->compiled));
}

/* The output, or element of it, that was built; false: there is none. */
static bool find_built(const case_run *run, size_t index, size_t element, rondo_onnx_built_value *out) {
  for (size_t i = 0; rondo_onnx_build_get_output(run->build, i, out) == RONDO_OK; i++)
    if (out->value_index == index && out->element_index == element) return true;
  return false;
}

/* Compares the elements of an output, of which there must be as many as expected. Tensors may have no file. */
static bool compare_elements(onnx_case *of, case_run *run, const char *folder, size_t index,
                             const rondo_onnx_value *value) {
  const bool is_tensor = !is_kind(value, "sequence") && !is_kind(value, "optional");
  rondo_onnx_built_value built = {.struct_size = sizeof built};
  for (size_t element = 0;; element++) {
    rondo_onnx_tensor_file *expected = NULL;
    const bool is_built = find_built(run, index, element, &built);
    if (!load_tensor(of, folder, "output", index, value, element, &expected)) return false;
    if (expected == NULL && (!is_built || is_tensor)) return true;
    if (expected == NULL) return fail_because(of, "output '%s' is not expected", built.name);
    const bool is_right = is_built ? compare_output(of, run, &built, expected)
                                   : fail_because(of, "output '%s' has no element %zu", value->name, element);
    rondo_onnx_tensor_destroy(expected);
    if (!is_right) return false;
  }
}

static bool compare_outputs(onnx_case *of, case_run *run, const char *folder) {
  rondo_onnx_value value = {.struct_size = sizeof value};
  for (size_t i = 0; rondo_onnx_get_output(run->model, i, &value) == RONDO_OK; i++)
    if (!compare_elements(of, run, folder, i, &value)) return false;
  return true;
}

static void end_run(case_run *run) {
  if (run->compiled != NULL) assert_int_equal(rondo_compiled_destroy(run->compiled), RONDO_OK);
  rondo_onnx_build_destroy(run->build);
  rondo_program_destroy(run->program);
  for (size_t i = 0; i < run->input_count; i++) rondo_onnx_tensor_destroy(run->inputs[i]);
  rondo_onnx_destroy(run->model);
}

static bool run_data_set(onnx_case *of, rondo_device *device, const char *folder) {
  char path[2 * PATH_BYTES];
  case_run run = {.device = device};
  (void)snprintf(path, sizeof path, "%s/%s/model.onnx", data_folder(), of->name);
  const bool is_right = passed(of, rondo_onnx_load(path, NULL, &run.model)) && load_inputs(of, &run, folder) &&
                        build(of, &run) && run_program(of, &run) && compare_outputs(of, &run, folder);
  end_run(&run);
  return is_right;
}

static bool run_case(onnx_case *of, rondo_device *device) {
  char folder[2 * PATH_BYTES];
  for (size_t i = 0;; i++) {
    (void)snprintf(folder, sizeof folder, "%s/%s/test_data_set_%zu", data_folder(), of->name, i);
    if (access(folder, R_OK) != 0) return i > 0 || fail_because(of, "it has no data");
    if (!run_data_set(of, device, folder)) return false;
  }
}

/* Cases ------------------------------------------------------------------------------------------------------------ */

static int compare_cases(const void *a, const void *b) {
  return strcmp(((const onnx_case *)a)->name, ((const onnx_case *)b)->name);
}

static void add_case(case_list *list, const char *folder, const char *name) {
  list->items = realloc(list->items, (list->count + 1) * sizeof *list->items);
  assert_non_null(list->items);
  (void)snprintf(list->items[list->count].name, sizeof list->items->name, "%s/%s", folder, name);
  list->items[list->count++].reason[0] = '\0';
}

static void find_cases(case_list *list, const char *folder) {
  char path[PATH_BYTES];
  (void)snprintf(path, sizeof path, "%s/%s", data_folder(), folder);
  DIR *directory = opendir(path);
  if (directory == NULL) return;
  for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
    if (strncmp(entry->d_name, "test_", 5) == 0) add_case(list, folder, entry->d_name);
  closedir(directory);
}

/* The cases to run: those of the folders, sorted. */
static case_list all_cases(void) {
  static const char *const folders[] = {"node", "pytorch-converted", "pytorch-operator", "simple"};
  case_list list = {0};
  for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) find_cases(&list, folders[i]);
  qsort(list.items, list.count, sizeof *list.items, compare_cases);
  return list;
}

static bool is_chosen(const onnx_case *of, size_t index) {
  const char *only = getenv("RONDO_TEST_ONNX_CASE");
  if (only != NULL) return strcmp(only, of->name) == 0;
  const char *share = getenv("RONDO_TEST_ONNX_SHARE");
  const size_t otherwise = strcmp(test_device_name(), "cpu") == 0 ? 1 : SHARE;
  const size_t chosen = share != NULL ? strtoul(share, NULL, 10) : otherwise;
  assert_true(chosen > 0);
  return index % chosen == 0;
}

static case_list expected_failures(void) {
  case_list list = {0};
  char line[1024];
  const char *path = getenv("RONDO_TEST_ONNX_UNSUPPORTED");
  FILE *file = fopen(path != NULL ? path : RONDO_TEST_ONNX_UNSUPPORTED, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file) != NULL) {
    char *end = strchr(line, ':');
    if (line[0] == '#' || end == NULL) continue;
    *end = '\0';
    list.items = realloc(list.items, (list.count + 1) * sizeof *list.items);
    assert_non_null(list.items);
    (void)snprintf(list.items[list.count].name, sizeof list.items->name, "%.500s", line);
    list.items[list.count++].reason[0] = '\0';
  }
  (void)fclose(file);
  return list;
}

static bool is_listed(const case_list *list, const onnx_case *of) {
  for (size_t i = 0; i < list->count; i++)
    if (strcmp(list->items[i].name, of->name) == 0) return true;
  return false;
}

/* Whether the case is as expected; says so if not. */
static bool note_case(const onnx_case *of, bool is_right, bool is_failure_expected, FILE *written) {
  if (written != NULL && !is_right) (void)fprintf(written, "%s: %s\n", of->name, of->reason);
  if (written != NULL || is_right != is_failure_expected) return true;
  print_error("%s: %s\n", of->name, is_right ? "it passes, and is listed as a failure" : of->reason);
  return false;
}

TEST(test_on7_models_of_libonnx_testdata) {
  if (access(data_folder(), R_OK) != 0) skip();
  const char *list_path = getenv("RONDO_TEST_ONNX_LIST");
  FILE *written = list_path != NULL ? fopen(list_path, "w") : NULL;
  case_list cases = all_cases(), failures = expected_failures();
  size_t run = 0, right = 0, unexpected = 0;
  for (size_t i = 0; i < cases.count; i++) {
    if (!is_chosen(&cases.items[i], i)) continue;
    const bool is_right = run_case(&cases.items[i], t->device);
    run++;
    right += is_right;
    unexpected += !note_case(&cases.items[i], is_right, is_listed(&failures, &cases.items[i]), written);
  }
  print_message("%zu of %zu cases pass on %s\n", right, run, test_device_name());
  if (written != NULL) (void)fclose(written);
  free(cases.items);
  free(failures.items);
  assert_true(run > 0);
  assert_int_equal(unexpected, 0);
}
