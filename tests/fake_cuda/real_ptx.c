/* SPDX-License-Identifier: MIT
 * Compiles a CUDA source to PTX with the real run-time compiler: real_ptx LIBRARY SOURCE OPTION... prints the PTX. It
 * is a program of its own because that compiler does not run in a process that has loaded the fake driver. Exits with 1
 * if the source is refused.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The function of the library as a pointer at `out`. */
static void find(void *library, const char *name, void *out) {
  void *symbol = library != NULL ? dlsym(library, name) : NULL;
  if (symbol == NULL) exit(1);
  memcpy(out, &symbol, sizeof symbol);
}

static char *read_source(const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || fseek(file, 0, SEEK_END) != 0) exit(1);
  const long bytes = ftell(file);
  char *text = bytes >= 0 ? calloc(1, (size_t)bytes + 1) : NULL;
  rewind(file);
  if (text == NULL || fread(text, 1, (size_t)bytes, file) != (size_t)bytes) exit(1);
  fclose(file);
  return text;
}

int main(int count, char **arguments) {
  int (*create)(void **, const char *, const char *, int, const void *, const void *);
  int (*compile)(void *, int, char **);
  int (*ptx_bytes)(void *, size_t *);
  int (*ptx)(void *, char *);
  void *program = NULL;
  size_t bytes = 0;
  if (count < 3) return 1;
  void *library = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
  find(library, "nvrtcCreateProgram", &create);
  find(library, "nvrtcCompileProgram", &compile);
  find(library, "nvrtcGetPTXSize", &ptx_bytes);
  find(library, "nvrtcGetPTX", &ptx);
  if (create(&program, read_source(arguments[2]), "source.cu", 0, NULL, NULL) != 0) return 1;
  if (compile(program, count - 3, arguments + 3) != 0 || ptx_bytes(program, &bytes) != 0) return 1;
  char *text = calloc(1, bytes + 1);
  if (text == NULL || ptx(program, text) != 0) return 1;
  return fputs(text, stdout) < 0;
}
