/* SPDX-License-Identifier: MIT
 * The fake run-time compiler, a separate library that stands in for libnvrtc.so.12. It looks for kernels (extern "C"
 * __global__ functions) in the source and makes an image with their names. A source with a line "#error" fails with
 * that line in the log; so does a source without a kernel. RONDO_TEST_FAKE_NVRTC_NEWEST is the newest architecture that
 * it supports (for example 89); the default is all. Its PTX is no PTX, but the image; or what the source has in a
 * comment that begins with FAKE_PTX_COMMENT; or what the real compiler makes of the source, if
 * RONDO_TEST_FAKE_NVRTC_REAL is the path of its library and it accepts the source. Threads: any; each program is used
 * by one thread at a time.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_cuda/fake_nvrtc.h"
#include "fake_cuda/image.h"

enum {
  NVRTC_OK = 0,
  NVRTC_INVALID_INPUT = 3,
  NVRTC_INVALID_PROGRAM = 4,
  NVRTC_INVALID_OPTION = 5,
  NVRTC_COMPILATION = 6
};

struct fake_nvrtc_program {
  char *source, *name;
  char *image, *log; /* image NULL: not compiled */
  char *ptx;         /* NULL: none of its own */
};

#define EXPORT __attribute__((visibility("default")))
#define ROW(result, member, symbol, arguments) EXPORT result member arguments __asm__(symbol);
#include "fake_cuda/nvrtc_symbols.h"
#undef ROW

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static size_t live, compilations;

static void *must(void *memory) {
  if (memory == NULL) abort();
  return memory;
}

static char *copy_text(const char *text) {
  const size_t bytes = strlen(text) + 1;
  return memcpy(must(malloc(bytes)), text, bytes);
}

size_t nvrtc_live(void) {
  pthread_mutex_lock(&lock);
  const size_t count = live;
  pthread_mutex_unlock(&lock);
  return count;
}

size_t nvrtc_compilations(void) {
  pthread_mutex_lock(&lock);
  const size_t count = compilations;
  pthread_mutex_unlock(&lock);
  return count;
}

int nvrtc_version(int *major, int *minor) {
  if (major == NULL || minor == NULL) return NVRTC_INVALID_INPUT;
  *major = 12;
  *minor = 4;
  return NVRTC_OK;
}

const char *nvrtc_error_string(int code) {
  switch (code) {
    case NVRTC_OK:
      return "NVRTC_SUCCESS";
    case NVRTC_INVALID_INPUT:
      return "NVRTC_ERROR_INVALID_INPUT";
    case NVRTC_INVALID_PROGRAM:
      return "NVRTC_ERROR_INVALID_PROGRAM";
    case NVRTC_INVALID_OPTION:
      return "NVRTC_ERROR_INVALID_OPTION";
    case NVRTC_COMPILATION:
      return "NVRTC_ERROR_COMPILATION";
    default:
      return "NVRTC_ERROR unknown";
  }
}

int nvrtc_create(fake_nvrtc_program **out, const char *source, const char *name, int header_count,
                 const char *const *headers, const char *const *header_names) {
  if (out == NULL || source == NULL || header_count < 0) return NVRTC_INVALID_INPUT;
  if (header_count > 0 && (headers == NULL || header_names == NULL)) return NVRTC_INVALID_INPUT;
  fake_nvrtc_program *program = must(calloc(1, sizeof *program));
  program->source = copy_text(source);
  program->name = copy_text(name != NULL ? name : "default_program");
  program->log = copy_text("");
  pthread_mutex_lock(&lock);
  live++;
  pthread_mutex_unlock(&lock);
  *out = program;
  return NVRTC_OK;
}

int nvrtc_destroy(fake_nvrtc_program **program) {
  if (program == NULL || *program == NULL) return NVRTC_INVALID_PROGRAM;
  free((*program)->source);
  free((*program)->name);
  free((*program)->image);
  free((*program)->ptx);
  free((*program)->log);
  free(*program);
  *program = NULL;
  pthread_mutex_lock(&lock);
  live--;
  pthread_mutex_unlock(&lock);
  return NVRTC_OK;
}

static bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

static void set_log(fake_nvrtc_program *program, const char *text, size_t length) {
  const size_t bytes = strlen(program->name) + length + sizeof "(): error: \n";
  free(program->log);
  program->log = must(malloc(bytes));
  (void)snprintf(program->log, bytes, "%s(): error: %.*s\n", program->name, (int)length, text);
}

/* A line of the source that begins with "#error"; NULL when there is none. */
static const char *find_error(const char *source) {
  const char *line = source;
  while (line != NULL) {
    line += strspn(line, " \t");
    if (strncmp(line, "#error", strlen("#error")) == 0) return line;
    line = strchr(line, '\n');
    if (line != NULL) line++;
  }
  return NULL;
}

/* The name of the function declared at `text`: what stands before the first parenthesis that is not an attribute's. */
static const char *find_name(const char *text, size_t *length) {
  static const char bounds[] = "__launch_bounds__";
  const char *open = strchr(text, '(');
  const char *attribute = strstr(text, bounds);
  if (attribute != NULL && open != NULL && attribute < open) {
    const char *close = strchr(open, ')');
    open = close != NULL ? strchr(close, '(') : NULL;
  }
  if (open == NULL) return NULL;
  const char *end = open;
  while (end > text && (end[-1] == ' ' || end[-1] == '\n' || end[-1] == '\t')) end--;
  const char *start = end;
  while (start > text && is_name_character(start[-1])) start--;
  *length = (size_t)(end - start);
  return *length > 0 ? start : NULL;
}

/* Writes the image; false when the source has no kernel. */
static bool make_image(fake_nvrtc_program *program) {
  static const char mark[] = "__global__";
  const size_t head = strlen(FAKE_IMAGE_HEAD);
  char *image = must(calloc(1, head + strlen(program->source) + 2)), *end = image + head;
  memcpy(image, FAKE_IMAGE_HEAD, head);
  const bool is_c = strstr(program->source, "extern \"C\"") != NULL;
  for (const char *at = program->source; is_c && (at = strstr(at, mark)) != NULL;) {
    size_t length;
    at += strlen(mark);
    const char *name = find_name(at, &length);
    if (name == NULL) continue;
    memcpy(end, name, length);
    end += length;
    *end++ = '\n';
  }
  program->image = image;
  return end > image + head;
}

/* PTX ------------------------------------------------------------------------------------------------------------- */

/* The PTX in a comment of the source; NULL if there is none. */
static char *ptx_in_comment(const char *source) {
  const char *start = strstr(source, FAKE_PTX_COMMENT), *end = start != NULL ? strstr(start, "*/") : NULL;
  if (end == NULL) return NULL;
  start += strlen(FAKE_PTX_COMMENT);
  char *text = must(calloc(1, (size_t)(end - start) + 1));
  return memcpy(text, start, (size_t)(end - start));
}

/* Everything that the command prints; NULL if it fails. */
static char *output_of(const char *command) {
  size_t count = 0, room = 1 << 16, got;
  char *text = must(malloc(room));
  FILE *pipe = popen(command, "r");
  while (pipe != NULL && (got = fread(text + count, 1, room - count - 1, pipe)) > 0) {
    count += got;
    if (room - count < 2) text = must(realloc(text, room *= 2));
  }
  text[count] = '\0';
  if (pipe != NULL && pclose(pipe) == 0) return text;
  free(text);
  return NULL;
}

static const char architecture[] = "--gpu-architecture=sm_";

/* Appends an option to a command. The architecture becomes a virtual one, for which the real compiler makes PTX alone:
 * machine code, which nobody reads here, would take about as long again. */
static size_t add_option(char *command, size_t room, const char *option) {
  if (strncmp(option, architecture, strlen(architecture)) != 0) return (size_t)snprintf(command, room, " %s", option);
  return (size_t)snprintf(command, room, " --gpu-architecture=compute_%s", option + strlen(architecture));
}

/* The options have no blanks and no quotes. */
static char *ptx_by_real(const fake_nvrtc_program *program, int count, const char *const *options) {
  const char *real = getenv("RONDO_TEST_FAKE_NVRTC_REAL");
  char path[] = "/tmp/rondo-source-XXXXXX", command[1024];
  const int file = real != NULL ? mkstemp(path) : -1;
  if (file < 0) return NULL;
  const size_t bytes = strlen(program->source);
  const bool is_written = write(file, program->source, bytes) == (ssize_t)bytes;
  (void)close(file);
  size_t length = (size_t)snprintf(command, sizeof command, "%s %s", real, path);
  for (int i = 0; i < count && length < sizeof command; i++)
    length += add_option(command + length, sizeof command - length, options[i]);
  char *text = is_written && length < sizeof command ? output_of(command) : NULL;
  (void)unlink(path);
  return text;
}

static void make_ptx(fake_nvrtc_program *program, int option_count, const char *const *options) {
  free(program->ptx);
  program->ptx = ptx_in_comment(program->source);
  if (program->ptx == NULL) program->ptx = ptx_by_real(program, option_count, options);
}

/* Compilation ----------------------------------------------------------------------------------------------------- */

/* An option, and of an architecture one that is not too new (RONDO_TEST_FAKE_NVRTC_NEWEST). */
static bool is_known(const char *option) {
  const char *newest = getenv("RONDO_TEST_FAKE_NVRTC_NEWEST");
  if (option == NULL || option[0] != '-') return false;
  if (newest == NULL || strncmp(option, architecture, strlen(architecture)) != 0) return true;
  return atoi(option + strlen(architecture)) <= atoi(newest);
}

int nvrtc_compile(fake_nvrtc_program *program, int option_count, const char *const *options) {
  if (program == NULL) return NVRTC_INVALID_PROGRAM;
  if (option_count < 0 || (option_count > 0 && options == NULL)) return NVRTC_INVALID_INPUT;
  for (int i = 0; i < option_count; i++) {
    if (!is_known(options[i])) return NVRTC_INVALID_OPTION;
  }
  pthread_mutex_lock(&lock);
  compilations++;
  pthread_mutex_unlock(&lock);
  free(program->image);
  program->image = NULL;
  const char *error = find_error(program->source);
  if (error != NULL) {
    set_log(program, error, strcspn(error, "\n"));
    return NVRTC_COMPILATION;
  }
  if (make_image(program)) {
    make_ptx(program, option_count, options);
    return NVRTC_OK;
  }
  static const char no_kernel[] = "no extern \"C\" __global__ function";
  set_log(program, no_kernel, strlen(no_kernel));
  free(program->image);
  program->image = NULL;
  return NVRTC_COMPILATION;
}

static int text_bytes(const fake_nvrtc_program *program, const char *text, size_t *bytes) {
  if (program == NULL) return NVRTC_INVALID_PROGRAM;
  if (bytes == NULL || text == NULL) return NVRTC_INVALID_INPUT;
  *bytes = strlen(text) + 1;
  return NVRTC_OK;
}

static int read_text(const fake_nvrtc_program *program, const char *text, char *out) {
  if (program == NULL) return NVRTC_INVALID_PROGRAM;
  if (out == NULL || text == NULL) return NVRTC_INVALID_INPUT;
  memcpy(out, text, strlen(text) + 1);
  return NVRTC_OK;
}

static const char *ptx_of(const fake_nvrtc_program *program) {
  if (program == NULL) return NULL;
  return program->ptx != NULL ? program->ptx : program->image;
}

int nvrtc_image_bytes(fake_nvrtc_program *program, size_t *bytes) {
  return text_bytes(program, ptx_of(program), bytes);
}
int nvrtc_image(fake_nvrtc_program *program, char *out) { return read_text(program, ptx_of(program), out); }

int nvrtc_cubin_bytes(fake_nvrtc_program *program, size_t *bytes) {
  return text_bytes(program, program != NULL ? program->image : NULL, bytes);
}

int nvrtc_cubin(fake_nvrtc_program *program, char *out) {
  return read_text(program, program != NULL ? program->image : NULL, out);
}

int nvrtc_log_bytes(fake_nvrtc_program *program, size_t *bytes) {
  return text_bytes(program, program != NULL ? program->log : NULL, bytes);
}

int nvrtc_log(fake_nvrtc_program *program, char *out) {
  return read_text(program, program != NULL ? program->log : NULL, out);
}
